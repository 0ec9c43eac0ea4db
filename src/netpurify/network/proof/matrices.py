"""The matrices of a proof's layer in a state dict, and which tensors the matrices are made of."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from netpurify.errors import InputError
from netpurify.network.adapter.form import Form, module_form, tensor_names
from netpurify.network.records import Proof

State = Mapping[str, Tensor]
Mask = NDArray[np.bool_]


def form_of(proof: Proof, state: State) -> Form:
    """The form of a proof's layer; one without a form has a module's weight and, if there is one, its bias."""
    if proof.form is not None:
        return proof.form
    bias = tensor_names(proof.layer, bias=True)[1] in state
    return module_form(proof.layer, bias=bias, groups=proof.groups)


def matrix_of(proof: Proof, state: State, what: str) -> Tensor:
    """The matrix of a proof's layer, [groups, fan-in, units of a group].

    Raises:
        InputError: The state has no such tensors, or they are of another shape.
    """
    form, size = form_of(proof, state), proof.columns.shape[0]
    values = {name: _value(name, form, state) for name in form.tensors}
    weight, *biases = values.values()
    if weight is None or weight.dim() < 2 or not weight.numel() or form.fan_in(weight.shape) != size:
        shape = "nothing" if weight is None else list(weight.shape)
        raise InputError(f"the {what} must have {form.weight} with a fan-in of {size}, as the proof has; got {shape}")
    units, channels = form.units(weight.shape), weight.shape[0]
    if channels % form.groups or not 0 <= proof.group < form.groups:
        raise InputError(f"the {what} have {units} units in {form.weight}; the proof names others")
    for name, bias in zip(form.biases, biases, strict=True):
        if bias is None or bias.dim() != 1 or bias.numel() < form.first + units:
            shape = "nothing" if bias is None else list(bias.shape)
            raise InputError(f"the {what} must have {name} with {form.first + units} entries or more; got {shape}")
    return form.matrix({name: value.detach() for name, value in values.items() if value is not None})


def values_of(form: Form, state: State) -> list[Tensor]:
    """The tensors of a form, as far as the state has them."""
    return [value for name in form.tensors if (value := _value(name, form, state)) is not None]


def _value(name: str, form: Form, state: State) -> Tensor | None:
    """A tensor of a state; a file may have a tied one under any of its names."""
    names = [name, *(other for other, tensor in form.tied if tensor == name)]
    return next((state[one] for one in names if one in state), None)


def covered_by(forms: Sequence[Form], before: State, after: State) -> dict[str, Mask]:
    """By the name of a tensor, which of its entries the proofs speak of; one truth stands for all of them."""
    covered: dict[str, Mask] = {}
    for form in dict.fromkeys(forms):
        weight, *biases = (_value(name, form, before) for name in form.tensors)
        if weight is None:
            continue  # ``_matrix`` has refused it
        covered[form.weight] = np.ones((), np.bool_)
        for name, bias in zip(form.biases, biases, strict=True):
            entries = covered.setdefault(name, np.zeros(() if bias is None else bias.shape, np.bool_))
            if entries.ndim:
                entries[form.first : form.first + form.units(weight.shape)] = True
        for other, name in form.tied:
            if name in form.tensors and all(_tied(state, other, name) for state in (before, after)):
                covered[other] = covered[name]
    return covered


def _tied(state: State, other: str, name: str) -> bool:
    """Whether two tensors of a state are the same."""
    if not {other, name} <= state.keys() or state[other].shape != state[name].shape:
        return False
    return bool(equal(state[other], state[name]).all())


def equal(a: Tensor, b: Tensor) -> Mask:
    """Which entries of two tensors are the same."""
    return same(*(value.detach().cpu().double().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
                   for value in (a, b)))  # fmt: skip


def same(a: NDArray, b: NDArray) -> Mask:
    """Which entries of two arrays are the same; NaN is the same as NaN here."""
    return np.asarray((a == b) | ((a != a) & (b != b)))
