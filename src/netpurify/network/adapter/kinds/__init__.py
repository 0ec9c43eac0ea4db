"""The kinds of layers, one file for each family: what of a module is a layer, and what its units see of its inputs."""

from netpurify.network.adapter.kinds import attention, convolution, dense, embedding, recurrent
from netpurify.network.adapter.kinds.layer import KINDS, Gather, Layer, register_layer
from netpurify.network.adapter.kinds.shared import SharedLayer, join_shared

__all__ = [
    "KINDS",
    "Gather",
    "Layer",
    "SharedLayer",
    "attention",
    "convolution",
    "dense",
    "embedding",
    "join_shared",
    "recurrent",
    "register_layer",
]
