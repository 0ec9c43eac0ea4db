"""Proof files: all that is needed, besides the weights, to check a purification again."""

import json
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from netpurify import checkpoint
from netpurify.errors import InputError
from netpurify.network.adapter.form import LAYOUTS, Form
from netpurify.network.purification import Purification
from netpurify.network.records import Proof

VERSION = 2
"""Version 1 knows neither forms nor restored units; such a file is read as well."""
_TENSORS = ("units", "columns", "coefficients", "dual")
_DIGESTS = ("contaminated", "initial", "purified", "data")


@dataclass(frozen=True, slots=True)
class ProofFile:
    """The contents of a proof file.

    Attributes:
        proofs: One proof for each block of units.
        decays: Factor of the initial weights, by layer.
        policy: ``"recover"`` or ``"project"``.
        noise_floor: The noise floor that the policy was given, or ``None``.
        frozen: Patterns of names of tensors that were said to be never trained.
        digests: Digests of the contaminated, initial and purified weights and of the data; ``None`` if there were no
            initial weights.
    """

    proofs: tuple[Proof, ...]
    decays: dict[str, float]
    policy: str
    noise_floor: float | None
    frozen: tuple[str, ...]
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
                           (proof.layer, proof.group) and not proof.restored), number)  # fmt: skip
            blocks.append({"layer": proof.layer, "group": proof.group, "groups": proof.groups, "columns": shared})
            if proof.form is not None:
                blocks[-1]["form"] = asdict(proof.form)
            if proof.restored:
                blocks[-1]["restored"] = True
            for name in _TENSORS:
                if name != "columns" or shared == number:
                    tensors[f"{number}.{name}"] = torch.from_numpy(np.ascontiguousarray(getattr(proof, name)))
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
        "frozen": list(result.provenance["settings"].get("frozen", ())),
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
        raise InputError(
            f"{path} must be a proof that netpurify wrote; its metadata have no entry netpurify.proof; give the file "
            "that was saved beside the purified weights"
        )
    tensors = checkpoint.load_weights(Path(path))
    try:
        content = json.loads(text)
        version = content["version"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} must be a whole proof; its metadata are damaged ({type(error).__name__}); get it again"
        ) from error
    if type(version) is not int or not 1 <= version <= VERSION:
        raise InputError(f"{path} is a proof of version {str(version)[:20]}; this netpurify reads 1 to {VERSION}")
    invalid = _first_invalid(content)
    if invalid:
        raise InputError(f"{path} must be a whole proof; its {invalid} have no meaning; get it again")
    proofs = tuple(
        _proof(f"{path} must be a whole proof; block {number}", number, block, tensors)
        for number, block in enumerate(content["blocks"])
    )
    decays = {name: float(decay) for name, decay in content["decays"].items()}
    missing = next((proof.layer for proof in proofs if proof.layer not in decays), None)
    if missing is not None:
        raise InputError(f"{path} must be a whole proof; it has no decay of the layer {missing!r}; get it again")
    floor = content["noise_floor"]
    digests = {name: content["digests"][name] for name in _DIGESTS}
    floor = None if floor is None else float(floor)
    return ProofFile(proofs, decays, content["policy"], floor, tuple(content.get("frozen", ())), digests)


def _first_invalid(content: dict[str, Any]) -> str | None:
    """The first entry of the metadata that is not as ``save_proof`` writes it."""
    policy, floor, decays, digests, blocks = (
        content.get(name) for name in ("policy", "noise_floor", "decays", "digests", "blocks")
    )
    frozen = content.get("frozen", [])  # proofs of earlier versions have none
    valid = {
        "policy": policy in ("recover", "project"),
        "noise floor": "noise_floor" in content and (floor is None or (_is_number(floor) and floor >= 0)),
        "frozen tensors": isinstance(frozen, list) and all(isinstance(pattern, str) for pattern in frozen),
        "decays": isinstance(decays, dict) and all(map(_is_number, decays.values())),
        "digests": isinstance(digests, dict)
        and all(name in digests and isinstance(digests[name], str | None) for name in _DIGESTS),
        "blocks": isinstance(blocks, list) and all(map(_is_block, blocks)),
    }
    return next((name for name, is_valid in valid.items() if not is_valid), None)


def _is_number(value: Any) -> bool:
    # JSON allows integers of a thousand digits, which no float can hold.
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict) or not isinstance(block.get("layer"), str):
        return False
    counts = [block.get(name) for name in ("group", "groups", "columns")]
    if not all(type(count) is int and 0 <= count < 1 << 31 for count in counts) or block["group"] >= block["groups"]:
        return False
    return type(block.get("restored", False)) is bool and _is_form(block.get("form"), block["groups"])


def _is_form(form: Any, groups: int) -> bool:
    """Whether this is a form as ``save_proof`` writes it, or none."""
    if form is None:
        return True
    if not isinstance(form, dict) or form.keys() != {one.name for one in fields(Form)}:
        return False
    biases, tied = form["biases"], form["tied"]
    return (
        isinstance(form["weight"], str)
        and isinstance(biases, list)
        and all(isinstance(name, str) for name in biases)
        and isinstance(tied, list)
        and all(isinstance(pair, list) and len(pair) == 2 and {*map(type, pair)} == {str} for pair in tied)
        and form["layout"] in LAYOUTS
        and type(form["first"]) is int
        and 0 <= form["first"] < 1 << 31
        and type(form["groups"]) is int
        and form["groups"] == groups
    )


def _form(content: Any) -> Form | None:
    if content is None:
        return None
    return Form(**content | {"biases": tuple(content["biases"]), "tied": tuple(map(tuple, content["tied"]))})


def _proof(what: str, number: int, block: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Proof:
    keys = {name: f"{block['columns'] if name == 'columns' else number}.{name}" for name in _TENSORS}
    own = {name: tensors.get(key) for name, key in keys.items()}
    for name, tensor in own.items():
        dtype, dimensions = (torch.int64, 1) if name == "units" else (torch.float64, 2)
        if tensor is None or tensor.dtype != dtype or tensor.ndim != dimensions:
            got = "nothing" if tensor is None else f"{tensor.dtype}, {list(tensor.shape)}"
            raise InputError(f"{what} must have {name} in {dtype} with {dimensions} dimensions; got {got}")
    arrays = {name: tensor.numpy() for name, tensor in own.items() if tensor is not None}
    (fan_in, rank), count = arrays["columns"].shape, arrays["units"].size
    restored = block.get("restored", False)
    if restored and rank:
        raise InputError(f"{what} must have no columns, since its units were never trained; got {rank}")
    for name, shape in {"coefficients": (rank, count), "dual": (fan_in, 0 if restored else count)}.items():
        if arrays[name].shape != shape:
            raise InputError(f"{what} must have {name} {list(shape)}; got {list(arrays[name].shape)}")
    if count and int(arrays["units"].min()) < 0:
        raise InputError(f"{what} must name units that exist; one is below zero")
    form = _form(block.get("form"))
    return Proof(
        layer=block["layer"], group=block["group"], groups=block["groups"], form=form, restored=restored, **arrays
    )
