import math

import pytest
import torch

from netpurify import InputError
from netpurify.paper import DivergenceError, PatchCNN, StepSizes, gradients, train, train_output
from netpurify.paper.model import matrix, with_bias


def problem(*, n=5, m=5, k=20, p=40, classes=None, seed=0, **options):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(n, m * k, generator=generator, dtype=torch.float64)
    targets = (
        2 * torch.rand(n, generator=generator, dtype=torch.float64) - 1
        if classes is None
        else torch.randint(classes, (n,), generator=generator)
    )
    return PatchCNN(m=m, k=k, p=p, classes=classes, generator=generator, **options), inputs, targets


def risk(net, inputs, targets):
    if net.classes is None:
        return 0.5 * (net(inputs) - targets).square().mean()
    return torch.nn.functional.cross_entropy(net(inputs), targets)


def by_autograd(net, inputs, targets):
    """Gradients as matrices [fan-in, units], a bias last."""
    net.zero_grad()
    risk(net, inputs, targets).backward()
    found = []
    for layer in net.layers:
        weight = layer.weight.grad.T
        found.append(weight if layer.bias is None else torch.cat([weight, layer.bias.grad[None]]))
    return found


def outside(span, change):
    """Largest entry of ``change`` [k, p] outside the span of the columns of ``span``, relative to the change."""
    basis = torch.linalg.svd(span, full_matrices=False)[0][:, : int(torch.linalg.matrix_rank(span))]
    return float((change - basis @ (basis.T @ change)).abs().max() / change.abs().max())


@pytest.mark.parametrize("classes", [None, 3])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_closed_form_gradients_are_those_of_autograd(classes, layers, bias):
    net, inputs, targets = problem(classes=classes, layers=layers, bias=bias)
    for ours, theirs in zip(gradients(net, inputs, targets), by_autograd(net, inputs, targets), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("classes", "layers", "hidden_gamma"), [(None, 1, None), (3, 2, 0.3)])
def test_algorithm_1_is_followed_step_by_step(classes, layers, hidden_gamma):
    net, inputs, targets = problem(classes=classes, layers=layers)
    training = train(net, inputs, targets, gamma=StepSizes(0.2, hidden_gamma), steps=3, tolerance=0.0)
    slow, losses = training.initial, [risk(net, inputs, targets).item()]
    for _ in range(3):
        change = by_autograd(slow, inputs, targets)[-1]
        slow.output.weight.data -= 0.2 * change.T  # beta first ...
        for layer, gradient in zip(slow.hidden, by_autograd(slow, inputs, targets), strict=False):  # ... then W at it
            layer.weight.data -= (hidden_gamma or 0.2 / gradient.shape[0]) * gradient.T
        losses.append(risk(slow, inputs, targets).item())
    for ours, theirs in zip(training.trained.parameters(), slow.parameters(), strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-14)
    assert training.trajectories[0].loss.tolist() == pytest.approx(losses, rel=1e-12)


def test_trajectory_is_that_of_the_weights_and_the_initial_network_stays():
    net, inputs, targets = problem()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    seen = []
    training = train(
        net, inputs, targets, gamma=0.1, observe=lambda t, weights: seen.append((t, [w.clone() for w in weights]))
    )
    path = training.trajectories[0]
    assert path.converged
    assert path.steps == len(seen) - 1 == seen[-1][0]
    for t in (0, 7, path.steps):
        hidden, output = seen[t][1]
        moved = [(hidden - seen[0][1][0]).norm(dim=0).max(), (output - seen[0][1][1]).abs().max()]
        assert path.moved[t].tolist() == pytest.approx([float(value) for value in moved], abs=1e-15)
    rest = training.trained(inputs).detach() - targets
    assert float(path.residual[-1]) == pytest.approx(float(rest.norm()), rel=1e-6)
    assert float(rest.abs().max()) ** 2 < 1e-8 <= float(path.residual[-2]) ** 2
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name])


def test_hidden_weights_move_only_in_the_span_of_the_patches():
    net, inputs, targets = problem(k=60, layers=2, p=80)
    training = train(net, inputs, targets, gamma=0.1, steps=200)
    change = matrix(training.trained.layers[0]) - matrix(net.layers[0])
    assert float(change.abs().max()) > 1e-4
    assert outside(net.patches(inputs).T, change) < 1e-12
    assert outside(net.patches(inputs)[:-1].T, change) > 1e-3  # one patch less does not span it


def test_output_weights_leave_the_span_of_the_final_features_jointly_and_not_sequentially():
    net, inputs, targets = problem(k=60, p=200)

    def escape(regime):
        training = train(net, inputs, targets, gamma=0.1, regime=regime)
        hidden = training.trained.layers[0]
        features = net.pool(hidden(net.patches(inputs)).relu()).detach()
        assert training.converged
        return outside(features.T, matrix(training.trained.output) - matrix(training.initial.output))

    assert escape("joint") > 1e-3
    assert escape("sequential") < 1e-12
    assert escape("sequential-fixed") < 1e-12


def test_regimes_differ_where_they_should():
    net, inputs, targets = problem(k=60, p=200)
    joint, sequential, fixed = (
        train(net, inputs, targets, gamma=0.1, regime=regime) for regime in ("joint", "sequential", "sequential-fixed")
    )
    assert torch.equal(joint.trained.layers[0].weight, sequential.trained.layers[0].weight)
    assert not torch.equal(joint.trained.layers[0].weight, fixed.trained.layers[0].weight)
    assert fixed.trajectories[0].moved[:, 1].max() == 0.0  # the output layer rests while W is trained
    assert sequential.initial.output.weight.abs().max() == 0.0
    again = train_output(joint, inputs, targets, gamma=0.1)
    assert torch.equal(again.trained.output.weight, sequential.trained.output.weight)
    assert len(again.trajectories) == len(sequential.trajectories) == 2
    assert torch.equal(sequential.initial.layers[0].weight, net.layers[0].weight)


def test_bias_keeps_the_span_claim_with_its_coordinate():
    net, inputs, targets = problem(k=60, bias=True)
    training = train(net, inputs, targets, gamma=0.1, steps=100)
    layer = net.layers[0]
    change = matrix(training.trained.layers[0]) - matrix(layer)
    assert change[-1].abs().max() > 0.0
    assert outside(with_bias(net.patches(inputs), layer).T, change) < 1e-12


def test_steps_bound_the_work_and_say_so():
    net, inputs, targets = problem()
    training = train(net, inputs, targets, gamma=0.1, steps=4)
    assert training.trajectories[0].steps == 4
    assert not training.converged


def test_divergence_stops_with_the_step_and_the_advice():
    net, inputs, targets = problem()
    with pytest.raises(DivergenceError, match=r"at step \d+; lower gamma \(now 1e\+300\)"):
        train(net, inputs, targets, gamma=1e300)


@pytest.mark.parametrize("threads", [1, 2])
def test_same_bits_whatever_the_threads_which_stay_as_they_were(threads):
    before = torch.get_num_threads()
    expected = train(*problem(k=150, p=700), gamma=0.1, steps=20)
    torch.set_num_threads(threads)
    again = train(*problem(k=150, p=700), gamma=0.1, steps=20)
    kept = torch.get_num_threads()
    torch.set_num_threads(before)
    assert kept == threads
    for a, b in zip(expected.trained.parameters(), again.trained.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": torch.zeros(0, 100)}, r"at least one input; got n = 0"),
        ({"inputs": torch.full((5, 100), math.nan)}, r"training inputs must be finite"),
        ({"targets": torch.zeros(4)}, r"targets must be \[5\]"),
        ({"targets": torch.tensor([0.0, math.inf, 0, 0, 0])}, r"targets must be finite"),
        ({"gamma": 0.0}, r"gamma must be a positive number; got 0.0"),
        ({"gamma": math.nan}, r"gamma must be a positive number"),
        ({"gamma": StepSizes(1.0, -1.0)}, r"gamma of hidden layers must be a positive number"),
        ({"regime": "both"}, r"regime must be .* got 'both'"),
        ({"steps": -1}, r"steps and tolerance must not be negative"),
    ],
)
def test_bad_input_is_refused(change, message):
    net, inputs, targets = problem()
    arguments = {"inputs": inputs, "targets": targets, "gamma": 0.1} | change
    if change.get("inputs") is not None and not arguments["inputs"].shape[0]:
        arguments["targets"] = targets[:0]
    with pytest.raises(InputError, match=message):
        train(net, arguments.pop("inputs"), arguments.pop("targets"), **arguments)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.tensor([0, 1, 2, 3, 0]), r"labels must lie in 0 .. 2 for 3 classes; got 0 .. 3"),
        (torch.tensor([0, -1, 2, 1, 0]), r"got -1 .. 2"),
        (torch.zeros(5), r"class labels must be whole numbers"),
    ],
)
def test_labels_out_of_range_are_refused(labels, message):
    net, inputs, _ = problem(classes=3)
    with pytest.raises(InputError, match=message):
        train(net, inputs, labels, gamma=0.1)
