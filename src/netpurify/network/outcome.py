"""What becomes of one layer: its new weights, noted unit by unit while a policy decides, and the record of it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from netpurify import lad
from netpurify.network.adapter.form import module_form
from netpurify.network.adapter.layers import Layer
from netpurify.network.adapter.span import Span
from netpurify.network.adapter.weights import Array, Mask, Weights
from netpurify.network.fitting import UnitFits
from netpurify.network.records import EDGES, Altered, Grade, LayerRecord, Proof
from netpurify.network.tolerance import Tolerance, tolerance_of

_LARGEST_FAN_IN = 2304
"""Energies of the inputs of larger layers are not computed for the record: they would take minutes."""
_ENOUGH_SIGNS = 20
"""Fewer alterations than this do not say how often one is positive; both signs are then taken as equal."""
_SIMULATION = 0.2
"""Seconds to simulate what a layer tolerates."""


class Outcome:
    """A layer's new weights and what is known of them. It begins with every unit left alone; a policy fills it.

    Attributes:
        matrix: The new weights, [groups, fan-in, units of a group].
        replaced: Weights that were replaced, of the same shape.
        suspicious: Weights that stand far out and were left as they are, of the same shape.
        altered: Weights that are missing or differ from their L1 fit by more than the noise floor, of the same shape.
        grade: ``Grade`` of each unit, [units].
        decay: Factor that weight decay left on the initial weights.
        frozen: Whether the layer was never trained.
        unjudged: How many weights differ from the fit and were left alone all the same.
        reason: Why units were left alone, if any were.
        low_rank: Rank of the layer's change, if it has a low one that was estimated; the largest over groups.
        singular_values: Of that change in the units that were fitted, largest first; empty if there is none.
        free: Whether the units that are left alone are those that training may set freely, as the tokens of an
            embedding that clean inputs use.
        unrounded: In half precision, the new weights before they were rounded, as far as they are known, of the same
            shape as ``matrix``, which training saw; else ``matrix`` itself.
    """

    def __init__(self, weights: Weights, reason: str = "") -> None:  # noqa: D107
        units = weights.groups * weights.units
        self.weights = weights
        self.reason = reason
        self.matrix = weights.contaminated.copy()
        self.replaced: Mask = np.zeros(self.matrix.shape, np.bool_)
        self.suspicious: Mask = np.zeros(self.matrix.shape, np.bool_)
        self.altered: Mask = np.zeros(self.matrix.shape, np.bool_)
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
        self.low_rank: int | None = None
        self.singular_values = np.zeros(0)
        self.free = False
        self.unrounded = self.matrix if weights.grid is None else self.matrix.copy()

    @property
    def in_doubt(self) -> bool:
        """Whether some unit is not what training left, or may not be, so that what it feeds forward may be wrong."""
        return not self.certain.all() or self.unjudged > 0

    @property
    def certain(self) -> Mask:
        """Units whose weights are all known, [units]."""
        return np.isin(self.grade, [grade for grade in Grade if grade.certain])

    @property
    def certificate(self) -> lad.Certificate | None:
        """What was proven of the units that were fitted, in the order of ``certified_units``; ``None`` if nothing."""
        if not self.certificates:
            return None
        fields = lad.Certificate.__slots__
        joined = {name: np.concatenate([getattr(block, name) for block in self.certificates]) for name in fields}
        return replace(self.certificates[0], **joined)

    def take(self, fits: UnitFits, name: str) -> NDArray[np.int64]:
        """Note what was proven of a block of units of the layer ``name``; gives their positions in the layer."""
        count = self.matrix.shape[2]
        units = np.arange(fits.group * count + fits.units.start, fits.group * count + fits.units.stop)
        self.status[units] = fits.status
        self.altered[fits.group][:, fits.units] = fits.altered
        self.histogram += fits.histogram
        self.zeros += fits.zeros
        if fits.certificate is not None:
            self.noise_floor[units] = fits.certificate.noise_floor
            self.certificates.append(fits.certificate)
            self.certified_units.append(units)
        if fits.coefficients is not None and fits.dual is not None:
            shared = next((proof.columns for proof in self.proofs if proof.group == fits.group), None)
            columns = fits.design.matrix[:, fits.design.pivots] if shared is None else shared
            groups = self.matrix.shape[0]
            self.proofs.append(Proof(name, fits.group, units, columns, fits.coefficients, fits.dual, groups))
        return units

    def replace(self, group: int, chosen: Mask, values: Array) -> None:
        """Write values where ``chosen`` [fan-in, units of a group] is set; in half precision, rounded to the grid."""
        written = values.astype(self.matrix.dtype)
        if self.weights.grid is not None:
            wide = np.zeros_like(self.matrix[group])
            wide[chosen] = written
            wide = self.weights.grid.to_grid(wide)
            chosen = chosen & (wide != self.matrix[group])  # what rounds to the number that is there is not altered
            written = wide[chosen]
            self.unrounded[group][chosen] = written
        self.matrix[group][chosen] = written
        self.replaced[group] |= chosen

    def note_low_rank(self, rank: int, singular_values: Array) -> None:
        """Note that the change of a group has a low rank; that of the group with the largest rank is kept."""
        if self.low_rank is None or rank > self.low_rank:
            self.low_rank, self.singular_values = rank, singular_values

    def record(
        self, layer: Layer, spans: Sequence[Span], designs: Sequence[lad.Design | None], seconds: float
    ) -> LayerRecord:
        """What was done to the layer, for reports."""
        lives = [int(span.live().sum()) for span in spans]
        ranks = [live if design is None else design.rank for live, design in zip(lives, designs, strict=True)]
        rank, live = max(ranks, default=0), min(lives, default=layer.fan_in)
        projected = (self.grade == Grade.PROJECTED).any()
        return LayerRecord(
            name=layer.name,
            kind=layer.kind,
            shape=tuple(layer.weight.shape),
            form=layer.form,
            groups=layer.groups,
            fan_in=layer.fan_in,
            live=live,
            rank=rank,
            frozen=self.frozen,
            decay=self.decay,
            grade=self.grade,
            status=self.status,
            certificate=self.certificate,
            certified_units=np.concatenate([np.zeros(0, np.int64), *self.certified_units]),
            noise_floor=self.noise_floor,
            error_scale=np.where(self.certain, np.nan, self.error_scale),
            unjudged=self.unjudged,
            # The policy *project* replaces every weight, so it calls none of them altered.
            altered=self._table(layer, self.replaced & ~projected),
            replaced=_per_unit(self.replaced & ~projected),
            kept=_per_unit(self.altered & ~self.replaced),
            suspicious=self._table(layer, self.suspicious),
            changed=int((self.matrix != self.weights.contaminated).sum()),
            rebuilt=int((self.replaced & self.weights.missing).sum()),
            tolerance=None if self.frozen else self._tolerance(designs),
            histogram=self.histogram,
            zeros=self.zeros,
            energies=spans[0].energies() if spans and spans[0].fan_in <= _LARGEST_FAN_IN else np.zeros(0),
            reason=self.reason,
            seconds=seconds,
            proofs=self._proofs(layer),
            low_rank=self.low_rank,
            singular_values=self.singular_values,
        )

    def _proofs(self, layer: Layer) -> tuple[Proof, ...]:
        """The proofs, with the layer's form unless that is usual; a layer that was never trained then needs one too."""
        form = layer.form
        usual = not layer.without_bias and form == module_form(layer.name, bias=bool(form.biases), groups=form.groups)
        if usual and self.frozen:
            return ()
        units = np.flatnonzero(self.grade == Grade.RESTORED)
        restored = [units[units // self.weights.units == group] for group in range(form.groups)]
        fan_in = layer.fan_in
        proofs = self.proofs + [
            Proof(layer.name, group, chosen, np.zeros((fan_in, 0)), np.zeros((0, chosen.size)), np.zeros((fan_in, 0)),
                  form.groups, restored=True)
            for group, chosen in enumerate(restored) if chosen.size
        ]  # fmt: skip
        return tuple(proofs) if usual else tuple(replace(proof, form=form) for proof in proofs)

    def _tolerance(self, designs: Sequence[lad.Design | None]) -> Tolerance:
        """What the layer tolerates if as many alterations are positive as were found."""
        found = self.replaced & np.isfinite(self.weights.contaminated) & (self.grade != Grade.PROJECTED).all()
        up = self.weights.contaminated[found] > self.matrix[found]
        positive = float(up.mean()) if up.size >= _ENOUGH_SIGNS else 0.5
        return tolerance_of(designs, self.grade.size, positive=positive, seconds=_SIMULATION)

    def _table(self, layer: Layer, chosen: Mask) -> Altered:
        """Some of the layer's weights, with what they were and are."""
        group, row, column = np.nonzero(chosen)
        unit = group * self.weights.units + column
        tensor, index = layer.form.places(layer.weight.shape, group, row, column)
        return Altered(
            tensor=tensor,
            index=index,
            was=self.weights.contaminated[chosen].astype(np.float64),
            now=self.matrix[chosen].astype(np.float64),
            grade=self.grade[unit],
            names=layer.tensors,
        )


def _per_unit(chosen: Mask) -> NDArray[np.int64]:
    """How many weights of each unit are chosen."""
    return chosen.sum(axis=1, dtype=np.int64).reshape(-1)
