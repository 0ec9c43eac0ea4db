"""Deep networks that were poisoned in training: forget what clean inputs cannot justify, keep channels in range."""

from netpurify.network.policies.defence.defence import Defence, Defend
from netpurify.network.policies.defence.guard import Guard, load_defended, place_guards
from netpurify.network.policies.defence.strength import Step
from netpurify.network.policies.defence.sweep import DefendedLayer

__all__ = ["Defence", "Defend", "DefendedLayer", "Guard", "Step", "load_defended", "place_guards"]
