"""Find and repair altered or poisoned weights of neural networks without labels, with a proof where one is possible.

    plan = netpurify.check(model, inputs, initial=initial)               what can be repaired, and what it costs
    netpurify.scan("tuned.safetensors", "base.safetensors")              what was altered, without inputs or repair
    result = netpurify.purify(model, inputs, policy=Recover(initial))    a copy, what was altered, a proof
    result = netpurify.purify(model, inputs, policy=Defend())            a poisoned deep network: no proof, a bound
    netpurify.hunt(model, images)                                        is there a backdoor? nothing is changed
    result = netpurify.purify(model, images, policy=Unlearn())           hunt, then train it away: no proof, a bound

A tour, from the mathematics up:

- ``netpurify.lad``: many L1 regressions that share one design, solved exactly, with a proof for every answer.
- ``netpurify.checkpoint``: weights in files, read without running anything, written whole, told apart by digest.
- ``netpurify.contaminate``: altered weights, triggers and poisoned training data, with a record of what was done.
- ``netpurify.network``: any PyTorch network as regressions; ``check`` and ``purify``.
- ``netpurify.paper``: the paper's network, training, purification and theory.
- ``netpurify.data``: a bundled sample of MNIST; MNIST and CIFAR-10, fetched once.
- ``netpurify.findings``: tables, plots and verdicts as plain data, which experiments make and reports show.
- ``netpurify.experiments``, ``netpurify.engine``, ``netpurify.report``: the paper's figures, run anywhere, on one page.
- ``netpurify.errors``: the errors raised on purpose.

The command line is ``netpurify``. Rooms are loaded when they are first used: ``import netpurify`` takes no time.
"""

import importlib
from typing import TYPE_CHECKING, Any

from netpurify.errors import DisagreementError, InputError, NetpurifyError

if TYPE_CHECKING:
    from netpurify import checkpoint, contaminate, data, engine, experiments, findings, lad, network, paper, report
    from netpurify.network import (
        Defence,
        Defend,
        Grade,
        Hunt,
        Plan,
        Project,
        Purification,
        Recover,
        Seeded,
        Unlearn,
        Unlearning,
        check,
        hunt,
        load_defended,
        load_pretrained,
        purify,
        scan,
    )

__all__ = [
    "Defence",
    "Defend",
    "DisagreementError",
    "Grade",
    "Hunt",
    "InputError",
    "NetpurifyError",
    "Plan",
    "Project",
    "Purification",
    "Recover",
    "Seeded",
    "Unlearn",
    "Unlearning",
    "check",
    "checkpoint",
    "contaminate",
    "data",
    "engine",
    "experiments",
    "findings",
    "hunt",
    "lad",
    "load_defended",
    "load_pretrained",
    "network",
    "paper",
    "purify",
    "report",
    "scan",
]
__version__ = "0.1.0"

_ROOMS = ("checkpoint", "contaminate", "data", "engine", "experiments", "findings", "lad", "network", "paper", "report")


def __getattr__(name: str) -> Any:
    """Loads what is asked for the first time: a room, or a name that the room ``network`` lends."""
    if name in _ROOMS:
        return importlib.import_module(f"netpurify.{name}")
    if name in __all__:
        found = globals()[name] = getattr(importlib.import_module("netpurify.network"), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
