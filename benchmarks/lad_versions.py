"""Versions of our own solver, each in a process of its own, timed in turns on the same columns.

A version is a folder with the package ``netpurify``: that of this run, or a commit of this repository, unpacked into a
temporary folder. In turns, so that whatever else the machine does slows all versions alike.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from socket import socketpair
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SERVE = "import sys, lad_versions; lad_versions.serve(int(sys.argv[1]), sys.argv[2])"
"""Not this file as a script, whose classes would be those of another module."""
LONG = 60.0
"""Seconds for all versions together, after which nothing is repeated."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One call of ``lad.solve``.

    Attributes:
        cpu: Processor seconds, the factorisation of the design included.
        wall: Seconds by the clock.
        steps: Processor seconds in each step of the solver.
        pivots: Simplex pivots, all columns together.
        by_simplex: Columns that the simplex stage finished.
    """

    cpu: float
    wall: float
    steps: dict[str, float]
    pivots: int
    by_simplex: int


@dataclass(frozen=True, slots=True)
class Answered:
    """What a version claims: arrays of ``lad.Solution``, and its status codes."""

    coefficients: NDArray[np.float64]
    dual: NDArray[np.float64]
    noise_floor: NDArray[np.float64]
    status: NDArray[np.int8]


class Version:
    """A process that solves with the package in one folder.

    Attributes:
        name: What it is called.
        source: The commit, with "-dirty" where files differ from it.
        digest: Of all source files.
    """

    def __init__(self, name: str, source: str, digest: str, process: subprocess.Popen, connection: Connection) -> None:
        """Take over a process that serves ``connection``; see ``versions``."""
        self.name, self.source, self.digest = name, source, digest
        self._process, self._connection = process, connection

    def load(self, A: NDArray[np.float64], B: NDArray[np.float64]) -> None:
        """Send the problem for the calls that follow."""
        self._ask("load", A, B)

    def time(self, cores: set[int], **options: Any) -> Timing:
        """Call ``lad.solve`` with ``options`` once, on these cores."""
        return self._ask("time", cores, options)

    def answer(self) -> Answered:
        """The answer of the last call."""
        return self._ask("answer")

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.wait(timeout=60)

    def _ask(self, *request: object) -> Any:
        try:
            self._connection.send(request)
            return self._connection.recv()
        except (EOFError, ConnectionError) as error:
            raise RuntimeError(f"the process of {self.name!r} ended; its own message stands above") from error


@contextmanager
def versions(before: str | None = None, after: str | None = None) -> Iterator[list[Version]]:
    """The version to be measured and, if asked for, the one ``before`` it.

    Args:
        before: A commit of this repository; ``None`` for none.
        after: A commit of this repository; ``None`` for the package that this process imports, as it lies there.
    """
    import netpurify

    running: list[Version] = []
    with ExitStack() as stack:
        here = Path(netpurify.__file__).parents[1]
        for name, commit in {"netpurify": after, **({"before": before} if before else {})}.items():
            folder = here if commit is None else stack.enter_context(unpacked(commit))
            running.append(_start(name, _described(commit), folder))
            stack.callback(running[-1].close)
        yield running


@contextmanager
def unpacked(commit: str) -> Iterator[Path]:
    """The folder ``src`` of a commit of this repository, in a temporary folder."""
    repository = Path(__file__).parents[1]
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=repository, capture_output=True, check=False)
    if archive.returncode:
        raise SystemExit(f"no commit {commit!r} in {repository}: {archive.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder) / "src"


def in_turns(
    running: Sequence[Version], cores: set[int], *, repeats: int, enough: float = 0.0, **options: Any
) -> dict[str, list[Timing]]:
    """Time ``lad.solve(A, B, **options)`` of every version in turns.

    Args:
        running: Versions that have loaded the same problem.
        cores: Where they run.
        repeats: How often each is timed at least, unless that takes ``LONG``.
        enough: Seconds that all together are timed at least.
        options: For ``lad.solve``.
    """
    timings: dict[str, list[Timing]] = {version.name: [] for version in running}
    for version in running:
        version.time(cores, **options)  # some code is compiled only when a problem of such a size needs it
    began = time.perf_counter()
    for done in range(1, 1000):
        for version in running:
            timings[version.name].append(version.time(cores, **options))
        spent = time.perf_counter() - began
        if spent > LONG or (done >= repeats and spent >= enough):
            break
    return timings


def typical(timings: Sequence[Timing], *, fastest: bool = False) -> Timing:
    """The median, or the least, of each number of some timings of one version."""
    of = min if fastest else median
    return Timing(
        cpu=of(timing.cpu for timing in timings),
        wall=of(timing.wall for timing in timings),
        steps={step: of(timing.steps[step] for timing in timings) for step in timings[0].steps},
        pivots=timings[0].pivots,
        by_simplex=timings[0].by_simplex,
    )


def _start(name: str, source: str, folder: Path) -> Version:
    ours, theirs = socketpair()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parent)])}
    command = [sys.executable, "-c", _SERVE, str(theirs.fileno()), str(folder)]
    process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])
    theirs.close()
    return Version(name, source, digest(folder), process, Connection(ours.detach()))


def digest(folder: Path) -> str:
    """Of all source files of the package in ``folder``: the same only for the same code."""
    files = sorted((folder / "netpurify").rglob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _described(commit: str | None) -> str:
    """A commit of this repository in short; ``None`` for what is checked out, with "-dirty" where files differ."""
    command = ["git", "describe", "--always", "--exclude=*", commit or "--dirty"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no commit"


def serve(number: int, folder: str) -> None:
    """Answer the requests that come through a socket, with the package in ``folder``, until the other end closes."""
    from netpurify import lad

    if not Path(lad.__file__ or "").is_relative_to(folder):
        raise SystemExit(f"expected netpurify from {folder}; got {lad.__file__}")
    connection = Connection(number)
    A = B = np.zeros((1, 1))
    solution: Any = None
    while True:
        try:
            what, *values = connection.recv()
        except EOFError:
            return
        if what == "load":
            A, B = values
            connection.send(None)
        elif what == "time":
            cores, options = values
            os.sched_setaffinity(0, cores)
            cpu, wall = time.process_time(), time.perf_counter()
            solution = lad.solve(A, B, **options)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            known = solution.statistics
            connection.send(Timing(cpu, wall, known.seconds, known.pivots, known.finished["simplex"]))
        else:
            arrays = (solution.coefficients, solution.dual, solution.noise_floor, solution.status)
            connection.send(Answered(*map(np.asarray, arrays)))
