"""Puts the pages of the site together in one folder, from files that are read on a code host too.

What stands in ``docs`` keeps its place and its links. README, CHANGELOG and CONTRIBUTING lie above ``docs``, and become
pages beside the others; links to them, and links of theirs, follow.
"""

import importlib.util
import posixpath
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath, PurePosixPath

from gallery import write_gallery
from reference import write_reference

from netpurify import engine

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ABOVE = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files above docs, and the pages that they become."""
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_NAMED = re.compile(r"\[[\w/-]+\.md\]\((?=[\w/-]+\.md)")
"""A link whose words are the name of a file: the site shows the title of the page in their place."""
_ANCHOR = re.compile(r"^<a id=\"([\w-]+)\"></a>", flags=re.MULTILINE)
_FENCE = re.compile(r"(^```.*?^```$|^~~~.*?^~~~$)", flags=re.DOTALL | re.MULTILINE)
_CONTENTS = Path(__file__).with_name("contents.md")


def assemble(folder: Path, *, tutorials: bool = True) -> None:
    """Write the source of the whole site into a folder, which is made anew.

    Args:
        folder: Where the source goes.
        tutorials: Whether tutorials are executed; without, their pages have their titles only.
    """
    shutil.rmtree(folder, ignore_errors=True)  # what an earlier build put there
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("tutorials"))
    write_tutorials(folder / "tutorials", executed=tutorials)
    for page in folder.rglob("*.md"):
        _rewrite(page, page, folder, "docs" / page.parent.relative_to(folder))
    for name, page in ABOVE.items():
        _rewrite(ROOT / name, folder / page, folder, PurePosixPath())
    write_gallery(folder)
    write_reference(folder / "api")
    with (folder / "index.md").open("a", encoding="utf-8") as home:
        home.write(f"\n{_contents(folder)}")


def _rewrite(source: Path, page: Path, folder: Path, place: PurePath) -> None:
    text = source.read_text(encoding="utf-8")
    page.write_text(rewritten(text, folder, place.as_posix()), encoding="utf-8")


def rewritten(text: str, folder: Path, place: str) -> str:
    """A page with its links as they must be on the site; files outside of docs that it names are copied there.

    Args:
        text: The page.
        folder: The source of the site.
        place: The folder of the repository in which the page lies: ".", "docs" or one below it.
    """
    own = posixpath.relpath(place, "docs") if place.startswith("docs") else "."

    def link(found: re.Match[str]) -> str:
        path, mark, anchor = found[2].partition("#")
        if re.match(r"https?:|mailto:", path) or not path:
            return found[0]
        path = posixpath.normpath(posixpath.join(place, path))
        if path in ABOVE:
            path = ABOVE[path]
        elif path.startswith("docs/"):
            path = path.removeprefix("docs/")
        else:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, folder / path)
        return f"{found[1]}{posixpath.relpath(path, own)}{mark}{anchor}{found[3]}"

    pieces = _FENCE.split(text)
    pieces[::2] = [_NAMED.sub("[](", _ANCHOR.sub(r"(\1)=\n", _LINK.sub(link, piece))) for piece in pieces[::2]]
    return "".join(pieces)


def _contents(folder: Path) -> str:
    """The navigation, without pages of tutorials and evidence as long as nobody has written them."""
    text = _CONTENTS.read_text(encoding="utf-8")
    for name in re.findall(r"^(tutorials/.+|evidence)$", text, flags=re.MULTILINE):
        if not (folder / f"{name}.md").exists():
            text = text.replace(f"\n{name}\n", "\n")
    return re.sub(r"```\{toctree\}\n:hidden:\n:caption: .+\n+```\n", "", text)


def write_tutorials(folder: Path, *, executed: bool) -> None:
    """The tutorials' pages with their output, or with their titles only."""
    scripts = sorted((DOCS / "tutorials").glob("*.py"))
    if not scripts:
        return
    path = ROOT / "tools" / "tutorials.py"
    tool = _load(path)
    tool.write_index(folder)
    if executed:  # side by side, each in a process of its own
        commands = [[sys.executable, str(path), str(folder), name] for name in tool.NAMES]
        with ThreadPoolExecutor(engine.workers()) as pool:
            codes = list(pool.map(lambda command: subprocess.run(command, check=False).returncode, commands))
        if any(codes):
            raise RuntimeError("a tutorial failed; the message above says which and why")
        return
    for name in tool.NAMES:
        text = (DOCS / "tutorials" / f"{name}.py").read_text(encoding="utf-8")
        (title,) = re.findall(r"\A# %% \[markdown\]\n# # (.+)$", text, flags=re.MULTILINE)
        (folder / f"{name}.md").write_text(f"# {title}\n\nThis page was not executed.\n", encoding="utf-8")


def _load(path: Path):
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
