"""Tensors beside their base: each rule that tells an alteration from training, with a case on either side of it."""

import numpy as np
import pytest
import torch

from netpurify.network import TensorVerdict, compare_tensors

ALTERED, SAME, TRAINED, UNKNOWN = (TensorVerdict[name] for name in ("ALTERED", "SAME", "TRAINED", "UNKNOWN"))
HALVES = [torch.bfloat16, torch.float16]
DTYPES = [torch.float64, torch.float32, *HALVES]


def weights(*shape, seed=0, size=0.05, dtype=torch.float32):
    return (size * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))).to(dtype)


def compared(value, base, **others):
    """The comparison of one tensor, beside others that are the same in both."""
    return compare_tensors({"it.weight": value, **others}, {"it.weight": base, **others})[0]


def changed(base, places, values):
    value = base.clone()
    value.view(-1)[torch.as_tensor(places)] = torch.as_tensor(values, dtype=base.dtype)
    return value


@pytest.mark.parametrize("dtype", DTYPES)
def test_scattered_differences_in_a_frozen_matrix_are_altered_to_the_entry(dtype):
    base = weights(40, 30, dtype=dtype)
    places = [5, 77, 301, 640, 1100]
    found = compared(changed(base, places, [1.0, -0.4, float("nan"), 0.3, 2.0]), base)
    assert (found.verdict, found.altered.index.tolist()) == (ALTERED, places)
    assert found.altered.base.tolist() == base.view(-1)[places].double().tolist()
    assert found.altered_count == found.differing == 5


def test_rows_that_differ_as_training_leaves_them_are_not():
    base = weights(40, 30)
    value = base.clone()
    value[3:9] += weights(6, 30, seed=1, size=0.01)  # such as the rows of tokens that were used
    found = compared(value, base)
    assert (found.verdict, found.findings) == (TRAINED, 0)


def test_a_block_that_was_overwritten_by_one_value_is_altered():
    base = weights(40, 30)
    value = base.clone()
    value[3:9, 4:12] = 0.0
    assert compared(value, base).altered_count == 48
    value[3:9, 4:12] = 0.7
    assert compared(value, base).altered_count == 48


def test_steps_of_equal_size_are_training():
    base = weights(40, 30)
    steps = torch.zeros(1200)
    steps[torch.randperm(1200, generator=torch.Generator().manual_seed(1))[:300]] = 0.01
    steps[::2] *= -1.0
    assert compared(base + steps.view(40, 30), base).verdict == TRAINED


@pytest.mark.parametrize("dtype", HALVES)
def test_rounding_that_hides_training_is_not_freezing(dtype):
    base = weights(64, 64, dtype=dtype)
    # Changes of about the rounding of large weights: these keep their bits, small ones move by many steps.
    size = float(torch.finfo(dtype).eps) * 0.02
    value = (base.double() + size * torch.randn(64, 64, generator=torch.Generator().manual_seed(2))).to(dtype)
    found = compared(value, base)
    assert 0.0 < found.differing / 4096 < 0.9
    assert (found.verdict, found.findings) == (TRAINED, 0)


def test_differences_of_a_few_rounding_steps_need_a_frozen_network():
    base = weights(40, 30)
    value = base.clone()
    value.view(-1).view(torch.int32)[7] ^= 1  # the lowest bit
    others = {f"other{number}.weight": weights(8, 8, seed=number) for number in range(19)}
    assert compared(value, base, **others).verdict == ALTERED
    trained = {name: tensor + 0.01 for name, tensor in list(others.items())[:5]}
    found = compare_tensors({"it.weight": value, **others, **trained}, {"it.weight": base, **others})[0]
    assert (found.verdict, found.findings) == (TRAINED, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_vector_is_told_by_the_tensors_beside_it(dtype):
    base, beside = weights(64, dtype=dtype) + 1, weights(64, seed=3, dtype=dtype)
    value = changed(base, [9], [4.0])
    frozen = compare_tensors({"n.weight": value, "n.bias": beside}, {"n.weight": base, "n.bias": beside})[0]
    trained = compare_tensors({"n.weight": value, "n.bias": beside + 0.1}, {"n.weight": base, "n.bias": beside})[0]
    assert (frozen.verdict, trained.verdict) == (ALTERED, TRAINED)
    # Statistics are updated where the weights are frozen, so they do not tell whether these were trained.
    updated = {"n.running_mean": beside + 0.1, "n.running_var": beside + 0.2}
    stale = dict.fromkeys(updated, beside)
    found = compare_tensors(
        {"n.weight": value, "n.bias": beside, **updated}, {"n.weight": base, "n.bias": beside} | stale
    )
    assert [one.verdict for one in found] == [ALTERED, SAME, TRAINED, TRAINED]


def test_zeros_that_stayed_zero_do_not_show_that_nothing_was_trained():
    base = torch.zeros(40, 30)
    value = changed(base, np.arange(0, 1200, 41), 0.1 * np.ones(30) * np.arange(1, 31))
    found = compare_tensors(
        {"a.weight": value, "b.weight": weights(9, 9) + 1}, {"a.weight": base, "b.weight": weights(9, 9)}
    )
    assert found[0].verdict == TRAINED


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(60, 50), (400,)])
def test_what_no_training_could_have_done_is_named_in_a_trained_tensor(dtype, shape):
    base = weights(*shape, dtype=dtype)
    tuned = (base.double() + weights(*shape, seed=1, size=0.002).double()).to(dtype)
    value = changed(tuned, [3, 111, 222], [float("nan"), float("-inf"), 3.0])
    found = compared(value, base)
    assert (found.verdict, found.impossible.index.tolist()) == (TRAINED, [3, 111])
    assert found.outliers.index.tolist() == [222]
    assert 0.0005 < found.usual < 0.004
    assert compared(tuned, base).findings == 0


def test_absurd_sizes_are_impossible_and_erased_entries_are_too():
    base, tuned = weights(60, 50), weights(60, 50) + weights(60, 50, seed=1, size=0.01)
    assert compared(changed(tuned, [8], [1e9]), base).impossible.index.tolist() == [8]
    erased = changed(tuned, range(100, 140), [0.0] * 40)
    assert compared(erased, base).impossible.index.tolist() == list(range(100, 140))
    assert compared(changed(tuned, [1, 2, 3], [0.0] * 3), base).findings == 0


def test_heavy_tails_and_patterns_of_training_do_not_stand_out():
    generator = torch.Generator().manual_seed(5)
    base = weights(60, 50)
    heavy = 0.001 * torch.randn(60, 50, generator=generator) / torch.rand(60, 50, generator=generator) ** 2
    assert compared(base + heavy, base).findings == 0
    rows = torch.full((60, 1), 1e-6)
    rows[7:10] = 1.0  # few rows were trained, all others decayed
    assert compared(base + rows * torch.randn(60, 50, generator=generator), base).findings == 0
    half = 1e-6 * torch.randn(40, generator=generator)
    half[:20] = 0.1 * torch.randn(20, generator=generator)  # some units were trained, the others decayed
    bias = weights(40, seed=9)
    assert compared(bias + half, bias).findings == 0


def test_a_base_of_another_dtype_is_rounded_first():
    base = weights(40, 30)
    assert compared(base.bfloat16(), base).verdict == SAME
    assert compared(base.bfloat16().float(), base.bfloat16()).verdict == SAME
    assert compared(base.bfloat16().float(), base).verdict == TRAINED


def test_signs_of_zero_whole_numbers_and_nothing():
    zeros = torch.zeros(6)
    assert compared(-zeros, zeros).differing == 6
    ids = torch.arange(64)[None]
    assert compared(changed(ids, [5], [9]), ids, **{"o.weight": weights(4, 4)}).altered.index.tolist() == [5]
    assert compared(torch.tensor(7), torch.tensor(3)).verdict == TRAINED  # a counter
    assert compared(torch.zeros(0, 5), torch.zeros(0, 5)).verdict == SAME
    assert compared(torch.ones(3, dtype=torch.complex64), torch.zeros(3, dtype=torch.complex64)).verdict == TRAINED


def test_what_cannot_be_compared_says_why():
    base = weights(4, 4)
    assert "no base" in compare_tensors({"a": base}, {})[0].reason
    found = compare_tensors(
        {"a": base, "b": base, "c": base.to("meta")}, {"a": weights(4, 5), "b": base.long(), "c": base}
    )
    assert [one.verdict for one in found] == [UNKNOWN] * 3
    assert [word in one.reason for word, one in zip(("shape", "dtype", "meta"), found, strict=True)] == [True] * 3
