"""Many L1 regressions that share one design: identify, polish, prove."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netpurify.errors import InputError
from netpurify.lad.arrays import ArrayLike, is_tensor, kind_of, to_numpy
from netpurify.lad.design import Design
from netpurify.lad.loss import Loss, tilt_of, weighted, weights_of
from netpurify.lad.solution import Solution, Statistics
from netpurify.lad.stages.answer import Answer
from netpurify.lad.stages.panel import Stage
from netpurify.lad.stages.pipeline import STAGES, STEPS, solve_panel
from netpurify.lad.verifier.certificate import ACCURACY
from netpurify.threads import one_blas_thread

Progress = Callable[[int, int], None]
"""Called with (columns done, columns in all) as work goes on."""
Method = Literal["auto", "simplex"]
Backend = Literal["auto", "compiled", "torch"]


def solve(
    A: ArrayLike | Design,  # noqa: N803
    B: ArrayLike,  # noqa: N803
    *,
    quantile: float = 0.5,
    weights: ArrayLike | None = None,
    accuracy: float = ACCURACY,
    noise_floor: float | ArrayLike | None = None,
    method: Method = "auto",
    backend: Backend = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Minimises |B - A U|_1 column by column, exactly, with a proof for every column; or regresses another quantile.

    Choose this for many least-absolute-deviations regressions on one design, above all when most rows fit exactly and
    some are far off. Columns beyond the limit of recovery are finished by a simplex walk and cost ten times as much.

    Working memory, besides B and the answer: about 30 float64 arrays of a panel (128 columns, 256 if k <= 256) by k
    rows for each thread, and up to 32 MB more where columns are walked (eight inverses, if these are more); and the
    design's basis and projector (8 k^2 bytes, none beyond 256 MB). ``benchmarks/lad.py`` measures it; ``stream`` bounds
    the memory of the answer too. The size of a panel is fixed, so that bits are
    repeatable.

    Compiled answers do not depend, to the bit, on the number of threads, nor on which columns are solved together or in
    which order; through torch they agree to rounding.

    Args:
        A: Design [k, q] of any float dtype, numpy or torch, any device; or a prepared ``Design``.
        B: Right-hand sides [k, p] or [k]. NaN marks an entry that is known to be missing: its row is left out for
            that column. A memory map is read panel by panel.
        quantile: Which quantile of B, given A, is regressed; 0.5 is the median, which minimises |B - A U|_1. For tau a
            residual r costs 2 tau r above zero and -2 (1 - tau) r below.
        weights: Weights of the rows, [k], at least 0; by them the cost of a residual is multiplied.
        accuracy: Largest gap, relative to the objective, that counts as proven.
        noise_floor: Residuals up to this are zero: one number or one per column. ``None`` detects dense rounding noise
            (float32 weights leave 1e-8 where there should be 0) and fits through it;
            0 treats every digit of B as meant.
        method: ``"auto"``, or ``"simplex"`` to pivot every column from least squares.
        backend: ``"compiled"`` runs on the CPU. ``"torch"``, which is experimental and was never measured on a GPU,
            runs identification and polishing through torch on the device of the tensors and finishes what is left on
            the CPU. ``"auto"`` chooses by that device.
        threads: How many panels to work on at once; ``None`` for all cores.
        progress: Called as ``progress(done, total)``.

    Returns:
        Coefficients, residuals, duals and a status for each column. See ``verify`` for the certificate.

    Raises:
        InputError: Shapes do not fit, A is not finite, B holds infinities, or an option has no meaning.
    """
    tilt, convert, known = tilt_of(quantile), kind_of(B), None
    design, values = _prepare(*((A, B) if weights is None else weighted(A, B, weights)))
    plan = _plan(design, accuracy, method, backend, threads, _device(A, B), tilt)
    columns = values[:, None] if values.ndim == 1 else values
    count = columns.shape[1]
    floors = _floors(noise_floor, count)
    answer = Answer.empty(design, count, steps=STEPS)
    size = design.panel
    panels = ((i, columns[:, i : i + size], floors[i : i + size]) for i in range(0, count, size))
    for start, solved in _run(plan, panels):
        answer.put(slice(start, start + solved.stage.size), solved)
        if progress is not None:
            progress(min(start + size, count), count)
    if weights is not None:
        known = weights_of(weights, design.fan_in)
        matrix = A.matrix if isinstance(A, Design) else to_numpy(A, "the design")
        answer.unweigh(known, matrix, to_numpy(B, "the right-hand side"))
    return _solution(answer, design, convert, single=values.ndim == 1, loss=Loss(float(quantile), known))


def stream(
    A: ArrayLike | Design,  # noqa: N803
    blocks: Iterable[ArrayLike],
    *,
    quantile: float = 0.5,
    accuracy: float = ACCURACY,
    noise_floor: float | None = None,
    method: Method = "auto",
    backend: Backend = "auto",
    threads: int | None = None,
) -> Iterator[Solution]:
    """Solves blocks of right-hand sides [k, n], one ``Solution`` each, in memory that does not grow with their number.

    Options as in ``solve``. Blocks are drawn only as they are needed.
    """
    design = A if isinstance(A, Design) else Design.prepare(A)
    for block in blocks:
        yield solve(
            design, block, quantile=quantile, accuracy=accuracy, noise_floor=noise_floor, method=method,
            backend=backend, threads=threads,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Plan:
    design: Design
    accuracy: float
    tilt: float
    stages: tuple[Stage, ...]
    threads: int

    def work(self, start: int, columns: NDArray, floor: NDArray[np.float64]) -> Answer:
        data = np.ascontiguousarray(columns.T, dtype=np.float64)
        if np.isinf(data).any():
            column, row = np.argwhere(np.isinf(data))[0]
            raise InputError(
                f"the right-hand side must not be infinite; entry [{row}, {start + column}] is {data[column, row]}; "
                "mark entries that are known to be wrong as missing (NaN)"
            )
        # One BLAS thread each: panels are the parallel work, and a product split over cores would add in another order.
        with one_blas_thread():
            return solve_panel(
                self.design, data, floor=floor, accuracy=self.accuracy, tilt=self.tilt, stages=self.stages
            )


def _solution(
    answer: Answer, design: Design, convert: Callable[[NDArray], ArrayLike], *, single: bool, loss: Loss
) -> Solution:
    """The answer for all columns in the caller's kind of array, without the last axis for a ``single`` column."""
    finished = {stage.name: int(np.count_nonzero(answer.stage == number)) for number, stage in enumerate(STAGES)}

    def shaped(array: NDArray) -> NDArray:
        return array.T[..., 0] if single else array.T

    return Solution(
        coefficients=convert(shaped(answer.coefficients)),
        residual=convert(shaped(answer.residual)),
        dual=convert(shaped(answer.dual)),
        status=shaped(answer.status),
        noise_floor=shaped(answer.noise_floor),
        missing=shaped(answer.missing),
        stage=shaped(answer.stage),
        rank=design.rank,
        loss=loss,
        statistics=Statistics(finished=finished, seconds=dict(answer.seconds), pivots=answer.pivots),
    )


def _run(plan: _Plan, panels: Iterable[tuple[int, NDArray, NDArray[np.float64]]]) -> Iterator[tuple[int, Answer]]:
    """Panels through ``plan.work`` on its threads, in order, with only a few in flight."""
    if plan.threads == 1:
        for start, columns, floor in panels:
            yield start, plan.work(start, columns, floor)
        return
    with ThreadPoolExecutor(plan.threads) as pool:
        waiting: deque = deque()
        try:
            for start, columns, floor in panels:
                waiting.append((start, pool.submit(plan.work, start, columns, floor)))
                if len(waiting) > 2 * plan.threads:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _prepare(matrix: ArrayLike | Design, right: ArrayLike) -> tuple[Design, NDArray]:
    design = matrix if isinstance(matrix, Design) else Design.prepare(matrix)
    values = to_numpy(right, "the right-hand side")
    if values.ndim not in (1, 2) or values.shape[0] != design.fan_in:
        raise InputError(
            f"the right-hand side must be [{design.fan_in}] or [{design.fan_in}, p], as the design has rows; "
            f"got {list(values.shape)}"
        )
    return design, values


def _plan(
    design: Design, accuracy: float, method: str, backend: str, threads: int | None, device: str, tilt: float
) -> _Plan:
    if not 0.0 <= accuracy < 1.0:
        raise InputError(f"accuracy must lie in [0, 1), as a share of the objective; got {accuracy}")
    if method not in ("auto", "simplex"):
        raise InputError(f'method must be "auto" or "simplex"; got {method!r}')
    if backend not in ("auto", "compiled", "torch"):
        raise InputError(f'backend must be "auto", "compiled" or "torch"; got {backend!r}')
    if threads is not None and threads < 1:
        raise InputError(f"threads must be at least 1, or None for all cores; got {threads}")
    if backend == "torch" and tilt:
        raise InputError('backend must be "auto" or "compiled" for quantiles other than 0.5; got "torch"')
    if backend == "auto":
        backend = "compiled" if tilt or device.startswith(("cpu", "mps")) else "torch"  # mps has no float64
    stages = STAGES
    if method == "simplex":
        stages = tuple(stage for stage in STAGES if stage.name != "identify")
    elif backend == "torch":
        stages = _through_torch(design, device)
    design.warm()
    return _Plan(design, accuracy, tilt, stages, threads or _cores())


def _through_torch(design: Design, device: str) -> tuple[Stage, ...]:
    """The stages, with identification and polishing on ``device``."""
    # Imported here, so that nobody pays for torch who does not use it.
    from netpurify.lad.experimental.torch_stages import TorchStages

    run = TorchStages.prepare(design, device).run
    return tuple(replace(stage, run=run) if stage.name == "identify" else stage for stage in STAGES)


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _device(*values: ArrayLike | Design) -> str:
    """Name of the device of the first tensor; ``"cpu"`` if there is none."""
    return next((str(value.device) for value in values if is_tensor(value)), "cpu")


def _floors(noise_floor: float | ArrayLike | None, count: int) -> NDArray[np.float64]:
    """One floor per column; NaN where it is to be detected."""
    if noise_floor is None:
        return np.full(count, np.nan)
    given = np.asarray(noise_floor) if isinstance(noise_floor, float | int) else to_numpy(noise_floor, "noise_floor")
    floors = given.astype(np.float64)
    if floors.shape not in ((), (count,)) or not (np.isfinite(floors) & (floors >= 0.0)).all():
        raise InputError(f"noise_floor must be None, a number >= 0 or one per column [{count}]; got {noise_floor!r}")
    return np.broadcast_to(floors, (count,)).copy()
