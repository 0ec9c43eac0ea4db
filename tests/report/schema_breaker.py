"""A schema is worth something only if it refuses: a record with one value wrong, or with one field missing."""

import copy
from collections.abc import Iterable
from typing import Any

import jsonschema


def assert_refuses(schema: dict[str, Any], record: dict[str, Any], wrong: Iterable[tuple[tuple, Any]]) -> None:
    """The schema takes the record, but not with any of these values at these paths, nor without any of its fields."""
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(record)
    for path, value in wrong:
        broken = copy.deepcopy(record)
        part = broken
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value
        assert not validator.is_valid(broken), path
    for name in record:
        assert not validator.is_valid({key: value for key, value in record.items() if key != name}), name
