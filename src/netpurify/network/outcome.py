"""What becomes of a layer, noted step by step by either policy."""

import numpy as np
from numpy.typing import NDArray

from netpurify import lad
from netpurify.network.blocks import BlockFit
from netpurify.network.records import EDGES, Grade, Proof
from netpurify.network.weights import Array, Mask, Weights


class Outcome:
    """The layer's new weights and what is known of them, filled step by step."""

    def __init__(self, weights: Weights) -> None:  # noqa: D107
        units = weights.groups * weights.units
        self.matrix = weights.contaminated.copy()
        self.replaced: Mask = np.zeros(self.matrix.shape, np.bool_)
        self.suspicious: Mask = np.zeros(self.matrix.shape, np.bool_)
        self.grade = np.full(units, Grade.LEFT_ALONE, np.int8)
        self.status = np.full(units, -1, np.int8)
        self.noise_floor = np.full(units, np.nan)
        self.error_scale = np.full(units, np.nan)
        self.certificates: list[lad.Certificate] = []
        self.certified_units: list[NDArray[np.int64]] = []
        self.histogram = np.zeros(EDGES.size - 1, np.int64)
        self.zeros = 0
        self.unjudged = 0
        self.proofs: list[Proof] = []
        self.decay = 1.0
        self.frozen = False

    def take(self, block: BlockFit, group: int, place: slice, design: lad.Design, name: str) -> NDArray[np.int64]:
        """Note what was proven of a block of units; gives their positions in the layer."""
        count = self.matrix.shape[2]
        units = np.arange(group * count + place.start, group * count + place.stop)
        self.status[units] = block.certificate.status
        self.noise_floor[units] = block.certificate.noise_floor
        self.certificates.append(block.certificate)
        self.certified_units.append(units)
        self.histogram += block.histogram
        self.zeros += block.zeros
        if block.coefficients is not None and block.dual is not None:
            columns = next((proof.columns for proof in self.proofs if proof.group == group), None)
            columns = design.matrix[:, design.pivots] if columns is None else columns
            groups = self.matrix.shape[0]
            self.proofs.append(Proof(name, group, units, columns, block.coefficients, block.dual, groups))
        return units

    def replace(self, group: int, place: Mask, values: Array) -> None:
        """Write values where ``place`` [fan-in, units of a group] is set."""
        self.matrix[group][place] = values.astype(self.matrix.dtype)
        self.replaced[group] |= place
