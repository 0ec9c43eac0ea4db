"""What a proof covers: whether each changed weight is one that the proof speaks of."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from netpurify.errors import InputError
from netpurify.network import Proof

State = Mapping[str, Tensor]
_MOST = 0.5
"""A layer of which fewer weights than this differ from the initial ones was never trained."""


def changed_only(proofs: Sequence[Proof], before: State, after: State) -> list[Proof]:
    """The proofs, cut down to units of which a weight was changed."""
    units = {layer: _units(layer, before, after) for layer in {proof.layer for proof in proofs}}
    kept = [(proof, np.isin(proof.units, list(units[proof.layer]))) for proof in proofs]
    return [
        replace(
            proof,
            units=proof.units[chosen],
            coefficients=proof.coefficients[:, chosen],
            dual=proof.dual[:, chosen],
            noise_floor=proof.noise_floor[chosen],
        )
        for proof, chosen in kept
        if chosen.any()
    ]


def uncovered(proofs: Sequence[Proof], before: State, initial: State | None, after: State) -> dict[str, int]:
    """Changed weights of units that have no proof, by tensor.

    A layer that was never trained needs none: it is compared with the initial weights, and set back to them.

    Raises:
        InputError: The two states are not of the same network.
    """
    if {name: value.shape for name, value in before.items()} != {name: value.shape for name, value in after.items()}:
        raise InputError("contaminated and purified weights must have the same names and shapes; these have not")
    proven: dict[str, set[int]] = {}
    for proof in proofs:
        proven.setdefault(proof.layer, set()).update(proof.units.tolist())
    found = {}
    for name, old in before.items():
        layer, _, part = name.rpartition(".")
        if initial is not None and _set_back(layer, before, initial, after):
            continue
        changed = _changed(old, after[name])
        if part in ("weight", "bias") and changed.dim():
            changed[sorted(proven.get(layer, ()))] = False
        if changed.any():
            found[name] = int(changed.sum())
    return found


def _units(layer: str, before: State, after: State) -> set[int]:
    masks = [_changed(before[name], after[name]) for name in _tensors(layer, before)]
    return {unit for mask in masks for unit in mask.reshape(mask.shape[0], -1).any(1).nonzero()[:, 0].tolist()}


def _set_back(layer: str, before: State, initial: State, after: State) -> bool:
    names = _tensors(layer, before)
    if any(name not in initial or initial[name].shape != before[name].shape for name in names):
        return False
    differs = [_changed(before[name], initial[name]).reshape(-1) for name in names]
    now = [_changed(after[name], initial[name]).any() for name in names]
    return bool(names) and not any(now) and float(torch.cat(differs).double().mean()) < _MOST


def _tensors(layer: str, state: State) -> list[str]:
    prefix = f"{layer}." if layer else ""
    return [name for name in (f"{prefix}weight", f"{prefix}bias") if name in state]


def _changed(old: Tensor, new: Tensor) -> Tensor:
    return ~((new == old) | (new.isnan() & old.isnan()))
