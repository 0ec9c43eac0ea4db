"""The README as a package index shows it, where there are no other files to link to; hatchling calls this.

With an address of the repository among the project's URLs (``Source``), links lead there. Without one they become plain
text, and the picture becomes its description.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_NOTE = "\nThe pages that are named here are in the source distribution, in the folder `docs`.\n"


def standing_alone(text: str, source: str | None) -> str:
    """A README none of whose links needs a file beside it.

    Args:
        text: The README of the repository, with links relative to it.
        source: Address of the repository on a code host; None if it has none.
    """

    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        if re.match(r"https?:|#", target):
            return found[0]
        if source is None:
            return f"*{words}.*" if mark else words
        return f"{mark}[{words}]({source.rstrip('/')}/{'raw' if mark else 'blob'}/main/{target})"

    pieces = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    pieces[::2] = [_LINK.sub(link, piece) for piece in pieces[::2]]
    return "".join(pieces) + (_NOTE if source is None else "")


class PackageReadme(MetadataHookInterface):
    """Fills in ``readme``, which pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md beside pyproject.toml."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": standing_alone(text, source)}
