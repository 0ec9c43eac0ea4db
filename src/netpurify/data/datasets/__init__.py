"""Data sets by name: which there are, their cache on disk, fetching them into it, and loading them as tensors."""

from netpurify.data.datasets.cache import cache_folder
from netpurify.data.datasets.catalogue import Split, digests, names
from netpurify.data.datasets.fetching import fetch
from netpurify.data.datasets.loading import load

__all__ = ["Split", "cache_folder", "digests", "fetch", "load", "names"]
