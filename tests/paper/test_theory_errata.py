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
        "A'u", "number of columns", "1/sqrt(p) in front", "gamma/n", "beta_i", "dL/dW_j", "H(t)", "G-bar", "H-bar",
        "lambda_max(G) ≲ mn", "lambda_max(H) ≲ 1", "m^2 n gamma small", "|beta~ - beta| / p", "n = 21", "n = 99",
        "36 on MNIST and 69", "black", "for t = 0 to t_max",
    ):  # fmt: skip
        assert words in text


def test_gradients_of_the_page_are_those_of_autograd():
    literal, closed = misprints.hidden_gradient_errors()
    assert closed < 1e-6 < literal
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
    printed, right, _ = misprints.printed_hidden_kernels()
    assert printed == pytest.approx(46, abs=3)
    model, inputs, _ = misprints.problem(5, 5, 200, 2000)
    X = inputs.numpy().reshape(5, 5, 200)
    W, beta = matrix(model.layers[0]).numpy(), matrix(model.output)[:, 0].numpy()
    H = np.zeros((5, 5))
    for s in range(5):
        for t in range(5):
            inner = sum((beta**2 * (X[s, a] @ W > 0) * (X[t, b] @ W > 0)).mean() for a in range(5) for b in range(5))
            H[s, t] = X[s].sum(0) @ X[t].sum(0) / 200 * inner
    assert printed == pytest.approx(np.linalg.eigvalsh(H)[-1])
    assert right == pytest.approx(float(torch.linalg.eigvalsh(kernels(model, inputs)[1])[-1]))


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
    with_gamma, with_mean = false_bounds.decay_without_n()
    assert with_mean <= 1 < with_gamma
    high = surviving_orders()
    assert high[2] / high[0] == pytest.approx(16, rel=0.2)
    assert high[5] / high[3] == pytest.approx(4, rel=0.35)
