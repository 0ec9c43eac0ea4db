import copy
import math

import pytest
import torch

from netpurify import InputError, lad
from netpurify.contaminate import BitFlip, Cauchy, Erase, Normal, SignFlip, Uniform, contaminate
from netpurify.paper import PatchCNN, compare, purify, train
from netpurify.paper.model import matrix

PAPER = Normal(1.0, 1.0)


def trained(*, n=5, m=5, k=100, p=300, regime="joint", seed=0, layers=1, **options):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(n, m * k, generator=generator, dtype=torch.float64)
    targets = 2 * torch.rand(n, generator=generator, dtype=torch.float64) - 1
    net = PatchCNN(m=m, k=k, p=p, layers=layers, generator=generator, **options)
    return train(net, inputs, targets, gamma=0.1, regime=regime), inputs


def dirty(net, share, *, law=PAPER, seed=1, names=None):
    state = contaminate(net.state_dict(), law, share=share, generator=torch.Generator().manual_seed(seed), names=names)
    network = copy.deepcopy(net)
    network.load_state_dict(state.state)
    return network


@pytest.mark.parametrize("regime", ["sequential", "sequential-fixed"])
def test_theorem_3_both_layers_come_back_exactly(regime):
    training, inputs = trained(regime=regime, seed=1)
    contaminated = dirty(training.trained, 0.2)
    assert compare(contaminated, training.trained)["hidden.0"].exact == 0.0
    purified = purify(contaminated, training.initial, inputs)
    for error in compare(purified.model, training.trained).values():
        assert error.largest < 1e-12
    for layer in purified.layers:
        assert layer.recovered.all()
        assert layer.certificate.certified.all()
        assert (layer.certificate.surplus > 0).all()


def test_theorem_2_hidden_layer_exact_and_output_error_falls_with_p():
    floors = []
    for p in (100, 400, 1600):
        training, inputs = trained(p=p, k=150, seed=2)
        purified = purify(dirty(training.trained, 0.2), training.initial, inputs)
        errors = compare(purified.model, training.trained)
        assert errors["hidden.0"].largest < 1e-12
        assert not purified.layers[1].recovered.any()  # no evidence, and none is claimed
        floors.append(errors["output"].rms)
    assert floors[0] > 2 * floors[1] > 4 * floors[2] > 1e-5


@pytest.mark.parametrize("law", [Normal(0.0, 1.0), Normal(10.0, 1.0), Cauchy(0.0, 1.0), SignFlip(), Uniform(-1.0, 3.0)])
def test_the_law_of_the_noise_does_not_matter(law):
    # Fan-in 100 and rank 25: nearly all units at .2, some at .4, none at .6, whatever the law.
    training, inputs = trained(seed=3)
    exact = []
    for share in (0.2, 0.4, 0.6):
        contaminated = dirty(training.trained, share, law=law)
        purified = purify(contaminated, training.initial, inputs, certify=False)
        exact.append(compare(purified.model, training.trained)["hidden.0"].exact)
    predicted = [lad.recovery_probability(100, 25, share) for share in (0.2, 0.4, 0.6)]
    assert exact == pytest.approx(predicted, abs=4 * math.sqrt(0.25 / 300))


def test_doubtful_features_are_named_and_all_other_entries_are_right():
    training, inputs = trained(regime="sequential", seed=4)
    purified = purify(dirty(training.trained, 0.28), training.initial, inputs)
    hidden, output = purified.layers
    wrong = (matrix(purified.model.layers[0]) - matrix(training.trained.layers[0])).abs().amax(0) > 1e-9
    assert 0 < wrong.sum() < 60
    assert torch.equal(hidden.recovered, ~wrong)
    assert torch.equal(output.doubtful, wrong)
    error = (matrix(purified.model.output) - matrix(training.trained.output))[:, 0].abs()
    assert output.recovered.all()
    assert error[~wrong].max() < 1e-12 < error[wrong].max()


def test_deep_networks_layer_by_layer_through_purified_layers():
    training, inputs = trained(layers=3, k=100, p=120, seed=5)
    contaminated = dirty(training.trained, 0.1)
    for features in ("purified", "initial"):
        purified = purify(contaminated, training.initial, inputs, features=features)
        assert [layer.name for layer in purified.layers] == ["hidden.0", "hidden.1", "hidden.2", "output"]
        errors = compare(purified.model, training.trained)
        before = compare(contaminated, training.trained)
        assert errors["hidden.0"].exact > 0.99
        assert all(errors[name].mean < 0.1 * before[name].mean for name in ("hidden.1", "hidden.2"))


def test_biases_are_purified_with_their_units():
    training, inputs = trained(regime="sequential", bias=True, k=120, seed=6)
    contaminated = dirty(training.trained, 0.15)
    assert (contaminated.layers[0].bias - training.trained.layers[0].bias).abs().max() > 0.5
    errors = compare(purify(contaminated, training.initial, inputs).model, training.trained)
    assert errors["hidden.0"].largest < 1e-12
    assert errors["output"].largest < 1e-12


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_weights_that_are_not_finite_are_rebuilt(value):
    training, inputs = trained(regime="sequential", seed=7)
    contaminated = dirty(training.trained, 0.3, law=Erase())
    for parameter in contaminated.parameters():
        parameter.data.nan_to_num_(nan=value)
    assert not torch.isfinite(matrix(contaminated.output)).all()
    for error in compare(purify(contaminated, training.initial, inputs).model, training.trained).values():
        assert error.largest < 1e-12


def test_a_unit_of_which_nothing_is_left_is_not_called_recovered():
    training, inputs = trained(p=40, regime="sequential", seed=7)
    contaminated = copy.deepcopy(training.trained)
    contaminated.layers[0].weight.data[3] = math.nan
    hidden, output = purify(contaminated, training.initial, inputs).layers
    assert hidden.status[3] == lad.Status.RANK_FULL
    assert hidden.recovered.tolist() == [unit != 3 for unit in range(40)]
    assert output.doubtful.tolist() == [unit == 3 for unit in range(40)]


@pytest.mark.parametrize("law", [BitFlip(), Normal(0.0, 1e12), Normal(1e300, 1.0), Cauchy(0.0, 1e8)])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_absurd_weights_cost_the_others_nothing(law, share):
    training, inputs = trained(n=4, m=3, k=60, p=60, regime="sequential", seed=3)
    purified = purify(dirty(training.trained, share, law=law), training.initial, inputs)
    hidden, output = purified.layers
    error = [
        (matrix(ours) - matrix(true)).abs()
        for ours, true in zip(purified.model.layers, training.trained.layers, strict=True)
    ]
    assert error[0][:, hidden.recovered].max() < 1e-9
    if share < 0.5:
        assert hidden.recovered.double().mean() > 0.8
    if output.recovered.all():
        assert error[1][~output.doubtful].max() < 1e-9


def test_baselines_are_what_they_say():
    training, inputs = trained(seed=8)
    contaminated = dirty(training.trained, 0.1)
    initial = purify(contaminated, training.initial, inputs, fit="initial")
    for layer, start in zip(initial.model.layers, training.initial.layers, strict=True):
        assert torch.equal(layer.weight, start.weight)
    projected = purify(contaminated, training.initial, inputs, fit="l2")
    A = training.initial.patches(inputs).T
    change = matrix(contaminated.layers[0]) - matrix(training.initial.layers[0])
    expected = A @ torch.linalg.lstsq(A, change).solution
    assert torch.allclose(matrix(projected.model.layers[0]) - matrix(training.initial.layers[0]), expected, atol=1e-12)
    l1 = compare(purify(contaminated, training.initial, inputs).model, training.trained)["hidden.0"].mean
    assert l1 < 1e-12 < compare(projected.model, training.trained)["hidden.0"].mean
    assert initial.layers[0].status is None
    assert projected.layers[0].certificate is None


def test_choice_of_features_decides_the_output_layer():
    training, inputs = trained(regime="sequential", seed=1)
    contaminated = dirty(training.trained, 0.2)
    through_initial = purify(contaminated, training.initial, inputs, features="initial")
    error = compare(through_initial.model, training.trained)["output"].rms
    assert 1e-5 < error < 0.1  # W(0) instead of W: a floor where purified features are exact
    assert not through_initial.layers[1].doubtful.any()


def test_recovered_features_are_exact_where_units_are_and_near_elsewhere():
    training, inputs = trained(regime="sequential", seed=4)
    contaminated = dirty(training.trained, 0.28)
    found = {
        features: purify(contaminated, training.initial, inputs, features=features, certify=False)
        for features in ("purified", "initial", "recovered")
    }
    right = ~found["recovered"].layers[1].doubtful
    truth = matrix(training.trained.output)[:, 0]
    error = {name: (matrix(result.model.output)[:, 0] - truth).abs() for name, result in found.items()}
    assert error["recovered"][right].max() < 1e-12 < error["initial"][right].max()
    assert error["recovered"][~right].max() < 0.1 * error["purified"][~right].max()


def test_layers_that_are_not_chosen_are_taken_as_they_are():
    training, inputs = trained(regime="sequential", seed=1)
    contaminated = dirty(training.trained, 0.2)
    first = purify(contaminated, training.initial, inputs)
    half = copy.deepcopy(contaminated)
    half.hidden.load_state_dict(first.model.hidden.state_dict())
    second = purify(half, training.initial, inputs, layers=["output"])
    assert [layer.name for layer in second.layers] == ["output"]
    assert torch.equal(second.model.layers[0].weight, first.model.layers[0].weight)
    assert torch.equal(second.model.output.weight, first.model.output.weight)
    only = purify(contaminated, training.initial, inputs, layers=["hidden.0"])
    assert torch.equal(only.model.output.weight, contaminated.output.weight)
    for wrong in (["hidden.1"], "output"):
        with pytest.raises(InputError, match="layers must be"):
            purify(contaminated, training.initial, inputs, layers=wrong)


def test_healthy_network_stays():
    training, inputs = trained(regime="sequential", seed=9)
    purified = purify(training.trained, training.initial, inputs)
    for error in compare(purified.model, training.trained).values():
        assert error.largest < 1e-13
    assert all((layer.status == lad.Status.CLEAN).all() for layer in purified.layers)


def test_inputs_that_span_everything_change_nothing():
    training, inputs = trained(k=20, m=5, n=5, p=30, seed=10)
    contaminated = dirty(training.trained, 0.2, names=["hidden.0.weight"])
    purified = purify(contaminated, training.initial, inputs)
    assert purified.layers[0].status.tolist() == [lad.Status.RANK_FULL] * 30
    assert torch.allclose(purified.model.layers[0].weight, contaminated.layers[0].weight, atol=1e-12)
    assert purified.layers[1].doubtful.all()


@pytest.mark.parametrize("n", [20, 150])
@pytest.mark.parametrize("fit", ["l1", "l2"])
def test_inputs_that_span_every_direction_say_nothing_of_weights_that_are_missing_or_see_zeros(fit, n):
    # 100 rows of 20 numbers are kept as they are, of 750 only the second moments.
    training, inputs = trained(k=20, m=5, n=n, p=30, seed=10)
    inputs.view(n, 5, 20)[:, :, 4] = 0.0
    contaminated = dirty(training.trained, 0.2, names=["hidden.0.weight"])
    contaminated.layers[0].weight.data[7, 2] = math.nan
    (layer,) = purify(contaminated, training.initial, inputs, fit=fit, layers=["hidden.0"]).layers
    assert (layer.rank, layer.design is None) == (19, n == 150)
    result = purify(contaminated, training.initial, inputs, fit=fit, layers=["hidden.0"]).model
    expected = matrix(contaminated.layers[0]).clone()
    expected[4] = matrix(training.initial.layers[0])[4]
    known = torch.isfinite(expected)
    assert (matrix(result.layers[0]) - expected)[known].abs().max() < 1e-12
    if layer.design is None:
        assert matrix(result.layers[0])[2, 7] == matrix(training.initial.layers[0])[2, 7]
        if fit == "l1":
            assert (layer.status == lad.Status.RANK_FULL).all()


def test_altered_weights_are_named():
    training, inputs = trained(regime="sequential", seed=1)
    contaminated = dirty(training.trained, 0.2)
    contaminated.layers[0].weight.data[5, 8] = math.inf
    purified = purify(contaminated, training.initial, inputs, certify=False)
    for layer, ours, true in zip(purified.layers, contaminated.layers, training.trained.layers, strict=True):
        assert torch.equal(layer.altered, matrix(ours) != matrix(true))
        assert layer.certified.all()
    baseline = purify(contaminated, training.initial, inputs, fit="l2").layers[0]
    assert not baseline.altered.any()
    assert not baseline.certified.any()


def test_baselines_make_no_l1_fit(monkeypatch):
    training, inputs = trained(p=20, seed=12)

    def refuse(*_, **__):
        raise AssertionError("an L1 fit was made")

    monkeypatch.setattr(lad, "solve", refuse)
    for fit in ("l2", "initial"):
        purify(training.trained, training.initial, inputs, fit=fit)
    with pytest.raises(AssertionError, match="an L1 fit was made"):
        purify(training.trained, training.initial, inputs)


def test_the_callers_networks_stay_as_they_are():
    training, inputs = trained(p=50, seed=11)
    contaminated = dirty(training.trained, 0.2)
    nets = (contaminated, training.initial)
    before = [{name: value.clone() for name, value in net.state_dict().items()} for net in nets]
    purify(contaminated, training.initial, inputs)
    for net, then in zip(nets, before, strict=True):
        assert all(torch.equal(value, then[name]) for name, value in net.state_dict().items())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": torch.zeros(0, 500)}, r"at least one clean input; got n = 0"),
        ({"inputs": torch.full((1, 500), math.inf)}, r"clean inputs must be finite"),
        ({"inputs": torch.zeros(1, 499)}, r"inputs must be \[n, 500\]"),
        ({"fit": "l0"}, r"fit must be .* got 'l0'"),
        ({"features": "true"}, r"features must be .* got 'true'"),
    ],
)
def test_bad_input_is_refused(change, message):
    training, inputs = trained(p=20, seed=12)
    arguments = {"inputs": inputs} | change
    with pytest.raises(InputError, match=message):
        purify(training.trained, training.initial, arguments.pop("inputs"), **arguments)


@pytest.mark.parametrize(("first", "second"), [(torch.float16, torch.float16), (torch.float64, torch.float32)])
def test_precision_that_hides_what_training_changed_is_refused(first, second):
    training, inputs = trained(p=20, seed=12)
    nets = copy.deepcopy(training.trained).to(first), copy.deepcopy(training.initial).to(second)
    with pytest.raises(InputError, match="both networks must be float64 or float32"):
        purify(*nets, inputs)


def test_networks_that_do_not_match_are_refused():
    training, inputs = trained(p=20, seed=12)
    other = PatchCNN(m=5, k=100, p=21, generator=torch.Generator().manual_seed(0))
    with pytest.raises(InputError, match="must have the same layers"):
        purify(training.trained, other, inputs)
    broken = copy.deepcopy(training.initial)
    broken.layers[0].weight.data[0, 0] = math.nan
    with pytest.raises(InputError, match=r"initial weights must be finite; hidden.0.weight"):
        purify(training.trained, broken, inputs)
