"""Families of universal triggers, one file each; ``FAMILIES`` is the table of all of them."""

from netpurify.network.hunting.families import (  # isort: skip  # they are searched in this order
    wave,
    field,
    flow,
    blend,
    scene,
    spot,
    spots,
    frame,
    ghost,
    tone,
    levels,
    blur,
    blocks,
    faint,
)
from netpurify.network.hunting.families.family import FAMILIES, TriggerFamily, register_family

__all__ = [
    "FAMILIES",
    "TriggerFamily",
    "blend",
    "blocks",
    "blur",
    "faint",
    "field",
    "flow",
    "frame",
    "ghost",
    "levels",
    "register_family",
    "scene",
    "spot",
    "spots",
    "tone",
    "wave",
]
