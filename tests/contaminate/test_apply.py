"""Contamination of a state: who takes the proposal, what counts as altered, what stays tied and what is refused."""

import math
from collections import OrderedDict
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import nn

from netpurify import InputError
from netpurify.contaminate import (
    BitFlip,
    Constant,
    Erase,
    Laplace,
    Law,
    Normal,
    Quantise,
    Scale,
    SignFlip,
    Uniform,
    Zero,
    contaminate,
)
from tests.contaminate.generators import seeded

WORDS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}


@dataclass(frozen=True)
class Proposes:
    """A law that proposes whatever a function makes of the values."""

    make: object

    def alter(self, values, generator):  # noqa: ARG002 a law's signature
        return self.make(values)


def bits(values):
    return values.detach().contiguous().view(WORDS[values.dtype])


def mixed_state():
    draw = seeded(42)
    return OrderedDict(
        double=torch.randn(20, 3, generator=draw, dtype=torch.float64),
        single=nn.Parameter(torch.randn(11, 5, generator=draw)),
        half=torch.randn(30, generator=draw).half(),
        brain=torch.randn(4, 4, 2, generator=draw).bfloat16(),
        scalar=torch.tensor(1.5),
        empty=torch.zeros(3, 0),
        turned=torch.randn(6, 7, generator=draw).T,
        image=torch.randn(2, 3, 4, 5, generator=draw).to(memory_format=torch.channels_last),
        steps=torch.tensor(7),
        flags=torch.tensor([True, False]),
        waves=torch.ones(3, dtype=torch.complex64),
        _extra_state={"version": 2},
    )


FLOATING = ["double", "single", "half", "brain", "scalar", "empty", "turned", "image"]


@pytest.mark.parametrize("law", [Normal(), Uniform(-1, 1), Laplace(), SignFlip(), BitFlip(), Quantise(3), Erase()])
def test_masks_are_exactly_the_entries_whose_bits_changed(law):
    state = mixed_state()
    dirty = contaminate(state, law, share=0.4, generator=seeded())
    assert list(dirty.state) == list(state)
    assert list(dirty.altered) == FLOATING
    for name in FLOATING:
        before, after, mask = state[name].detach(), dirty.state[name], dirty.altered[name]
        assert (after.shape, after.dtype, after.stride()) == (before.shape, before.dtype, before.stride())
        assert mask.dtype == torch.bool
        assert torch.equal(mask, bits(after) != bits(before))
    assert sum(int(mask.sum()) for mask in dirty.altered.values()) > 50


def test_the_given_state_is_neither_changed_nor_shared():
    state, kept = mixed_state(), mixed_state()
    dirty = contaminate(state, Normal(), share=1.0, generator=seeded())
    for name, value in dirty.state.items():
        if isinstance(value, torch.Tensor):
            assert type(value) is torch.Tensor
            assert not value.requires_grad
            if value.numel():
                assert value.untyped_storage().data_ptr() != state[name].untyped_storage().data_ptr()
            value.zero_()
            assert torch.equal(state[name], kept[name])
    assert isinstance(state["single"], nn.Parameter)
    assert state["single"].requires_grad


def test_what_is_not_chosen_is_copied_unchanged():
    state = mixed_state()
    dirty = contaminate(state, Erase(), share=1.0, generator=seeded(), names=iter(["scalar", "half"]))
    assert list(dirty.altered) == ["half", "scalar"]
    assert dirty.state["half"].isnan().all()
    assert dirty.state["scalar"].isnan()
    for name in set(FLOATING) - {"half", "scalar"} | {"steps", "flags", "waves"}:
        assert torch.equal(dirty.state[name], state[name])
    assert dirty.state["_extra_state"] == {"version": 2}


@given(seed=st.integers(0, 2**32), low=st.floats(0, 1), high=st.floats(0, 1))
@settings(max_examples=40, deadline=None, derandomize=True)
@pytest.mark.parametrize("law", [Normal(), Laplace(), BitFlip()], ids=repr)
def test_a_larger_share_alters_the_same_entries_to_the_same_values_and_more(law, seed, low, high):
    low, high = sorted((low, high))
    state = mixed_state()
    less = contaminate(state, law, share=low, generator=seeded(seed))
    more = contaminate(state, law, share=high, generator=seeded(seed))
    for name in FLOATING:
        taken = less.altered[name]
        assert not (taken & ~more.altered[name]).any()
        assert torch.equal(bits(less.state[name])[taken], bits(more.state[name])[taken])


def test_values_of_a_tensor_do_not_depend_on_the_share_nor_on_what_comes_after():
    first = torch.zeros(50)
    alone = contaminate({"first": first}, Normal(), share=0.2, generator=seeded(4))
    longer = contaminate({"first": first, "second": first.clone()}, Normal(), share=0.2, generator=seeded(4))
    assert torch.equal(alone.state["first"], longer.state["first"])
    assert not torch.equal(longer.state["first"], longer.state["second"])


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_the_number_of_altered_entries_is_binomial(share):
    count = 40_000
    dirty = contaminate({"w": torch.zeros(200, 200)}, Normal(), share=share, generator=seeded(8))
    hits = int(dirty.altered["w"].sum())
    assert stats.binomtest(hits, count, share).pvalue > 0.01
    rows = dirty.altered["w"].sum(dim=1).double()
    assert float(rows.var()) == pytest.approx(200 * share * (1 - share), rel=0.35)


def test_who_takes_is_independent_of_what_is_proposed():
    dirty = contaminate({"w": torch.zeros(50_000)}, Normal(), share=0.5, generator=seeded(9))
    taken = dirty.state["w"][dirty.altered["w"]].numpy()
    assert stats.kstest(taken, stats.norm.cdf).pvalue > 0.01


def test_none_and_all():
    state = mixed_state()
    none = contaminate(state, SignFlip(), share=0, generator=seeded())
    every = contaminate(state, SignFlip(), share=1, generator=seeded())
    for name in FLOATING:
        assert not none.altered[name].any()
        assert torch.equal(none.state[name], state[name])
        assert every.altered[name].all()
        assert torch.equal(every.state[name], -state[name])


@pytest.mark.parametrize("dtype", WORDS, ids=str)
def test_only_changed_bits_count(dtype):
    values = torch.tensor([0.0, -0.0, 3.0, math.nan], dtype=dtype)

    def altered(law):
        return contaminate({"w": values}, law, share=1.0, generator=seeded()).altered["w"].tolist()

    assert altered(Zero()) == [False, True, True, True]
    assert altered(Constant(1e-30))[2:] == [False, False]
    assert altered(Erase()) == [True, True, True, False]
    assert altered(BitFlip(0)) == [True, True, True, True]
    payload = contaminate({"w": values}, BitFlip(0), share=1.0, generator=seeded()).state["w"]
    assert payload[3].isnan()
    assert torch.equal(bits(payload) ^ 1, bits(values))


def test_signalling_nan_keeps_its_bits():
    stored = torch.tensor([0x7F800001, 0x7FC12345, -0x7FFFFF], dtype=torch.int32)
    values = stored.view(torch.float32)
    dirty = contaminate({"w": values}, Normal(), share=0.0, generator=seeded())
    assert torch.equal(dirty.state["w"].view(torch.int32), stored)
    flipped = contaminate({"w": values}, SignFlip(), share=1.0, generator=seeded())
    assert torch.equal(flipped.state["w"].view(torch.int32), stored ^ -(2**31))


@pytest.mark.parametrize("dtype", WORDS, ids=str)
@pytest.mark.parametrize("law", [Normal(), Uniform(1, 2), Scale(3.0), Quantise(3)], ids=repr)
def test_arithmetic_on_a_nan_does_not_count_as_altered(law, dtype):
    nans = int(bits(torch.tensor([math.inf], dtype=dtype))) + 1 + torch.arange(40, dtype=WORDS[dtype])
    values = torch.cat([nans.view(dtype), torch.ones(2, dtype=dtype)])
    dirty = contaminate({"w": values}, law, share=1.0, generator=seeded())
    assert values[:40].isnan().all()
    assert not dirty.altered["w"][:40].any()


def test_tied_names_are_drawn_once_and_stay_tied():
    weight = torch.zeros(30, 4)
    state = {"encoder": weight, "other": torch.ones(5), "decoder": weight.detach(), "steps": torch.arange(3)}
    state["clock"] = state["steps"].view(3)
    dirty = contaminate(state, Normal(), share=0.5, generator=seeded(2))
    assert dirty.state["encoder"].data_ptr() == dirty.state["decoder"].data_ptr()
    assert torch.equal(dirty.altered["encoder"], dirty.altered["decoder"])
    assert dirty.state["steps"].data_ptr() == dirty.state["clock"].data_ptr() != state["clock"].data_ptr()
    untied = contaminate({"encoder": weight, "other": torch.ones(5)}, Normal(), share=0.5, generator=seeded(2))
    assert torch.equal(untied.state["other"], dirty.state["other"])


def test_tied_modules_load_again():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.norm = nn.BatchNorm1d(4)
            self.decoder.weight = self.encoder.weight

    net = Net()
    dirty = contaminate(net.state_dict(), Normal(), share=0.5, generator=seeded())
    assert torch.equal(dirty.state["encoder.weight"], dirty.state["decoder.weight"])
    assert "norm.num_batches_tracked" not in dirty.altered
    net.load_state_dict(dirty.state)
    assert torch.equal(net.decoder.weight, dirty.state["encoder.weight"])


def test_naming_one_of_two_tied_names_cuts_the_tie():
    weight = torch.zeros(10)
    dirty = contaminate({"a": weight, "b": weight}, Constant(1.0), share=1.0, generator=seeded(), names=["b"])
    assert torch.equal(dirty.state["a"], torch.zeros(10))
    assert torch.equal(dirty.state["b"], torch.ones(10))
    assert list(dirty.altered) == ["b"]


def test_views_that_interleave_or_touch_are_separate():
    flat = torch.zeros(24)
    grid = flat[:12].view(3, 4)
    state = {"left": grid[:, :2], "right": grid[:, 2:], "even": flat[12::2], "odd": flat[13::2]}
    dirty = contaminate(state, Constant(1.0), share=1.0, generator=seeded())
    assert all(mask.all() for mask in dirty.altered.values())
    assert not flat.any()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda flat: flat[:6], lambda flat: flat[5:]),
        (lambda flat: flat, lambda flat: flat.view(3, 4)),
        (lambda flat: flat.view(3, 4), lambda flat: flat.view(4, 3).T),
        (lambda flat: flat[::2], lambda flat: flat[::3]),
        (lambda flat: flat, lambda flat: flat.view(torch.float16)[3:4]),
        (lambda flat: flat, lambda flat: torch.from_numpy(flat.numpy()[3:])),
    ],
    ids=["ends", "shape", "turned", "strides", "dtype", "numpy"],
)
def test_views_that_overlap_are_refused_unless_only_one_is_chosen(one, other):
    flat = torch.zeros(12)
    state = {"one": one(flat), "apart": torch.zeros(2), "other": other(flat)}
    with pytest.raises(InputError, match=r"(one and other|other and one) overlap in memory.*name only one of them"):
        contaminate(state, Constant(1.0), share=1.0, generator=seeded())
    dirty = contaminate(state, Constant(1.0), share=1.0, generator=seeded(), names=["one"])
    assert dirty.altered["one"].all()
    assert not dirty.state["other"].any()


def test_an_overlap_is_found_beyond_a_view_that_lies_between():
    flat = torch.zeros(12)
    state = {"wide": flat[::4], "between": flat[1:3], "end": flat[8:]}
    with pytest.raises(InputError, match="end and wide overlap in memory"):
        contaminate(state, Zero(), share=0.5, generator=seeded())


@pytest.mark.parametrize("view", [lambda x: x[:1].expand(4), lambda x: x.unfold(0, 3, 1)], ids=["expand", "unfold"])
def test_a_tensor_that_overlaps_itself_is_refused(view):
    with pytest.raises(InputError, match=r"w must have its own memory for each entry.*clone it"):
        contaminate({"w": view(torch.zeros(8))}, Zero(), share=0.5, generator=seeded())


def test_dimensions_of_length_one_do_not_cut_a_tie():
    flat = torch.zeros(5)
    row = flat.as_strided((1, 5), (77, 1))
    dirty = contaminate({"a": flat.view(1, 5), "b": row}, Normal(), share=0.5, generator=seeded())
    assert dirty.state["a"].data_ptr() == dirty.state["b"].data_ptr()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("w", torch.arange(3), r"w must be float64, float32, float16 or bfloat16; got torch\.int64; leave it out"),
        ("w", torch.tensor([True]), r"got torch\.bool"),
        ("w", torch.ones(2, dtype=torch.complex64), r"got torch\.complex64"),
        ("w", torch.ones(2).to(torch.float8_e5m2), r"got torch\.float8_e5m2"),
        ("w", torch.ones(2, 2).to_sparse(), r"w must be a dense tensor; got layout torch\.sparse_coo"),
        ("w", torch.ones(2, device="meta"), "w must hold values; got a tensor on the meta device"),
        ("w", "text", "w must be a tensor to be contaminated; got str"),
    ],
    ids=["int", "bool", "complex", "float8", "sparse", "meta", "text"],
)
def test_tensors_that_cannot_be_contaminated_are_refused_by_name(name, value, message):
    state = {"fine": torch.ones(3), name: value}
    with pytest.raises(InputError, match=message):
        contaminate(state, Normal(), share=0.5, generator=seeded(), names=[name])
    assert contaminate(state, Normal(), share=0.5, generator=seeded(), names=["fine"]).state.keys() == state.keys()


@pytest.mark.filterwarnings("ignore")
def test_quantised_tensors_are_refused_by_name_and_otherwise_copied():
    state = {"fine": torch.ones(3), "packed": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)}
    with pytest.raises(InputError, match="packed must hold floats; got a quantised tensor"):
        contaminate(state, Normal(), share=0.5, generator=seeded(), names=["packed"])
    dirty = contaminate(state, Normal(), share=0.5, generator=seeded())
    assert torch.equal(dirty.state["packed"].int_repr(), state["packed"].int_repr())
    assert list(dirty.altered) == ["fine"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": -0.1}, r"share must be a number in \[0, 1\]; got -0\.1"),
        ({"share": 1.1}, r"share must be a number in \[0, 1\]; got 1\.1"),
        ({"share": math.nan}, "got nan"),
        ({"share": "half"}, "got 'half'"),
        ({"generator": 3}, r"generator must be a torch\.Generator; got int"),
        ({"generator": None}, "got NoneType"),
        ({"names": ["conv1.weigth"]}, r"no 'conv1\.weigth'; did you mean conv1\.weight"),
        ({"names": ["zzz"]}, r"no 'zzz'; it holds conv1\.weight, conv2\.weight"),
        ({"names": "conv1.weight"}, r"got the single string 'conv1\.weight'; give \['conv1\.weight'\]"),
        ({"law": Normal}, "law must be an object with a method alter, such as Normal"),
        ({"law": 3.0}, r"method alter.*got 3\.0"),
        ({"state": nn.Linear(2, 2)}, "state must be a mapping of names to tensors; got Linear; give a state_dict"),
    ],
)
def test_arguments_without_meaning_are_refused(options, message):
    state = {"conv1.weight": torch.zeros(3), "conv2.weight": torch.zeros(3)}
    given = {"state": state, "law": Normal(), "share": 0.5, "generator": seeded()} | options
    with pytest.raises(InputError, match=message):
        contaminate(given.pop("state"), given.pop("law"), **given)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda values: values.double(), r"w: the law .* must propose a tensor \[4\], torch\.float32, cpu.*float64"),
        (lambda values: values[:2], r"got \[2\], torch\.float32"),
        (lambda values: values.tolist(), "got list"),
    ],
)
def test_a_law_is_not_trusted(make, message):
    law: Law = Proposes(make)
    with pytest.raises(InputError, match=message):
        contaminate({"w": torch.zeros(4)}, law, share=0.5, generator=seeded())


def test_a_law_that_works_in_place_does_not_reach_the_given_state():
    values = torch.ones(4)
    dirty = contaminate({"w": values}, Proposes(lambda given: given.fill_(5.0)), share=1.0, generator=seeded())
    assert dirty.altered["w"].all()
    assert torch.equal(values, torch.ones(4))


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    contaminate(mixed_state(), Laplace(), share=0.5, generator=seeded())
    assert torch.equal(before, torch.get_rng_state())


def test_an_empty_state_is_fine():
    dirty = contaminate({}, Normal(), share=0.5, generator=seeded())
    assert (dirty.state, dirty.altered) == ({}, {})
