"""Files of reports."""

from pathlib import Path

from netpurify.atomic import write_atomically
from netpurify.errors import InputError


def save(path: str | Path, text: str) -> None:
    """Write a page, a record or a drawing, whole or not at all; an earlier file stays until then. Folders are made.

    Raises:
        InputError: The file cannot be written there.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as stream:
            stream.write(text.encode())
    except OSError as problem:
        raise InputError(
            f"{path} cannot be written ({problem.strerror}); make room, or name a file in another place"
        ) from problem
