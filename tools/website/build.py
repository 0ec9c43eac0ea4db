"""Builds the documentation site: every warning is an error, every page is made from files of this repository.

python tools/website/build.py                       the site, with executed tutorials, in build/site
python tools/website/build.py OUT --no-tutorials    without executing them, into another folder
"""

import argparse
import sys
import time
from pathlib import Path

from assemble import ROOT, assemble
from sphinx.cmd.build import main as sphinx

CONFIGURATION = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    """Assemble and build; the exit code is that of Sphinx."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "site", help="where the pages go")
    parser.add_argument("--no-tutorials", action="store_true", help="do not execute the tutorials")
    asked = parser.parse_args(arguments)
    source = asked.folder.with_name(f"{asked.folder.name}-source")
    begun = time.monotonic()
    assemble(source, tutorials=not asked.no_tutorials)
    options = ["--builder", "html", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
    code = sphinx([*options, "--conf-dir", str(CONFIGURATION), str(source), str(asked.folder)])
    if code == 0:
        print(f"{asked.folder / 'index.html'}: {time.monotonic() - begun:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
