"""Scan: what was altered is found in frozen tensors of every kind, and nothing is found in healthy networks."""

import numpy as np
import pytest
import torch

import netpurify
from netpurify.errors import InputError
from netpurify.network import TensorVerdict, compare_tensors
from netpurify.network.comparison.settling import joint_odds
from tests.network import fine_tuning
from tests.network.fine_tuning import HEALTHY, flipped, made, tampered, tuned

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2)
WHOLE = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool)


def values(shape, dtype, seed=0):
    drawn = 20 * torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    if dtype == torch.bool:
        return drawn > 0
    return (drawn.abs() if dtype == torch.uint8 else drawn).to(dtype)


def one(value, base, **more):
    """The comparison of one tensor in a network that is frozen otherwise."""
    beside = torch.ones(4, 4)
    found = netpurify.scan({"a.weight": value, "b.weight": beside}, {"a.weight": base, "b.weight": beside}, **more)
    assert found.tensors[1].verdict == TensorVerdict.SAME
    return found.tensors[0]


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_found_in_healthy_networks(name):
    base, state = tuned(HEALTHY[name], seed=len(name))
    found = netpurify.scan(state, base)
    assert [(tensor.name, tensor.reason) for tensor in found.found] == []
    assert found.only_base == ()
    changed = {key for key in base if not torch.equal(base[key].to(state[key].dtype), state[key])}
    assert {tensor.name for tensor in found.tensors if tensor.verdict == TensorVerdict.TRAINED} >= changed
    assert found.coverage.total == sum(value.numel() for value in state.values())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS[:4], ids=str)
def test_alterations_of_frozen_networks_are_found_where_they_are(dtype):
    base = {name: value.detach() for name, value in made(1, dtype).state_dict().items()}
    missed = []
    for what, state in tampered(base, seed=1):
        kind, _, name = what.partition(": ")
        changed = state[name] != base[name]
        grid = torch.finfo(dtype).eps * base[name].abs().double().median()
        if kind == "all scaled" or (kind == "all erased" and base[name].dim() < 2):
            continue  # it looks as if it had been trained, or set anew
        if not ((state[name] - base[name]).abs().nan_to_num(nan=9.0) > grid).any():
            continue  # unchanged, or by less than rounding at entries of the usual size
        found = {tensor.name: tensor for tensor in netpurify.scan(state, base).found}
        assert found.keys() <= {name}
        if name not in found:
            missed.append(what)
        elif found[name].verdict == TensorVerdict.ALTERED:
            assert np.array_equal(found[name].altered.index, np.flatnonzero(changed.reshape(-1).numpy()))
    # Two entries of a small tensor may have changed by the same amount, as an optimiser moves them.
    assert len(missed) <= 1, missed


@pytest.mark.parametrize("dtype", FLOATS + WHOLE, ids=str)
@pytest.mark.parametrize("shape", [(40, 30), (50,), (6, 3, 2, 2)])
def test_a_flipped_bit_is_found_in_every_dtype(dtype, shape):
    base = values(shape, dtype)
    place, bit = base.numel() // 2, 8 * base.element_size() - 2 if dtype.is_floating_point else 0
    found = one(flipped(base, place, bit), base)
    assert (found.verdict, found.altered_count, found.differing) == (TensorVerdict.ALTERED, 1, 1)
    assert found.altered.index.tolist() == [place]
    assert found.altered.base[0] == float(base.reshape(-1)[place])


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE, torch.complex64], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (5, 4)])
def test_the_same_bits_are_the_same_in_every_dtype_and_shape(dtype, shape):
    base = values(shape, dtype)
    found = one(base.clone(), base)
    assert (found.verdict, found.findings, found.entries) == (TensorVerdict.SAME, 0, base.numel())


def test_zeros_of_both_signs_and_nans_are_told_apart_by_their_bits():
    base = values((20, 20), torch.float32)
    base[3, 4], base[5, 6] = 0.0, torch.nan
    assert one(base.clone(), base).verdict == TensorVerdict.SAME
    other = base.clone()
    other[3, 4] = -0.0
    assert one(other, base).differing == 1
    assert one(other, base, frozen=["a.*"]).altered.index.tolist() == [64]


def test_nan_in_a_trained_tensor_is_impossible_and_a_huge_entry_too():
    base = values((20, 20), torch.float32)
    trained = base + 0.1 * values((20, 20), torch.float32, seed=1)
    trained[2, 3], trained[4, 5], trained[6, 7] = torch.nan, -torch.inf, 1e12
    found = one(trained, base)
    assert found.verdict == TensorVerdict.TRAINED
    assert found.impossible.index.tolist() == [43, 85, 127]
    assert np.array_equal(found.impossible.base, base.reshape(-1)[[43, 85, 127]].double().numpy())


def test_nan_is_found_in_a_norm_beside_a_trained_bias():
    base = {"norm.weight": values((64,), torch.float32), "norm.bias": values((64,), torch.float32, seed=1)}
    state = {"norm.weight": base["norm.weight"].clone(), "norm.bias": base["norm.bias"] * 1.01}
    state["norm.weight"][5] = torch.nan
    weight, bias = netpurify.scan(state, base).tensors
    assert weight.impossible.index.tolist() == [5]
    assert bias.findings == 0


def test_an_entry_far_outside_the_changes_of_training_is_an_outlier():
    base = values((60, 60), torch.float32)
    trained = base + 1e-3 * values((60, 60), torch.float32, seed=1)
    trained[7, 8] += 30.0
    found = one(trained, base)
    assert found.outliers.index.tolist() == [428]
    assert 1e-3 < found.usual < 0.1


def test_names_shapes_and_dtypes_that_do_not_fit_are_unknown_and_never_well():
    base = {"a": torch.ones(3), "b": torch.ones(2, 2), "c": torch.ones(4), "d": torch.ones(2), "e": torch.ones(5)}
    state = {"a": torch.ones(4), "b": torch.ones(2, 2), "c": torch.ones(4, dtype=torch.int64), "new": torch.ones(7)}
    found = netpurify.scan(state, base)
    assert [tensor.verdict.label for tensor in found.tensors] == ["unknown", "same", "unknown", "unknown"]
    assert found.only_base == ("d", "e")
    assert found.coverage.unknown == 4 + 4 + 7
    reasons = [tensor.reason for tensor in found.tensors]
    assert reasons[0] == "its shape is [4], that of the base [3]"
    assert reasons[2] == "its dtype is int64, that of the base float32"


def test_a_base_of_another_precision_is_rounded_first():
    base = values((40, 30), torch.float32)
    assert one(base.bfloat16(), base).verdict == TensorVerdict.SAME
    assert one(base.bfloat16().float(), base.bfloat16()).verdict == TensorVerdict.SAME
    hit = flipped(base.bfloat16(), 100, 14)
    assert one(hit, base).altered.index.tolist() == [100]


def test_frozen_patterns_make_every_difference_an_alteration():
    base, state = tuned(HEALTHY["SGD"], seed=0)
    found = netpurify.scan(state, base, frozen=["first.*"])
    changed = [tensor for tensor in found.tensors if tensor.verdict == TensorVerdict.ALTERED]
    assert [tensor.name for tensor in changed] == ["first.weight", "first.bias"]
    differing = (state["first.weight"] != base["first.weight"]).sum()
    assert changed[0].altered_count == differing == changed[0].differing
    phases = torch.view_as_complex(values((6, 2), torch.float32))
    assert one(phases.conj().resolve_conj(), phases, frozen=["*"]).altered_count == 6


def test_a_matrix_that_was_overwritten_by_one_value_is_altered():
    base = values((30, 20), torch.float32)
    assert one(torch.full_like(base, 0.5), base).altered_count == 600
    assert one(torch.where(values((30, 20), torch.bool, 1), 0.5, base), base).altered_count > 200
    assert one(torch.zeros(30), values((30,), torch.float32)).verdict == TensorVerdict.TRAINED  # a bias, set anew
    assert one(torch.zeros(30), torch.ones(30)).verdict == TensorVerdict.TRAINED


def test_tied_names_are_both_looked_at():
    base = {"words.weight": values((30, 8), torch.float32), "head.weight": values((30, 8), torch.float32)}
    hit = flipped(base["words.weight"], 17, 30)
    found = netpurify.scan({"words.weight": hit, "head.weight": hit}, base)
    assert [tensor.altered.index.tolist() for tensor in found.tensors] == [[17], [17]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_alterations_are_found_in_the_frozen_part_of_a_tuned_network(dtype):
    head = fine_tuning.Tuning(trained=lambda name: name.startswith("last"), mode=False, dtype=dtype)
    base, state = tuned(head, seed=2)
    for name in ("norm.weight", "batch_norm.running_var", "words.weight", "attention.in_proj_weight", "mix.bias"):
        hit = state | {name: flipped(state[name], 5, 8 * state[name].element_size() - 2)}
        found = netpurify.scan(hit, base)
        assert [(tensor.name, tensor.altered.index.tolist()) for tensor in found.found] == [(name, [5])]


def test_alterations_are_told_from_steps_that_were_rounded_away():
    base, state = tuned(HEALTHY["bfloat16, Adam, most rounded away"], seed=3)
    place = int(base["first.weight"].abs().argmax())
    hit = state | {"first.weight": flipped(state["first.weight"], place, 14)}
    (found,) = netpurify.scan(hit, base).found
    assert found.verdict == TensorVerdict.TRAINED
    assert found.impossible.index.tolist() == [place]
    hit["first.weight"] = state["first.weight"].clone()
    hit["first.weight"].reshape(-1)[place] *= 64
    (found,) = netpurify.scan(hit, base).found
    assert found.outliers.index.tolist() == [place]


def test_joint_odds_are_those_of_a_product_of_uniform_numbers():
    drawn = np.random.default_rng(0).random((200_000, 3))
    for odds in ([0.2, 0.3, 0.1], [0.9, 0.5, 0.7]):
        assert joint_odds(np.array(odds)) == pytest.approx((drawn.prod(axis=1) <= np.prod(odds)).mean(), abs=0.004)
    assert joint_odds(np.array([])) == 1.0


def test_progress_counts_tensors():
    state, seen = {"a": torch.ones(2), "b": torch.ones(3)}, []
    netpurify.scan(state, state, progress=lambda *step: seen.append(step))
    assert seen == [("a", 0, 2), ("b", 1, 2), ("", 2, 2)]


def test_refusals_say_what_was_expected():
    with pytest.raises(InputError, match="no tensor in common"):
        netpurify.scan({"a": torch.ones(2)}, {"b": torch.ones(2)})
    with pytest.raises(InputError, match=r"give \['\*'\]"):
        netpurify.scan({"a": torch.ones(2)}, {"a": torch.ones(2)}, frozen="*")
    with pytest.raises(InputError, match="got list"):
        netpurify.scan([], {"a": torch.ones(2)})


def test_compare_tensors_keeps_every_altered_entry():
    base = {"a": values((300, 300), torch.float32)}
    chosen = torch.rand(300, 300, generator=torch.Generator().manual_seed(5)) < 0.3
    state = {"a": torch.where(chosen, base["a"] + 50.0 * torch.randn(300, 300), base["a"])}
    (all_of_them,) = compare_tensors(state, base)
    (some,) = netpurify.scan(state, base).tensors
    assert len(all_of_them.altered) == all_of_them.altered_count == some.altered_count == int(chosen.sum())
    assert len(some.altered) == 10_000


def test_a_pattern_of_frozen_tensors_that_matches_nothing_is_refused():
    state = {"body.weight": torch.randn(8, 8)}
    with pytest.raises(InputError, match=r"'bodi\.\*' matches none of 1"):
        netpurify.scan(state, state, frozen=["bodi.*"])
