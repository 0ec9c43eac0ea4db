"""One case: our solver, the peers and the physical limit on the same columns, each judged by our verifier."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

import numpy as np

from lad_cases import Case, Matrix
from lad_peers import Peer, Run, run
from lad_report import LIMIT, OURS, OURS_ALL_CORES, OURS_EXACT, Row
from netpurify import lad

REPEATS = 3
ENOUGH = 0.3
"""Everything of ours is timed ``REPEATS`` times, and for so many seconds at least."""
TELLING = 0.1
"""A peer's seconds per column from which on they tell of larger cases; below, they are mostly overhead."""
LONG = 60.0
"""Seconds after which nothing is repeated."""
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Problem:
    """A case drawn, solved and proven.

    Attributes:
        case: Where it comes from.
        design: The design, factored.
        B: Right-hand sides.
        exact: Our answer with every digit of B meant; its dual bounds everybody's objective from below.
    """

    case: Case
    design: lad.Design
    B: Matrix
    exact: lad.Solution

    @property
    def work(self) -> float:
        """Operations for one column, k q^2, by which a peer's time on another case is scaled."""
        return float(self.design.fan_in * self.design.columns**2)

    def worst_gap(self, coefficients: Matrix) -> float:
        """Largest relative gap that the verifier finds in ``coefficients`` [q, n] of the first n columns."""
        n = coefficients.shape[1]
        dual, floor = np.asarray(self.exact.dual)[:, :n], self.exact.noise_floor[:n]
        claim = lad.Claim(coefficients, dual, floor)
        return float(lad.verify(self.design, self.B[:, :n], claim).relative_gap.max())


@dataclass(frozen=True, slots=True)
class Race:
    """Runs cases one after another; remembers what each peer needed.

    Attributes:
        peers: Whom to run.
        columns: Columns for our solver.
        budget: Wall seconds for each peer and case, after which it starts no further column.
        patience: Wall seconds after which a peer is stopped in the middle of a column, or is not started at all.
        largest: For each peer and eps, its largest case so far: (work, seconds per column, design).
    """

    peers: Sequence[Peer]
    columns: int
    budget: float
    patience: float
    largest: dict[tuple[str, float], tuple[float, float, str]] = field(default_factory=dict)

    def run(self, case: Case) -> Iterator[Row]:
        """Every solver on ``case``, row by row."""
        A = case.matrix()
        B = case.columns(A, self.columns)
        design = lad.Design.prepare(A)
        problem = Problem(case, design, B, lad.solve(design, B, noise_floor=0.0))
        with one_core():
            yield _limit(problem)
            yield _ours(problem, OURS, threads=1)
            if case.rounded:
                yield _ours(problem, OURS_EXACT, threads=1, noise_floor=0.0)
        yield _ours(problem, OURS_ALL_CORES)
        for peer in self.peers:
            with one_core():
                yield self._peer(peer, problem)

    def _peer(self, peer: Peer, problem: Problem) -> Row:
        if absence := peer.absence():
            return Row(problem.case.name, peer.name, "peer", note=absence, absent=True)
        done = self._hopeless(peer, problem)
        if done is None:
            done = run(peer, problem.design.matrix, problem.B, budget=self.budget, patience=self.patience)
        if isinstance(done, str):
            return Row(problem.case.name, peer.name, "peer", note=done)
        cpu = Run.per_column(done.cpu)
        key = peer.name, problem.case.eps
        if cpu > TELLING and problem.work >= self.largest.get(key, (0.0,))[0]:
            self.largest[key] = problem.work, cpu, problem.case.size
        return Row(
            problem.case.name,
            peer.name,
            "peer",
            ms=1e3 * cpu,
            cpu_ms=1e3 * cpu,
            wall_ms=1e3 * Run.per_column(done.wall),
            gap=problem.worst_gap(done.coefficients),
            columns=done.cpu.size,
        )

    def _hopeless(self, peer: Peer, problem: Problem) -> str | None:
        """Why not even one column would be done in time, or ``None``."""
        work, seconds, size = self.largest.get((peer.name, problem.case.eps), (problem.work, 0.0, ""))
        expected = seconds * problem.work / work
        if expected <= self.patience:
            return None
        return f"skipped: {seconds:.2f} s at {size} already, so about {expected:.0f} s here"


@contextmanager
def one_core() -> Iterator[None]:
    """Pin this thread, and the threads and processes it starts, to one core, whatever they ask for."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _limit(problem: Problem) -> Row:
    """One product of the columns with the design: whoever looks at A once per column pays this."""
    rows, matrix = np.ascontiguousarray(problem.B.T), problem.design.matrix
    _, cpu, wall = _clock(lambda: rows @ matrix, rows.shape[0])
    name = problem.case.name
    return Row(name, LIMIT, "limit", ms=min(cpu), cpu_ms=min(cpu), wall_ms=min(wall), columns=rows.shape[0])


def _ours(problem: Problem, solver: str, *, threads: int | None = None, noise_floor: float | None = None) -> Row:
    matrix, B, count = problem.design.matrix, problem.B, problem.B.shape[1]
    solution, cpu, wall = _clock(lambda: lad.solve(matrix, B, threads=threads, noise_floor=noise_floor), count)
    _, factor, _ = _clock(lambda: lad.Design.prepare(matrix).warm(), count)
    spent = cpu if threads == 1 else wall
    note = f"factorisation {median(factor) / median(spent):.0%}; {solution.statistics.finished['simplex']} by simplex"
    return Row(
        problem.case.name,
        solver,
        "ours",
        ms=median(spent),
        cpu_ms=median(cpu),
        wall_ms=median(wall),
        best_ms=min(spent),
        gap=problem.worst_gap(np.asarray(solution.coefficients)),
        columns=count,
        certified=float(lad.verify(problem.design, B, solution.claim).certified.mean()),
        note=note if len(cpu) >= REPEATS else f"{note}; timed {len(cpu)}x only",
    )


def _clock(call: Callable[[], Answer], columns: int) -> tuple[Answer, list[float], list[float]]:
    """Repeat ``call``; returns its last answer, and the CPU and wall milliseconds per column of each repeat."""
    cpu, wall = [], []
    began = time.perf_counter()
    while True:
        cpu_began, wall_began = time.process_time(), time.perf_counter()
        answer = call()
        cpu.append(1e3 * (time.process_time() - cpu_began) / columns)
        wall.append(1e3 * (time.perf_counter() - wall_began) / columns)
        spent = time.perf_counter() - began
        if spent > LONG or (len(cpu) >= REPEATS and spent > ENOUGH):
            return answer, cpu, wall
