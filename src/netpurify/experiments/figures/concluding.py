"""What a reader of all figures should believe, in words; a sentence stands only if the verdicts bear it."""

from collections.abc import Callable, Mapping, Sequence

from netpurify.experiments.figures.claims import attack_additions, rules
from netpurify.findings import Finding, Rule, Verdict

Findings = Mapping[int, Sequence[Finding]]
"""The findings of figures, by number."""
HOLDS, LIMITS, FAILS = Verdict.HOLDS, Verdict.LIMITS, Verdict.FAILS


def conclusion(found: Findings) -> str:
    """The sentences that the verdicts bear; none for figures that were not measured."""
    return " ".join(text for text, borne in _SENTENCES if borne(found))


def _measured(rule: Rule, numbers: Sequence[int], *allowed: Verdict) -> Callable[[Findings], bool]:
    """Whether a claim has one of the verdicts by the paper's measure, in each of some figures."""
    return lambda found: all(_verdict(found, rule, number)[0] in allowed for number in numbers)


def _beside(rule: Rule, numbers: Sequence[int], *allowed: Verdict) -> Callable[[Findings], bool]:
    """Whether a claim has one of the verdicts against doing nothing, in each of some figures."""
    return lambda found: all(_verdict(found, rule, number)[1] in allowed for number in numbers)


def _both(*conditions: Callable[[Findings], bool]) -> Callable[[Findings], bool]:
    return lambda found: all(condition(found) for condition in conditions)


def _verdict(found: Findings, rule: Rule, number: int) -> tuple[Verdict | None, Verdict | None]:
    own = [finding for finding in found.get(number, ()) if finding.rule == rule]
    return (own[0].by_measure, own[0].against_nothing) if own else (None, None)


def _stated(number: int, *allowed: Verdict) -> Callable[[Findings], bool]:
    """Whether every statement of a figure of ours has one of the verdicts, and there is one."""
    return lambda found: bool(found.get(number)) and all(it.by_measure in allowed for it in found[number])


_SENTENCES: tuple[tuple[str, Callable[[Findings], bool]], ...] = (
    (
        "The core of the paper stands: where few weights of a unit are altered, and the clean inputs span what "
        "training saw, Algorithm 2 returns the trained weights exactly, in the sequential regime those of the output "
        "layer too (Figures 2 and 3).",
        _both(_measured(rules.THEOREM_2, [2], HOLDS, LIMITS), _measured(rules.THEOREM_3, [3], HOLDS, LIMITS)),
    ),
    (
        "How many alterations are few depends on the design at hand and on their signs. It can be predicted by "
        "simulation on that design (Figure 14).",
        _stated(14, HOLDS),
    ),
    (
        "With few clean images most of the contamination of W is gone; but neither layer comes, with every number of "
        "images, to half of the error that the initial weights have (Figures 6 and 7).",
        _both(_measured(rules.FEW_IMAGES, [6, 7], HOLDS, LIMITS), _beside(rules.FEW_IMAGES, [6, 7], FAILS)),
    ),
    (
        "A backdoor whose trigger lies in pixels that are blank in every clean image is taken out with nine clean "
        "images (Figure 8); there plain least squares does so too.",
        _both(_measured(rules.ATTACK_GONE, [8], HOLDS), _measured(attack_additions.LEAST_SQUARES, [8], FAILS)),
    ),
    (
        "Where clean images use the trigger's pixels L1 takes off more than least squares does (Figure 9, and the "
        "trigger in the middle of Figure 8).",
        _both(
            _measured(attack_additions.LEAST_SQUARES, [9], HOLDS, LIMITS),
            _measured(attack_additions.MIDDLE, [8], HOLDS, LIMITS),
        ),
    ),
    (
        "On CIFAR-10 the attack is weakened by the 20 points that the paper reports, and not removed: triggered images "
        "are classified rightly more often than by the poisoned network, and little more often than by an untrained "
        "one (Figure 9).",
        _both(_measured(rules.ATTACK_WEAKENED, [9], HOLDS), _beside(rules.ATTACK_WEAKENED, [9], FAILS)),
    ),
    (
        "This hangs on centring, about which the paper says nothing: with raw pixels nothing is taken off.",
        lambda found: any(
            finding.ours and finding.by_measure is FAILS and "with raw pixels" in finding.measured
            for finding in found.get(9, ())
        ),
    ),
    (
        "All of this needs clean images: with all 99 training images as they were trained on, poisoned ones included, "
        "nothing is removed (Figures 8 and 9).",
        _measured(attack_additions.AS_TRAINED, [8, 9], HOLDS),
    ),
    (
        "On MNIST accuracy does not fall with more hidden layers, contrary to what the paper says (Figures 10 and 11).",
        _measured(rules.DEPTH, [10, 11], FAILS),
    ),
)
