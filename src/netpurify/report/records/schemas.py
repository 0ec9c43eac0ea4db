"""The JSON Schemas of all records."""

import json
from importlib import resources
from typing import Any, Literal

SCHEMA = 1
"""Raised when a field goes or changes its meaning; new fields alone do not raise it."""
SchemaName = Literal[
    "purification", "defence", "plan", "contamination", "difference", "examination", "sweep", "scan", "hunt",
    "unlearning",
]  # fmt: skip


def head(name: SchemaName) -> dict[str, Any]:
    """The fields with which a record says which schema it fits."""
    return {"schema_name": name, "schema": SCHEMA}


def schema(name: SchemaName = "purification") -> dict[str, Any]:
    """The JSON Schema that every record with this ``schema_name`` fits, whole in itself."""
    found = _read(f"{name}.schema.json")
    return found | {"$defs": _read("definitions.json") | found.get("$defs", {})}


def _read(file: str) -> dict[str, Any]:
    return json.loads(resources.files("netpurify.report").joinpath("schemas", file).read_text("utf-8"))
