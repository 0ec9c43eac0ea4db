"""What all tests share: the threads of a worker, results that are made once for the whole run, the line on skips."""

import os
import pickle
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from filelock import FileLock

# Before anything imports torch or numpy, and for the processes that tests start: workers side by side would otherwise
# spend more time on waiting for each other's threads than on the tests. Tests of threads set their number themselves.
os.environ.setdefault("OMP_NUM_THREADS", "1")

NOBODY = 65534
"""The number of the user without rights, by convention."""


@pytest.fixture(scope="session")
def shared(request, tmp_path_factory) -> Path:
    """A folder that all workers of this run share and that no earlier run has written to."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def once(shared) -> Callable[[str, Callable[[], Any]], Any]:
    """``once(name, make)``: what ``make()`` returns, made by the first worker that asks; each call gives a new copy."""

    def get(name: str, make: Callable[[], Any]) -> Any:
        path = shared / f"{name}.pickle"
        with FileLock(shared / f"{name}.lock"):
            if not path.exists():
                path.write_bytes(pickle.dumps(make()))
        return pickle.loads(path.read_bytes())

    return get


@pytest.fixture
def plain_user(tmp_path) -> Iterator[Path]:
    """A folder of the user who runs the test, whom permissions bind: root goes on as nobody until the test ends."""
    if os.geteuid() != 0:
        yield tmp_path
        return
    with TemporaryDirectory() as name:  # nobody may not enter the folders of root that tmp_path is in
        os.chown(name, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, 0)
        try:
            yield Path(name)
        finally:
            os.setresuid(0, 0, 0)


@pytest.fixture
def impatient() -> Iterator[None]:
    """Ends a test that waits for ever, where the test shows that nobody need wait."""

    def stop(*_: object) -> None:
        raise TimeoutError("it is still waiting after 20 s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="fail if any test was skipped")


def _skips(config: pytest.Config) -> Counter[str]:
    """How often each reason for skipping was given; only the process that reports knows."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    return Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if session.config.getoption("--no-skips") and not exitstatus and _skips(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    _tell_kernels(terminalreporter)
    counts = _skips(config)
    if not counts:
        return
    reasons = "; ".join(f"{count}: {reason}" for reason, count in counts.most_common())
    if config.getoption("--no-skips"):
        terminalreporter.write_line(f"FAILED because tests were skipped ({reasons})", red=True)
    else:
        remedy = "`make test-all` installs what they need and runs them"
        terminalreporter.write_line(f"Not everything ran. Skipped tests, by reason: {reasons}. {remedy}.", yellow=True)


def _tell_kernels(reporter: pytest.TerminalReporter) -> None:
    """Say with which kernels of other CPUs the solver was tested (tests/lad/test_kernels.py)."""
    told = {
        outcome: [dict(report.user_properties) for report in reporter.getreports(outcome)]
        for outcome in ("passed", "failed")
    }
    for outcome, properties in told.items():
        ran = sorted(it["kernel"] for it in properties if "kernel" in it)
        if ran:
            reporter.write_line(f"Solver tests {outcome} with the kernels {', '.join(ran)}.")
    lacking = {name for properties in told.values() for it in properties for name in it.get("kernels lacking", [])}
    if lacking:
        reporter.write_line(f"This CPU cannot run the kernels {', '.join(sorted(lacking))}.")
