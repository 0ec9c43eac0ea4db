"""Results so far, in a file, so that a run that was interrupted goes on where it was."""

import json
from pathlib import Path
from typing import Any


class Kept:
    """Answers by name, in a file of JSON lines; one of another setup is set aside.

    The first line is the setup; a line that was cut short by an interruption is left out.
    """

    def __init__(self, path: Path, setup: Any) -> None:
        """Read what an earlier run of the same ``setup`` has left at ``path``."""
        self.path = path
        self.known: dict[str, Any] = {}
        lines = list(_whole(path.read_text().splitlines())) if path.exists() else []
        same = bool(lines) and lines[0] == json.loads(json.dumps(setup))
        if same:
            self.known = dict(lines[1:])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in (lines if same else [setup])))

    def put(self, name: str, value: Any) -> None:
        """Add an answer; it is on disk when this returns."""
        self.known[name] = value
        with self.path.open("a") as file:
            file.write(json.dumps([name, value]) + "\n")

    def done(self) -> None:
        """All is finished: the next run begins anew."""
        self.path.unlink()


def _whole(lines: list[str]) -> Any:
    """The lines up to the first that is no JSON."""
    for line in lines:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return
