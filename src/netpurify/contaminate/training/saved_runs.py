"""Training runs in a folder: each is found by the digest of what went in, and is saved whole or not at all."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.contaminate.training.recipe import Recipe
from netpurify.errors import CheckpointError, InputError


@dataclass(slots=True)
class RunState:
    """What a training run has besides the weights of its model, between two epochs.

    Attributes:
        losses: Mean training loss of each epoch that is done.
        seconds: Time that those epochs took.
        momenta: The optimiser's momentum of each parameter, by name.
    """

    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0
    momenta: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of one training run: ``.partial`` between epochs, and the trained network at the end.

    Attributes:
        folder: Holds the runs, and is made if need be; ``None`` saves nothing.
        digest: Of what went into the run; see ``digest_of_run``.
        recipe: How the network is trained.
    """

    folder: Path | None
    digest: str
    recipe: Recipe

    def save(self, model: nn.Module, run: RunState) -> None:
        """Write the run after an epoch.

        Raises:
            CheckpointError: Nothing can be written there.
        """
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise CheckpointError(
                f"{self.folder}: trained networks must be kept in a folder; {problem.strerror}; choose another place"
            ) from problem
        done = len(run.losses) == self.recipe.epochs
        state = _prefixed("model.", model.state_dict())
        if not done:
            state |= _prefixed("momentum.", run.momenta)
        notes = {
            "losses": json.dumps(run.losses),
            "seconds": str(run.seconds),
            "recipe": json.dumps(asdict(self.recipe)),
            "network": _digest_of_network(model),
            "content": checkpoint.digest(state),
        }
        checkpoint.save_weights(state, self._file(self.folder, done=done), metadata=notes)
        if done:
            self._file(self.folder, done=False).unlink(missing_ok=True)

    def restore(self, model: nn.Module) -> RunState:
        """Load the saved weights into ``model`` and return the rest; without saved files the run is at its start.

        Raises:
            InputError: The folder has another network that began with the same weights.
            CheckpointError: A file cannot be read, or was changed since it was saved.
        """
        files = [] if self.folder is None else [self._file(self.folder, done=done) for done in (True, False)]
        file = next((file for file in files if file.exists()), None)
        if file is None:
            return RunState()
        try:
            return self._load(file, model)
        except (CheckpointError, RuntimeError, KeyError) as error:
            if not file.exists():  # another process with the same run has just finished, and removed the partial file
                return self.restore(model)
            raise CheckpointError(
                f"{file} must be what training left there; {error}; delete it to begin anew"
            ) from error

    def _load(self, file: Path, model: nn.Module) -> RunState:
        state, notes = _read(file)
        # Files of earlier versions have no such notes, and are taken as they are.
        if notes.get("network", "") not in ("", _digest_of_network(model)):
            raise InputError(
                f"{self.folder} has another network that began with the same weights, data and recipe; choose another "
                "folder for this one"
            )
        model.load_state_dict(_unprefixed("model.", state))
        momenta = {name: value.clone() for name, value in _unprefixed("momentum.", state).items()}
        return RunState(json.loads(notes["losses"]), float(notes["seconds"]), momenta)

    def _file(self, folder: Path, *, done: bool) -> Path:
        return folder / f"{self.digest[:16]}{'' if done else '.partial'}.safetensors"


def digest_of_run(model: nn.Module, inputs: Tensor, labels: Tensor, *, recipe: Recipe, seed: int) -> str:
    """SHA-256 of what goes into a run: initial weights, data, recipe and seed."""
    data = checkpoint.digest(_prefixed("model.", model.state_dict()) | {"inputs": inputs, "labels": labels})
    return hashlib.sha256(json.dumps([data, asdict(recipe), seed]).encode()).hexdigest()


def _digest_of_network(model: nn.Module) -> str:
    """SHA-256 of the modules and their settings as they print, without addresses in memory."""
    return hashlib.sha256(re.sub(r"0x[0-9a-fA-F]+", "", repr(model)).encode()).hexdigest()


def _read(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    while True:
        notes = checkpoint.load_metadata(file)
        state = checkpoint.load_weights(file)
        if checkpoint.load_metadata(file) == notes:  # else another process with the same run replaced the file just now
            break
    if notes.get("content", "") not in ("", checkpoint.digest(state)):
        raise CheckpointError("the weights are not those that were saved")
    return state, notes


def _prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + name: value for name, value in tensors.items()}


def _unprefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
