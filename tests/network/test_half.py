"""Half precision: weights on a coarse grid, computed in float32 and returned in the dtype that came."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from netpurify import Defend, Project, Recover, check, load_defended, purify
from netpurify.contaminate import BitFlip, Normal
from netpurify.network import Grade, RepairClaim, load_proof, save_proof, verify_proof
from netpurify.network.adapter.grid import HALF, HalfGrid, as_stored, half_step, in_float32, round_to

from .made_networks import altered, head, positions, same_bits, seeded, truth


@pytest.fixture(scope="module")
def trained():
    """A head whose training changed its weights by about fifty roundings of bfloat16."""
    return head(steps=100)


def stored(trained, dtype, *, half_base):
    network, initial, inputs = trained
    base = copy.deepcopy(initial).to(dtype) if half_base else initial
    return copy.deepcopy(network).to(dtype), base, inputs


def steps_off(values, expected, dtype):
    """By how many steps of the grid numbers differ."""
    wide = [value.double().numpy() for value in (values, expected)]
    return np.abs(wide[0] - wide[1]) / (2.0 * half_step(wide[1], dtype))


@pytest.mark.parametrize("dtype", HALF)
def test_half_a_step_is_half_the_distance_of_neighbours(dtype):
    bits = torch.arange(1, 0x7000, 17, dtype=torch.int16)
    numbers = bits.view(dtype)
    numbers = numbers[numbers.isfinite() & (numbers.float() < 0.9 * torch.finfo(dtype).max)]
    neighbours = (numbers.view(torch.int16) + 1).view(dtype)
    assert (half_step(numbers.double().numpy(), dtype) == 0.5 * (neighbours.double() - numbers.double()).numpy()).all()


@pytest.mark.parametrize("dtype", HALF)
def test_numbers_are_rounded_as_torch_rounds_them_and_stay_finite(dtype):
    values = seeded(lambda: torch.randn(1000)).numpy() * 10.0 ** np.linspace(-9, 9, 1000, dtype=np.float32)
    inside = np.abs(values) < torch.finfo(dtype).max
    rounded = round_to(values, dtype)
    assert (rounded[inside] == torch.from_numpy(values[inside]).to(dtype).float().numpy()).all()
    assert np.isfinite(rounded).all()
    assert np.isnan(round_to(np.array([np.nan]), dtype)).all()


def test_the_bias_may_have_a_grid_of_its_own():
    grid = HalfGrid((torch.bfloat16, torch.float32), (torch.float32, torch.float32))
    matrix = np.full((1, 3, 2), 1.001, np.float32)
    assert grid.half
    assert grid.words == "bfloat16"
    assert grid.to_grid(matrix)[0, :, 0].tolist() == [1.0, 1.0, float(np.float32(1.001))]
    assert grid.half_steps(matrix)[0, :, 0].tolist() == [2.0**-8, 2.0**-8, 2.0**-24]
    assert not grid.initial_half_steps(matrix).any()


def test_a_network_comes_back_with_every_bit_also_those_of_nan():
    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2).double()).to(torch.bfloat16)
    network[2].double()
    network[0].weight.data.view(torch.int16)[0, :3] = torch.tensor([0x7FA1, -0x8000, 0x7F80], dtype=torch.int16)
    network[0](torch.ones(1, 4, dtype=torch.bfloat16)).sum().backward()  # gradients have a dtype, too
    before = {name: value.clone() for name, value in network.state_dict().items()}
    copied = copy.deepcopy(network)
    dtypes = in_float32(copied)
    assert {value.dtype for value in copied.state_dict().values()} == {torch.float32, torch.float64, torch.int64}
    assert same_bits(as_stored(copied, dtypes, before), network)


@pytest.mark.parametrize("half_base", [False, True])
@pytest.mark.parametrize("dtype", HALF)
def test_a_healthy_network_keeps_every_bit(trained, dtype, half_base):
    network, base, inputs = stored(trained, dtype, half_base=half_base)
    result = purify(network, inputs, policy=Recover(base))
    assert same_bits(result.model, network)
    assert result.count(Grade.RECOVERED) == 10
    assert not len(result.altered)
    assert result.verify().sound


@pytest.mark.parametrize("half_base", [False, True])
@pytest.mark.parametrize("dtype", HALF)
def test_altered_weights_are_found_and_no_others(trained, dtype, half_base):
    network, base, inputs = stored(trained, dtype, half_base=half_base)
    dirty, masks = altered(network, Normal(0.0, 1.0), 0.05, names=["0.weight"])
    dirty[0].weight.data[0, 0] = torch.nan
    masks["0.weight"][0, 0] = True
    result = purify(dirty, inputs, policy=Recover(base))
    found = positions(result.altered)
    assert found <= truth(masks)
    missed = truth(masks) - found
    assert len(missed) < 0.02 * len(truth(masks))  # normal numbers that are smaller than rounding
    assert result.count(Grade.RECOVERED) == 10
    assert result.model[0].weight.dtype == dtype
    repaired = result.model.state_dict()["0.weight"]
    assert torch.equal(repaired[~masks["0.weight"]], network[0].weight[~masks["0.weight"]])
    # A fit through rounded numbers has an error of its own: most weights are exact, small ones are off by some steps.
    replaced = steps_off(repaired, network[0].weight.detach(), dtype)[masks["0.weight"].numpy()]
    assert np.median(replaced) <= 1.0
    assert float((repaired.double() - network[0].weight.detach().double()).abs().max()) < 0.005
    assert result.verify().sound


def test_one_noise_floor_for_all_weights_does_not_undercut_the_grid(trained):
    network, base, inputs = stored(trained, torch.bfloat16, half_base=False)
    result = purify(network, inputs, policy=Recover(base, noise_floor=1e-7))
    assert same_bits(result.model, network)
    assert result.count(Grade.RECOVERED) == 10


def test_a_proof_of_half_precision_is_checked_from_its_file(trained, tmp_path):
    network, base, inputs = stored(trained, torch.bfloat16, half_base=False)
    dirty, _ = altered(network, Normal(0.0, 1.0), 0.05, names=["0.weight"])
    result = purify(dirty, inputs, policy=Recover(base))
    save_proof(result, tmp_path / "proof.safetensors")
    proof = load_proof(tmp_path / "proof.safetensors")
    purified = {name: value.clone() for name, value in result.model.state_dict().items()}

    def claim(state):
        return RepairClaim(dirty.state_dict(), base.state_dict(), state, "recover", proof.decays)

    checked = verify_proof(proof.proofs, claim(purified))
    assert checked.sound
    assert [layer.recovered for layer in checked.layers] == [10]
    # One step of the grid more than the fit says, or any change of a weight that agrees, is not explained.
    (name,), place = result.altered.names[:1], int(result.altered.index[0])
    for flat in (place, int(next(i for i in range(512) if ("0.weight", i) not in positions(result.altered)))):
        forged = {key: value.clone() for key, value in purified.items()}
        forged[name].view(-1).view(torch.int16)[flat] += 2
        assert [layer.unexplained for layer in verify_proof(proof.proofs, claim(forged)).layers] == [1]


def below_rounding(dtype):
    """A head that training changed by a tenth of a rounding: most weights keep their bits, some move by one step."""
    network, initial, inputs = head(steps=2)
    with torch.no_grad():
        for after, before in zip(network.parameters(), initial.parameters(), strict=True):
            change = after - before
            step = 0.1 * 0.5 * torch.finfo(dtype).eps * before.abs().median()
            after.copy_(before + change * step / change.abs().median())
    return network, initial, inputs


@pytest.mark.parametrize("half_base", [False, True])
@pytest.mark.parametrize("dtype", HALF)
def test_training_below_rounding_is_not_proven_and_not_taken_for_frozen(dtype, half_base):
    network, initial, inputs = below_rounding(dtype)
    half, base, _ = stored((network, initial, inputs), dtype, half_base=half_base)
    moved = (half[0].weight != initial[0].weight.to(dtype)).float().mean()
    assert 0.0 < moved < 0.2
    result = purify(half, inputs, policy=Recover(base))
    assert same_bits(result.model, half)
    assert result.count(Grade.LEFT_ALONE) == 10
    assert not result.layers[0].frozen
    assert "by no more than they are rounded" in result.layers[0].reason


@pytest.mark.slow
def test_the_plan_says_that_rounding_hides_training():
    network, initial, inputs = below_rounding(torch.bfloat16)
    (plan,) = check(network.to(torch.bfloat16), inputs, initial=initial).layers
    assert not plan.repairable
    assert "nothing can be proven" in plan.reason


def test_what_stands_far_out_is_found_below_rounding():
    network, initial, inputs = below_rounding(torch.bfloat16)
    dirty = network.to(torch.bfloat16)
    dirty[0].weight.data[[1, 3, 4, 7], [5, 80, 200, 301]] = torch.tensor([30.0, -50.0, 40.0, 60.0]).to(torch.bfloat16)
    result = purify(dirty, inputs, policy=Recover(initial))
    assert {int(index) for index in result.altered.index} == {512 + 5, 3 * 512 + 80, 4 * 512 + 200, 7 * 512 + 301}
    assert set(result.altered.grade) == {Grade.APPROXIMATE}


@pytest.mark.parametrize("half_base", [False, True])
def test_a_frozen_layer_is_set_back_to_the_bit(half_base):
    initial = seeded(lambda: nn.Sequential(nn.Linear(60, 40), nn.ReLU(), nn.Linear(40, 5)))
    inputs = seeded(lambda: torch.randn(10, 60), seed=1)
    network = copy.deepcopy(initial).to(torch.bfloat16)
    dirty, masks = altered(network, BitFlip(), 0.02, names=["0.weight", "2.weight"])
    base = network if half_base else initial
    result = purify(dirty, inputs, policy=Recover(base))
    assert same_bits(result.model, network)
    assert positions(result.altered) == truth(masks)
    assert result.count(Grade.RESTORED) == 45
    assert result.verify().sound


def test_what_a_frozen_part_passes_on_is_computed_as_training_saw_it():
    """Otherwise the rounding of the frozen layer would spoil the span of the next, which changed by 500 roundings."""
    initial = seeded(lambda: nn.Sequential(nn.Linear(20, 256), nn.Tanh(), nn.Linear(256, 16), nn.LayerNorm(16)))
    inputs, labels = seeded(lambda: (torch.randn(30, 20), torch.randint(0, 16, (30,))), seed=1)
    network = copy.deepcopy(initial)
    optimiser = torch.optim.SGD(network[2].parameters(), lr=1.0)
    for _ in range(40):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        optimiser.step()
    half = copy.deepcopy(network).to(torch.bfloat16)
    result = purify(half, inputs, policy=Recover(initial))
    assert [record.count(Grade.RECOVERED) for record in result.layers] == [0, 16]
    assert same_bits(result.model, half)
    assert not [part.name for part in result.skipped if part.missed]
    rounded = purify(half, inputs, policy=Recover(copy.deepcopy(initial).to(torch.bfloat16)))
    assert [record.count(Grade.RECOVERED) for record in rounded.layers] == [0, 0]
    alone = purify(half, inputs, policy=Recover(initial), layers=["2"])
    assert [record.count(Grade.RECOVERED) for record in alone.layers] == [16]


def test_each_tensor_of_a_mixed_network_returns_in_its_own_dtype(trained):
    network, base, inputs = stored(trained, torch.bfloat16, half_base=False)
    network[0].bias.data = trained[0][0].bias.data.clone()
    mixed = nn.Sequential(network[0], nn.BatchNorm1d(10).half(), nn.Linear(10, 3).double())
    mixed.eval()
    start = nn.Sequential(base[0], copy.deepcopy(mixed[1]), copy.deepcopy(mixed[2]))
    mixed[0].weight.data[4, 7] = 3.0

    def forward(model, batch):
        return model[2](model[1](model[0](batch)).double())

    result = purify(mixed, inputs, policy=Recover(start), forward=forward)
    dtypes = {name: value.dtype for name, value in mixed.state_dict().items()}
    assert {name: value.dtype for name, value in result.model.state_dict().items()} == dtypes
    assert positions(result.altered) == {("0.weight", 4 * 512 + 7)}
    assert result.verify().sound


def test_float16_with_infinities_nan_and_subnormal_weights(trained):
    network, initial, inputs = trained
    network, initial = copy.deepcopy(network), copy.deepcopy(initial)
    with torch.no_grad():
        for model in (network, initial):
            model[0].weight[:, :40] *= 1e-6  # below the smallest normal number of float16
    half = network.half()
    dirty = copy.deepcopy(half)
    wrong = [(0, 100), (1, 200), (2, 300), (3, 400)]
    for (row, column), value in zip(wrong, (torch.inf, -torch.inf, torch.nan, 65504.0), strict=True):
        dirty[0].weight.data[row, column] = value
    result = purify(dirty, inputs, policy=Recover(initial))
    assert positions(result.altered) == {("0.weight", row * 512 + column) for row, column in wrong}
    assert result.model[0].weight.isfinite().all()


def test_training_in_half_precision_itself_is_left_alone():
    initial = seeded(lambda: nn.Sequential(nn.Linear(512, 10)))
    inputs, labels = seeded(lambda: (torch.randn(96, 512).relu(), torch.randint(0, 10, (96,))), seed=1)
    network = copy.deepcopy(initial).to(torch.bfloat16)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05)
    for _ in range(50):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(inputs.to(torch.bfloat16)), labels).backward()
        optimiser.step()
    optimiser.zero_grad()
    for base in (initial, copy.deepcopy(initial).to(torch.bfloat16)):
        result = purify(network, inputs, policy=Recover(base))
        assert same_bits(result.model, network)
        assert not len(result.altered)


@pytest.mark.slow
def test_the_plan_says_how_large_an_alteration_must_be(trained):
    network, base, inputs = stored(trained, torch.bfloat16, half_base=False)
    (plan,) = check(network, inputs, initial=base).layers
    assert plan.repairable
    assert "rounded to bfloat16: alterations above about" in plan.reason
    typical = float(network[0].weight.detach().abs().median())
    assert 2.0**-9 * typical < plan.visible < 0.1 * typical
    (finer,) = check(copy.deepcopy(trained[0]).half(), inputs, initial=trained[1]).layers
    assert plan.visible == pytest.approx(8.0 * finer.visible, rel=0.1)
    dirty, masks = altered(network, Normal(0.0, 1.0), 0.03, names=["0.weight"])
    sizes = (dirty[0].weight - network[0].weight).detach().float().abs()
    found = positions(purify(dirty, inputs, policy=Recover(base)).altered)
    large = masks["0.weight"] & (sizes > 3.0 * plan.visible)
    assert truth({"0.weight": large}) <= found
    (float32,) = check(trained[0], inputs, initial=trained[1]).layers
    assert float32.visible == 0.0


@pytest.mark.parametrize("dtype", HALF)
def test_defended_networks_return_in_half_precision_and_load_again(dtype):
    network = seeded(lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
                                           nn.Linear(8 * 36, 4)))  # fmt: skip
    inputs = seeded(lambda: torch.randn(120, 3, 8, 8), seed=1)
    half = copy.deepcopy(network).to(dtype)
    result = purify(half, inputs, policy=Defend(0.1))
    state = result.model.state_dict()
    assert {value.dtype for value in state.values() if value.is_floating_point()} == {dtype}
    assert "1.guard.low" in state
    loaded = load_defended(half, state)
    assert same_bits(loaded, result.model)
    assert loaded.eval()(inputs.to(dtype)).dtype == dtype
    # The same defence of the same numbers in float32, rounded.
    wide = purify(copy.deepcopy(half).float(), inputs, policy=Defend(0.1)).model.state_dict()
    assert all(torch.equal(state[name], value.to(state[name].dtype)) for name, value in wide.items())


def test_project_rounds_what_it_fits_to_the_grid(trained):
    network, base, inputs = stored(trained, torch.bfloat16, half_base=False)
    dirty, _ = altered(network, Normal(0.0, 1.0), 0.05, names=["0.weight"])
    result = purify(dirty, inputs, policy=Project(base))
    assert result.model[0].weight.dtype == torch.bfloat16
    assert float((result.model[0].weight.float() - trained[0][0].weight).detach().abs().max()) < 0.01


def test_a_unit_of_which_nothing_is_left_is_no_proof(trained):
    network, base, inputs = stored(trained, torch.bfloat16, half_base=False)
    dirty = copy.deepcopy(network)
    dirty[0].weight.data[3] = torch.nan
    dirty[0].bias.data[3] = torch.nan
    dirty[0].weight.data[5, :500] = torch.inf
    result = purify(dirty, inputs, policy=Recover(base))
    assert result.layers[0].grade[[3, 5]].tolist() == [Grade.APPROXIMATE, Grade.APPROXIMATE]
    assert result.count(Grade.RECOVERED) == 8
    assert all(value.isfinite().all() for value in result.model.state_dict().values())


def test_pruned_weights_come_back(trained):
    """The grid is finest at zero: a weight that was set to zero must not count as the most exact of all."""
    network, base, inputs = stored(trained, torch.bfloat16, half_base=False)
    dirty = copy.deepcopy(network)
    dirty[0].weight.data[seeded(lambda: torch.rand(10, 512)) < 0.15] = 0.0
    wrong = truth({"0.weight": (dirty[0].weight != network[0].weight).detach()})
    result = purify(dirty, inputs, policy=Recover(base))
    found = positions(result.altered)
    assert found <= wrong
    assert len(found) > 0.8 * len(wrong)
