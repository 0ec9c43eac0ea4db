"""A run of *unlearn* in a file, so that it can be taken up again after an interruption, with the same bits."""

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from netpurify.atomic import write_atomically
from netpurify.checkpoint import open_regular
from netpurify.errors import CheckpointError
from netpurify.network.hunting.families import TriggerFamily
from netpurify.network.hunting.search import FoundTrigger
from netpurify.network.policies.unlearning.training import STEPS, Opponent, UnlearningRun

_HEAD = b"netpurify unlearn, a run\n"
"""How the file begins; the SHA-256 digest of the rest follows on a line of its own."""
_DIGEST = 64


def refuse_other_files(path: Path | None) -> None:
    """Refuse a file that no run has left there, before anything is done.

    Raises:
        CheckpointError: There is one.
    """
    if path is None or not os.path.lexists(path):
        return
    try:
        with open_regular(path) as stream:
            known = stream.read(len(_HEAD)) == _HEAD
    except OSError as error:
        raise CheckpointError(f"{path} must be a file that can be read; {error.strerror}; choose another") from error
    if not known:
        raise CheckpointError(
            f"{path} must be what an interrupted run left there; it is something else, and is left alone; choose "
            "another file"
        )


def _require_readable(payload: bytes) -> None:
    """Refuse to save what could not be read again without running code.

    Raises:
        CheckpointError: A trigger of a family of the user's own has other fields than numbers and tensors.
    """
    try:
        torch.load(io.BytesIO(payload), weights_only=True)
    except Exception as error:
        raise CheckpointError(
            "the triggers of a run that is saved must have fields of numbers, texts, tuples and tensors alone; "
            f"one has others ({str(error).splitlines()[0]:.200}); leave out resume, or change the family"
        ) from error


@dataclass(frozen=True, slots=True)
class RunFile:
    """The file of one run.

    Attributes:
        path: Where it is; ``None`` keeps nothing.
        digest: Of everything that decides the run: network, inputs, settings, versions.
        families: The families of its triggers, by name.
    """

    path: Path | None
    digest: str
    families: Mapping[str, type[TriggerFamily]]

    def save(self, run: UnlearningRun) -> None:
        """Write the state between two steps.

        Raises:
            CheckpointError: Nothing can be written there.
        """
        if self.path is None:
            return
        content = io.BytesIO()
        torch.save(
            {
                "digest": self.digest,
                "step": run.step,
                "student": run.student.state_dict(),
                "optimiser": run.optimiser.state_dict(),
                "mean": run.mean,
                "generator": run.generator.get_state(),
                "order": run.order,
                "pool": [_as_plain(one) for one in run.pool],
            },
            content,
        )
        payload = content.getvalue()
        _require_readable(payload)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with write_atomically(self.path) as stream:
                stream.write(_HEAD + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
        except OSError as error:
            raise CheckpointError(
                f"{self.path}: the state of the run must be written there; {error.strerror}; choose another file"
            ) from error

    def restore(self, run: UnlearningRun) -> None:
        """Bring a run that has not begun to where the file left it; without a file it stays at its beginning.

        Raises:
            CheckpointError: The file is damaged, or is that of another run.
        """
        if self.path is None or not os.path.lexists(self.path):
            return
        try:
            content = self.path.read_bytes()[len(_HEAD) :]
            digest, payload = content[:_DIGEST].decode(), content[_DIGEST + 1 :]
            if digest != hashlib.sha256(payload).hexdigest():
                raise ValueError("the content does not have its digest")  # noqa: TRY301
            state = torch.load(io.BytesIO(payload), weights_only=True)
            if state["digest"] == self.digest:
                self._fill(run, state)
                return
        except Exception as error:  # a damaged file can raise nearly anything
            raise CheckpointError(
                f"{self.path} must be what an interrupted run left there; {type(error).__name__}: {error}; delete it "
                "to begin anew"
            ) from error
        raise CheckpointError(
            f"{self.path} is of another run: the network, the inputs, the settings or the versions of "
            "libraries differ; delete it to begin anew, or choose another file"
        )

    def _fill(self, run: UnlearningRun, state: Mapping[str, Any]) -> None:
        step = int(state["step"])
        if not 0 <= step <= STEPS:
            raise ValueError(f"a run has {STEPS} steps; this one has {step}")
        run.student.load_state_dict(state["student"])
        run.optimiser.load_state_dict(state["optimiser"])
        run.mean = list(state["mean"])
        run.generator.set_state(state["generator"])
        run.order, run.step = state["order"], step
        run.pool = [self._from_plain(one) for one in state["pool"]]

    def remove(self) -> None:
        """Remove the file, once the run is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _from_plain(self, content: Mapping[str, Any]) -> Opponent:
        family = self.families[content["family"]]
        found = FoundTrigger(content["family"], content["target"], content["success"], family(**content["found"]))
        return Opponent(found, family(**content["moved"]))


def _as_plain(opponent: Opponent) -> dict[str, Any]:
    """A trigger as numbers and tensors, which can be read without running anything."""
    found = opponent.found
    known = {"family": found.family, "target": found.target, "success": found.success}
    return known | {"found": _numbers(found.trigger), "moved": _numbers(opponent.moved)}


def _numbers(trigger: Any) -> dict[str, Any]:
    return {one.name: getattr(trigger, one.name) for one in fields(trigger)}
