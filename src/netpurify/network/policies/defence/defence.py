"""The policy *defend*: deep networks that were poisoned in training. No labels, no training, no proof of cleanness."""

import math
import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from netpurify.errors import DisagreementError, InputError
from netpurify.network.adapter.reference import Skipped
from netpurify.network.agreement import Agreement
from netpurify.network.policies.defence.defending import DefendedCandidate, Defender
from netpurify.network.policies.defence.strength import STRENGTHS, TRIALS, Step, search
from netpurify.network.policies.defence.sweep import DefendedLayer
from netpurify.network.policies.policy import Progress, settings_of
from netpurify.network.prepared import Network, provenance
from netpurify.network.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Defence(Shown):
    """The defended network and everything that is known about it. That it is clean is never known. ``print`` shows it.

    Attributes:
        model: The defended network, in the mode in which the contaminated one came.
        policy: ``"defend"``.
        strength: The strength that was used.
        guard: Whether guards keep every channel within the range of clean inputs.
        curve: For each strength that was tried, how many held-out inputs change their class; from the weakest on.
        chosen: The entry of ``curve`` for the strength that was used.
        confidence: Mean of the largest probability that the contaminated network gives on the held-out inputs.
        layers: What became of each layer, in the order of execution.
        skipped: Every other module with weights, and why it was left as it is.
        agreement: How the two networks' outputs on the held-out inputs compare.
        seconds: Time that the defence took.
        provenance: Digests of model, data and result, versions, settings.
        contaminated: The contaminated weights.
    """

    model: nn.Module
    policy: Literal["defend"]
    strength: float
    guard: bool
    curve: tuple[Step, ...]
    chosen: Step
    confidence: float
    layers: tuple[DefendedLayer, ...]
    skipped: tuple[Skipped, ...]
    agreement: Agreement
    seconds: float
    provenance: dict[str, Any]
    contaminated: dict[str, Tensor]

    def _brief(self) -> str:
        cost = f"{self.chosen.differing} of {self.chosen.inputs} held-out inputs change their class"
        return f"strength={self.strength:g}, guard={self.guard}, layers={len(self.layers)}, {cost}"

    @property
    def level(self) -> float:
        """Confidence level of one bound by itself, so that the bounds of all candidate strengths hold with 95 %.

        It is 1 - 0.05 / 8, Bonferroni's correction over all eight candidates, because which of them are tried depends
        on earlier results. With a given strength there is one bound, and its level is 0.95.
        """
        automatic = self.provenance["settings"]["strength"] == "auto"
        return 1.0 - 0.05 / (len(STRENGTHS) if automatic else 1)

    @property
    def bound(self) -> float:
        """With 95 % confidence no more accuracy is lost than this on inputs like the held-out ones.

        Accuracy can fall by no more than the share of inputs that change their class; the bound is the exact one of
        Clopper and Pearson for that share, and allows for the choice among strengths.
        """
        return self.chosen.bound(self.level)


@dataclass(frozen=True)
class Defend:
    """For deep networks that were poisoned during training: forget what clean inputs cannot justify. Proves nothing.

    Every Linear and Conv layer, in the order of execution, is fitted by ridge regression. Its inputs are the clean
    inputs as the layers before it, already purified, pass them on; its targets are the outputs that the layer gave in
    the contaminated network. The ridge makes the layer forget directions in which clean inputs have little energy.
    Guards then keep the values of every channel, and their spread over an image, within the range of clean inputs. One
    in five inputs is held out of the fit: how often the defended and the contaminated network disagree on these inputs
    bounds how much accuracy can be lost. A few hundred clean inputs are needed, and no initial weights.

    All clean inputs go through the network at once, and twice side by side. For this the fit needs about five times the
    memory of the largest output of a layer. ``purify(batch=)`` applies only where networks are compared.

    Attributes:
        strength: Ridge, relative to the mean energy of a layer's inputs. A guard cuts off a tenth of this share of a
            channel's values at either end, and this share of the images, those with the widest spread. ``"auto"`` tries
            several strengths and takes the strongest that the network's own confidence allows for.
        guard: Whether to attach guards; without them, the architecture stays as it is.
        max_disagreement: Refuse if the defended network disagrees on more than this share of held-out inputs.
    """

    strength: float | Literal["auto"] = "auto"
    _: KW_ONLY
    guard: bool = True
    max_disagreement: float | None = None

    name: ClassVar[str] = "defend"

    @property
    def initial(self) -> None:
        """This policy takes no initial weights."""

    def __post_init__(self) -> None:
        """Refuse values that have no meaning.

        Raises:
            InputError: An option has a value that is not allowed.
        """
        strength, most = self.strength, self.max_disagreement
        if strength != "auto" and not (isinstance(strength, int | float) and 0.0 < strength < math.inf):
            raise InputError(f'strength must be "auto" or a number above 0, such as 0.1; got {strength!r}')
        if most is not None and not 0.0 <= most <= 1.0:
            raise InputError(f"max_disagreement must be a share between 0 and 1; got {most}")

    def run(self, network: Network, progress: Progress | None = None) -> Defence:
        """Defend a network that was made ready.

        ``progress`` is called before each layer and at the end, over all strengths that are tried.

        Raises:
            InputError: Nothing can be defended, or the inputs do not fit the network.
            DisagreementError: The disagreement is above ``max_disagreement``.
        """
        begun = time.perf_counter()
        automatic = self.strength == "auto"
        defender = Defender(network, guard=self.guard)
        _check_scores(defender.confidence, automatic=automatic, most=self.max_disagreement)
        overall = _OverallProgress(progress, sweeps=TRIALS if automatic else 1, layers=len(defender.layers))
        candidates: dict[float, DefendedCandidate] = {}

        def judge(strength: float) -> Step:
            candidates[strength] = defender.defend(strength, overall.next_sweep())
            return candidates[strength].step

        chosen = search(judge, defender.confidence) if automatic else judge(float(self.strength))
        self._check_disagreement(chosen)
        overall.end()
        candidate = candidates[chosen.strength]
        return Defence(
            model=network.as_it_came(candidate.model),
            policy="defend",
            strength=chosen.strength,
            guard=self.guard,
            curve=tuple(candidates[strength].step for strength in sorted(candidates)),
            chosen=chosen,
            confidence=defender.confidence,
            layers=tuple(candidate.layers),
            skipped=tuple(network.skipped),
            agreement=candidate.agreement,
            seconds=time.perf_counter() - begun,
            provenance=provenance(network, candidate.model, settings_of(self, network.chosen)),
            contaminated=network.contaminated,
        )

    def _check_disagreement(self, chosen: Step) -> None:
        most = self.max_disagreement
        if most is not None and not chosen.disagreement <= most:
            raise DisagreementError(
                "the defended network must disagree with the contaminated one on at most "
                f"{100 * most:.1f} % of the held-out inputs; at strength {chosen.strength} it does on "
                f"{chosen.differing} of {chosen.inputs}, {100 * chosen.disagreement:.1f} %; give more clean inputs, a "
                "smaller strength, or allow for more"
            )


class _OverallProgress:
    """Progress over several sweeps, as if they were one."""

    def __init__(self, progress: Progress | None, *, sweeps: int, layers: int) -> None:
        self._progress, self._layers = progress, layers
        self._begun = 0
        self._total = sweeps * layers

    def next_sweep(self) -> Progress:
        """The progress callback of the next sweep."""
        done = self._begun * self._layers
        self._begun += 1

        def report(name: str, number: int, _: int) -> None:
            if self._progress is not None:
                self._progress(name, done + number, self._total)

        return report

    def end(self) -> None:
        """Report the end, also if the search needed fewer sweeps than it might have."""
        if self._progress is not None:
            self._progress("", self._total, self._total)


def _check_scores(confidence: float, *, automatic: bool, most: float | None) -> None:
    """Refuse options that need classes if the network's outputs are not scores of classes."""
    given = {'strength="auto"': automatic, "max_disagreement": most is not None}
    options = [name for name, is_given in given.items() if is_given]
    if options and math.isnan(confidence):
        raise InputError(
            f"{' and '.join(options)} needs a network that gives finite scores [inputs, classes]; this one does not; "
            f"{'give a number, such as 0.1' if automatic else 'leave it out'}, or give a forward function that returns "
            "the scores"
        )
