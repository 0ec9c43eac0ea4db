"""Trials of Figures 2 to 7: weights altered after training, at several shares, and purified in every way."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from netpurify import data
from netpurify.contaminate import Normal, contaminate
from netpurify.experiments.figures.trials.three_classes import ThreeClasses
from netpurify.paper import PatchCNN, Purified, Training, compare, purify, train, train_output

Cell = dict[str, Any]
"""Settings and rows of a trial; the types of single columns are those of the grid."""
ORIGINS = ("training", "other")
"""Where clean images come from: the training set, or images that training never saw."""
LAW = Normal(1.0, 1.0)
"""The paper's noise."""
NOISE_SEED = 1_000_000
"""Added to the seed of a trial, so that the noise does not use the random numbers of inputs and initial weights."""


def on_gaussian_inputs(settings: Cell, seed: int, *, shares: Sequence[float]) -> list[Cell]:
    """One network on Gaussian inputs, trained in both regimes: Figures 2, 3 and 4.

    Joint and sequential training leave the same hidden layer, so it is purified once for both.
    """
    generator = torch.Generator().manual_seed(seed)
    n, m, k, p = (int(settings[name]) for name in ("n", "m", "k", "p"))
    inputs = torch.randn(n, m * k, generator=generator, dtype=torch.float64)
    targets = 2.0 * torch.rand(n, generator=generator, dtype=torch.float64) - 1.0
    initial = PatchCNN(m=m, k=k, p=p, generator=generator)
    joint = train(initial, inputs, targets, gamma=settings["gamma"], steps=settings["steps"])
    sequential = train_output(joint, inputs, targets, gamma=settings["gamma"], steps=settings["steps"])
    rows = []
    for eps in shares:
        dirty = altered(joint.trained, eps, seed)
        first = purify(dirty, joint.initial, inputs, certify=False)
        rows += _rows({"eps": eps, "regime": "joint"}, joint, dirty, inputs, first)
        dirty = altered(sequential.trained, eps, seed)
        half = with_hidden(dirty, first.model)
        second = purify(half, sequential.initial, inputs, layers=["output"], certify=False)
        purified = Purified(second.model, (*first.layers[:-1], *second.layers))
        rows += _rows({"eps": eps, "regime": "sequential"}, sequential, dirty, inputs, purified)
    return rows


def on_images(
    settings: Cell, seed: int, *, shares: Sequence[float], counts: Sequence[int], origins: Sequence[str]
) -> list[Cell]:
    """One network on images with numbers as targets, purified with images in and outside training: Figures 5 to 7."""
    generator = torch.Generator().manual_seed(seed)
    source = ThreeClasses(settings["data"])
    inside, outside = source.draw((settings["training"], settings["training"]), generator)
    inputs, targets = source.inputs(inside), inside.labels.double() - 1.0
    initial = PatchCNN(m=settings["m"], k=settings["k"], p=settings["p"], generator=generator)
    training = train(initial, inputs, targets, gamma=settings["gamma"], steps=settings["steps"])
    rows = []
    for n in counts:
        for origin in origins:
            clean = source.inputs(data.take(inside if origin == "training" else outside, range(n)))
            for eps in shares:
                dirty = altered(training.trained, eps, seed)
                purified = purify(dirty, training.initial, clean, certify=False)
                where = {"clean": n, "origin": origin, "eps": eps, "converged": training.converged}
                rows += _rows(where, training, dirty, clean, purified)
    return rows


def altered(network: PatchCNN, eps: float, seed: int) -> PatchCNN:
    """The network with N(1, 1) added to each weight with probability eps; a larger eps alters the same and more."""
    generator = torch.Generator().manual_seed(NOISE_SEED + seed)
    result = contaminate(network.state_dict(), LAW, share=eps, generator=generator)
    network = copy.deepcopy(network)
    network.load_state_dict(result.state)
    return network


def with_hidden(network: PatchCNN, other: PatchCNN) -> PatchCNN:
    """The network with the hidden layers of another."""
    network = copy.deepcopy(network)
    network.hidden.load_state_dict(other.hidden.state_dict())
    return network


def share_certified(purified: Purified) -> float:
    """Share of the units of all purified layers whose L1 fits are proven minima."""
    return float(torch.cat([layer.certified for layer in purified.layers]).double().mean())


def _rows(where: Cell, training: Training, dirty: PatchCNN, inputs: Tensor, purified: Purified) -> Iterator[Cell]:
    """The purified network and its baselines against the truth; other features change the output layer alone."""
    half = with_hidden(dirty, purified.model)
    other = purify(half, training.initial, inputs, features="initial", layers=["output"], certify=False)
    networks = {
        "l1": purified.model,
        "l1, initial features": other.model,
        "l2": purify(dirty, training.initial, inputs, fit="l2").model,
        "initial weights": training.initial,
        "contaminated": dirty,
    }
    for method, network in networks.items():
        hidden, output = compare(network, training.trained).values()
        yield {
            **where,
            "method": method,
            "W_error": hidden.mean,
            "W_exact": hidden.exact,
            "beta_error": output.rms,
            "beta_exact": output.exact,
            "rank_W": purified.layers[0].rank,
            "rank_beta": purified.layers[1].rank,
            "certified": share_certified(purified) if method == "l1" else None,
        }
