"""The page of the study of healthy networks: a function of its table alone."""

from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.healthy.trial import LAWS
from netpurify.experiments.studies.study import RunFacts, Tables
from netpurify.findings import TableRow

PAGE = """# Healthy networks, and what is found in altered ones

Made by `{commands}` in {core_time} of one core ([the table itself](results/healthy.csv.gz)). {networks} small networks
in which nothing is wrong: nine kinds (MLP, CNN, both without biases, BatchNorm with residuals, depthwise, patches as in
the paper, words of which each input has few, features of very different size), ten optimisers, 1, 10 or 100 steps,
float32 and float64; 4 to 120 training inputs, batches, and learning rates over a factor of ten are drawn for each. What
diverged to infinity is left out (networks: {diverged}). Each is purified four times: with the training inputs, with
half of them, with others of the same kind, and with inputs of another kind, such as images that are lit where training
saw blank borders. The rules of `recover` were made while looking at networks of seeds 0 and 1, and at none of seed 2.

*Altered*: purifications that changed any weight. *Per 10^8*: replaced weights for each 10^8 weights. *Suspicious*:
weights that were listed and kept their bits.

{healthy}

One network in six was altered in all its Linear and Conv layers, each weight with the given probability, and purified
with its training inputs. *Replaced* and *suspicious* are shares of the altered weights; flips of last bits, which are
smaller than the rounding errors, and small alterations of layers that are not exact are neither. What was refused,
because a flipped exponent had made the inputs of a layer too small to be squared, is left out (purifications:
{refused}).

{altered}
"""
GROUPS = {
    "seed": "network_seed",
    "clean inputs": "clean",
    "optimiser": "optimiser",
    "network": "kind",
    "steps": "steps",
    "dtype": "dtype",
}
"""Column of the table by which each table of healthy networks is grouped, by its heading."""


def healthy_page(tables: Tables, facts: RunFacts) -> str:
    """The page: healthy networks grouped in several ways, then the altered ones."""
    rows = tables["healthy"]
    judged = [row for row in rows if not row["diverged"] and row["refused"] is None]
    healthy = [row for row in judged if row["law"] is None]
    networks = {network_of(row): row["diverged"] for row in rows}
    return PAGE.format(
        commands=facts.commands,
        core_time=facts.core_time,
        networks=f"{len(networks):,}",
        diverged=sum(bool(diverged) for diverged in networks.values()),
        refused=sum(row["refused"] is not None for row in rows),
        healthy="\n\n".join(healthy_table(title, column, healthy) for title, column in GROUPS.items()),
        altered=altered_table(judged),
    )


def network_of(row: TableRow) -> tuple[object, ...]:
    """The settings of the network that a row is about."""
    return tuple(row[name] for name in ("kind", "optimiser", "steps", "dtype", "network_seed"))


def healthy_table(title: str, column: str, rows: list[TableRow]) -> str:
    """What happened to healthy weights, for each value of a column and for all rows together."""
    columns = (
        title,
        "purifications",
        "altered",
        "weights",
        "replaced",
        "of these *recovered*",
        "per 10^8",
        "suspicious",
    )
    values = dict.fromkeys(str(row[column]) for row in rows)
    groups = {value: [row for row in rows if str(row[column]) == value] for value in values}
    return markdown.table(columns, [healthy_line(name, own) for name, own in [*groups.items(), ("all", rows)]])


def healthy_line(name: str, rows: list[TableRow]) -> list[str]:
    """One line of a table of healthy networks."""
    weights, replaced, recovered, suspicious = (
        total(rows, column) for column in ("weights", "healthy_replaced", "healthy_recovered", "healthy_suspicious")
    )
    changed = sum(bool(row["healthy_replaced"]) for row in rows)
    rate = 1e8 * replaced / max(1, weights)
    return [name, f"{len(rows):,}", f"{changed:,}", f"{weights:,}", f"{replaced:,}", f"{recovered:,}", f"{rate:,.0f}",
            f"{suspicious:,}"]  # fmt: skip


def altered_table(rows: list[TableRow]) -> str:
    """What was found of the alterations, for each law."""
    columns = ("weights altered", "purifications", "altered", "replaced", "suspicious", "healthy replaced",
               "healthy suspicious")  # fmt: skip
    lines = []
    for law in LAWS:
        own = [row for row in rows if row["law"] == law]
        altered, replaced, suspicious = (total(own, name) for name in ("altered", "replaced", "suspicious"))
        shares = [f"{count:,} ({count / max(1, altered):.1%})" for count in (replaced, suspicious)]
        healthy = [f"{total(own, name):,}" for name in ("healthy_replaced", "healthy_suspicious")]
        lines.append([law, str(len(own)), f"{altered:,}", *shares, *healthy])
    return markdown.table(columns, lines)


def total(rows: list[TableRow], column: str) -> int:
    """The sum of a column."""
    return sum(int(row[column] or 0) for row in rows)
