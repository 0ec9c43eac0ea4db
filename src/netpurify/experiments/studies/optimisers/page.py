"""The page of the study of optimisers: a function of its tables alone."""

from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.optimisers.training import CONVOLUTION, FIRST, HEAD, LATER, METHODS
from netpurify.experiments.studies.study import RunFacts, Tables
from netpurify.findings import TableRow, select

PARTS = (HEAD, FIRST, CONVOLUTION, LATER)
PAGE = """# Which optimisers leave a layer recoverable

Made by `{commands}` in {core_time} of one core ([networks](results/optimisers.csv.gz),
[changes](results/optimisers-change.csv.gz)). Digits of the bundled MNIST sample train each network for 100 steps, and
the same digits purify it: an MLP of three layers that are trained together (20 images), a head over a convolution that
stays frozen (40 images), and a convolution with a kernel of 14 x 28 that is trained together with its head (20 images).
Then 5 % of the weights of the trained layers are altered by N(0, 1) (*large*) or by N(0, 0.02^2), which is as large as
the weights themselves (*small*). Numbers are sums over {seeds}. The lower part of each table is SGD with one thing
changed.

*Tried before, and agree*: units that `check` tries, and that agree on a fit while the layers before are still altered.
*Unreached*: alterations where every clean input is zero. *False*: healthy weights that were replaced, and
how far from the truth the worst of them is now.

*exact*: every unit is recovered. *no*: fewer than one unit in ten is.

{summary}

{parts}

## The change that Adam makes

The first layer of the MLP (64 units), whose inputs span {directions} directions, after some numbers of steps. *Rank*:
singular values of the change above 1e-5 of the largest; it is at most 64. *For 99 %*: directions that hold 99 % of its
energy. *Outside*: norm of the part outside the span of the inputs, as a share of the whole. *Outside, state known*: the
same after every entry was multiplied by the root of the optimiser's mean of squared gradients, as its checkpoint has it
after the last step. Numbers are means over the seeds.

{changes}
"""
SECTIONS = {
    HEAD: "A head over a frozen network",
    FIRST: "The first layer of an MLP",
    CONVOLUTION: "A convolution that is the first layer",
    LATER: "Later layers of the MLP, trained together with the first",
}
NEVER = "-"


def optimisers_page(tables: Tables, facts: RunFacts) -> str:
    """The page: what is exact, part by part in numbers, and the changes of a layer by step."""
    rows, changes = tables["optimisers"], tables["optimisers-change"]
    seeds = len({row["trial"] for row in rows})
    parts = [f"## {title}\n\n{part_table(select(rows, part=part))}" for part, title in SECTIONS.items()]
    return PAGE.format(
        commands=facts.commands,
        core_time=facts.core_time,
        seeds="one seed" if seeds == 1 else f"{seeds} seeds",
        summary=summary_table(rows),
        parts="\n\n".join(parts),
        directions=changes[0]["directions"],
        changes=change_table(changes),
    )


def methods_of(rows: list[TableRow]) -> list[str]:
    """The ways of training that the rows have, in the order of the study."""
    present = {row["method"] for row in rows}
    return [name for name in METHODS if name in present]


def summary_table(rows: list[TableRow]) -> str:
    """For each way of training and part, whether recovery was exact."""
    lines = [[name, *(verdict(select(rows, method=name, part=part)) for part in PARTS)] for name in methods_of(rows)]
    return markdown.table(("trained with", *PARTS), lines, texts=1 + len(PARTS))


def verdict(rows: list[TableRow]) -> str:
    """In a word, how many units were recovered."""
    if not rows:
        return NEVER
    units, recovered = total(rows, "units"), total(rows, "recovered")
    return "exact" if recovered == units else "no" if 10 * recovered < units else f"{recovered / units:.0%} of units"


def part_table(rows: list[TableRow]) -> str:
    """What was promised, recovered and found in one part of the networks."""
    columns = (
        "trained with", "tried before, and agree", "units recovered", "large: found", "small: found",
        "of these, unreached", "false", "largest error of these",
    )  # fmt: skip
    lines = []
    for name in methods_of(rows):
        own = select(rows, method=name)
        error = max(markdown.number(row["error"]) for row in own)
        small, large = (select(own, size=size) for size in ("small", "large"))
        lines.append(
            [
                name,
                f"{total(own, 'agreeing')} of {total(own, 'probed')}",
                f"{total(own, 'recovered'):,} of {total(own, 'units'):,}",
                *(f"{total(part, 'found'):,} of {total(part, 'altered'):,}" for part in (large, small)),
                f"{total(small, 'unreached_found'):,} of {total(small, 'unreached'):,}",
                f"{total(own, 'false'):,}",
                f"{error:.1e}" if error else NEVER,
            ]
        )
    return markdown.table(columns, lines)


def change_table(rows: list[TableRow]) -> str:
    """Ranks and shares outside the span, by optimiser, batch and number of steps."""
    columns = ("optimiser", "batch", "steps", "rank", "for 99 %", "outside", "outside, state known")
    lines = []
    for key in dict.fromkeys((row["method"], row["batch"], row["steps"]) for row in rows):
        own = select(rows, method=key[0], batch=key[1], steps=key[2])
        known = NEVER if own[0]["outside_known"] is None else f"{mean(own, 'outside_known'):.1e}"
        lines.append(
            [
                str(key[0]),
                "all" if not key[1] else str(key[1]),
                str(key[2]),
                f"{mean(own, 'rank'):.0f}",
                f"{mean(own, 'rank_99'):.0f}",
                f"{mean(own, 'outside'):.1e}",
                known,
            ]
        )
    return markdown.table(columns, lines, texts=2)


def total(rows: list[TableRow], column: str) -> int:
    """The sum of a column."""
    return sum(int(row[column] or 0) for row in rows)


def mean(rows: list[TableRow], column: str) -> float:
    """The mean of a column."""
    return sum(markdown.number(row[column]) for row in rows) / len(rows)
