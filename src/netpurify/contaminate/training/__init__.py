"""Training on poisoned or clean data that can be interrupted and resumed, and trains no network twice."""

from netpurify.contaminate.training.loop import Progress, Trained, train
from netpurify.contaminate.training.recipe import Recipe

__all__ = ["Progress", "Recipe", "Trained", "train"]
