"""Does ``netpurify.purify`` leave healthy networks alone, and what does it find in altered ones?

Every network of ``networks`` is purified as it is, with four kinds of clean inputs, and one in six again with its
training inputs after weights were altered: the tables of docs/healthy-results.md.
"""

from netpurify.experiments.studies.healthy.networks import cases
from netpurify.experiments.studies.healthy.page import healthy_page
from netpurify.experiments.studies.healthy.trial import healthy_trial
from netpurify.experiments.studies.study import Study, always
from netpurify.findings import Experiment, Mode, TableRow

SEEDS = (0, 2)
"""One network of each sort for each; the rules of ``recover`` were made while looking at seeds 0 and 1."""


def grid(mode: Mode) -> list[TableRow]:
    """Every kind, optimiser, number of steps and dtype; the quick grid has one network in 20."""
    cells: list[TableRow] = [
        {
            "kind": case.kind,
            "optimiser": case.optimiser,
            "steps": case.steps,
            "dtype": case.dtype,
            "network_seed": case.seed,
        }
        for case in cases(SEEDS)
    ]
    return cells[::20] if mode == "quick" else cells


EXPERIMENT = Experiment(
    name="healthy",
    title="small networks in which nothing is wrong, and some in which weights were altered",
    grid=grid,
    trial=healthy_trial,
    cost=lambda cell: 1.0 + 0.005 * float(cell["steps"] or 0),
    trials={"quick": 1, "default": 1, "full": 1},
)
STUDY = Study(
    name="healthy",
    title="Does purify leave healthy networks alone?",
    document="healthy-results.md",
    experiments=always(EXPERIMENT),
    page=healthy_page,
)
