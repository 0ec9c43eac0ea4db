"""Deep networks that were poisoned in training: forget what clean inputs cannot justify, keep channels in range."""

from netpurify.network.defence.defence import Defence, defend
from netpurify.network.defence.guard import Guard, load_defended
from netpurify.network.defence.strength import Step
from netpurify.network.defence.sweep import LayerFit

__all__ = ["Defence", "Guard", "LayerFit", "Step", "defend", "load_defended"]
