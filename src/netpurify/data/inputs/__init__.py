"""Clean inputs from the user's own files: arrays, tensors, a folder of images, or lines of text."""

from netpurify.data.inputs.normalising import normalise
from netpurify.data.inputs.numpy_files import read_npy
from netpurify.data.inputs.preprocessing import load_processed
from netpurify.data.inputs.reading import load_inputs
from netpurify.data.inputs.text import load_tokens

__all__ = ["load_inputs", "load_processed", "load_tokens", "normalise", "read_npy"]
