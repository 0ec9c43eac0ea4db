"""Backdoors by images: triggers, training data poisoned with them, and how well a backdoor works."""

from netpurify.contaminate.images import image_triggers, triggers
from netpurify.contaminate.images.image_triggers import *  # noqa: F403  # a new trigger is exported by its own file
from netpurify.contaminate.images.labels import NextClass
from netpurify.contaminate.images.poisoning import Poisoned, poison
from netpurify.contaminate.images.rates import Rates, accuracy, measure
from netpurify.contaminate.images.triggers import *  # noqa: F403  # likewise

__all__ = ["NextClass", "Poisoned", "Rates", "accuracy", "measure", "poison"]
__all__ += triggers.__all__
__all__ += image_triggers.__all__
