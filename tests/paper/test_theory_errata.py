"""docs/errata.md is what the command makes, and its numbers are those of other computations."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from netpurify import report
from netpurify.paper.model import matrix
from netpurify.paper.theory import ERRATA, false_bounds, kernels, misprints, surviving_orders
from netpurify.paper.theory.kernels import lemma_hidden_kernel

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "errata.md"
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?")


def test_the_page_is_what_the_command_makes():
    committed, made = PAGE.read_text(encoding="utf-8"), report.errata_markdown(ERRATA, surviving_orders())
    assert NUMBER.sub("#", committed) == NUMBER.sub("#", made), "netpurify theory --errata --markdown docs/errata.md"
    then, now = ([float(word) for word in NUMBER.findall(text)] for text in (committed, made))
    assert now == pytest.approx(then, rel=0.02)  # to two digits: other processors round otherwise


def test_every_item_of_the_review_is_there():
    text = PAGE.read_text(encoding="utf-8").replace("\\", "")
    for words in (
        "A'u", "number of columns", "for simplifying our proofs", "gamma/n", "beta_i", "dL/dW_j", "H(t)", "G-bar",
        "H-bar",
        "lambda_max(G) ≲ mn", "lambda_max(H) ≲ 1", "m^2 n gamma small", "|beta~ - beta| / p", "n = 21", "n = 99",
        "36 on MNIST and 69", "for t = 0 to t_max", "An Approach with", "the journal's version was not compared",
        "choice of orientation", "choice of normalisation", "(A.32)", "G~", "R_W^2 k", "sigma^2 = m^2 p/2pi", "Lemma 7",
    ):  # fmt: skip
        assert words in text.replace("\n", " ")
    assert "black" not in text  # in the words of MNIST's format 255 is black: no fault of the paper


def test_gradients_of_the_page_are_those_of_autograd():
    median, closed = misprints.hidden_gradient_errors()
    assert closed < 1e-6
    assert 1 < median < 3
    literal = float(misprints.literal_gradient_errors(misprints.problem(3, 4, 10, 20))[0])
    assert misprints.gradient_outside()[1] < 1e-12
    model, inputs, targets = misprints.problem(3, 4, 10, 20)
    copy = {name: value.detach().clone().requires_grad_() for name, value in model.named_parameters()}
    loss = (targets - torch.func.functional_call(model, copy, (inputs,))).square().mean() / 2
    loss.backward()
    true = copy["hidden.0.weight"].grad[0].numpy()
    W, beta = matrix(model.layers[0])[:, 0].numpy(), matrix(model.output)[:, 0].numpy()
    left = (model(inputs).detach() - targets).numpy()
    wrong = np.zeros(10)
    for s in range(3):
        for i in range(4):
            patch = inputs[s, 10 * i : 10 * i + 10].numpy()
            wrong += left[s] * beta[i] * (W @ patch > 0) * patch / (3 * math.sqrt(20))
    assert literal == pytest.approx(np.linalg.norm(wrong - true) / np.linalg.norm(true), rel=1e-6)


def test_printed_hidden_kernel_by_loops():
    printed, right, near, nearer = misprints.printed_hidden_kernels()
    assert nearer < near / 3 < 0.04
    found = []
    for seed in range(5):
        model, inputs, _ = misprints.problem(5, 5, 200, 2000, seed)
        X = inputs.numpy().reshape(5, 5, 200)
        W, beta = matrix(model.layers[0]).numpy(), matrix(model.output)[:, 0].numpy()
        active = X @ W > 0
        H = np.zeros((5, 5))
        for s in range(5):
            for t in range(5):
                inner = sum((beta**2 * active[s, a] * active[t, b]).mean() for a in range(5) for b in range(5))
                H[s, t] = X[s].sum(0) @ X[t].sum(0) / 200 * inner
        found.append((np.linalg.eigvalsh(H)[-1], float(torch.linalg.eigvalsh(kernels(model, inputs)[1])[-1])))
    assert (printed, right) == pytest.approx(tuple(np.median(found, axis=0)))


def test_the_recursion_with_the_remainder_is_exact_and_the_printed_one_is_not():
    printed, right = misprints.recursion_errors()
    assert right < 0.001 < 0.02 < printed
    literal, r = misprints.remainders()
    assert literal > 100 * r


def test_false_steps_are_false_and_corrected_ones_hold():
    left, root = false_bounds.lost_root()
    assert 1 < left <= root
    change, bound = false_bounds.kernel_motion()
    assert change > bound
    share, n = misprints.step_share()
    assert share == pytest.approx(1 / n)
    assert pytest.approx(false_bounds.orthant()[0] * 2 * math.pi, rel=0.01) == 1.0
    assert false_bounds.orthant()[1] == pytest.approx(0.25 + math.asin(-0.2) / (2 * math.pi), abs=0.002)
    measured, small, printed = false_bounds.mean_features()
    assert measured > printed > small
    variance, one, mean, single = false_bounds.feature_moments()
    assert (variance / one, mean / single) == pytest.approx((5, 5), rel=0.02)
    high = surviving_orders()
    assert high[2] / high[0] == pytest.approx(16, rel=0.2)
    assert high[5] / high[3] == pytest.approx(4, rel=0.35)


def test_size_of_outputs_by_draws():
    with_root, without = misprints.output_sizes()
    draws = [misprints.problem(5, 5, 50, 300, seed) for seed in range(200)]
    squares = [float(model(inputs).detach().square().mean()) for model, inputs, _ in draws]
    assert with_root == pytest.approx(math.sqrt(np.mean(squares)), rel=0.1)
    assert without / with_root == pytest.approx(math.sqrt(300))


def test_lemma_8_by_loops():
    model, inputs, _ = misprints.problem(3, 4, 10, 20)
    X, (W, beta) = inputs.numpy().reshape(3, 4, 10).sum(1), (matrix(layer).numpy() for layer in model.layers)
    H = np.zeros((3, 3))
    for s in range(3):
        for t in range(3):
            for j in range(20):
                H[s, t] += X[s] @ X[t] / 10 / 20 * beta[j, 0] ** 2 * (W[:, j] @ X[s] >= 0) * (W[:, j] @ X[t] >= 0)
    assert lemma_hidden_kernel(model, inputs).numpy() == pytest.approx(H)


def test_items_that_were_missing_are_as_their_formulas_say():
    """Moments of sums of rectified normals by draws of their own, without the network's code."""
    source = np.random.default_rng(3)
    left, one, radius, square = false_bounds.features_of_theorem_3()
    drawn = np.maximum(source.standard_normal((200_000, 20)), 0.0)
    assert left == pytest.approx((drawn.sum(1) ** 2).mean(), rel=0.02)
    assert one == pytest.approx((drawn**2).sum(1).mean(), rel=0.02)
    assert square < 0.01 < 1 < radius
    few = false_bounds.constants_of_features()
    assert np.array(few[:3]) / [300, 1200, 4800] == pytest.approx(25 / (2 * math.pi), rel=0.1)
    on, beside, right, off = false_bounds.relu_of_the_sum()
    assert (on, beside) == pytest.approx((2.5, 2.5 / math.pi), rel=0.03)
    assert (right, off) == pytest.approx((2.5 + 10 / math.pi, 12.5 / math.pi), rel=0.03)
    # An input's patch changes sides with probability arctan(0.02) / pi, for 20 patches and for their sum.
    changed, summed, violated = false_bounds.changed_indicators()
    assert changed == pytest.approx(20 * math.atan(0.02) / math.pi, rel=0.15)
    assert summed == pytest.approx(2 * math.atan(0.02) / math.pi, rel=0.3)
    assert violated == pytest.approx(changed, rel=0.2)


def test_conditions_of_the_unstable_step():
    printed, right, grown = false_bounds.unstable_decay()
    assert printed == pytest.approx(40 * 0.0124)
    assert right == pytest.approx(1600 * 0.0124 / (2 * math.pi))
    assert grown > 10
