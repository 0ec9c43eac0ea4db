import math

import pytest
import torch

from netpurify.contaminate import Normal, contaminate, difference


def test_finds_exactly_what_contaminate_altered():
    state = {"a": torch.randn(20, 30, generator=torch.Generator().manual_seed(0)), "b": torch.arange(5)}
    dirty = contaminate(state, Normal(sd=2.0), share=0.1, generator=torch.Generator().manual_seed(1))
    found = difference(state, dirty.state)
    (one,) = found.tensors
    mask = dirty.altered["a"]
    assert (one.name, one.changed, one.entries) == ("a", int(mask.sum()), 600)
    assert one.largest == pytest.approx(float((dirty.state["a"].double() - state["a"].double()).abs().max()), rel=1e-12)
    assert list(one.first) == mask.reshape(-1).nonzero()[:5, 0].tolist()
    assert found.compared == 2
    assert not found.same


def test_same_bits_are_the_same_and_signs_of_zero_are_not():
    state = {"a": torch.tensor([0.0, math.nan, math.inf]), "empty": torch.zeros(0), "flag": torch.tensor(True)}
    assert difference(state, {name: value.clone() for name, value in state.items()}).same
    (one,) = difference(state, state | {"a": torch.tensor([-0.0, math.nan, math.inf])}).tensors
    assert (one.changed, one.largest, one.first) == (1, 0.0, (0,))
    (one,) = difference(state, state | {"a": torch.tensor([0.0, 1.0, math.inf])}).tensors
    assert math.isnan(one.largest)


def test_names_dtypes_and_shapes():
    found = difference({"a": torch.zeros(2), "b": torch.zeros(2)}, {"b": torch.zeros(3), "c": torch.zeros(1)})
    assert (found.only_first, found.only_second, found.compared) == (("a",), ("c",), 1)
    assert found.tensors[0].shapes == ((2,), (3,))
    (one,) = difference({"a": torch.zeros(2)}, {"a": torch.zeros(2).double()}).tensors
    assert one.dtypes == ("float32", "float64")
    assert one.changed == 2
