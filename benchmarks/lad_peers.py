"""What others offer for min |b - A u|_1 and other quantiles, column by column, each behind one form and one clock.

A Python peer is a function from (A, B, quantile) to an iterator of coefficient vectors, one per column of B; the clock,
the budget and the limit of patience live in ``run``. Threads are limited by the caller: see ``lad_race.one_core``.
"""

import importlib
import multiprocessing
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

R_START = 10.0
"""Seconds granted to R for starting and loading quantreg, on top of the patience with its columns."""
Matrix = NDArray[np.float64]
Columns = Callable[[Matrix, Matrix, float], Iterator[NDArray[np.float64]]]
"""From A [k, q], B [k, p] and a quantile to the coefficients [q] of each column in turn."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Someone else's solver.

    Attributes:
        name: What the tables call it.
        package: The Python distribution or R package it comes from.
        module: The Python module that must be importable; ``None`` for R.
        solve: A function for Python, the name of a fitting function of quantreg for R.
    """

    name: str
    package: str
    module: str | None
    solve: Columns | Literal["br", "rqs", "fnb"]

    def absence(self) -> str | None:
        """Why this peer cannot run here, or ``None``; imports it, so that no column pays for that."""
        if self.module is None:
            return None if quantreg_version() else "Rscript with quantreg is not installed"
        try:
            importlib.import_module(self.module)
        except ImportError:
            return f"{self.package} is not installed"
        return None

    def version(self) -> str | None:
        """Version of the package, or ``None`` where it is absent."""
        if self.absence():
            return None
        return quantreg_version() if self.module is None else metadata.version(self.package)


@dataclass(frozen=True, slots=True)
class Run:
    """Columns a peer has solved.

    Attributes:
        coefficients: [q, n] for the first n columns.
        cpu: CPU seconds from the start to the end of each column, [n].
        wall: Wall seconds likewise.
    """

    coefficients: Matrix
    cpu: NDArray[np.float64]
    wall: NDArray[np.float64]

    @staticmethod
    def per_column(clock: NDArray[np.float64]) -> float:
        """Mean seconds per column; the first, which pays for set-up and cold start, counts only if it is alone."""
        return float((clock[-1] - clock[0]) / (clock.size - 1)) if clock.size > 1 else float(clock[0])


def run(peer: Peer, A: Matrix, B: Matrix, *, quantile: float, budget: float, patience: float) -> Run | str:
    """Solve columns of B until ``budget`` wall seconds are used up, at least one.

    Returns:
        The columns, or why there are none: nothing came within ``patience`` seconds, or the peer failed.
    """
    if isinstance(peer.solve, str):
        return _run_quantreg(peer.solve, A, B, quantile, budget, patience)
    # A process that can be killed: nothing else stops a simplex code in the middle of a column.
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    worker = fork.Process(target=_work, args=(peer.solve, (A, B, quantile), budget, sender), daemon=True)
    worker.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(patience) else _too_slow(patience)
    except EOFError:
        return "failed: ended without an answer"
    finally:
        worker.kill()
        worker.join()


def _work(solve: Columns, problem: tuple[Matrix, Matrix, float], budget: float, sender: Connection) -> None:
    warnings.simplefilter("ignore")  # statsmodels warns of every column that its iteration limit cuts short
    coefficients, cpu, wall = [], [], []
    cpu_began, wall_began = time.process_time(), time.perf_counter()
    for column in solve(*problem):
        cpu.append(time.process_time() - cpu_began)
        wall.append(time.perf_counter() - wall_began)
        coefficients.append(column)
        if wall[-1] > budget:
            break
    sender.send(Run(np.column_stack(coefficients), np.array(cpu), np.array(wall)))


def _run_quantreg(method: str, A: Matrix, B: Matrix, quantile: float, budget: float, patience: float) -> Run | str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for letter, values in (("A", A), ("B", B)):
            (folder / letter).write_bytes(values.tobytes(order="F"))
        numbers = [*A.shape, B.shape[1], budget, quantile]
        script = Path(__file__).with_name("quantreg.R")
        try:
            subprocess.run(
                ["Rscript", script, method, name, *map(str, numbers)], check=True, timeout=R_START + patience
            )
        except subprocess.TimeoutExpired:
            return _too_slow(patience)
        except subprocess.CalledProcessError as error:
            return f"failed: Rscript ended with code {error.returncode}"
        coefficients = np.fromfile(folder / "U").reshape(-1, A.shape[1]).T
        cpu, wall = np.fromfile(folder / "clock").reshape(-1, 2).T
    return Run(coefficients, cpu, wall)


def _too_slow(patience: float) -> str:
    return f"stopped: not done after {patience:.0f} s"


@cache
def quantreg_version() -> str | None:
    """Version of R's quantreg, and with which BLAS; ``None`` where R or quantreg is absent.

    The BLAS matters: with OpenBLAS, ``fnb`` is twice as fast as with the reference BLAS that comes with Debian's R.
    """
    if shutil.which("Rscript") is None:
        return None
    query = (
        'cat(as.character(packageVersion("quantreg")), "in R", paste0(R.version$major, ".", R.version$minor), "with",'
        'if (grepl("openblas", extSoftVersion()["BLAS"])) "OpenBLAS" else '
        'if (grepl("mkl", extSoftVersion()["BLAS"])) "MKL" else "reference BLAS")'
    )
    answer = subprocess.run(["Rscript", "-e", query], capture_output=True, text=True, check=False)
    return answer.stdout if answer.returncode == 0 else None


def _scipy_dual(A: Matrix, B: Matrix, quantile: float) -> Iterator[NDArray[np.float64]]:
    """Maximises b'y subject to A'y = 0 and y in a box; the multipliers of the equations are the coefficients."""
    for b in B.T:
        answer: Any = linprog(-b, A_eq=A.T, b_eq=np.zeros(A.shape[1]), bounds=_box(quantile), method="highs")
        yield -answer.eqlin.marginals


def _scipy_primal(A: Matrix, B: Matrix, quantile: float) -> Iterator[NDArray[np.float64]]:
    """Minimises the costs of r+ and r- subject to A u + r+ - r- = b."""
    k, q = A.shape
    lower, upper = _box(quantile)
    costs = np.repeat([0.0, upper, -lower], [q, k, k])
    equations = sparse.hstack([A, sparse.eye_array(k), -sparse.eye_array(k)], format="csc")
    bounds = np.column_stack([np.where(costs == 0.0, -np.inf, 0.0), np.full(costs.size, np.inf)])
    for b in B.T:
        answer: Any = linprog(costs, A_eq=equations, b_eq=b, bounds=bounds, method="highs")
        yield answer.x[:q]


def _highspy_hot(A: Matrix, B: Matrix, quantile: float) -> Iterator[NDArray[np.float64]]:
    """Builds the dual form once and goes on from the last basis; only the costs change.

    Dual simplex: every variable is boxed, so the old basis stays dual feasible for any costs by flipping bounds.
    """
    highspy: Any = importlib.import_module("highspy")
    k, q = A.shape
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = k, q
    program.col_cost_, program.col_lower_, program.col_upper_ = (
        np.zeros(k),
        *(np.full(k, bound) for bound in _box(quantile)),
    )
    program.row_lower_ = program.row_upper_ = np.zeros(q)
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = q * np.arange(k + 1, dtype=np.int32)
    program.a_matrix_.index_ = np.tile(np.arange(q, dtype=np.int32), k)
    program.a_matrix_.value_ = A.ravel()
    highs = highspy.Highs()
    for option, value in {"output_flag": False, "threads": 1, "presolve": "off", "simplex_strategy": 1}.items():
        highs.setOptionValue(option, value)
    highs.passModel(program)
    everywhere = np.arange(k, dtype=np.int32)
    for b in B.T:
        highs.changeColsCost(k, everywhere, -b)
        highs.run()
        yield -np.array(highs.getSolution().row_dual)


def _sklearn(A: Matrix, B: Matrix, quantile: float) -> Iterator[NDArray[np.float64]]:
    linear_model: Any = importlib.import_module("sklearn.linear_model")
    model = linear_model.QuantileRegressor(quantile=quantile, alpha=0.0, fit_intercept=False, solver="highs")
    for b in B.T:
        yield model.fit(A, b).coef_


def _statsmodels(A: Matrix, B: Matrix, quantile: float) -> Iterator[NDArray[np.float64]]:
    regression: Any = importlib.import_module("statsmodels.regression.quantile_regression")
    for b in B.T:
        yield regression.QuantReg(b, A).fit(q=quantile).params


def _clarabel(A: Matrix, B: Matrix, quantile: float) -> Iterator[NDArray[np.float64]]:
    """Interior point on the dual form; the multipliers of A'y = 0 are the coefficients."""
    clarabel: Any = importlib.import_module("clarabel")
    k, q = A.shape
    identity = sparse.eye_array(k)
    constraints = sparse.csc_matrix(sparse.vstack([A.T, identity, -identity]))
    lower, upper = _box(quantile)
    limits = np.repeat([0.0, upper, -lower], [q, k, k])
    cones = [clarabel.ZeroConeT(q), clarabel.NonnegativeConeT(2 * k)]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    for b in B.T:
        solver = clarabel.DefaultSolver(sparse.csc_matrix((k, k)), -b, constraints, limits, cones, settings)
        yield np.array(solver.solve().z[:q])


def _box(quantile: float) -> tuple[float, float]:
    """Where the dual may lie; (-1, 1) for the median."""
    return -2.0 * (1.0 - quantile), 2.0 * quantile


PEERS = (
    Peer("scipy HiGHS, dual form", "scipy", "scipy.optimize", _scipy_dual),
    Peer("scipy HiGHS, primal form", "scipy", "scipy.optimize", _scipy_primal),
    Peer("highspy, hot start", "highspy", "highspy", _highspy_hot),
    Peer("scikit-learn QuantileRegressor", "scikit-learn", "sklearn.linear_model", _sklearn),
    Peer("statsmodels QuantReg", "statsmodels", "statsmodels.regression.quantile_regression", _statsmodels),
    Peer("Clarabel, dual form", "clarabel", "clarabel", _clarabel),
    Peer("R quantreg br", "quantreg", None, "br"),
    Peer("R quantreg rqs", "quantreg", None, "rqs"),
    Peer("R quantreg fnb", "quantreg", None, "fnb"),
)
