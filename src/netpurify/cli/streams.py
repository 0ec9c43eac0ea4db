"""Standard output and standard error that nobody reads, or that are full, without a traceback."""

import io
import os
import sys
from typing import TextIO

from netpurify.errors import NetpurifyError


class StreamError(NetpurifyError):
    """Standard output cannot be written, for example because its disk is full."""


class _Stream(io.FileIO):
    """The file behind a standard stream; after a failure it takes everything and writes nothing."""

    def __init__(self, number: int, *, needed: bool) -> None:
        super().__init__(number, "wb", closefd=False)
        self._needed = needed
        self._failed = False

    def write(self, content, /) -> int | None:
        """The bytes, unless nobody reads them; a reader that left, such as ``head``, has what it wanted."""
        if not self._failed:
            try:
                return super().write(content)
            except OSError as problem:
                self._failed = True
                if self._needed and not isinstance(problem, BrokenPipeError):
                    raise StreamError(
                        f"standard output cannot be written ({problem.strerror}); make room, or send it elsewhere"
                    ) from problem
        return len(content)


def install() -> None:
    """Put such streams in the place of those that Python opened."""
    sys.stdout = _safe(sys.stdout, needed=True)
    sys.stderr = _safe(sys.stderr, needed=False)


def _safe(stream: TextIO | None, *, needed: bool) -> TextIO:
    if stream is None:  # it was closed before the process began
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  # until the process ends
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    buffer = io.BufferedWriter(_Stream(stream.fileno(), needed=needed))
    # A terminal that cannot show a sign must not end the run.
    return io.TextIOWrapper(
        buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )  # fmt: skip
