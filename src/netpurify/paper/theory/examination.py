"""One run of the paper's system beside everything its theory says about it, as one table."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from netpurify.contaminate import Law, Normal, contaminate
from netpurify.findings import Verdict
from netpurify.paper.descent import Trajectory
from netpurify.paper.model import PatchCNN, matrix
from netpurify.paper.purification import Purified, compare, purify
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.kernels import kernels, remainder, spectrum
from netpurify.paper.theory.limits import designs_of, limits_of
from netpurify.paper.theory.row import Row
from netpurify.paper.training import Regime, Training, network_of, train


@dataclass(frozen=True, slots=True)
class Examination:
    """The table, and the run it was measured on."""

    setting: Setting
    regime: Regime
    rows: tuple[Row, ...]
    inputs: Tensor
    training: Training
    purified: Purified


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedSystem:
    """The system that is trained, contaminated and purified, in the paper's letters.

    Attributes:
        m: Number of patches.
        p: Number of filters.
        gamma: Step size of Algorithm 1.
        share: Share of altered weights (the paper's epsilon).
        regime: As in ``train``.
        law: What is added to altered weights; ``None`` for the paper's N(1, 1).
        steps: Most steps of each phase.
    """

    m: int
    p: int
    gamma: float
    share: float
    regime: Regime = "joint"
    law: Law | None = None
    steps: int = 1000


def examine(
    inputs: Tensor,
    targets: Tensor,
    *,
    system: ExaminedSystem,
    generator: torch.Generator,
    progress: Callable[[str], None] | None = None,
) -> Examination:
    """Train, contaminate and purify a network, and set what was seen beside the paper's bounds.

    Cost: seconds at the paper's sizes; most of it goes into Lemma 1's intervals and the worst case, about
    (fan-in)^2 times the iterations of ``lad.worst_case``, for both layers.

    Args:
        inputs: Training inputs [n, m k]; they also purify.
        targets: Numbers [n].
        system: What is trained, contaminated and purified.
        generator: Source of initial weights, contamination and searches.
        progress: Called with the name of each part before it is worked on.
    """
    say = progress or (lambda _: None)
    m, p, gamma, share, regime = system.m, system.p, system.gamma, system.share, system.regime
    say("train")
    model = PatchCNN(m=m, k=inputs.shape[1] // max(m, 1), p=p, generator=generator)
    watch = _Watch(model, inputs)
    training = train(model, inputs, targets, gamma=gamma, regime=regime, steps=system.steps, observe=watch)
    say("contaminate and purify")
    dirty = contaminate(training.trained.state_dict(), system.law or Normal(1.0, 1.0), share=share, generator=generator)
    contaminated = network_of(training.trained, [matrix(layer) for layer in training.trained.layers])
    contaminated.load_state_dict(dirty.state)
    purified = purify(contaminated, training.initial, inputs)
    setting = Setting(n=inputs.shape[0], m=m, k=model.k, p=p, gamma=gamma, share=share)
    rows = [*_conditions(setting, regime), *_motion(setting, model, training), *_kernels(setting, watch, training)]
    rows += _recovery(setting, regime, training, purified)
    errors = compare(purified.model, training.trained)
    designs = designs_of(purified, inputs)
    for name, fit, design in zip(("A_W", "A_beta"), purified.layers, designs, strict=True):
        say(f"constants of {name}")
        found = limits_of(name, fit, design, errors[fit.name].exact, setting, generator)
        # In the joint regime the features do not span what training changed in beta: there is nothing to predict.
        rows += found if name == "A_W" or regime != "joint" else found[:-2]
    return Examination(setting, regime, tuple(rows), inputs, training, purified)


class _Watch:
    """Extremes of G(t), H(t) and r(t) over t = 0, 1, 2, 4, 8, ...; H(t) is at W(t) and beta(t+1), a step later."""

    def __init__(self, model: PatchCNN, inputs: Tensor) -> None:
        self.model, self.inputs = model, inputs
        self.held: PatchCNN | None = None
        self.hidden: list[tuple[float, float]] = []
        self.output: list[tuple[float, float]] = []
        self.beyond: list[tuple[int, float]] = []

    def __call__(self, t: int, weights: list[Tensor]) -> None:
        doubled = not t & (t - 1)
        if self.held is None and not doubled:
            return
        now = network_of(self.model, weights)
        if self.held is not None:
            between = network_of(self.model, [matrix(self.held.layers[0]), weights[-1]])
            self.hidden.append(spectrum(kernels(between, self.inputs)[1]))
            self.beyond.append((t - 1, float(remainder(self.held, now, self.inputs).norm())))
        if doubled:
            self.output.append(spectrum(kernels(now, self.inputs)[0]))
        self.held = now if doubled else None


def _conditions(setting: Setting, regime: Regime) -> list[Row]:
    theorem = "Theorem 2" if regime == "joint" else "Theorem 3"
    rows = []
    for (part, name), value in setting.conditions().items():
        part = theorem if part == "Theorems 2, 3" else part
        verdict = Verdict.HOLDS if value < 1.0 else Verdict.VACUOUS
        note = "" if value < 1.0 else f"{part} promises nothing here"
        rows.append(Row(part, name, "small", None, value, verdict, note))
    return rows


def _at_most(
    part: str, quantity: str, bound: float, measured: float, yardstick: tuple[str, float], relation: str = "<="
) -> Row:
    """A row for measured <= bound, vacuous where the bound allows more than the size of the thing itself."""
    name, size = yardstick
    if bound >= size:
        vacuous = f"allows more than {name}, {size:.3g}"
        return Row(part, quantity, relation, bound, measured, Verdict.VACUOUS, vacuous)
    if relation == "≲":
        return _up_to_a_constant(part, quantity, bound, measured)
    return Row(part, quantity, relation, bound, measured, Verdict.HOLDS if measured <= bound else Verdict.FAILS)


def _up_to_a_constant(part: str, quantity: str, bound: float, measured: float) -> Row:
    """A row for a bound whose constant the paper leaves open."""
    return Row(part, quantity, "≲", bound, measured, Verdict.MEASURED, f"with the constant {measured / bound:.2g}")


def _motion(setting: Setting, model: PatchCNN, training: Training) -> list[Row]:
    """Theorem 1, (11) to (13), beside the first phase of training."""
    path = training.trajectories[0]
    hidden, output = (matrix(layer) for layer in model.layers)
    return [
        _at_most("(11)", "max_jt |beta_j(t) - beta_j(0)|", setting.output_radius, float(path.moved[:, 1].max()),
                 ("the largest |beta_j(0)|", float(output.abs().max()))),
        _at_most("(12)", "max_jt |W_j(t) - W_j(0)|", setting.hidden_radius, float(path.moved[:, 0].max()),
                 ("the largest |W_j(0)|", float(hidden.norm(dim=0).max()))),
        _decay(setting, path),
    ]  # fmt: skip


def _decay(setting: Setting, path: Trajectory) -> Row:
    quantity = "max_t |y - f(t)|^2 / ((1 - gamma/8n)^t |y - f(0)|^2)"
    if setting.decay <= 0.0 or not path.residual[0] or not path.steps:
        return Row("(13)", quantity, "<=", 1.0, None, Verdict.VACUOUS, "gamma >= 8n, or nothing to fit")
    t = torch.arange(path.steps + 1, dtype=torch.float64)
    # In logarithms: after some thousand steps neither side of the bound is a number any more.
    ratio = 2.0 * (path.residual.log() - path.residual[0].log()) - t * math.log(setting.decay)
    slowest = int(ratio[1:].argmax()) + 1
    measured = math.exp(min(float(ratio[slowest]), 700.0))
    verdict = Verdict.HOLDS if measured <= 1.0 else Verdict.FAILS
    return Row("(13)", quantity, "<=", 1.0, measured, verdict, f"largest at step {slowest} of {path.steps}")


def _kernels(setting: Setting, watch: _Watch, training: Training) -> list[Row]:
    """(15) to (17) over the first phase."""
    low_g, high_g = min(low for low, _ in watch.output), max(high for _, high in watch.output)
    seen = watch.hidden or [spectrum(kernels(watch.model, watch.inputs)[1])]  # none if nothing was left to train
    low_h, high_h = min(low for low, _ in seen), max(high for _, high in seen)
    mn = setting.m * setting.n
    residual = training.trajectories[0].residual
    beyond = max((size / (setting.step * float(residual[t])) for t, size in watch.beyond if residual[t]), default=0.0)
    return [
        Row("(15)", "min_t lambda_min(G(t))", ">=", 0.0, low_g,
            Verdict.HOLDS if low_g >= -1e-12 * high_g else Verdict.FAILS),
        _up_to_a_constant("(15)", "max_t lambda_max(G(t))", mn, high_g),
        Row("(16)", "min_t lambda_min(H(t))", ">=", 1 / 6, low_h, Verdict.HOLDS if low_h >= 1 / 6 else Verdict.FAILS),
        _up_to_a_constant("(16)", "max_t lambda_max(H(t))", 1.0, high_h),
        _at_most("(17)", "max_t |r(t)| / (gamma/n |y - f(t)|)", setting.remainder, beyond,
                 ("lambda_max(G) + lambda_max(H)", high_g + high_h), "≲"),
    ]  # fmt: skip


def _recovery(setting: Setting, regime: Regime, training: Training, purified: Purified) -> list[Row]:
    """Theorems 2 and 3 beside the errors of the purified network."""
    hidden, output = compare(purified.model, training.trained).values()
    theorem = "Theorem 2" if regime == "joint" else "Theorem 3"
    exact = Verdict.HOLDS if hidden.exact == 1.0 else Verdict.FAILS
    rows = [Row(theorem, "share of units with W~_j = W_j to 1e-6", ">=", 1.0, hidden.exact, exact)]
    if regime == "joint":
        yardstick = ("|beta|^2 / p", float(matrix(training.trained.output).square().mean()))
        error = _at_most(theorem, "|beta~ - beta|^2 / p", setting.output_error, output.rms**2, yardstick, "≲")
        return [*rows, error]
    verdict = Verdict.HOLDS if output.largest <= 1e-6 else Verdict.FAILS
    note = f"{int(purified.layers[1].doubtful.sum())} filters feed it doubtful features"
    return [*rows, Row(theorem, "max_j |beta~_j - beta_j|", "<=", 0.0, output.largest, verdict, note)]
