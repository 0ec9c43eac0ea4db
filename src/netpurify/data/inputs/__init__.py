"""Clean inputs from the user's own files: arrays, tensors, or a folder of images."""

from netpurify.data.inputs.numpy_files import read_npy
from netpurify.data.inputs.reading import load_inputs, normalise

__all__ = ["load_inputs", "normalise", "read_npy"]
