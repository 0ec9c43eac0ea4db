"""The paper: its network (equation 1), its training (Algorithm 1), its purification (Algorithm 2), its theory.

    initial = PatchCNN(m=5, k=100, p=300, generator=generator)
    training = train(initial, inputs, targets, gamma=0.1, regime="sequential")
    ...                                              # contaminate training.trained
    purified = purify(contaminated, training.initial, inputs)

Lu, Huang and Wang, "Purification of Contaminated Convolutional Neural Networks via Robust Recovery", IEEE JSTSP 19(3),
2025 (arXiv:2407.11031). Names follow the paper's letters; where it is silent, docstrings say what was chosen.
"""

from netpurify.paper.descent import DivergenceError, Trajectory
from netpurify.paper.model import PatchCNN
from netpurify.paper.purification import FittedLayer, LayerError, Purified, compare, purify
from netpurify.paper.training import StepSizes, Training, gradients, train, train_output

__all__ = [
    "DivergenceError",
    "FittedLayer",
    "LayerError",
    "PatchCNN",
    "Purified",
    "StepSizes",
    "Training",
    "Trajectory",
    "compare",
    "gradients",
    "purify",
    "train",
    "train_output",
]
