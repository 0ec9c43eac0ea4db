"""What tests of readers share."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def impatient() -> Iterator[None]:
    """Ends a test that waits for ever, where the test shows that nobody need wait."""

    def stop(*_):
        raise TimeoutError("it is still waiting after 20 s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
