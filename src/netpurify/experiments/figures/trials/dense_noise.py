"""Trials of Figure 18: every weight altered a little, alone and together with a few large alterations."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from netpurify.contaminate import Law, Normal, Quantise, Truncate, contaminate
from netpurify.experiments.figures.trials.altered_weights import NOISE_SEED, Cell
from netpurify.paper import PatchCNN, Training, compare, purify, train

SIZES = (-5.0, -4.0, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5)
"""Decimal logarithms of the standard deviation of dense noise; initial weights of W have 0.1."""
LEVELS: dict[str, Sequence[float]] = {
    "noise": SIZES,
    "quantised": (2, 3, 4, 6, 8, 10),
    "truncated": (0, 2, 4, 7, 10, 14),
    "averaged": (0.01, 0.03, 0.1, 0.3, 0.5),
}
"""Kinds of dense change and their sizes: log10 of the standard deviation, bits left, weight of another client."""
ROUNDED = 8
"""Bits to which all weights are rounded in the mixed case."""


@dataclass(frozen=True, slots=True)
class Run:
    """A network that was trained on its inputs, and the seed of its noise."""

    training: Training
    inputs: Tensor
    seed: int

    def altered(self, law: Law, share: float = 1.0, model: PatchCNN | None = None) -> PatchCNN:
        """The trained network, or another one, with its weights altered."""
        generator = torch.Generator().manual_seed(NOISE_SEED + self.seed)
        dirty = copy.deepcopy(model or self.training.trained)
        dirty.load_state_dict(contaminate(dirty.state_dict(), law, share=share, generator=generator).state)
        return dirty


def every_weight_a_little(settings: Cell, seed: int, *, shares: Sequence[float]) -> list[Cell]:
    """Dense changes of every kind and size, and all weights rounded with N(1, 1) on a share of them."""
    generator = torch.Generator().manual_seed(seed)
    n, m, k = (settings[name] for name in ("n", "m", "k"))
    start = PatchCNN(m=m, k=k, p=settings["p"], generator=generator)
    run, other = (_trained(settings, start, torch.randn(n, m * k, generator=generator, dtype=torch.float64), seed,
                           2.0 * torch.rand(n, generator=generator, dtype=torch.float64) - 1.0)
                  for _ in range(2))  # fmt: skip
    rows = []
    for kind, levels in LEVELS.items():
        for size in levels:
            dirty = _densely(run, other, kind, size)
            rows += [{"kind": kind, "size": size, **row} for row in _errors(run, dirty, None)]
    for eps in shares:
        rows += [{"kind": "mixed", "eps": eps, **row} for row in _mixed(run, eps)]
    return rows


def _trained(settings: Cell, start: PatchCNN, inputs: Tensor, seed: int, targets: Tensor) -> Run:
    options = {"gamma": settings["gamma"], "regime": "sequential", "steps": settings["steps"]}
    return Run(train(start, inputs, targets, **options), inputs, seed)


def _densely(run: Run, other: Run, kind: str, size: float) -> PatchCNN:
    if kind == "noise":
        return run.altered(Normal(0.0, 10.0**size))
    if kind == "quantised":
        return run.altered(Quantise(int(size)))
    if kind == "truncated":
        return run.altered(Truncate(int(size)))
    mean = copy.deepcopy(run.training.trained)
    with torch.no_grad():
        for own, theirs in zip(mean.parameters(), other.training.trained.parameters(), strict=True):
            own.lerp_(theirs, size)
    return mean


def _mixed(run: Run, eps: float) -> Iterator[Cell]:
    """Rounded weights with large alterations, fitted with and without the rounding as noise floor."""
    rounded = run.altered(Quantise(ROUNDED))
    dirty = run.altered(Normal(1.0, 1.0), eps, rounded)
    peak = run.training.trained.layers[0].weight.detach().abs().max()
    floor = 0.5 * float(peak) / (2 ** (ROUNDED - 1) - 1) * (1.0 + 1e-9)
    dense = compare(rounded, run.training.trained)["hidden.0"].mean
    yield from ({**row, "dense": dense} for row in _errors(run, dirty, None))
    fitted = purify(dirty, run.training.initial, run.inputs, noise_floor=floor, certify=False)
    large = (dirty.layers[0].weight != rounded.layers[0].weight).T
    layer = fitted.layers[0]
    beyond = layer.altered
    yield {
        "method": "l1, noise floor",
        **_error(run, fitted.model),
        "dense": dense,
        "found": float(beyond[large].double().mean()) if large.any() else None,
        "false": float(beyond[~large].double().mean()),
        "recovered": float(layer.recovered.double().mean()),
    }


def _errors(run: Run, dirty: PatchCNN, floor: float | None) -> Iterator[Cell]:
    fitted = purify(dirty, run.training.initial, run.inputs, noise_floor=floor, certify=False)
    status = float(fitted.layers[0].recovered.double().mean())
    yield {"method": "l1", **_error(run, fitted.model), "recovered": status}
    yield {"method": "l2", **_error(run, purify(dirty, run.training.initial, run.inputs, fit="l2").model)}
    yield {"method": "contaminated", **_error(run, dirty)}
    yield {"method": "initial weights", **_error(run, run.training.initial)}


def _error(run: Run, model: PatchCNN) -> Cell:
    hidden, output = compare(model, run.training.trained).values()
    return {"W_error": hidden.mean, "W_exact": hidden.exact, "beta_error": output.rms, "beta_exact": output.exact}
