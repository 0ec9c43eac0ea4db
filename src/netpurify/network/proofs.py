"""A proof as a file: what anyone needs, besides the weights, to check a purification again."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from netpurify import checkpoint
from netpurify.errors import InputError
from netpurify.network.purification import Purification
from netpurify.network.records import Proof

VERSION = 1
_PARTS = ("units", "columns", "coefficients", "dual")


@dataclass(frozen=True, slots=True)
class ProofFile:
    """What a proof file holds.

    Attributes:
        proofs: One for each block of units.
        decays: Factor of the initial weights, by layer.
        policy: ``"recover"`` or ``"project"``.
        noise_floor: The one that was asked for in ``purify``, if any was.
        digests: Of the contaminated, the initial and the purified weights, and the data; the initial one may be
            ``None``.
    """

    proofs: tuple[Proof, ...]
    decays: dict[str, float]
    policy: str
    noise_floor: float | None
    digests: dict[str, str | None]


def save_proof(result: Purification, path: str | Path) -> None:
    """Write the proof of a purification as safetensors.

    Raises:
        InputError: The network was purified with ``proof=False``.
    """
    if not result.provenance["settings"]["proof"]:
        raise InputError("a proof needs the coefficients and duals; purify with proof=True")
    tensors: dict[str, torch.Tensor] = {}
    blocks: list[dict[str, Any]] = []
    for layer in result.layers:
        for proof in layer.proofs:
            number = len(blocks)
            # Blocks of one group share their columns.
            shared = next((block["columns"] for block in blocks if (block["layer"], block["group"]) ==
                           (proof.layer, proof.group)), number)  # fmt: skip
            blocks.append({"layer": proof.layer, "group": proof.group, "groups": proof.groups, "columns": shared})
            for part in _PARTS:
                if part != "columns" or shared == number:
                    tensors[f"{number}.{part}"] = torch.from_numpy(np.ascontiguousarray(getattr(proof, part)))
    digests = {
        "contaminated": result.provenance["model"],
        "initial": result.provenance["initial"],
        "purified": result.provenance["purified"],
        "data": result.provenance["data"],
    }
    content = {
        "version": VERSION,
        "policy": result.policy,
        "decays": {layer.name: layer.decay for layer in result.layers},
        "noise_floor": result.provenance["settings"]["noise_floor"],
        "digests": digests,
        "blocks": blocks,
    }
    checkpoint.save_weights(tensors, Path(path), metadata={"netpurify.proof": json.dumps(content)})


def load_proof(path: str | Path) -> ProofFile:
    """Read a proof.

    Raises:
        InputError: The file is no proof, or one of another version.
    """
    text = checkpoint.load_metadata(Path(path)).get("netpurify.proof")
    if text is None:
        raise InputError(f"{path} must be a proof that netpurify wrote; its metadata say nothing of one")
    tensors = checkpoint.load_weights(Path(path))
    try:
        content = json.loads(text)
        if content["version"] != VERSION:
            raise InputError(f"{path} is a proof of version {content['version']}; this netpurify reads {VERSION}")
        proofs = tuple(_proof(number, block, tensors) for number, block in enumerate(content["blocks"]))
        decays = {str(name): float(value) for name, value in content["decays"].items()}
        digests = {name: content["digests"][name] for name in ("contaminated", "initial", "purified", "data")}
        policy, floor = content["policy"], content["noise_floor"]
        floor = None if floor is None else float(floor)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{path} must be a whole proof; {type(error).__name__}: {error}") from error
    if policy not in ("recover", "project") or any(proof.layer not in decays for proof in proofs) or not _usable(floor):
        raise InputError(f"{path} must be a whole proof; its policy, noise floor or decays have no meaning")
    return ProofFile(proofs, decays, policy, floor, digests)


def _usable(floor: float | None) -> bool:
    return floor is None or 0.0 <= floor < float("inf")


def _proof(number: int, block: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Proof:
    parts = {part: tensors[f"{number}.{part}"].numpy() for part in _PARTS if part != "columns"}
    columns = tensors[f"{int(block['columns'])}.columns"].numpy()
    count = parts["units"].size
    shapes = {
        "coefficients": (columns.shape[1], count),
        "dual": (columns.shape[0], count),
        "units": (count,),
    }
    for part, shape in shapes.items():
        kind = "i" if part == "units" else "f"
        if parts[part].shape != shape or parts[part].dtype.kind != kind:
            raise InputError(f"block {number} of the proof must have {part} {list(shape)}; got {parts[part].shape}")
    group, groups = int(block["group"]), int(block["groups"])
    if not 0 <= group < groups or (count and int(parts["units"].min()) < 0):
        raise InputError(f"block {number} of the proof must name a group and units that exist")
    return Proof(layer=str(block["layer"]), group=group, groups=groups, columns=columns, **parts)
