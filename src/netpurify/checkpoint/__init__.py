"""Weights in files: read without running anything, written whole or not at all, told apart by their digest.

    state = checkpoint.load_weights("model.pt")            safetensors or torch.save; found in training checkpoints too
    checkpoint.save_weights(state, "model.safetensors", metadata={"source": checkpoint.digest(state)})
    checkpoint.load_metadata("model.safetensors")          {"source": "9f86d0..."}

Sizes that a file announces are checked against its own before memory is taken; see docs/checkpoints.md.
"""

from netpurify.checkpoint.mapping import open_regular
from netpurify.checkpoint.settings import read_settings
from netpurify.checkpoint.tensors import digest, digest_tensor, raw_bytes, require_plain, unusual
from netpurify.checkpoint.weights import load_content, load_metadata, load_weights, save_weights

__all__ = [
    "digest", "digest_tensor", "load_content", "load_metadata", "load_weights", "open_regular", "raw_bytes",
    "read_settings", "require_plain", "save_weights", "unusual",
]  # fmt: skip
