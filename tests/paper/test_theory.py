import math

import numpy as np
import pytest
import torch

from netpurify import InputError, lad
from netpurify.contaminate import SignFlip
from netpurify.findings import Verdict
from netpurify.paper import PatchCNN, train
from netpurify.paper.theory import ExaminedSystem, Setting, constants, examine, kernels, remainder, spectrum
from netpurify.paper.training import network_of

pytestmark = pytest.mark.slow


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def problem(*, n=5, m=5, k=50, p=200, seed=0, **options):
    source = generator(seed)
    inputs = torch.randn(n, m * k, generator=source, dtype=torch.float64)
    targets = 2 * torch.rand(n, generator=source, dtype=torch.float64) - 1
    return PatchCNN(m=m, k=k, p=p, generator=source, **options), inputs, targets


def extremes(A):
    """Least and largest |A D|_1 over the unit circle: between the normals of rows it is concave, so least at one."""
    normals = np.stack([-A[:, 1], A[:, 0]]) / np.linalg.norm(A, axis=1)
    angles = np.linspace(0.0, np.pi, 200_001)
    return np.abs(A @ normals).sum(0).min(), np.abs(A @ np.stack([np.cos(angles), np.sin(angles)])).sum(0).max()


@pytest.mark.parametrize("bias", [False, True])
def test_kernels_are_the_products_of_autograds_jacobians(bias):
    net, inputs, _ = problem(n=4, m=3, k=7, p=11, bias=bias)
    G, H = kernels(net, inputs)
    names = dict(net.named_parameters())
    jacobians = torch.func.jacrev(lambda state: torch.func.functional_call(net, state, (inputs,)))(names)
    flat = {name: value.reshape(4, -1) for name, value in jacobians.items()}
    output = sum(flat[name] @ flat[name].T for name in flat if name.startswith("output"))
    hidden = sum(flat[name] @ flat[name].T for name in flat if name.startswith("hidden")) / (7 + bias)
    assert torch.allclose(G, output, atol=1e-12)
    assert torch.allclose(H, hidden, atol=1e-12)


def test_a_step_of_training_is_what_the_kernels_and_the_remainder_say():
    net, inputs, targets = problem()
    after = train(net, inputs, targets, gamma=0.2, steps=1).trained
    between = network_of(net, [net.layers[0].weight.detach().T, after.output.weight.detach().T])  # (beta(1), W(0))
    G, _ = kernels(net, inputs)
    _, H = kernels(between, inputs)
    first = 0.2 / 5 * (G @ (targets - net(inputs)) + H @ (targets - between(inputs)))
    change = after(inputs) - net(inputs)
    beyond = remainder(net, after, inputs)
    assert torch.allclose(change, first + beyond, atol=1e-13)
    assert 1e-9 < beyond.norm() < 0.1 * first.norm()


@pytest.mark.parametrize("seed", range(6))
def test_intervals_of_lemma_1_hold_the_truth(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 2)) * rng.choice([1.0, 0.1], 2) + rng.choice([0.0, 1.0])
    found = constants(A, generator=generator(seed))
    least, most = extremes(A)
    assert found.lambda_low.low <= least / 30 * (1 + 1e-12)
    assert found.lambda_low.high == pytest.approx(least / 30, rel=1e-6)  # in the plane the search finds it
    assert found.sigma2.low <= most**2 / 60 * (1 + 1e-9) <= found.sigma2.high * (1 + 2e-9)
    assert found.sigma2.low == pytest.approx(most**2 / 60, rel=1e-6)
    assert found.lambda_high == pytest.approx(np.linalg.norm(A, 2) / math.sqrt(30), rel=1e-12)
    assert found.sigma2_signs == pytest.approx((A**2).mean(), rel=1e-12)


def test_proven_bounds_are_neither_loose_nor_wrong_on_a_gaussian_design():
    A = np.random.default_rng(0).standard_normal((100, 25))
    found = constants(A, generator=generator())
    singular = np.linalg.svd(A, compute_uv=False)
    assert found.lambda_low.low > 2 * singular[-1] / 100  # better than the smallest singular value alone
    assert found.lambda_low.low < found.lambda_low.high < 3 * found.lambda_low.low
    directions = np.random.default_rng(1).standard_normal((25, 2000))
    directions /= np.linalg.norm(directions, axis=0)
    assert np.abs(A @ directions).mean(0).min() >= found.lambda_low.high


def test_constants_of_a_design_without_full_rank_say_so():
    A = np.random.default_rng(0).standard_normal((20, 3))
    for deficient in (np.hstack([A, A[:, :1]]), A.T, np.diag([1.0, 1e-20])):
        low = constants(deficient, generator=generator()).lambda_low
        assert low.low == 0.0 <= low.high < 1e-12
    with pytest.raises(InputError, match=r"matrix \[k, q\]"):
        constants(A[:0], generator=generator())


@pytest.mark.parametrize("nearly", [1e-6, 1e-10, 1e-12])
def test_bounds_of_a_design_that_nearly_lacks_rank_are_still_bounds(nearly):
    A = np.random.default_rng(0).standard_normal((20, 3))
    A[:, 2] = A[:, 0] + A[:, 1]
    A[4, 2] += nearly
    low = constants(A, generator=generator()).lambda_low
    # D = (1, 1, -1) / sqrt(3) gives A D = -nearly / sqrt(3) in one row, up to the rounding of the row.
    reached = abs(A[4, 0] + A[4, 1] - A[4, 2]) / math.sqrt(3) / 20
    assert low.low <= reached + 1e-16
    assert low.high >= low.low


def test_bounds_are_those_of_the_paper():
    setting = Setting(n=5, m=5, k=100, p=500, gamma=0.1, share=0.2)
    log_p = 6.214608098422191
    found = {name: value for (_, name), value in setting.conditions().items()}
    assert found == pytest.approx(
        {
            "mn / k": 0.25,
            "mn / sqrt(p)": 25 / math.sqrt(500),
            "n log(mn) / k": 5 * 3.2188758248682006 / 100,
            "mn log(mn) / k": 25 * 3.2188758248682006 / 100,
            "(mn)^3 log(p)^4 / p": 15625 * log_p**4 / 500,
            "mn gamma / n": 0.5,
            "m^2 n gamma / (2pi n)": 25 * 0.1 / (2 * math.pi),
            "log(p) / k": log_p / 100,
            "eps sqrt(mn)": 1.0,
        }
    )
    assert found["(mn)^3 log(p)^4 / p"] == pytest.approx(46613, rel=1e-4)
    assert setting.output_radius == pytest.approx(32 * 25 * math.sqrt(log_p / 500))
    assert setting.hidden_radius == pytest.approx(100 * 25 * log_p / math.sqrt(500 * 100))
    assert setting.decay == pytest.approx(1 - 0.02 / 8)
    assert setting.output_error == pytest.approx(15625 * log_p / 500)


def examined(regime, **options):
    source = generator(1)
    inputs = torch.randn(5, 5 * 100, generator=source, dtype=torch.float64)
    targets = 2 * torch.rand(5, generator=source, dtype=torch.float64) - 1
    options = {"m": 5, "p": 300, "gamma": 0.1, "share": 0.15} | options
    return examine(inputs, targets, system=ExaminedSystem(regime=regime, **options), generator=source)


def test_examination_of_the_joint_regime():
    found = examined("joint")
    rows = {row.quantity: row for row in found.rows}
    assert rows["(mn)^3 log(p)^4 / p"].verdict == Verdict.VACUOUS
    assert rows["log(p) / k"].verdict == Verdict.HOLDS
    assert rows["share of units with W~_j = W_j to 1e-6"].verdict == Verdict.HOLDS
    assert rows["|beta~ - beta|^2 / p"].verdict == Verdict.VACUOUS
    assert 1e-8 < rows["|beta~ - beta|^2 / p"].measured < 1e-2
    assert rows["max_jt |W_j(t) - W_j(0)|"].verdict == Verdict.VACUOUS
    assert rows["max_jt |W_j(t) - W_j(0)|"].measured == float(found.training.trajectories[0].moved[:, 0].max())
    decay = next(row for row in found.rows if row.part == "(13)")
    assert decay.verdict == Verdict.HOLDS
    G, H = kernels(found.training.initial, found.inputs)
    assert rows["max_t lambda_max(G(t))"].measured >= spectrum(G)[1]
    assert rows["min_t lambda_min(H(t))"].measured == pytest.approx(spectrum(H)[0], rel=0.05)
    generic = rows["A_W: P(one unit recovered), generic random design"]
    assert generic.measured == lad.recovery_probability(100, 25, 0.15)
    assert rows["A_W: P(one unit recovered)"].bound == pytest.approx(generic.measured, abs=0.02)
    half = rows["A_W: eps that half of all units survive, this design"].measured
    assert 0.36 < half.low < half.high < 0.46
    assert "A_beta: P(one unit recovered)" not in rows, "its design does not span what training changed"
    survived = rows["A_W: alterations that every unit survives"].measured
    assert 2 <= survived.low <= survived.high < 40


def test_examination_of_the_sequential_regime_is_exact():
    rows = {row.quantity: row for row in examined("sequential").rows}
    assert rows["max_j |beta~_j - beta_j|"].verdict == Verdict.HOLDS
    assert rows["max_j |beta~_j - beta_j|"].measured < 1e-12


@pytest.mark.parametrize("law", [None, SignFlip()])
def test_beta_is_predicted_on_its_own_design(law):
    """The referee's case: every filter comes back, and beta, whose features are not negative, does not."""
    source = generator(0)
    inputs = torch.randn(5, 400, generator=source, dtype=torch.float64)
    targets = 2 * torch.rand(5, generator=source, dtype=torch.float64) - 1
    system = ExaminedSystem(m=1, p=500, gamma=1.0, share=0.68, regime="sequential", law=law)
    rows = {row.quantity: row for row in examine(inputs, targets, system=system, generator=source).rows}
    assert rows["A_W: P(one unit recovered)"].measured == 1.0
    assert rows["A_W: P(one unit recovered)"].bound > 0.98
    beta = rows["A_beta: P(one unit recovered)"]
    assert (beta.measured, beta.bound) == (0.0, pytest.approx(0.0, abs=0.02))
    assert rows["A_beta: P(one unit recovered), generic random design"].measured > 0.999
    half = rows["A_beta: eps that half of all units survive, this design"].measured
    assert half.high < 0.6


def test_a_network_that_is_not_the_theorys_is_refused():
    net, inputs, _ = problem(layers=2)
    with pytest.raises(InputError, match="one hidden layer; got 2 hidden layers"):
        kernels(net, inputs)


def test_a_decay_that_has_no_meaning_is_said_to_have_none():
    inputs = 0.01 * torch.randn(3, 40, generator=generator(), dtype=torch.float64)
    targets = torch.tensor([0.1, -0.1, 0.2], dtype=torch.float64)
    found = examine(
        inputs, targets, system=ExaminedSystem(m=2, p=20, gamma=24.0, share=0.1, steps=2), generator=generator()
    )
    decay = next(row for row in found.rows if row.part == "(13)")
    assert decay.measured is None
    assert decay.verdict == Verdict.VACUOUS


def test_a_network_that_has_nothing_left_to_learn_is_examined_all_the_same():
    inputs = torch.randn(3, 40, generator=generator(), dtype=torch.float64)
    start = PatchCNN(m=2, k=20, p=20, generator=generator(5))
    found = examine(
        inputs,
        start(inputs).detach(),
        system=ExaminedSystem(m=2, p=20, gamma=0.1, share=0.1, steps=2),
        generator=generator(5),
    )
    assert found.training.trajectories[0].steps == 0
    assert next(row for row in found.rows if row.part == "(13)").verdict == Verdict.VACUOUS
    with pytest.raises(InputError, match="m must be a whole number"):
        examine(inputs, torch.zeros(3), system=ExaminedSystem(m=0, p=20, gamma=0.1, share=0.1), generator=generator())


def test_pixels_that_no_input_inks_do_not_count():
    source = generator(1)
    inputs = torch.randn(3, 80, generator=source, dtype=torch.float64)
    inputs.reshape(3, 2, 40)[:, :, 10:] = 0.0
    targets = torch.tensor([0.1, -0.1, 0.2], dtype=torch.float64)
    found = examine(
        inputs, targets, system=ExaminedSystem(m=2, p=400, gamma=0.1, share=0.1, steps=100), generator=source
    )
    row = next(row for row in found.rows if row.quantity == "A_W: P(one unit recovered)")
    assert row.bound == pytest.approx(lad.recovery_probability(10, 6, 0.1), abs=0.15)
    # Pixels that no input inks go back to the initial weights, which is right; the ten others decide.
    assert row.measured == pytest.approx(row.bound, abs=4 * math.sqrt(0.25 / 400 + 0.25 / 600))


def test_inputs_so_many_that_no_design_is_kept_are_examined_all_the_same():
    inputs = torch.randn(150, 40, generator=generator(6), dtype=torch.float64)  # 600 patches of 10 entries
    targets = torch.zeros(150, dtype=torch.float64)
    found = examine(
        inputs, targets, system=ExaminedSystem(m=4, p=12, gamma=0.1, share=0.1, steps=2), generator=generator(6)
    )
    assert found.purified.layers[0].design is None
    survived = next(row for row in found.rows if row.quantity == "A_W: alterations that every unit survives")
    assert (survived.measured.low, survived.measured.high) == (0, 0)
    assert "of 10 weights" in survived.note
