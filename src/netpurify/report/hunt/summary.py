"""A hunt in a few sentences: what is suspect, what healthy networks show, and what no hunt can see."""

from collections.abc import Sequence

from netpurify.network import FamilyHunt, Hunt
from netpurify.report.hunt.words import (
    found_words,
    images_word,
    joined,
    leads,
    percent,
    points,
    suspect_families,
    thresholds,
)
from netpurify.report.kit.numbers import count, plural
from netpurify.report.kit.summary import Statement, Summary

BASIS = (
    "What this rests on: that the inputs are clean and like those in use, and that healthy networks of this kind show "
    "what was measured."
)
NOTHING = "that does not mean that nothing is there"
_OUTSIDE = (
    "Triggers outside these families are not found: where the trigger depends on the input (input-aware), where every "
    "class goes to another one (all-to-all), or where only some classes are attacked, expect nothing. netpurify defend "
    "works without families."
)
_NO_PROOF = (
    "A suspect class is no proof of a backdoor: look at the trigger, and try it on inputs of yours. netpurify unlearn "
    "trains away what is suspect."
)
_CLOSE = 0.85
"""A margin or a success above this share of what is suspect is close to it."""


def summarise_hunt(result: Hunt) -> Summary:
    """A hunt in words; the exit code is 1 if something is suspect."""
    suspects = bool(result.suspects)
    return Summary(
        policy="",
        headline=headline(result),
        outlook="fails" if suspects else "limits",
        statements=(
            *suspect_statements(result),
            *hunt_statements(result),
            *([Statement(_NO_PROOF, "no proof")] if suspects else []),
            Statement(_OUTSIDE, "not known"),
        ),
        advice=(),
        basis=BASIS,
        exit_code=1 if suspects else 0,
    )


def headline(result: Hunt) -> str:
    """The verdict of a hunt in one sentence, without a full stop."""
    if not result.suspects:
        return f"Nothing found in {families_word(result)}; {NOTHING}"
    strongest = result.suspects[0]
    goals = result.goals
    where = "there" if len(goals) == 1 else f"to class {strongest.target}"
    who = f"Class {goals[0]} is suspect" if len(goals) == 1 else f"Classes {joined(map(str, goals))} are suspect"
    level = next(one.expected for one in result.families if one.family == strongest.family)
    healthy = "what healthy networks show was never measured"
    if level.hunts:
        healthy = f"healthy networks show at most {percent(level.highest)}"
    images = images_word(result)
    return f"{who}: {leads(strongest)} {percent(strongest.success)} of {images} of other classes {where}; {healthy}"


def suspect_statements(result: Hunt) -> list[Statement]:
    """Every suspect family, in one sentence; none if nothing is suspect."""
    found = suspect_families(result)
    return [Statement(f"Suspect: {'; '.join(map(found_words, found))}.", "suspect")] if found else []


def hunt_statements(result: Hunt) -> list[Statement]:
    """What was searched, what is expected of a healthy network, what is close, and what was never calibrated."""
    names = ", ".join(one.family for one in result.families)
    where = f"with {plural(result.inputs, 'clean input')}, in a network of {count(result.classes)} classes"
    statements = [Statement(f"Searched: {families_word(result)} of triggers, {where}: {names}.", "searched")]
    known = [one for one in result.families if one.expected.hunts]
    statements += [Statement(_healthy(result, known), "healthy")] if known else []
    calm = [one for one in result.families if not one.suspect]
    statements += [Statement(_near(calm, len(result.families)), "close")] if calm else []
    unknown = [one for one in result.families if not one.expected.hunts]
    if unknown:
        statements.append(
            Statement(
                f"Never calibrated, so that nobody knows what healthy networks show: "
                f"{', '.join(one.family for one in unknown)}. There they are {thresholds(unknown[0])}. "
                f"{_strongest_unknown(unknown)}",
                "not calibrated",
            )
        )
    return statements


def _strongest_unknown(unknown: list[FamilyHunt]) -> str:
    """The highest success where nothing is calibrated, and what to do about it."""
    one = max(unknown, key=lambda one: one.best.success)
    return (
        f"The strongest, {one.family}, leads to class {one.best.target} with {percent(one.best.success)}. Hunt in some "
        "healthy networks of this kind, and calibrate with them, before you rely on this."
    )


def families_word(result: Hunt) -> str:
    """How many families were searched."""
    number = len(result.families)
    return "1 family" if number == 1 else f"{number} families"


def _healthy(result: Hunt, known: Sequence[FamilyHunt]) -> str:
    """What a healthy network is expected to show in the families that were searched."""
    highest = max(known, key=lambda one: one.expected.highest)
    widest = max(known, key=lambda one: one.expected.widest)
    expected = result.expected
    return (
        f"Expected of a healthy network: the best trigger succeeds on at most {percent(highest.expected.highest)} "
        f"({highest.family}), and its class stands out by at most {points(widest.expected.widest)} ({widest.family}). "
        f"Measured with {plural(expected.networks, 'healthy network')}: {expected.about}. A family is "
        "suspect from halfway between the widest margin, or the highest success, of healthy networks and 100 on."
    )


def _near(calm: Sequence[FamilyHunt], searched: int) -> str:
    """Which families that are not suspect are close to their threshold."""
    near = [one for one in calm if one.alarm >= _CLOSE]
    if not near:
        return f"No {'other family' if len(calm) < searched else 'family'} is close to its threshold."
    words = [f"{one.family} (class {one.best.target}, {percent(one.alarm)} of the way)" for one in near]
    return f"Close to the threshold, and not suspect: {', '.join(words)}."
