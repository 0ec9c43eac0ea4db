"""Writes what ``netpurify theory`` prints into docs/paper.md, and docs/errata.md: run it after the theory has changed.

python tools/make_theory_tables.py
"""

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
TABLES = {"sequential: ": ["--regime", "sequential"], "runs per value": ["--sweep", "m"]}
"""Words that only the title of a table has, and the options that print it."""


def theory(*options: str) -> str:
    """What the command prints, without spaces at the ends of lines."""
    command = [sys.executable, "-m", "netpurify", "theory", *options]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def main() -> None:
    """Replace the tables, block by block."""
    guide = DOCS / "paper.md"
    pieces = guide.read_text(encoding="utf-8").split("```")
    for words, options in TABLES.items():
        (place,) = (i for i, piece in enumerate(pieces) if i % 2 and words in piece)
        pieces[place] = f"\n{theory(*options)}\n"
    guide.write_text("```".join(pieces), encoding="utf-8")
    theory("--errata", "--markdown", str(DOCS / "errata.md"))


if __name__ == "__main__":
    main()
