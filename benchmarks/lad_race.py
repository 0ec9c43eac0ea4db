"""One case: our solver, the peers and the physical limit on the same columns, each judged by our verifier."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from lad_cases import Case, Matrix
from lad_peers import Peer, Run, run
from lad_report import BEFORE, BEFORE_EXACT, LIMIT, OURS, OURS_ALL_CORES, OURS_EXACT, Row
from lad_versions import Answered, Timing, Version, in_turns, typical
from netpurify import lad

REPEATS = 3
ENOUGH = 0.3
"""Everything of ours is timed ``REPEATS`` times, and for so many seconds at least."""
TELLING = 0.1
"""A peer's seconds per column from which on they tell of larger cases; below, they are mostly overhead."""


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

    @classmethod
    def draw(cls, case: Case, columns: int) -> "Problem":
        """Draw and solve ``columns`` columns of a case."""
        A = case.matrix()
        B = case.columns(A, columns)
        design = lad.Design.prepare(A)
        return cls(case, design, B, lad.solve(design, B, quantile=case.quantile, noise_floor=0.0, threads=1))

    @property
    def work(self) -> float:
        """Operations for one column, k q^2, by which a peer's time on another case is scaled."""
        return float(self.design.fan_in * self.design.columns**2)

    def worst_gap(self, coefficients: Matrix) -> float:
        """Largest relative gap that the verifier finds in ``coefficients`` [q, n] of the first n columns."""
        n = coefficients.shape[1]
        dual, floor = np.asarray(self.exact.dual)[:, :n], self.exact.noise_floor[:n]
        return float(self._verified(lad.Claim(coefficients, dual, floor)).relative_gap.max())

    def certified(self, answer: Answered) -> float:
        """Share of the columns that the verifier calls proven."""
        claim = lad.Claim(answer.coefficients, answer.dual, answer.noise_floor)
        return float(self._verified(claim).certified.mean())

    def _verified(self, claim: lad.Claim) -> lad.Certificate:
        columns = self.B[:, : np.shape(claim.dual)[1]]
        return lad.verify(self.design, columns, claim, quantile=self.case.quantile)


@dataclass(frozen=True, slots=True)
class Race:
    """Runs cases one after another; remembers what each peer needed.

    Attributes:
        versions: Our solver, and possibly the version before it.
        peers: Whom to run.
        columns: Columns for our solver.
        budget: Wall seconds for each peer and case, after which it starts no further column.
        patience: Wall seconds after which a peer is stopped in the middle of a column, or is not started at all.
        largest: For each peer and eps, its largest case so far: (work, seconds per column, design).
    """

    versions: Sequence[Version]
    peers: Sequence[Peer]
    columns: int
    budget: float
    patience: float
    largest: dict[tuple[str, float], tuple[float, float, str]] = field(default_factory=dict)

    def run(self, case: Case) -> Iterator[Row]:
        """Every solver on ``case``, row by row."""
        problem = Problem.draw(case, self.columns)
        for version in self.versions:
            version.load(problem.design.matrix, problem.B)
        with one_core() as core:
            yield _limit(problem)
            yield from self._ours(problem, (OURS, BEFORE), core, floor=None, threads=1)
            if case.rounded:
                yield from self._ours(problem, (OURS_EXACT, BEFORE_EXACT), core, floor=0.0, threads=1)
        cores = os.sched_getaffinity(0)
        yield from self._ours(problem, (OURS_ALL_CORES,), cores, floor=None, threads=len(cores))
        for peer in self.peers:
            with one_core():
                row = self._peer(peer, problem)
            self.remember(case, row)
            yield row

    def remember(self, case: Case, row: Row) -> None:
        """Learn from a row how long a peer takes."""
        key = row.solver, case.eps
        if row.role == "peer" and row.cpu_ms > 1e3 * TELLING and row.work >= self.largest.get(key, (0.0,))[0]:
            self.largest[key] = row.work, row.cpu_ms / 1e3, case.size

    def _ours(
        self, problem: Problem, names: tuple[str, ...], cores: set[int], *, floor: float | None, threads: int
    ) -> Iterator[Row]:
        """One row for each of our versions that has a name, timed in turns."""
        options = {"quantile": problem.case.quantile, "noise_floor": floor, "threads": threads}
        named = list(zip(names, self.versions, strict=False))
        timings = in_turns([version for _, version in named], cores, repeats=REPEATS, enough=ENOUGH, **options)
        for name, version in named:
            yield _our_row(problem, name, timings[version.name], version.answer(), alone=threads == 1)

    def _peer(self, peer: Peer, problem: Problem) -> Row:
        case, design = problem.case, problem.design
        if absence := peer.absence():
            return Row(case.name, peer.name, "peer", note=absence, absent=True)
        done = self._hopeless(peer, problem)
        # Several peers cannot do with columns that depend on others: all are given independent ones.
        given = design.pivots if design.rank < design.columns else np.arange(design.columns)
        if done is None:
            done = run(
                peer,
                design.matrix[:, given],
                problem.B,
                quantile=case.quantile,
                budget=self.budget,
                patience=self.patience,
            )
        if isinstance(done, str):
            return Row(case.name, peer.name, "peer", note=done)
        cpu = 1e3 * Run.per_column(done.cpu)
        coefficients = np.zeros((design.columns, done.cpu.size))
        coefficients[given] = done.coefficients
        return Row(
            case.name,
            peer.name,
            "peer",
            ms=cpu,
            cpu_ms=cpu,
            wall_ms=1e3 * Run.per_column(done.wall),
            gap=problem.worst_gap(coefficients),
            columns=done.cpu.size,
            work=problem.work,
        )

    def _hopeless(self, peer: Peer, problem: Problem) -> str | None:
        """Why not even one column would be done in time, or ``None``."""
        work, seconds, size = self.largest.get((peer.name, problem.case.eps), (problem.work, 0.0, ""))
        expected = seconds * problem.work / work
        if expected <= self.patience:
            return None
        return f"skipped: {seconds:.2f} s at {size} already, so about {expected:.0f} s here"


@contextmanager
def one_core() -> Iterator[set[int]]:
    """Pin this thread, and the threads and processes it starts, to one core, whatever they ask for."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield {max(cores)}
    finally:
        os.sched_setaffinity(0, cores)


def _limit(problem: Problem) -> Row:
    """One product of the columns with the design: whoever looks at A once per column pays this."""
    rows, matrix = np.ascontiguousarray(problem.B.T), problem.design.matrix
    seconds: list[float] = []
    began = time.perf_counter()
    while len(seconds) < REPEATS or time.perf_counter() - began < ENOUGH:
        start = time.process_time()
        _ = rows @ matrix
        seconds.append(time.process_time() - start)
    ms = 1e3 * min(seconds) / rows.shape[0]
    return Row(problem.case.name, LIMIT, "limit", ms=ms, cpu_ms=ms, columns=rows.shape[0])


def _our_row(problem: Problem, name: str, timings: Sequence[Timing], answer: Answered, *, alone: bool) -> Row:
    """A row of ours; times are medians: of the processor if the solver ran ``alone`` on a core, else of the clock."""
    count = problem.B.shape[1]
    ms, known = 1e3 / count, typical(timings)
    spent = [ms * (timing.cpu if alone else timing.wall) for timing in timings]
    note = f"{known.by_simplex} by simplex, rank {problem.design.rank}"
    return Row(
        problem.case.name,
        name,
        "before" if name in (BEFORE, BEFORE_EXACT) else "ours",
        ms=ms * (known.cpu if alone else known.wall),
        cpu_ms=ms * known.cpu,
        wall_ms=ms * known.wall,
        best_ms=min(spent),
        gap=problem.worst_gap(answer.coefficients),
        columns=count,
        certified=problem.certified(answer),
        pivots=known.pivots / count,
        steps={step: ms * seconds for step, seconds in known.steps.items()},
        work=problem.work,
        note=note if len(timings) >= REPEATS else f"{note}; timed {len(timings)}x only",
    )
