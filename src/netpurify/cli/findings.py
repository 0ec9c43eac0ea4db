"""What a purification found, in words and as an exit code."""

import math
from dataclasses import dataclass

from torch import Tensor, nn

from netpurify.cli.tables import missed_parts
from netpurify.network import Grade, Guard, Purification


@dataclass(frozen=True, slots=True)
class Findings:
    """What decides the exit code.

    Attributes:
        altered: Weights that were called altered and replaced.
        doubtful: Units without enough evidence (left alone, approximate, or without a certificate), weights that were
            not judged or are NaN or infinite in the purified network, layers that should have been examined and could
            not be, and parts of other kinds that differ from their initial weights.
        agreement: How the outputs on clean inputs changed.
        verdict: All of it in one line.
    """

    altered: int
    doubtful: int
    agreement: str
    verdict: str

    @property
    def code(self) -> int:
        """0 if nothing was found, else 1."""
        return 1 if self.altered or self.doubtful else 0

    @classmethod
    def of(cls, result: Purification) -> "Findings":
        """The findings of a purification."""
        altered = len(result.altered)
        left, rough = result.count(Grade.LEFT_ALONE), result.count(Grade.APPROXIMATE)
        uncertain = 0
        if result.policy == "project":
            uncertain = sum(
                int((~it.certificate.certified).sum()) for it in result.layers if it.certificate is not None
            )
        unjudged = sum(layer.unjudged for layer in result.layers)
        broken = _broken(result.model)
        counts = {
            "altered weights": altered,
            "units projected": result.count(Grade.PROJECTED),
            "units only approximate": rough,
            "units left alone for want of evidence": left,
            "fits without a certificate": uncertain,
            "weights in doubt, left as they were": unjudged,
            "suspicious weights, left as they were": len(result.suspicious),
            "weights that are not finite": broken,
        }
        parts = [f"{name}: {count:,}" for name, count in counts.items() if count]
        unknown = sum(part.missed for part in result.skipped)
        where = " in the layers that were examined" if unknown else ""
        parts = parts or [f"no altered weight found{where}; every bit is as it was"]
        parts += missed_parts(result.skipped, "layers that could not be examined, so that nothing is known of them")
        others = len(result.skipped) - unknown
        parts += [f"parts not examined: {others}"] if others else []
        doubtful = left + rough + uncertain + unjudged + broken + unknown
        return cls(altered, doubtful, _agreement(result), "; ".join(parts))


def _broken(model: nn.Module) -> int:
    """Weights that are not finite; the guards of a defended network have infinite spreads where they limit none."""
    guards = tuple(name for name, module in model.named_modules() if isinstance(module, Guard))
    state = {name: value for name, value in model.state_dict().items() if name.rpartition(".")[0] not in guards}
    return sum(int((~value.isfinite()).sum()) for value in state.values() if isinstance(value, Tensor))


def _agreement(result: Purification) -> str:
    found = result.agreement
    same = "" if math.isnan(found.same) else f"the same class for {100 * found.same:.1f} %, "
    change = "outputs not comparable" if math.isnan(found.change) else f"outputs changed by {100 * found.change:.2g} %"
    return f"on {found.inputs} clean inputs, before and after: {same}{change}"
