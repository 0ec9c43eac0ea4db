"""A repair by training in a few sentences: what was suspect, what it costs, and how little a second hunt shows."""

from netpurify.network import Unlearning
from netpurify.report.hunt.summary import BASIS, NOTHING, families_word, hunt_statements, suspect_statements
from netpurify.report.hunt.words import found_words, joined, percent, suspect_families
from netpurify.report.kit.names import policy_name
from netpurify.report.kit.numbers import count, number, plural, share
from netpurify.report.kit.summary import Statement, Summary, describe_agreement

WEAK = (
    "A hunt after the repair is weak evidence: in an experiment one repaired network scored below 0.1 in its own hunt "
    "while the real patch still worked on 47 % of images."
)
_OUTSIDE = (
    "A backdoor whose trigger is outside the families is neither found nor trained away. netpurify defend needs no "
    "families."
)
_TRY = (
    "Nothing was suspect, so nothing was changed: every weight has the bits that it had. If you have reasons to "
    "distrust the network all the same, try netpurify defend, which needs no families."
)
_ANOTHER = (
    "No class that was suspect before is among them: the training may have made this weakness itself, or it was hidden "
    "behind what was trained away. Look at the trigger, and hunt again with another seed."
)
_BASIS_OF_BOUND = " The bound is for inputs drawn like those held out, which the training never saw."


def summarise_unlearning(result: Unlearning) -> Summary:
    """A repair in words; the exit code is 1 if the hunt after it still finds something suspect."""
    return Summary(
        policy=policy_name(result),
        headline=_headline(result),
        outlook="limits",
        statements=tuple(_statements(result)),
        advice=(),
        basis=BASIS + (_BASIS_OF_BOUND if result.changed else ""),
        exit_code=1 if result.still_found else 0,
    )


def lost(result: Unlearning) -> str:
    """The bound in points, as accuracy is counted."""
    return f"{number(100.0 * result.bound)} points"


def _headline(result: Unlearning) -> str:
    before = result.before
    if not result.changed or result.after is None:
        return f"Nothing was changed: nothing found in {families_word(before)}; {NOTHING}"
    names = joined(one.family for one in suspect_families(before))
    goals = joined(map(str, before.goals))
    suspect = f"{f'class {goals} was' if len(before.goals) == 1 else f'classes {goals} were'} suspect ({names})"
    cost = f"at most {lost(result)} of accuracy can be lost on inputs like these (95 % bound)"
    return f"Trained, not proven: {suspect}; {cost}; {_second(result)}"


def _second(result: Unlearning) -> str:
    """What the hunt after the repair says, in a clause."""
    assert result.after is not None
    if not result.still_found:
        return f"nothing found by a second hunt; {NOTHING}"
    strongest = result.after.suspects[0]
    found = f"class {strongest.target} ({strongest.family}, {percent(strongest.success)})"
    if _the_same(result):
        return f"still found by a second hunt: {found}"
    return f"a second hunt finds another class: {found}"


def _the_same(result: Unlearning) -> bool:
    """Whether a class that the hunt after the repair finds was suspect before."""
    assert result.after is not None
    return not set(result.before.goals).isdisjoint(result.after.goals)


def _statements(result: Unlearning) -> list[Statement]:
    if not result.changed:
        return [*hunt_statements(result.before), Statement(_TRY, "advice")]
    steps = plural(result.steps, "step")
    trained = (
        f"Unlike defend and recover, this trained the weights: {steps} of gradient descent without labels, in which "
        "the network keeps its own scores on clean inputs and stops following triggers. Its architecture is as it was."
    )
    return [
        *suspect_statements(result.before),
        Statement(trained, "trained"),
        Statement(_cost(result), "cost"),
        Statement(_again(result), "second hunt"),
        Statement(WEAK, "weak evidence"),
        *hunt_statements(result.before),
        Statement(_OUTSIDE, "not known"),
        Statement(describe_agreement(result.agreement), "outputs"),
    ]


def _cost(result: Unlearning) -> str:
    chosen = result.chosen
    change = "changes its" if chosen.differing == 1 else "change their"
    return (
        f"Of {plural(chosen.inputs, 'held-out clean input')}, {count(chosen.differing)} {change} class "
        f"({share(chosen.share)}); at most {lost(result)} of accuracy can be lost on inputs like these (exact 95 % "
        "bound)."
    )


def _again(result: Unlearning) -> str:
    """What the hunt after the repair found."""
    after = result.after
    assert after is not None
    how = (
        "The hunt after the repair, with another seed and other draws, judged on the "
        f"{plural(result.chosen.inputs, 'held-out input')}"
    )
    if not result.still_found:
        return f"{how}: nothing found in {families_word(after)}; {NOTHING}."
    found = "; ".join(map(found_words, suspect_families(after)))
    return f"{how}: still found. {found}." if _the_same(result) else f"{how}: {found}. {_ANOTHER}"
