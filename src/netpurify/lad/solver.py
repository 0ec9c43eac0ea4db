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
from netpurify.lad.kernels.clock import STEPS
from netpurify.lad.solution import STAGES, Solution, Statistics
from netpurify.lad.stages.pipeline import Answer, Identify, PanelAnswer, identify_compiled, solve_panel
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
    accuracy: float = ACCURACY,
    noise_floor: float | ArrayLike | None = None,
    method: Method = "auto",
    backend: Backend = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Minimises |B - A U|_1 column by column, exactly, with a proof for every column.

    Choose this for many least-absolute-deviations regressions on one design, above all when most rows fit exactly and
    some are far off. Columns beyond the limit of recovery are finished by a simplex walk and cost ten times as much.

    Working memory, besides B and the answer: some 30 float64 arrays of a panel (128 columns, 256 if k <= 256) by k rows
    for each thread, and the design's basis and projector (8 k^2 bytes, none beyond 256 MB); ``benchmarks/lad.py``
    measures it, ``stream`` bounds the answer too. The panel is not an option: fixed, it makes bits repeatable.

    Compiled answers do not depend, to the bit, on the number of threads, nor on which columns are solved together or in
    which order; through torch they agree to rounding.

    Args:
        A: Design [k, q] of any float dtype, numpy or torch, any device; or a prepared ``Design``.
        B: Right-hand sides [k, p] or [k]. NaN marks an entry that is known to be missing: its row is left out for
            that column. A memory map is read panel by panel.
        accuracy: Largest gap, relative to the objective, that counts as proven.
        noise_floor: Residuals up to this are zero: one number or one per column. ``None`` detects dense rounding noise
            (float32 weights leave 1e-8 where there should be 0) and fits through it;
            0 treats every digit of B as meant.
        method: ``"auto"``, or ``"simplex"`` to pivot every column from least squares.
        backend: ``"compiled"`` runs on the CPU; ``"torch"`` runs identification and polishing through torch on the
            device of the tensors and finishes what is left on the CPU; ``"auto"`` chooses by that device.
        threads: How many panels to work on at once; ``None`` for all cores.
        progress: Called as ``progress(done, total)``.

    Returns:
        Coefficients, residuals, duals and a status for each column. See ``verify`` for the certificate.

    Raises:
        InputError: Shapes do not fit, A is not finite, B holds infinities, or an option has no meaning.
    """
    design, values, convert = _prepare(A, B)
    plan = _plan(design, accuracy, method, backend, threads, _device(A, B))
    columns = values[:, None] if values.ndim == 1 else values
    count = columns.shape[1]
    floors = _floors(noise_floor, count)
    answer = _Answer.empty(design, count)
    size = design.panel
    panels = ((i, columns[:, i : i + size], floors[i : i + size]) for i in range(0, count, size))
    for start, part in _run(plan, panels):
        answer.put(start, part)
        if progress is not None:
            progress(min(start + size, count), count)
    return answer.solution(design, convert, single=values.ndim == 1)


def stream(
    A: ArrayLike | Design,  # noqa: N803
    blocks: Iterable[ArrayLike],
    *,
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
            design, block, accuracy=accuracy, noise_floor=noise_floor, method=method, backend=backend, threads=threads
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    design: Design
    accuracy: float
    identify: Identify | None
    threads: int

    def work(self, start: int, columns: NDArray, floor: NDArray[np.float64]) -> PanelAnswer:
        data = np.ascontiguousarray(columns.T, dtype=np.float64)
        if np.isinf(data).any():
            column, row = np.argwhere(np.isinf(data))[0]
            raise InputError(
                f"the right-hand side must not be infinite; entry [{row}, {start + column}] is {data[column, row]}; "
                "mark entries that are known to be wrong as missing (NaN)"
            )
        # One BLAS thread each: panels are the parallel work, and a product split over cores would add in another order.
        with one_blas_thread():
            return solve_panel(self.design, data, floor, accuracy=self.accuracy, identify=self.identify)


@dataclass(frozen=True, slots=True)
class _Answer:
    """Room for all columns, column by column in memory, filled as panels come in."""

    coefficients: NDArray[np.float64]
    residual: NDArray[np.float64]
    dual: NDArray[np.float64]
    status: NDArray[np.int8]
    noise_floor: NDArray[np.float64]
    erased: NDArray[np.int64]
    stage: NDArray[np.int8]
    spent: dict[str, float]
    pivots: list[int]

    @classmethod
    def empty(cls, design: Design, count: int) -> "_Answer":
        return cls(
            coefficients=np.zeros((count, design.columns)),
            residual=np.empty((count, design.fan_in)),
            dual=np.empty((count, design.fan_in)),
            status=np.empty(count, np.int8),
            noise_floor=np.empty(count),
            erased=np.empty(count, np.int64),
            stage=np.empty(count, np.int8),
            spent=dict.fromkeys(STEPS, 0.0),
            pivots=[0],
        )

    def put(self, start: int, part: PanelAnswer) -> None:
        place = slice(start, start + part.stage.size)
        for name in Answer.__slots__:
            getattr(self, name)[place] = getattr(part.answer, name)
        self.erased[place], self.stage[place] = part.erased, part.stage
        for step, seconds in part.spent.items():
            self.spent[step] += seconds
        self.pivots[0] += part.pivots

    def solution(self, design: Design, convert: Callable[[NDArray], ArrayLike], *, single: bool) -> Solution:
        finished = {name: int(np.count_nonzero(self.stage == number)) for number, name in enumerate(STAGES)}
        whole = Solution(
            coefficients=convert(self.coefficients.T),
            residual=convert(self.residual.T),
            dual=convert(self.dual.T),
            status=self.status,
            noise_floor=self.noise_floor,
            erased=self.erased,
            stage=self.stage,
            rank=design.rank,
            statistics=Statistics(finished=finished, seconds=dict(self.spent), pivots=self.pivots[0]),
        )
        if not single:
            return whole
        names = ("coefficients", "residual", "dual", "status", "noise_floor", "erased", "stage")
        return replace(whole, **{name: getattr(whole, name)[..., 0] for name in names})


def _run(plan: _Plan, panels: Iterable[tuple[int, NDArray, NDArray[np.float64]]]) -> Iterator[tuple[int, PanelAnswer]]:
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


def _prepare(matrix: ArrayLike | Design, right: ArrayLike) -> tuple[Design, NDArray, Callable[[NDArray], ArrayLike]]:
    design = matrix if isinstance(matrix, Design) else Design.prepare(matrix)
    values = to_numpy(right, "the right-hand side")
    if values.ndim not in (1, 2) or values.shape[0] != design.fan_in:
        raise InputError(
            f"the right-hand side must be [{design.fan_in}] or [{design.fan_in}, p], as the design has rows; "
            f"got {list(values.shape)}"
        )
    return design, values, kind_of(right)


def _plan(design: Design, accuracy: float, method: str, backend: str, threads: int | None, device: str) -> _Plan:
    if not 0.0 <= accuracy < 1.0:
        raise InputError(f"accuracy must lie in [0, 1), as a share of the objective; got {accuracy}")
    if method not in ("auto", "simplex"):
        raise InputError(f'method must be "auto" or "simplex"; got {method!r}')
    if backend not in ("auto", "compiled", "torch"):
        raise InputError(f'backend must be "auto", "compiled" or "torch"; got {backend!r}')
    if threads is not None and threads < 1:
        raise InputError(f"threads must be at least 1, or None for all cores; got {threads}")
    if backend == "auto":
        backend = "compiled" if device.startswith(("cpu", "mps")) else "torch"  # mps has no float64
    identify: Identify | None = None
    if method == "auto":
        identify = _through_torch(design, device) if backend == "torch" else identify_compiled
    design.warm()
    return _Plan(design, accuracy, identify, threads or _cores())


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _through_torch(design: Design, device: str) -> Identify:
    # Imported here, so that nobody pays for torch who does not use it.
    from netpurify.lad.experimental.torch_stages import TorchStages

    return TorchStages.prepare(design, device)


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
