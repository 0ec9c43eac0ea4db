"""Laws: the right distribution, the right bits, the same draw for every dtype, and parameters that make sense."""

import math
import struct

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from netpurify import InputError, contaminate
from netpurify.contaminate import (
    LAWS,
    BitFlip,
    Cauchy,
    Constant,
    Erase,
    Laplace,
    Normal,
    Quantise,
    Scale,
    SignFlip,
    Truncate,
    Uniform,
    Zero,
)
from tests.contaminate.generators import seeded

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
EXAMPLES = [
    Normal(0.1, 0.5), Uniform(-1.0, 2.0), Laplace(0.2, 0.7), Cauchy(0.0, 0.3), Constant(0.25), SignFlip(), Scale(-3.0),
    Zero(), BitFlip(), BitFlip(9), Quantise(4), Truncate(3), Erase(),
]  # fmt: skip
NOISE = [
    (Normal(0.3, 2.0), stats.norm(0.3, 2.0)),
    (Uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0)),
    (Laplace(-0.5, 0.7), stats.laplace(-0.5, 0.7)),
    (Cauchy(1.0, 0.2), stats.cauchy(1.0, 0.2)),
]
WIDTHS = {torch.float64: ("<d", "<Q", 64), torch.float32: ("<f", "<I", 32), torch.float16: ("<e", "<H", 16)}


class Elsewhere(torch.Generator):
    """Says that it lives on another device, as a machine without one cannot make such a generator."""

    device = torch.device("meta")


def values_of(dtype, shape=(7, 5)):
    return torch.randn(shape, generator=seeded(99), dtype=torch.float64).to(dtype)


def same_bits(one, other):
    return one.dtype == other.dtype and one.detach().numpy().tobytes() == other.detach().numpy().tobytes()


@pytest.mark.parametrize(("law", "distribution"), NOISE, ids=lambda part: type(part).__name__)
def test_noise_follows_its_distribution(law, distribution):
    noise = law.alter(torch.zeros(20_000, dtype=torch.float64), seeded(1)).numpy()
    assert stats.kstest(noise, distribution.cdf).pvalue > 0.01
    assert abs(stats.spearmanr(noise[:-1], noise[1:]).statistic) < 0.03


@pytest.mark.parametrize(("law", "distribution"), NOISE, ids=lambda part: type(part).__name__)
def test_noise_is_added(law, distribution):
    shifted = law.alter(torch.full((500,), 8.0, dtype=torch.float64), seeded(1))
    noise = law.alter(torch.zeros(500, dtype=torch.float64), seeded(1))
    assert torch.equal(shifted, noise + 8.0)
    assert distribution.ppf(0.2) < noise.median() < distribution.ppf(0.8)


@pytest.mark.parametrize("law", EXAMPLES, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3, 4)], ids=str)
def test_a_proposal_fits_its_values_and_leaves_them_alone(law, dtype, shape):
    values = values_of(dtype, shape).requires_grad_()
    kept = values.detach().clone()
    proposal = law.alter(values, seeded())
    assert (proposal.shape, proposal.dtype, proposal.requires_grad) == (values.shape, dtype, False)
    assert torch.equal(values, kept)
    assert proposal.numel() == 0 or proposal.data_ptr() != values.data_ptr()


@pytest.mark.parametrize("law", [Normal(0.1, 0.5), Uniform(-1.0, 2.0), Laplace(), Cauchy(), Constant(0.3), Scale(1.7)])
@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_the_draw_does_not_depend_on_the_dtype(law, dtype):
    values = values_of(dtype)
    exact = law.alter(values.double(), seeded(5))
    assert torch.equal(law.alter(values, seeded(5)), exact.to(dtype))


@pytest.mark.parametrize("law", EXAMPLES, ids=repr)
def test_same_seed_same_proposal_whatever_the_strides(law):
    values = values_of(torch.float32, (6, 4))
    turned = values.T.contiguous().T
    assert turned.stride() != values.stride()
    first, second = law.alter(values, seeded(3)), law.alter(turned, seeded(3))
    assert same_bits(first.contiguous(), second.contiguous())


@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
@given(data=st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_flip_changes_exactly_the_bit_asked_for(dtype, data):
    packed, word, width = WIDTHS[dtype]
    bit = data.draw(st.integers(0, width - 1))
    stored = data.draw(st.integers(0, 2**width - 1))
    values = torch.from_numpy(np.frombuffer(struct.pack(word, stored), dtype=packed[1:].replace("e", "f2")).copy())
    flipped = BitFlip(bit).alter(values.to(dtype), seeded())
    (after,) = struct.unpack(word, flipped.numpy().tobytes())
    assert after == stored ^ (1 << bit)


@pytest.mark.parametrize("bit", range(16))
def test_bfloat16_flips_are_those_of_the_upper_half_of_float32(bit):
    values = values_of(torch.bfloat16)
    expected = BitFlip(bit + 16).alter(values.float(), seeded())
    flipped = BitFlip(bit).alter(values, seeded()).float()
    assert torch.equal(flipped.view(torch.int32), expected.view(torch.int32))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_random_flips_touch_one_bit_each_and_every_bit_alike(dtype):
    width = 8 * dtype.itemsize
    values = torch.zeros(width * 300, dtype=dtype)
    words = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    bits = BitFlip().alter(values, seeded(7)).view(words).numpy().view(f"u{dtype.itemsize}")
    counts = [np.count_nonzero(bits == 1 << place) for place in range(width)]
    assert sum(counts) == values.numel()
    assert stats.chisquare(counts).pvalue > 0.01


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sign_flip_turns_zeros_too(dtype):
    values = torch.tensor([1.5, -2.0, 0.0, -0.0, math.inf], dtype=dtype)
    flipped = SignFlip().alter(values, seeded())
    assert torch.equal(flipped, -values)
    assert flipped.signbit().tolist() == [True, False, True, False, True]


def test_constant_scale_zero_and_erase():
    values = torch.tensor([1.5, -2.0, 0.0])
    assert Constant(-1.0).alter(values, seeded()).tolist() == [0.5, -3.0, -1.0]
    assert Scale(4.0).alter(values, seeded()).tolist() == [6.0, -8.0, 0.0]
    assert Zero().alter(values, seeded()).tolist() == [0.0, 0.0, 0.0]
    assert Erase().alter(values, seeded()).isnan().all()


def test_quantise_rounds_to_the_nearest_of_its_levels():
    values = torch.tensor([7.0, 3.4, 3.6, -0.4, -7.0, 0.6], dtype=torch.float64)
    assert Quantise(4).alter(values, seeded()).tolist() == [7.0, 3.0, 4.0, 0.0, -7.0, 1.0]
    assert Quantise(2).alter(values, seeded()).tolist() == [7.0, 0.0, 7.0, 0.0, -7.0, 0.0]


@pytest.mark.parametrize("bits", [2, 3, 5, 8])
def test_quantise_uses_at_most_its_levels_and_errs_by_half_a_spacing(bits):
    values = values_of(torch.float64, (4000,))
    quantised = Quantise(bits).alter(values, seeded())
    spacing = float(values.abs().max()) / (2 ** (bits - 1) - 1)
    assert len(quantised.unique()) <= 2**bits - 1
    assert float((quantised - values).abs().max()) <= spacing * (0.5 + 1e-9)
    assert torch.allclose(Quantise(bits).alter(quantised, seeded()), quantised, atol=1e-12)


def test_quantise_leaves_what_is_not_finite_and_survives_tiny_values():
    values = torch.tensor([math.inf, 1.0, -0.4, math.nan, -math.inf])
    assert Quantise(2).alter(values, seeded())[[0, 1, 2, 4]].tolist() == [math.inf, 1.0, 0.0, -math.inf]
    assert Quantise(2).alter(values, seeded())[3].isnan()
    tiny = torch.tensor([5e-324, 0.0, -5e-324], dtype=torch.float64)
    assert torch.equal(Quantise(8).alter(tiny, seeded()), tiny)
    blank = torch.tensor([0.0, -0.0, math.nan])
    assert same_bits(Quantise(8).alter(blank, seeded()), blank)


def test_noise_without_spread_is_a_constant():
    values = values_of(torch.float64)
    for law in (Normal(0.5, 0.0), Uniform(0.5, 0.5), Laplace(0.5, 0.0), Cauchy(0.5, 0.0)):
        assert torch.equal(law.alter(values, seeded()), values + 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal(sd=-1.0), "Normal: sd must be at least 0; got -1.0"),
        (lambda: Normal(mean=math.nan), "Normal: mean must be a finite number; got nan"),
        (lambda: Normal(sd="1"), "Normal: sd must be a finite number; got '1'"),
        (lambda: Uniform(1.0, 0.0), "low must be at most high; got low=1.0, high=0.0; swap them"),
        (lambda: Uniform(-1e308, 1e308), "high - low must be finite"),
        (lambda: Uniform(0.0, math.inf), "Uniform: high must be a finite number; got inf"),
        (lambda: Laplace(0.0, -2.0), "Laplace: scale must be at least 0"),
        (lambda: Cauchy(0.0, -2.0), "Cauchy: scale must be at least 0"),
        (lambda: Constant(math.inf), "Constant: value must be a finite number"),
        (lambda: Scale(math.nan), "Scale: factor must be a finite number"),
        (lambda: BitFlip(-1), "bit must be None or a whole number from 0 to 63; got -1"),
        (lambda: BitFlip(64), "from 0 to 63; got 64"),
        (lambda: BitFlip(1.5), "whole number"),
        (lambda: Quantise(1), "bits must be a whole number from 2 to 32; got 1"),
        (lambda: Quantise(33), "from 2 to 32; got 33"),
        (lambda: Quantise(4.0), "whole number"),
        (lambda: BitFlip(16).alter(torch.zeros(1).half(), seeded()), "torch.float16 has bits 0 to 15; got bit=16"),
    ],
)
def test_parameters_without_meaning_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("law", EXAMPLES, ids=repr)
def test_only_floats_and_only_cpu_generators(law):
    for values in (torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.complex128)):
        with pytest.raises(InputError, match=r"values must be float64, float32, float16 or bfloat16; got torch\."):
            law.alter(values, seeded())
    with pytest.raises(InputError, match=r"generator must be a torch\.Generator; got int"):
        law.alter(torch.zeros(3), 7)
    with pytest.raises(InputError, match=r"generator must live on the CPU.*got one on meta"):
        law.alter(torch.zeros(3), Elsewhere())


def test_every_law_of_the_table_is_tested_and_public():
    assert {type(law) for law in EXAMPLES} == set(LAWS.classes.values())
    assert {kind.__name__ for kind in LAWS.classes.values()} <= set(contaminate.__all__)


def test_every_public_name_says_what_it_is():
    assert len(set(contaminate.__all__)) == len(contaminate.__all__)
    for name in contaminate.__all__:
        assert getattr(contaminate, name).__doc__, f"{name} has no docstring"


def test_truncate_keeps_the_first_bits_of_the_mantissa():
    values = torch.tensor([1.0, 1.5, 1.75, -1.875, 3.0, 0.0, math.inf], dtype=torch.float64)
    assert Truncate(1).alter(values, seeded()).tolist() == [1.0, 1.5, 1.5, -1.5, 3.0, 0.0, math.inf]
    assert Truncate(0).alter(values, seeded()).tolist() == [1.0, 1.0, 1.0, -1.0, 2.0, 0.0, math.inf]
    assert Truncate(7).alter(torch.tensor([math.nan]), seeded()).isnan().all()


def test_truncate_to_seven_bits_is_bfloat16_without_rounding():
    values = values_of(torch.float32)
    kept = Truncate(7).alter(values, seeded())
    assert torch.equal(kept, kept.bfloat16().float())
    assert ((values - kept).abs() <= values.abs() / 128).all()
    assert (kept.abs() <= values.abs()).all()
    assert same_bits(Truncate(23).alter(values, seeded()), values)


@pytest.mark.parametrize("bits", [-1, 53, 1.5])
def test_truncate_refuses_bits_that_no_mantissa_has(bits):
    with pytest.raises(InputError, match="from 0 to 52"):
        Truncate(bits)
