"""What a training run keeps in its folder: by which digest it is found, and whether it is still what was kept."""

import hashlib
import json
import re
from dataclasses import asdict
from pathlib import Path

from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.contaminate.recipe import Recipe
from netpurify.errors import CheckpointError


def digest_of_run(model: nn.Module, inputs: Tensor, labels: Tensor, recipe: Recipe, seed: int) -> str:
    """SHA-256 of what goes in, by which a run finds its files."""
    state = {f"model.{name}": value for name, value in model.state_dict().items()}
    data = checkpoint.digest(state | {"inputs": inputs, "labels": labels})
    return hashlib.sha256(json.dumps([data, asdict(recipe), seed]).encode()).hexdigest()


def digest_of_network(model: nn.Module) -> str:
    """SHA-256 of the modules and their settings as they print; addresses in memory are left out."""
    return hashlib.sha256(re.sub(r"0x[0-9a-fA-F]+", "", repr(model)).encode()).hexdigest()


def read(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The weights and the notes of a file; files from before there were such notes are taken as they are.

    Raises:
        CheckpointError: It cannot be read, or was changed since.
    """
    while True:
        notes = checkpoint.load_metadata(file)
        state = checkpoint.load_weights(file)
        if checkpoint.load_metadata(file) == notes:  # else another run of the same has replaced it in between
            break
    if notes.get("content", "") not in ("", checkpoint.digest(state)):
        raise CheckpointError("the weights are not those that were kept")
    return state, notes
