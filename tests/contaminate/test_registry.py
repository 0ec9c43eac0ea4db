"""Tables of laws and triggers: a class is made by its name from text, and nothing is listed twice."""

import re
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from netpurify.contaminate import LAWS, TRIGGERS, Blended, Normal
from netpurify.contaminate.registry import Registry
from netpurify.errors import InputError


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gauss", {}, "must be one of normal, uniform"),
        ("normal", {"deviation": "1"}, "has the options mean, sd; got deviation"),
        ("uniform", {"low": "0"}, "high is missing"),
        ("normal", {"sd": "wide"}, "sd of the law normal must be a number; got 'wide'"),
        ("quantise", {"bits": "4.5"}, "must be a whole number"),
        ("zero", {"value": "1"}, "has no options"),
        ("normal", {"sd": "-1"}, "sd must be at least 0"),
    ],
)
def test_laws_that_are_refused_by_name(name, options, message):
    with pytest.raises(InputError, match=message):
        LAWS.make(name, options)


def test_law_by_name_has_its_options():
    assert LAWS.make("normal", {"sd": "0.5"}) == Normal(sd=0.5)
    assert LAWS.make("bit-flip", {"bit": "30"}).bit == 30


def test_the_documentation_lists_every_law_and_its_options():
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([a-z, ]*?) ?\| .* \|$", text, re.MULTILINE))
    assert rows == {name: ", ".join(field.name for field in fields(kind)) for name, kind in LAWS.classes.items()}


def test_trigger_by_name_has_its_options():
    assert TRIGGERS.make("blended", {"alpha": "0.1", "seed": "3"}) == Blended(0.1, seed=3)
    with pytest.raises(InputError, match=r"seed of the trigger blended must be a whole number; got '0.5'"):
        TRIGGERS.make("blended", {"seed": "0.5"})


def test_a_class_adds_itself_and_no_name_is_given_twice():
    tables = Registry("table")

    @tables.register("round")
    @dataclass(frozen=True)
    class Round:
        legs: int
        radius: float = 0.5

    assert tables.make("round", {"legs": "4"}) == Round(4)
    with pytest.raises(ValueError, match="the table 'round' is registered twice"):
        tables.register("round")(Round)
    assert list(tables.classes) == ["round"]
