"""Unlearning: what it removes, what it keeps, and what it refuses."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import netpurify
from netpurify import DisagreementError, InputError, NetpurifyError, Unlearn, purify
from netpurify.contaminate import measure
from netpurify.network import FAMILIES, Disagreement
from netpurify.network.hunting.scoring import Ground, Scorer
from netpurify.network.hunting.search import FoundTrigger
from netpurify.network.policies.unlearning import training
from netpurify.network.policies.unlearning.training import POOL, Lesson, _strongest
from tests.network import hunted
from tests.toys import victims

FAMILY = ["spot"]


@pytest.fixture(scope="module")
def clean():
    return hunted.images("train", 3400)[0][3000:3300]


@pytest.fixture
def poisoned(once):
    return once("hunted poisoned", lambda: hunted.trained(poisoned=True))


@pytest.fixture
def healthy(once):
    return once("hunted healthy", lambda: hunted.trained(poisoned=False))


@pytest.fixture
def repaired(once, poisoned, clean):
    return once("hunted repaired", lambda: purify(poisoned, clean, policy=Unlearn(FAMILY)))


@pytest.mark.slow
def test_a_backdoor_is_removed_and_accuracy_stays(poisoned, repaired):
    images, labels = hunted.images("test", 1500)
    before, after = (
        measure(network, images, labels, trigger=hunted.PATCH, target=hunted.TARGET)
        for network in (poisoned, repaired.model)
    )
    assert before.asr > 0.9
    assert after.asr < 0.1
    assert after.accuracy > before.accuracy - 0.02
    assert repaired.before.goals == (hunted.TARGET,)
    assert repaired.changed
    assert not repaired.still_found
    assert repaired.after.seed != repaired.before.seed
    assert repaired.chosen.inputs == 60, "one in five is held out"
    assert repaired.before.inputs == 240, "of which one in five is kept apart to judge what was found"
    assert repaired.after.inputs == 300, "what is found afterwards is judged on those that were held out"
    assert repaired.bound == Disagreement(60, repaired.chosen.differing).bound()


@pytest.mark.slow
def test_only_weights_change(poisoned, repaired):
    before, after = poisoned.state_dict(), repaired.model.state_dict()
    assert before.keys() == after.keys()
    assert all(value.shape == after[name].shape and value.dtype == after[name].dtype for name, value in before.items())
    assert str(poisoned) == str(repaired.model)
    assert all(value.requires_grad and value.grad is None for value in repaired.model.parameters())
    assert all(value.is_contiguous() for value in repaired.model.parameters())


@pytest.mark.slow
def test_same_seed_same_bits_and_the_network_given_stays(poisoned, repaired, clean):
    before, drawn = victims.state(poisoned), torch.random.get_rng_state()
    again = purify(poisoned, clean, policy=Unlearn(FAMILY))
    assert victims.same(victims.state(again.model), victims.state(repaired.model))
    assert victims.same(victims.state(poisoned), before)
    assert torch.equal(torch.random.get_rng_state(), drawn)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_with_the_same_bits(poisoned, repaired, clean, tmp_path):
    file = tmp_path / "run"

    def interrupt(name, done, _):
        if name == "training" and done > 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        purify(poisoned, clean, policy=Unlearn(FAMILY, resume=file), progress=interrupt)
    assert file.exists()
    steps = []
    policy = Unlearn(FAMILY, resume=file)
    result = purify(poisoned, clean, policy=policy, progress=lambda name, *row: steps.append((name, *row)))
    assert [row[0] for row in steps].count("training") == 50, "the first fifty steps were not taken again"
    assert victims.same(victims.state(result.model), victims.state(repaired.model))
    assert not file.exists(), "nothing is left behind"


@pytest.mark.slow
def test_the_file_of_another_run_is_refused(poisoned, clean, tmp_path):
    file = tmp_path / "run"

    def interrupt(name, done, _):
        if name == "training" and done > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        purify(poisoned, clean, policy=Unlearn(FAMILY, resume=file), progress=interrupt)
    with pytest.raises(NetpurifyError, match="another run"):
        purify(poisoned, clean, policy=Unlearn(FAMILY, seed=1, resume=file))
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 0x40
    file.write_bytes(damaged)
    with pytest.raises(NetpurifyError, match="does not have its digest; delete it to begin anew"):
        purify(poisoned, clean, policy=Unlearn(FAMILY, resume=file))
    file.write_bytes(b"the notes of somebody else")
    with pytest.raises(NetpurifyError, match="it is something else, and is left alone"):
        purify(poisoned, clean, policy=Unlearn(FAMILY, resume=file))


@pytest.mark.slow
def test_a_healthy_network_comes_back_bit_for_bit(healthy, clean):
    healthy.train()
    result = purify(healthy, clean, policy=Unlearn(["spot", "levels", "flow"]))
    assert not result.changed
    assert result.after is None
    assert (result.steps, result.chosen.differing, result.bound) == (0, 0, 0.0)
    assert victims.same(victims.state(result.model), victims.state(healthy))
    assert result.model.training


@pytest.mark.slow
def test_layout_and_frozen_weights_come_back_as_they_came(poisoned, healthy, clean):
    for network, families in ((healthy, ["levels"]), (poisoned, FAMILY)):
        given = copy.deepcopy(network).to(memory_format=torch.channels_last)
        given[0].requires_grad_(requires_grad=False)
        model = purify(given, clean, policy=Unlearn(families)).model
        for before, after in zip(given.parameters(), model.parameters(), strict=True):
            assert before.stride() == after.stride()
            assert before.requires_grad == after.requires_grad


@pytest.mark.slow
def test_a_repair_that_costs_too_much_is_refused(poisoned, clean, monkeypatch):
    monkeypatch.setattr(training, "RATE", 3.0)  # which ruins the network
    with pytest.raises(DisagreementError, match=r"at most 1\.0 % of the held-out inputs; it does on \d+ of 60"):
        purify(poisoned, clean, policy=Unlearn(FAMILY, max_disagreement=0.01))


@pytest.mark.slow
def test_half_precision_comes_back_in_half_precision(poisoned, clean):
    half = copy.deepcopy(poisoned).to(torch.bfloat16)
    result = purify(half, clean, policy=Unlearn(FAMILY))
    assert result.changed
    assert {value.dtype for value in result.model.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda: Unlearn(["nothing"]), "one of wave"),
        (lambda: Unlearn(max_disagreement=2.0), "between 0 and 1"),
        (lambda: Unlearn(resume=3), "resume must be the path of a file; got 3"),
    ],
)
def test_options_without_meaning_are_refused(policy, message):
    with pytest.raises(InputError, match=message):
        policy()


def test_what_cannot_be_unlearnt_is_refused(healthy, clean):
    with pytest.raises(InputError, match="leave layers out"):
        purify(healthy, clean, policy=Unlearn(), layers=["0"])
    with pytest.raises(InputError, match="at least 50 clean inputs"):
        purify(healthy, clean[:22], policy=Unlearn())
    with pytest.raises(InputError, match="images"):
        purify(healthy, clean.flatten(1), policy=Unlearn())


def test_no_family_is_crowded_out_of_the_pool():
    def made(family, success):
        return FoundTrigger(family, 0, success, None)

    strong = [made("spot", 0.9 + 0.001 * number) for number in range(40)]
    weak = [made("wave", 0.3), made("wave", 0.4), made("wave", 0.5), made("flow", 0.2)]
    pool = _strongest(_strongest([], strong), weak)
    kept = [one.found.success for one in pool if one.found.family == "wave"]
    assert kept == [0.5, 0.4], "the two strongest of a family stay"
    assert len(pool) == POOL
    assert not any(one.found.family == "flow" for one in pool), "a success of 0.2 is no finding"
    assert [one.found.success for one in pool] == sorted((one.found.success for one in pool), reverse=True)


def test_the_loss_is_the_change_on_clean_inputs_and_the_excess_of_the_suspect():
    scorer = Scorer(nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), None, torch.zeros(1), torch.ones(1))
    images = torch.rand(6, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    ground = Ground(scorer, images, scorer.classes(images).argmax(1), 3, torch.arange(6), torch.arange(6))
    lesson = Lesson(ground, [2], (FAMILIES["spot"],))
    kept, led = torch.tensor([[1.0, 0.0, 2.0]]), torch.tensor([[0.0, 0.0, 1.0], [3.0, 0.0, -9.0]])
    wanted, before = torch.tensor([[0.2, 0.3, 0.5]]), torch.tensor([[0.3, 0.3, 0.4], [0.3, 0.3, 0.4]])
    moved = (wanted * (wanted.log() - kept.log_softmax(1))).sum()
    excess = functional.softmax(led[0], dim=0)[2] - 0.4  # the second input is led away from the suspect: no excess
    expected = moved - training.WEIGHT * torch.log(1.0 - excess) / 2
    assert float(lesson.loss(kept, wanted, led, before)) == pytest.approx(float(expected), rel=1e-6)


def test_nothing_is_lost_where_no_trigger_leads():
    scorer = Scorer(nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), None, torch.zeros(1), torch.ones(1))
    images = torch.rand(6, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    ground = Ground(scorer, images, scorer.classes(images).argmax(1), 3, torch.arange(6), torch.arange(6))
    scores = scorer.scores(ground.inputs).detach()
    wanted = scores.softmax(1)
    assert float(Lesson(ground, [0], (FAMILIES["spot"],)).loss(scores, wanted, scores, wanted)) == pytest.approx(
        0.0, abs=1e-6
    )


def test_unlearn_is_a_policy_of_the_front_door():
    assert netpurify.Unlearn().name == "unlearn"
    assert netpurify.Unlearn().initial is None


@pytest.mark.slow
def test_buffers_come_back_as_they_were_although_calls_change_them(healthy, poisoned, clean):
    class Counting(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, inputs):
            self.calls += 1
            return self.inner(inputs)

    for inner in (healthy, poisoned):
        network = Counting(copy.deepcopy(inner))
        result = purify(network, clean, policy=Unlearn(FAMILY))
        assert float(result.model.calls) == float(network.calls) == 0.0


@pytest.mark.slow
def test_it_trains_where_gradients_are_switched_off(poisoned, repaired, clean):
    with torch.no_grad():
        again = purify(poisoned, clean, policy=Unlearn(FAMILY))
    assert victims.same(victims.state(again.model), victims.state(repaired.model))
