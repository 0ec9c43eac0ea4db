"""The section of the page about repairs that leave a backdoor: what the repair itself says of them."""

from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.defence.means import TITLES
from netpurify.experiments.studies.markdown import number
from netpurify.experiments.studies.unlearn.opinions_page import LEFT, above_floor
from netpurify.experiments.studies.unlearn.rows import COUNT
from netpurify.findings import TableRow, select

TEXT = """## Repairs that leave a backdoor

Of {repairs} repairs by `unlearn` with {count} images, those of the attacks above that leave more than {left:.0f} points
of attack success above the floor. *Trained against*: the suspect families. The last column is the widest margin of any
family in the hunt after the repair, which every report shows; a family is suspect from at least 0.5.
"""


def leftovers_section(rows: list[TableRow]) -> str:
    """Each repair that left a backdoor, with what it was trained against and what it found afterwards."""
    repairs = [row for row in select(rows, method="unlearn", images=COUNT) if row["asr"] is not None]
    lines = []
    for row in repairs:
        if above_floor(row) <= LEFT:
            continue
        (base,) = select(rows, method="nothing", **{name: row[name] for name in ("network", "attack", "seed")})
        after = "nothing was suspect" if row["after"] is None else f"{number(row['after']):.2f}"
        lines.append(
            [
                TITLES[str(row["network"])],
                *(str(row[name]) for name in ("attack", "seed", "hunt")),
                ", ".join(str(row["families"] or "").split()) or "\N{EN DASH}",
                f"{100 * number(base['asr']):.1f}",
                f"{100 * number(row['asr']):.1f}",
                after,
            ]
        )
    if not lines:
        return ""
    columns = ["network", "attack", "seed", "hunt", "trained against", "before, %", "left, %", "widest margin after"]
    text = TEXT.format(repairs=len(repairs), count=COUNT, left=100 * LEFT)
    return "\n".join([text, markdown.table(columns, lines, texts=5), ""])
