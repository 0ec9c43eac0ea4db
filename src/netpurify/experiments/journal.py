"""The journal of finished trials: one line of JSON for each, only ever appended, so that a kill costs at most one line.

Numbers are written as Python spells them: floats read back bit for bit, and numbers that are not finite are ``NaN``,
``Infinity`` or ``-Infinity``.
"""

import errno
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from io import FileIO
from pathlib import Path

from filelock import FileLock, Timeout

from netpurify.errors import JournalError
from netpurify.experiments.trials import TrialKey, settings_key
from netpurify.findings import TableRow


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One finished trial: its rows, or the reason why there are none."""

    revision: int
    settings: TableRow
    trial: int
    seed: int
    seconds: float
    rows: list[TableRow]
    failure: str | None = None


def latest(records: Iterable[TrialRecord]) -> dict[TrialKey, TrialRecord]:
    """Records by the key of their trial; of two records for one trial, the later one counts."""
    return {(record.revision, settings_key(record.settings), record.trial): record for record in records}


@dataclass(frozen=True, slots=True)
class Journal:
    """A journal that is open for writing, and the records that it held when it was opened."""

    path: Path
    records: list[TrialRecord]
    stream: FileIO

    def append(self, record: TrialRecord) -> None:
        """Append ``record``, which is on disk when this method returns.

        Raises:
            JournalError: The record could not be written, for example because the disk is full; earlier records are
                untouched.
        """
        end = self.stream.tell()
        line = json.dumps(asdict(record)).encode() + b"\n"
        try:
            written = self.stream.write(line)  # unbuffered: what a kill leaves of the line is its beginning
            if written < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # noqa: TRY301  # a system may not raise it
            os.fsync(self.stream.fileno())
        except OSError as problem:
            with suppress(OSError):  # what stays of the line is dropped when the journal is opened again
                self.stream.truncate(end)
            raise JournalError(
                f"{self.path}: a finished trial must be written; {problem.strerror}; make room and run again: "
                "trials that were recorded before are kept"
            ) from problem


@contextmanager
def opened(path: Path) -> Iterator[Journal]:
    """Open a journal as its only writer; a last line that a kill or a full disk cut short is dropped.

    Raises:
        JournalError: Another run is writing the journal, it cannot be written, or a line before the last is damaged.
    """
    with _sole_writer(path), path.open("ab", buffering=0) as stream:
        records, whole = _parse(path)
        stream.truncate(whole)
        stream.seek(whole)
        yield Journal(path, records, stream)


def read(path: Path) -> list[TrialRecord]:
    """The records of a journal, which is only read; none if there is no such file.

    Raises:
        JournalError: A line before the last is damaged.
    """
    return _parse(path)[0] if path.exists() else []


@contextmanager
def _sole_writer(path: Path) -> Iterator[None]:
    # The system frees the lock when its process dies, so a killed run is in nobody's way.
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as problem:
        raise JournalError(
            f"{path}: one run at a time may write it, and another one does; wait for that one, or use another folder"
        ) from problem
    except OSError as problem:
        raise JournalError(f"{path}: must be writable; {problem.strerror}; use another folder") from problem
    try:
        yield
    finally:
        lock.release()


def _parse(path: Path) -> tuple[list[TrialRecord], int]:
    """The records of the whole lines, and where the last of them ends."""
    records: list[TrialRecord] = []
    whole = 0
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        record = _record(line) if line.endswith(b"\n") else None
        if record is not None:
            records.append(record)
            whole += len(line)
        elif number < len(lines):
            raise JournalError(
                f"{path}: every line but the last must be the record of one trial; line {number} is not "
                f"({line[:60]!r}); delete that line, and its trial is run again"
            )
    return records, whole


def _record(line: bytes) -> TrialRecord | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    names = {field.name for field in fields(TrialRecord)}
    if not isinstance(content, dict) or set(content) != names:
        return None
    return TrialRecord(**content)
