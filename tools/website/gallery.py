"""Writes the gallery: every figure, its claims, verdicts, and the command that makes it.

Figures of the reproduction come from its page, reproduction.md, which is a function of the committed tables (a test
makes it anew); those of the benchmarks are judged here, from their tables.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmark_claims import CLAIMS, BenchmarkClaim

from netpurify.findings import TableRow, Verdict, read_table

_SYMBOLS = {Verdict.HOLDS: "✓", Verdict.LIMITS: "◐", Verdict.FAILS: "✗", Verdict.UNSEEN: "○"}
_DRAWINGS = re.compile(r"architecture|first-minute|method-.*|evidence-idea")
"""Pictures that explain and measure nothing."""
_TOP = """# Gallery: every figure, what it claims, and whether that holds

Made from the tables that are committed beside this documentation. ✓ holds, ◐ holds with limits, ✗ does not hold. A
claim of the paper is judged twice, by the paper's own measure and against doing nothing; each claim leads to its rule.
The commands make the figures anew. Those of `netpurify` do so from the committed tables, without the work, if they are
given `--tables docs/results`.
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure of the gallery.

    Attributes:
        title: Its heading, which also says what can be seen.
        picture: File of the picture, beside the page.
        columns: Names of the columns of ``rows``.
        rows: Claims with what was measured and verdicts, as Markdown.
        command: What makes it.
        page: The page that explains it.
    """

    title: str
    picture: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    command: str
    page: str


def write_gallery(folder: Path) -> None:
    """Write gallery.md into the source of the site, which has pages, figures and tables already.

    Raises:
        LookupError: A figure that measures something has no claim.
    """
    reproduction = (folder / "reproduction.md").read_text(encoding="utf-8")
    figures = [_figure(section) for section in re.split(r"^## (?=Figure \d+: )", reproduction, flags=re.MULTILINE)[1:]]
    benchmarks = [_benchmark(claim, folder) for claim in CLAIMS]
    shown = {one.picture for one in (*figures, *benchmarks)}
    drawn = {
        f"figures/{path.name}" for path in (folder / "figures").glob("*.svg") if not _DRAWINGS.fullmatch(path.stem)
    }
    if drawn - shown:
        raise LookupError(f"{', '.join(sorted(drawn - shown))}: expected a claim; write one in benchmark_claims.py")
    parts = [_TOP, "## The reproduction", *map(_section, figures), "## Benchmarks", *map(_section, benchmarks)]
    (folder / "gallery.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _figure(section: str) -> Shown:
    """A section of the page of the reproduction: heading, picture, and a table or two of claims."""
    title = section.partition("\n")[0]
    number = int(re.findall(r"\d+", title)[0])
    rows = []
    for line in re.findall(r"^\| \[.+\]\(#rule-\d+\) \|.*$", section, flags=re.MULTILINE):
        claim, measured, *verdicts = re.split(r" (?<!\\)\| ", line.strip("| "))[:4]
        ours = len([cell for cell in verdicts if cell[:1] in ("✓", "◐", "✗", "○", "-")]) == 1
        words = [verdicts[0], "" if ours else verdicts[1]]
        rows.append([("(Ours) " if ours else "") + claim.replace("](#", "](reproduction.md#"), measured, *words])
    (picture,) = re.findall(r"^!\[.*\]\((.*)\)$", section, flags=re.MULTILINE)
    columns = ("claim", "measured", "verdict", "against doing nothing")
    twice = any(row[3] for row in rows)
    rows = rows if twice else [row[:3] for row in rows]
    place = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
    command = f"netpurify reproduce {number} --full"
    return Shown(title, picture, columns if twice else columns[:3], rows, command, f"reproduction.md#{place}")


def _benchmark(claim: BenchmarkClaim, folder: Path) -> Shown:
    @cache
    def table(name: str) -> list[TableRow]:
        return read_table(folder / "results" / f"{name}.csv.gz")

    verdict, measured = claim.judge(table, folder)
    rows = [(f"{claim.claim} *{claim.rule}.*", measured, f"{_SYMBOLS[verdict]} {verdict}")]
    return Shown(claim.title, claim.picture, ("claim", "measured", "verdict"), rows, claim.command, claim.page)


def _section(shown: Shown) -> str:
    lines = [f"### {shown.title}", f"[![{shown.title}]({shown.picture})]({shown.page})"]
    cells = [shown.columns, ["---"] * len(shown.columns), *shown.rows]
    lines.append("\n".join(f"| {' | '.join(row)} |" for row in cells))
    lines.append(f"Made by `{shown.command}`. [Explained here]({shown.page}).")
    return "\n\n".join(lines)
