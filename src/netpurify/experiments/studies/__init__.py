"""Studies: measurements of this library itself, each a table and a page of the documentation.

    netpurify study defence --full --markdown docs/defence-results.md

A study is an experiment like those of the figures, with the same runner, journal and engines; its page is a function of
the tables alone.
"""

from netpurify.experiments.studies import (
    architectures,
    defence,
    evidence,
    half,
    healthy,
    limits,
    optimisers,
    recovery,
    third_party,
    unlearn,
)
from netpurify.experiments.studies.earlier import take_up
from netpurify.experiments.studies.study import (
    RunFacts,
    Study,
    Tables,
    failed_trials,
    require_libraries,
    table_path,
    write_page,
)

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (defence, recovery, healthy, third_party, evidence, limits, half, optimisers, architectures, unlearn)
}

__all__ = [
    "STUDIES",
    "RunFacts",
    "Study",
    "Tables",
    "failed_trials",
    "require_libraries",
    "table_path",
    "take_up",
    "write_page",
]
