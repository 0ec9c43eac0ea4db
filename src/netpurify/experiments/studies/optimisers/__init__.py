"""After which ways of training is recovery exact, and what is left to do after the others?

Small networks are trained by torch's own optimisers, and by SGD with all that is usually added to it; their trained
layers are altered, checked and purified. A second experiment measures the change that Adam and its kin make: the tables
of docs/optimisers-results.md.
"""

from netpurify.experiments.studies.optimisers.page import optimisers_page
from netpurify.experiments.studies.optimisers.training import METHODS, NETWORKS
from netpurify.experiments.studies.optimisers.trial import change_trial, recovery_trial
from netpurify.experiments.studies.study import Study, always
from netpurify.findings import Experiment, Mode, TableRow

QUICK = ("SGD", "SGD, coupled decay", "Adam", "AdamW")
CHANGES = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")
BATCHES = (0, 5)
"""Inputs of a step; 0 for all of them."""


def grid(mode: Mode) -> list[TableRow]:
    """Every network and way of training; Muon takes no convolutions. The quick grid has four optimisers."""
    return [
        {"network": network, "method": method}
        for network in NETWORKS
        for method in (QUICK if mode == "quick" else METHODS)
        if (network, method) != ("convolution", "Muon")
    ]


def change_grid(mode: Mode) -> list[TableRow]:
    """Optimisers with all inputs in every step, and with batches of five."""
    return [
        {"method": method, "batch": batch}
        for batch in BATCHES
        for method in (QUICK[::2] if mode == "quick" else CHANGES)
    ]


EXPERIMENT = Experiment(
    name="optimisers",
    title="altered weights in layers that were trained in many ways",
    grid=grid,
    trial=recovery_trial,
    cost=lambda _: 0.6,
    trials={"quick": 1, "default": 2, "full": 10},
)
CHANGE = Experiment(
    name="optimisers-change",
    title="rank of the change that optimisers make, and how far it leaves the span of the inputs",
    grid=change_grid,
    trial=change_trial,
    cost=lambda _: 0.5,
    trials={"quick": 1, "default": 2, "full": 10},
)
STUDY = Study(
    name="optimisers",
    title="After which optimisers is recovery exact?",
    document="optimisers-results.md",
    experiments=always(EXPERIMENT, CHANGE),
    page=optimisers_page,
)
