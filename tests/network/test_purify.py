"""``purify`` and ``check`` as a caller meets them: any model, any data, nothing of theirs touched."""

import copy
import resource
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from netpurify import checkpoint
from netpurify.contaminate import Normal
from netpurify.errors import InputError
from netpurify.network import (
    Grade,
    Project,
    Recover,
    RepairClaim,
    Seeded,
    check,
    load_proof,
    purify,
    save_proof,
    verify_proof,
)
from tests.network import made_networks as networks


@pytest.fixture(scope="module")
def head():
    """Network, initial, inputs, altered network, masks of what is altered."""
    network, initial, inputs = networks.head(units=4, steps=100)
    return network, initial, inputs, *networks.altered(network, Normal(0.0, 1.0), 0.1)


@pytest.fixture(scope="module")
def result(head):
    _, initial, inputs, dirty, _ = head
    return purify(dirty, inputs, policy=Recover(initial))


class Shared(nn.Module):
    """A layer that is called twice, one that is never called, and names that are not in the order of execution."""

    def __init__(self):
        super().__init__()
        self.second = nn.Linear(60, 4)
        self.first = nn.Linear(60, 60)
        self.idle = nn.Linear(60, 60)

    def forward(self, inputs):
        return self.second(torch.tanh(self.first(torch.tanh(self.first(inputs)))))


class Raises(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(512, 4)

    def forward(self, inputs):
        raise KeyboardInterrupt(self.first(inputs).shape)


def bits(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_callers_model_mode_and_random_numbers_are_untouched(head):
    _, initial, inputs, dirty, _ = head
    dirty = copy.deepcopy(dirty)
    dirty.train()
    before, state = bits(dirty), torch.get_rng_state()
    loader = DataLoader(TensorDataset(inputs, torch.zeros(96)), batch_size=10, shuffle=True)
    found = purify(dirty, loader, policy=Recover(initial))
    assert torch.equal(torch.get_rng_state(), state)
    assert dirty.training
    assert found.model.training
    assert found.model is not dirty
    assert all(torch.equal(value, before[name]) for name, value in dirty.state_dict().items())
    assert not dirty[0]._forward_pre_hooks
    assert not found.model[0]._forward_pre_hooks


def test_hooks_are_gone_after_an_interrupt(monkeypatch):
    model = Raises()
    monkeypatch.setattr("netpurify.network.prepared.duplicate", lambda given: given)
    with pytest.raises(KeyboardInterrupt):
        check(model, torch.ones(3, 512))
    assert not model.first._forward_pre_hooks


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x,
        lambda x: x.double(),
        lambda x: list(x.split(7)),
        lambda x: [(part, torch.zeros(len(part))) for part in x.split(40)],
        lambda x: [{"input": part, "labels": torch.zeros(len(part))} for part in x.split(40)],
        lambda x: DataLoader(TensorDataset(x), batch_size=9),
    ],
)
def test_data_in_every_form(head, form):
    network, initial, inputs, dirty, masks = head
    found = purify(dirty, form(inputs), policy=Recover(initial), forward=_call)
    assert networks.largest_error(found.model, network) < 2e-6
    assert networks.positions(found.altered) == networks.truth(masks)


def _call(model, batch):
    return model(batch["input"] if isinstance(batch, dict) else batch)


def test_initial_weights_in_every_form(head, tmp_path):
    network, initial, inputs, dirty, _ = head
    path = tmp_path / "initial.safetensors"
    checkpoint.save_weights(initial.state_dict(), path)
    seeded = Seeded(lambda: nn.Sequential(nn.Linear(512, 4)), 0)
    state = torch.get_rng_state()
    for form in (initial, initial.state_dict(), path, str(path), seeded):
        assert networks.largest_error(purify(dirty, inputs, policy=Recover(form)).model, network) < 2e-6
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_same_bits_on_every_engine(head, result, engine):
    _, initial, inputs, dirty, _ = head
    found = purify(dirty, inputs, policy=Recover(initial, engine=engine, jobs=2))
    assert networks.same_bits(found.model, result.model)
    assert np.array_equal(found.layers[0].certificate.gap, result.layers[0].certificate.gap)


def test_order_of_execution_calls_that_repeat_and_layers_without_inputs():
    initial = networks.seeded(Shared)
    inputs = networks.seeded(lambda: torch.randn(10, 60))
    network = copy.deepcopy(initial)
    labels = torch.arange(10) % 4
    networks.train(network, inputs, labels, network.second.parameters())
    dirty, masks = networks.altered(network, Normal(0.0, 1.0), 0.1, names=["first.weight", "second.weight"])
    found = purify(dirty, inputs, policy=Recover(initial))
    assert [layer.name for layer in found.layers] == ["first", "second"]
    assert [(skip.name, skip.reason) for skip in found.skipped] == [("idle", "the clean inputs never reach it")]
    assert networks.largest_error(found.model, network) < 2e-6
    assert networks.positions(found.altered) == networks.truth(masks)
    plan = check(dirty, inputs, initial=initial)
    assert {layer.name: layer.rows for layer in plan.layers} == {"first": 20, "second": 10}
    assert {layer.name: layer.frozen for layer in plan.layers} == {"first": True, "second": False}


def test_plan_says_what_can_be_repaired_and_why_not():
    network = networks.seeded(
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 3))
    )
    initial = copy.deepcopy(network.eval())
    with torch.no_grad():
        for value in network[:2].parameters():
            value += 0.1 * torch.randn(value.shape, generator=torch.Generator().manual_seed(1))
    inputs = torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    networks.train(network, inputs, torch.arange(30) % 3, network[3].parameters())
    plan = check(network, inputs, initial=initial)
    convolution, linear = plan.layers
    assert (convolution.fan_in, convolution.rank, convolution.repairable) == (10, 10, False)
    assert "span all 10 directions" in convolution.reason
    assert (linear.fan_in, linear.rank, linear.repairable) == (145, 30, True)
    assert (linear.probed, linear.agreeing, linear.provisional) == (3, 3, False)
    assert (convolution.probed, convolution.agreeing) == (0, 0)
    for found in linear.tolerances:
        assert 0.1 < found.layer.value < found.unit.value < found.half.value < 0.5
    assert plan.repairable == ("3",)
    assert [skip.name for skip in plan.skipped] == ["1"]
    assert plan.seconds == convolution.seconds + linear.seconds
    assert plan.bytes == max(convolution.bytes, linear.bytes)
    assert 145 * 3 * 8 < linear.bytes < 10 << 20, "more than the weights in float64, less than ten megabytes"


def test_plan_without_initial_weights_says_which_policy_is_left():
    network = networks.seeded(lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 3)))
    inputs = torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    convolution, linear = check(network, inputs, initial=None).layers
    assert "span all 10 directions of a fan-in of 10, so only defend, or project with a rank" in convolution.reason
    assert linear.reason.endswith("only projected or defended")


def test_check_sees_past_a_flipped_exponent():
    network = networks.seeded(lambda: nn.Sequential(nn.Linear(20, 10), nn.ReLU(), nn.Linear(10, 3)))
    initial = copy.deepcopy(network)
    with torch.no_grad():
        network[0].weight[0, 0] = torch.inf
        network[0].weight[1, 1] = 1e37
    plan = check(network, torch.randn(5, 20, generator=torch.Generator().manual_seed(0)), initial=initial)
    assert plan.layers[1].rank == 5


def test_tied_layers_are_one_and_unknown_ones_are_named_with_their_reasons():
    network = nn.ModuleDict({"a": nn.Linear(6, 6), "b": nn.Linear(6, 6), "c": nn.Embedding(3, 6), "d": nn.Linear(6, 6)})
    network["e"] = nn.PReLU()
    network["b"].weight = network["a"].weight
    found = check(network, torch.ones(2, 6), forward=lambda model, batch: model["d"](model["b"](model["a"](batch))))
    reasons = {skip.name: skip.reason for skip in found.skipped}
    assert reasons == {"c": "the clean inputs never reach it", "e": "PReLU is none of " + reasons["e"][17:]}
    assert [layer.name for layer in found.layers] == ["a", "d"]


def test_project_is_algorithm_2(head):
    _, initial, inputs, dirty, _ = head
    found = purify(dirty, inputs, policy=Project(initial))
    change = (found.model[0].weight - initial[0].weight).detach().double()
    basis = torch.linalg.svd(inputs.double(), full_matrices=False)[2]
    assert (change - change @ basis.T @ basis).abs().max() < 1e-6
    assert (found.layers[0].grade == Grade.PROJECTED).all()
    assert not len(found.altered)
    assert found.layers[0].changed > 1500
    assert found.verify().sound


def test_project_without_initial_weights_and_with_a_rank(head):
    _, _, inputs, dirty, _ = head
    full = purify(dirty, inputs, policy=Project()).layers[0].energies
    half = 1 + int(np.argmax(np.cumsum(full) >= 0.5 * full.sum()))
    for rank, expected in ((5, 5), (0.5, half), (None, 96)):
        found = purify(dirty, inputs, policy=Project(rank=rank))
        rows = torch.cat([found.model[0].weight.detach(), found.model[0].bias.detach()[:, None]], dim=1)
        assert found.layers[0].rank == expected
        assert torch.linalg.matrix_rank(rows.double(), rtol=1e-5) <= found.layers[0].rank


def test_project_leaves_alone_what_it_cannot_change():
    network = networks.seeded(lambda: nn.Sequential(nn.Linear(5, 3)))
    inputs = torch.randn(50, 5, generator=torch.Generator().manual_seed(0))
    found = purify(network, inputs, policy=Project())
    assert networks.same_bits(found.model, network)
    assert "set a rank" in found.layers[0].reason


def test_agreement_on_the_clean_inputs(head, result):
    network, _, inputs, dirty, _ = head
    same = (network(inputs).argmax(1) == dirty(inputs).argmax(1)).double().mean()
    assert result.agreement.inputs == 96
    assert result.agreement.same == pytest.approx(float(same))


def test_provenance(head, result):
    _, initial, _, dirty, _ = head
    assert result.provenance["model"] == checkpoint.digest(dirty.state_dict())
    assert result.provenance["initial"] == checkpoint.digest(initial.state_dict())
    assert result.provenance["settings"]["policy"] == "recover"


def test_time_and_memory_are_those_of_this_run(head):
    _, initial, inputs, dirty, _ = head
    begun = time.perf_counter()
    result = purify(dirty, inputs, policy=Recover(initial))
    elapsed = time.perf_counter() - begun
    assert 0.0 < sum(layer.seconds for layer in result.layers) < result.seconds < elapsed
    assert 0.5 * elapsed < result.seconds, "in seconds, not in another unit"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert 0.5 * peak < result.peak_bytes <= peak


def test_digest_of_data_does_not_depend_on_batches(head, result):
    _, initial, inputs, dirty, _ = head
    assert (
        result.provenance["data"] == purify(dirty, list(inputs.split(11)), policy=Recover(initial)).provenance["data"]
    )
    other = inputs.clone()
    other[3, 3] += 1.0
    assert result.provenance["data"] != purify(dirty, other, policy=Recover(initial)).provenance["data"]


def recheck(proofs, decays, *states_and_policy):
    """Check proofs against the contaminated, initial and purified weights."""
    *states, policy = states_and_policy
    return verify_proof(proofs, RepairClaim(*states, policy, decays))


def test_proof_survives_a_file_and_convicts_a_forged_weight(head, result, tmp_path):
    _, initial, _, dirty, _ = head
    path = tmp_path / "proof.safetensors"
    save_proof(result, path)
    proof = load_proof(path)
    purified = result.model.state_dict()
    found = recheck(proof.proofs, proof.decays, dirty.state_dict(), initial.state_dict(), purified, proof.policy)
    assert found.sound
    assert found == result.verify()
    assert found.layers[0].recovered == 4
    forged = {name: value.clone() for name, value in purified.items()}
    forged["0.weight"][1, 7] += 1e-3
    found = recheck(proof.proofs, proof.decays, dirty.state_dict(), initial.state_dict(), forged, proof.policy)
    assert found.layers[0].unexplained == 1
    assert not found.sound


def test_forged_dual_and_foreign_weights_are_convicted(head, result):
    _, initial, _, dirty, _ = head
    (proof,) = result.layers[0].proofs
    forged = replace(proof, dual=np.zeros_like(proof.dual))
    purified = result.model.state_dict()
    found = recheck([forged], {"0": 1.0}, dirty.state_dict(), initial.state_dict(), purified, "recover")
    assert found.layers[0].certified == 0
    with pytest.raises(InputError, match="fan-in of 513"):
        recheck([proof], {"0": 1.0}, *[{"0.weight": torch.ones(4, 3)}] * 3, "recover")


def picked(proof, units):
    """The proof of some units only."""
    parts = {name: getattr(proof, name)[:, units] for name in ("coefficients", "dual")}
    return replace(proof, units=proof.units[units], **parts)


def test_proof_cannot_be_silent_about_what_was_changed(head, result):
    _, initial, _, dirty, _ = head
    (proof,) = result.layers[0].proofs
    states = dirty.state_dict(), initial.state_dict()
    garbage = {name: torch.ones_like(value) for name, value in states[0].items()}
    forged = bits(result.model)
    forged["0.weight"][1:] = 1.0
    nothing = replace(proof, columns=proof.columns[:, :1] * 0.0, coefficients=proof.coefficients[:1] * 0.0)
    for proofs, purified in (([], garbage), ([picked(proof, [0])], forged), ([proof], garbage), ([nothing], garbage)):
        assert not recheck(proofs, {"0": 1.0}, *states, purified, "recover").sound
    assert recheck([picked(proof, [0])], {"0": 1.0}, *states, dirty.state_dict(), "recover").sound
    with pytest.raises(InputError, match="each unit once"):
        recheck([picked(proof, [0, 0, 0, 0])], {"0": 1.0}, *states, forged, "recover")
    with pytest.raises(InputError, match="names others"):
        recheck([replace(proof, group=1, groups=2)], {"0": 1.0}, *states, forged, "recover")
    with pytest.raises(InputError, match="policy must be"):
        recheck([proof], {"0": 1.0}, *states, forged, "bleach")
    with pytest.raises(InputError, match="names and shapes"):
        recheck([proof], {"0": 1.0}, *states, {}, "recover")


def test_altered_weights_that_were_not_replaced_are_counted(head, result):
    _, initial, _, dirty, masks = head
    proofs, states = result.layers[0].proofs, (dirty.state_dict(), initial.state_dict())
    found = recheck(proofs, {"0": 1.0}, *states, dirty.state_dict(), "recover")
    assert found.layers[0].kept == len(networks.truth(masks))
    assert result.verify().layers[0].kept == 0


def test_layer_that_was_never_trained_explains_its_initial_weights_and_no_others():
    initial = networks.seeded(lambda: nn.Sequential(nn.Conv2d(4, 8, 3, groups=2), nn.BatchNorm2d(8), nn.Flatten()))
    dirty, _ = networks.altered(initial, Normal(0.0, 1.0), 0.1, names=["0.weight", "0.bias"])
    found = purify(dirty, networks.seeded(lambda: torch.randn(5, 4, 6, 6)), policy=Recover(initial))
    assert found.layers[0].frozen
    assert found.verify().sound
    for name in ("0.weight", "1.running_var"):
        forged = bits(found.model)
        forged[name].view(-1)[3] += 1e-3
        states = dirty.state_dict(), initial.state_dict()
        assert not recheck([], {}, *states, forged, "recover").sound


class Steps(nn.Module):
    """A layer that some batches reach once and others three times, behind a fallback, on inputs changed in place."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(60, 60)
        self.last = nn.Linear(60, 4)

    def forward(self, inputs):
        inputs.mul_(2.0)
        for _ in range(1 if inputs[0, 0] > 0 else 3):
            try:
                inputs = torch.tanh(self.layer(inputs))
            except Exception:  # as models with a fallback have it
                inputs = torch.zeros_like(inputs)
        return self.last(inputs)


def test_models_that_work_in_place_fall_back_and_vary_their_depth():
    initial = networks.seeded(Steps)
    model = copy.deepcopy(initial)
    with torch.no_grad():
        model.layer.weight += 0.1
    inputs = networks.seeded(lambda: torch.randn(20, 60))
    inputs[:, 0] = torch.tensor([1.0, -1.0]).repeat_interleave(10)
    before = inputs.clone()
    found = purify(model, list(inputs.split(10)), policy=Recover(initial))
    assert torch.equal(inputs, before)
    assert found.layers[0].rank == 40


def test_loader_with_a_generator_of_its_own_shows_every_pass_the_same(head):
    _, initial, inputs, _, _ = head
    model = copy.deepcopy(initial)
    with torch.no_grad():
        model[0].weight += 0.01 * torch.randn(4, 512, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    state = generator.get_state()
    loader = DataLoader(TensorDataset(inputs), batch_size=7, shuffle=True, generator=generator)
    found = purify(model, loader, policy=Recover(initial))
    assert torch.equal(generator.get_state(), state)
    assert (found.agreement.same, found.agreement.change) == (1.0, 0.0)


class Odd(nn.Module):
    """State that is no tensor, weights without values, and an output whose shape is chosen by ``output``."""

    def __init__(self, output):
        super().__init__()
        self.words = nn.Embedding(50, 40)
        self.layer = nn.Linear(40, 5)
        self.empty = nn.Linear(5, 0)
        self.lazy = nn.LazyLinear(3)
        self.meta = nn.Linear(3, 3, device="meta")
        self.output = output

    def forward(self, indices):
        return self.output(self.layer(self.words(indices)))

    def get_extra_state(self):
        return {"version": 1}

    def set_extra_state(self, state):
        pass


OUTPUTS = {
    "of any length": lambda out: out,
    "a number": torch.sum,
    "complex": torch.fft.fft,
    "a dict": lambda out: {"o": out},
}


@pytest.mark.filterwarnings("ignore:Lazy modules", "ignore:Initializing zero-element")
@pytest.mark.parametrize("output", OUTPUTS)
def test_models_with_odd_state_and_odd_outputs(output):
    model = networks.seeded(lambda: Odd(OUTPUTS[output]))
    initial = {name: value.clone() for name, value in model.state_dict().items() if name.startswith(("words", "layer"))}
    with torch.no_grad():
        model.layer.weight[2, 3] += 1.0
    data = [{"indices": torch.arange(10).view(2, 5)}, {"indices": torch.arange(14).view(2, 7)}]
    found = purify(model, data, policy=Recover(initial))
    assert networks.positions(found.altered) == {("layer.weight", 83)}
    assert found.agreement.change > 0.0
    assert {skip.name for skip in found.skipped} == {"empty", "lazy", "meta"}
    assert {layer.name: layer.frozen for layer in found.layers} == {"words": True, "layer": True}
    assert found.verify().sound


def test_digest_of_data_sees_nested_inputs_and_numbers(head):
    _, initial, inputs, dirty, _ = head

    def digest(scale):
        data = [{"parts": [inputs, inputs], "scale": torch.tensor(scale)}]
        return purify(dirty, data, policy=Recover(initial), forward=lambda m, b: m(b["parts"][0])).provenance["data"]

    assert digest(1.0) != digest(2.0)
    with pytest.raises(InputError, match="must be finite"):
        purify(dirty, [[[inputs * torch.nan], 0]], policy=Recover(initial), forward=lambda m, b: m(b[0]))


def test_weights_that_are_views_of_the_same_memory_are_tied():
    memory = networks.seeded(lambda: torch.randn(3, 6, 6))
    network = networks.seeded(lambda: nn.Sequential(*(nn.Linear(6, 6, bias=False) for _ in range(3))))
    for layer, values in zip(network, (memory[0], memory[0].T, memory[1]), strict=True):
        layer.weight = nn.Parameter(values)
    plan = check(network, torch.ones(2, 6))
    assert [skip.name for skip in plan.skipped] == ["0", "1"]
    assert [layer.name for layer in plan.layers] == ["2"]


@pytest.mark.parametrize("units", [2, 3, 6])
def test_altered_batch_norm_before_a_head_does_not_convict_the_head(units):
    network = networks.seeded(lambda: nn.Sequential(nn.Linear(50, 300), nn.BatchNorm1d(300), nn.Linear(300, units)))
    network.eval()
    initial = copy.deepcopy(network)
    inputs = networks.seeded(lambda: torch.randn(60, 50))
    networks.train(network, inputs, torch.arange(60) % units, network[2].parameters())
    dirty, masks = networks.altered(network, Normal(0.0, 1.0), 0.01, names=["2.weight"])
    assert networks.positions(purify(dirty, inputs, policy=Recover(initial)).altered) == networks.truth(masks)
    with torch.no_grad():
        network[1].weight[5] *= 1.5
    found = purify(network, inputs, policy=Recover(initial))
    assert networks.same_bits(found.model[2], network[2])


def test_progress_names_every_layer(head):
    _, initial, inputs, dirty, _ = head
    seen = []
    purify(dirty, inputs, policy=Recover(initial), progress=lambda *state: seen.append(state))
    assert seen == [("0", 0, 1), ("", 1, 1)]
    planned = []
    check(dirty, inputs, initial=initial, progress=lambda *state: planned.append(state))
    assert planned == seen


BAD = {
    "no model": ({"model": "x"}, "must be a torch.nn.Module"),
    "compiled": ({"model": torch.compile(nn.Linear(512, 4), backend="eager")}, "must not be compiled"),
    "no inputs": ({"data": torch.zeros(0, 512)}, "at least one clean input"),
    "no batches": ({"data": []}, "at least one batch"),
    "read only once": ({"data": iter([torch.zeros(1, 512)])}, "make a list of it"),
    "not data": ({"data": 3}, "must be a tensor, a DataLoader"),
    "NaN inputs": ({"data": torch.full((2, 512), torch.nan)}, "must be finite"),
    "wrong shape": ({"data": torch.zeros(3, 7)}, "must accept the clean inputs"),
    "no initial": ({"initial": None}, "Recover needs the initial weights"),
    "initial of no kind": ({"initial": 5}, "a network, a state dict, a file"),
    "initial of another network": ({"initial": {"x": torch.ones(2)}}, "same network"),
    "initial of another shape": ({"initial": nn.Sequential(nn.Linear(3, 4))}, "same network"),
    "initial with NaN": ({"initial": {"0.weight": torch.full((4, 512), torch.nan)}}, "must be finite"),
    "policy by its name": ({"policy": "recover"}, "must be a value such as Recover"),
    "policy that was not made": ({"policy": Recover}, "must be a value such as Recover.*got Recover"),
    "unknown layer": ({"layers": ["nope"]}, "'nope' is none of"),
    "layers as a string": ({"layers": "0"}, "single string"),
    "rank of zero": ({"rank": 0, "kind": Project}, "at least 1"),
    "rank beyond one": ({"rank": 1.5, "kind": Project}, "share of the energy"),
    "batch of zero": ({"batch": 0}, "batch must be at least 1"),
    "decay above one": ({"decay": 1.5}, "decay must be"),
    "noise floor below zero": ({"noise_floor": -1.0}, "noise_floor must be"),
    "noise floor that is no number": ({"noise_floor": float("nan")}, "noise_floor must be"),
    "jobs without an engine": ({"jobs": 2}, "jobs is an option of engine"),
    "unknown engine": ({"engine": "cloud"}, "engine must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_a_remedy(head, case):
    _, initial, inputs, dirty, _ = head
    change, words = BAD[case]
    call = {"model": dirty, "data": inputs, "layers": None, "batch": 32, "policy": None}
    options = {"kind": Recover, "initial": initial} | {name: it for name, it in change.items() if name not in call}
    call |= {name: value for name, value in change.items() if name in call}

    def attempt():
        policy = call.pop("policy") or options.pop("kind")(**options)
        purify(**call, policy=policy)

    with pytest.raises(InputError, match=words):
        attempt()


@pytest.mark.parametrize(("policy", "option"), [(Recover, "rank"), (Project, "decay"), (Recover, "strength")])
def test_options_of_other_policies_do_not_exist(head, policy, option):
    with pytest.raises(TypeError, match=option):
        policy(head[1], **{option: 0.5})
