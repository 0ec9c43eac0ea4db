"""The options of a command are the fields of its policy: neither can gain one that the other does not have."""

from dataclasses import fields
from inspect import signature

import pytest

from netpurify.cli import defend, project, recover, unlearn
from netpurify.cli.purifying import Source, Target
from netpurify.network import Defend, Project, Recover, Unlearn

COMMANDS = {
    Recover: recover.recover, Project: project.project, Defend: defend.defend, Unlearn: unlearn.unlearn
}  # fmt: skip
OTHER_NAMES = {"no_guard": "guard", "initial_seed": "initial"}
"""Options that say a field in their own way."""
SHOWN = {"show"}
"""Options that change what is printed, not what is done."""
SET = {"keep"}
"""Fields that a command sets by itself: what it resumes from goes only after its outputs are written."""
INPUTS = {"mean", "std"}
"""Options of all inputs; a policy that goes back to pixels has them as fields too."""


@pytest.mark.parametrize("policy", COMMANDS)
def test_options_are_the_fields_of_the_policy(policy):
    shared = {field.name for group in (Source, Target) for field in fields(group)} | {"page", "record", "sarif"}
    own = {OTHER_NAMES.get(name, name) for name in signature(COMMANDS[policy]).parameters if name not in shared}
    assert own - SHOWN == {field.name for field in fields(policy)} - INPUTS - SET
    assert signature(COMMANDS[policy]).parameters.keys() >= {field.name for field in fields(policy)} & INPUTS
