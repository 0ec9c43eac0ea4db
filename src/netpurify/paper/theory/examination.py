"""One run of the paper's system beside everything its theory says about it, as one table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from netpurify import lad
from netpurify.contaminate import Law, Normal, contaminate
from netpurify.findings import Verdict
from netpurify.paper.model import PatchCNN, matrix
from netpurify.paper.purification import FittedLayer, Purified, compare, purify
from netpurify.paper.theory.assumptions import assumption_rows, without_promise
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.comparisons import at_most, small
from netpurify.paper.theory.constants import Interval
from netpurify.paper.theory.lemmas import fit_output, kernel_lemma_rows, output_rows, recovery_ratio, simple_ratio_row
from netpurify.paper.theory.limits import Signs, designs_of, limits_of, signs_of
from netpurify.paper.theory.motion import kernel_rows, motion_rows
from netpurify.paper.theory.row import Row
from netpurify.paper.theory.watch import Watch
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
    watch = Watch(model, inputs, targets)
    training = train(model, inputs, targets, gamma=gamma, regime=regime, steps=system.steps, observe=watch)
    say("contaminate and purify")
    law = system.law or Normal(1.0, 1.0)
    signs = [signs_of(law, matrix(layer)) for layer in training.trained.layers]
    dirty = contaminate(training.trained.state_dict(), law, share=share, generator=generator)
    contaminated = network_of(training.trained, [matrix(layer) for layer in training.trained.layers])
    contaminated.load_state_dict(dirty.state)
    purified = purify(contaminated, training.initial, inputs)
    setting = Setting(n=inputs.shape[0], m=m, k=model.k, p=p, gamma=gamma, share=share)
    assumed = assumption_rows(inputs, targets)
    rows = [*_conditions(setting, regime), *motion_rows(setting, model, training, watch, regime)]
    rows += [*kernel_rows(setting, watch, training), *kernel_lemma_rows(setting, model, inputs)]
    rows += _recovery(setting, regime, training, purified)
    if regime == "joint":
        say("Lemma 9")
        output = [matrix(network.output)[:, 0] for network in (training.trained, contaminated, training.initial)]
        fit = fit_output(setting, watch, output[0] - output[2], output[1] - output[2])
        rows += output_rows(setting, fit, signs[1].c, generator)
    exact = [error.exact for error in compare(purified.model, training.trained).values()]
    layers = list(zip(("A_W", "A_beta"), purified.layers, designs_of(purified, inputs), exact, signs, strict=True))
    rows += [simple_ratio_row(setting), *_designs(setting, regime, layers, generator, say)]
    return Examination(setting, regime, (*assumed, *without_promise(rows, assumed)), inputs, training, purified)


def _conditions(setting: Setting, regime: Regime) -> list[Row]:
    theorem = "Theorem 2" if regime == "joint" else "Theorem 3"
    named = {
        (theorem if part == "Theorems 2, 3" else part, name): v for (part, name), v in setting.conditions().items()
    }
    return [small(part, name, value) for (part, name), value in named.items()]


def _recovery(setting: Setting, regime: Regime, training: Training, purified: Purified) -> list[Row]:
    """Theorems 2 and 3 beside the errors of the purified network."""
    hidden, output = compare(purified.model, training.trained).values()
    theorem = "Theorem 2" if regime == "joint" else "Theorem 3"
    exact = Verdict.HOLDS if hidden.exact == 1.0 else Verdict.FAILS
    rows = [Row(theorem, "share of units with W~_j = W_j to 1e-6", ">=", 1.0, hidden.exact, exact)]
    if regime == "joint":
        yardstick = ("|beta|^2 / p", float(matrix(training.trained.output).square().mean()))
        error = at_most(theorem, "|beta~ - beta|^2 / p", setting.output_error, output.rms**2, yardstick, "≲")
        which = "fitted with the features of W~, where the proof has those of W(0)"
        return [*rows, replace(error, note="; ".join(filter(None, (error.note, which))))]
    verdict = Verdict.HOLDS if output.largest <= 1e-6 else Verdict.FAILS
    note = f"{int(purified.layers[1].doubtful.sum())} filters feed it doubtful features"
    return [*rows, Row(theorem, "max_j |beta~_j - beta_j|", "<=", 0.0, output.largest, verdict, note)]


def _designs(
    setting: Setting,
    regime: Regime,
    layers: Sequence[tuple[str, FittedLayer, lad.Design, float, Signs]],
    generator: torch.Generator,
    say: Callable[[str], None],
) -> list[Row]:
    """Lemma 1, Lemma 2 and the limits of recovery, for A_W and A_beta.

    Each of ``layers`` has its name, fit, design, the share of its units that came back, and the signs of alterations.
    """
    rows = []
    for name, fit, design, exact, signs in layers:
        say(f"constants of {name}")
        found = limits_of(name, fit, design, exact, setting, generator, signs)
        rows += _ratios(name, found, design.matrix.shape, setting.share)
        # In the joint regime the features do not span what training changed in beta: there is nothing to predict.
        rows += found if name == "A_W" or regime != "joint" else found[:-2]
    return rows


def _ratios(name: str, found: list[Row], shape: tuple[int, int], share: float) -> list[Row]:
    """Lemma 2's ratio for the law's c and for all c, from the rows that have the design's constants already."""
    by_name = {row.quantity: row.measured for row in found}
    fixed, sigma2, low, high = (by_name[f"{what} of {name}{end}"] for what, end in
                                (("sigma^2", ", the law's c"), ("sigma^2", ", all c"), ("lambda_low", ""),
                                 ("lambda_high", "")))  # fmt: skip
    assert isinstance(fixed, float)
    assert isinstance(sigma2, Interval)
    assert isinstance(low, Interval)
    assert isinstance(high, float)
    cases = {"the law's c": Interval(fixed, fixed), "all c": sigma2}
    return [
        small("Lemma 2", f"ratio of {name}, {which}", recovery_ratio(taken, low, high, shape=shape, share=share))
        for which, taken in cases.items()
    ]
