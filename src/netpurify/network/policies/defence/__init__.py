"""Deep networks that were poisoned in training: forget what clean inputs cannot justify, keep channels in range."""

from netpurify.network.policies.defence.defence import Defence, Defend
from netpurify.network.policies.defence.guard import Guard, load_defended, place_guards
from netpurify.network.policies.defence.inputs import HELD_OUT
from netpurify.network.policies.defence.strength import DOUBT_SHARE, LEAST_DISAGREEMENT, Step, allowed_disagreement
from netpurify.network.policies.defence.sweep import DefendedLayer

__all__ = [
    "DOUBT_SHARE",
    "HELD_OUT",
    "LEAST_DISAGREEMENT",
    "Defence",
    "Defend",
    "DefendedLayer",
    "Guard",
    "Step",
    "allowed_disagreement",
    "load_defended",
    "place_guards",
]
