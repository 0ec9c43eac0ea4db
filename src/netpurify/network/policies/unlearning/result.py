"""What comes of *unlearn*: the repaired network, both hunts, and the price."""

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from netpurify.network.adapter.reference import Skipped
from netpurify.network.agreement import Agreement, Disagreement
from netpurify.network.hunting.records import Hunt
from netpurify.network.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Unlearning(Shown):
    """The repaired network and what is known about it. That it is clean is never known. ``print`` shows it.

    Attributes:
        model: The repaired network, in the mode in which the contaminated one came; unchanged if nothing was suspect.
        policy: ``"unlearn"``.
        before: The hunt in the contaminated network.
        after: The hunt in the repaired network, with another seed, on held-out inputs; ``None`` if nothing was changed.
        steps: Steps of training; 0 if nothing was suspect.
        chosen: How many held-out inputs change their class.
        agreement: How the two networks' outputs on the held-out inputs compare.
        skipped: Modules with weights that no regression describes; training changes them all the same.
        seconds: Time that it took.
        provenance: Digests of model, data and result, versions, settings.
        contaminated: The contaminated weights.
    """

    model: nn.Module
    policy: Literal["unlearn"]
    before: Hunt
    after: Hunt | None
    steps: int
    chosen: Disagreement
    agreement: Agreement
    skipped: tuple[Skipped, ...]
    seconds: float
    provenance: dict[str, Any]
    contaminated: dict[str, Tensor]

    @property
    def changed(self) -> bool:
        """Whether the network was trained."""
        return self.steps > 0

    @property
    def still_found(self) -> bool:
        """Whether the hunt after the repair still finds something suspect."""
        return self.after is not None and bool(self.after.suspects)

    @property
    def bound(self) -> float:
        """With 95 % confidence no more accuracy is lost than this on inputs like the held-out ones."""
        return self.chosen.bound() if self.changed else 0.0

    def _brief(self) -> str:
        classes = ", ".join(map(str, self.before.goals)) or "none"
        cost = f"{self.chosen.differing} of {self.chosen.inputs} held-out inputs change their class"
        return f"suspect classes: {classes}, steps={self.steps}, {cost}"
