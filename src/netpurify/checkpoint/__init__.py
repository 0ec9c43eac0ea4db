"""Weights in files: read without running anything, written whole or not at all, told apart by their digest.

    state = checkpoint.load_weights("model.pt")            safetensors or torch.save; found in training checkpoints too
    state = checkpoint.load_weights("folder")              a Hugging Face folder, whole or in shards
    checkpoint.save_weights(state, "model.safetensors", metadata={"source": checkpoint.digest(state)})
    checkpoint.load_metadata("model.safetensors")          {"source": "9f86d0..."}

    with checkpoint.open_weights("folder") as weights:     names and shapes at once, values one tensor at a time
        weights.read("lm_head.weight")
    checkpoint.save_like("folder", "repaired", {"lm_head.weight": weight})      the same shards, some tensors replaced

Sizes that a file announces are checked against its own before memory is taken; see docs/checkpoints.md.
"""

from netpurify.checkpoint.copying import check_like, save_like
from netpurify.checkpoint.mapping import open_regular
from netpurify.checkpoint.model_files import ModelFiles, find_files
from netpurify.checkpoint.settings import read_settings
from netpurify.checkpoint.shards import TensorEntry
from netpurify.checkpoint.tensors import digest, digest_tensor, raw_bytes, require_plain, unusual
from netpurify.checkpoint.weights import load_content, load_metadata, load_weights, save_weights
from netpurify.checkpoint.weights_file import WeightsFile, open_weights

__all__ = [
    "ModelFiles", "TensorEntry", "WeightsFile", "check_like", "digest", "digest_tensor", "find_files", "load_content",
    "load_metadata", "load_weights", "open_regular", "open_weights", "raw_bytes", "read_settings", "require_plain",
    "save_like", "save_weights", "unusual",
]  # fmt: skip
