"""The policy *defend*: deep networks that were poisoned in training. No labels, no training, no proof of cleanness."""

import math
import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from netpurify.errors import DisagreementError, InputError
from netpurify.network.adapter.reference import Skipped
from netpurify.network.agreement import Agreement
from netpurify.network.policies.defence.strength import STRENGTHS, TRIALS, Step, search
from netpurify.network.policies.defence.sweep import LayerFit
from netpurify.network.policies.defence.trial import Trial, Trials
from netpurify.network.policies.policy import Progress, settings_of
from netpurify.network.prepared import Network, provenance


@dataclass(frozen=True, slots=True)
class Defence:
    """The defended network and everything that is known about it. It is never known to be clean.

    Attributes:
        model: The defended network, in the mode in which the contaminated one came.
        policy: ``"defend"``.
        strength: The one that was used.
        guard: Whether channels are kept within their range.
        curve: What each strength that was tried does to the held-out inputs, from the weakest on.
        chosen: The step of the curve with the strength that was used.
        confidence: Mean of the largest probability that the contaminated network gives on the held-out inputs.
        layers: What each layer became, in the order of execution.
        skipped: Everything else that has weights, with the reason.
        agreement: The two networks' outputs on the held-out inputs.
        seconds: Time it took.
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
    layers: tuple[LayerFit, ...]
    skipped: tuple[Skipped, ...]
    agreement: Agreement
    seconds: float
    provenance: dict[str, Any]
    contaminated: dict[str, Tensor]

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

    Every Linear and Conv layer, in the order of execution, is fitted to give on clean inputs, through what is already
    purified, the outputs that it used to give; a ridge makes it forget directions in which clean inputs have little
    energy. The guard then keeps every channel within the range and the spread over an image that clean inputs use. A
    part of the inputs is held out; how often the defended network disagrees there with the contaminated one bounds how
    much accuracy can be lost. A few hundred clean inputs are needed, and no initial weights.

    The fit takes all clean inputs at once, and twice side by side: it needs about five times the memory of the largest
    output of a layer for them. ``purify(batch=)`` counts only where networks are compared.

    Attributes:
        strength: Ridge, relative to the mean energy of a layer's inputs. The guard cuts off a tenth as much of each
            channel's values at either end, and as much of the images by a channel's spread. ``"auto"`` tries several
            and takes the strongest that the network's own confidence allows for.
        guard: Whether to keep channels in range; without it, the architecture stays as it is.
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
        """Refuse options that have no meaning.

        Raises:
            InputError: An option does not fit.
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
            DisagreementError: The price is above ``max_disagreement``.
        """
        begun = time.perf_counter()
        trials = Trials(network, guard=self.guard)
        _check_scores(trials.confidence, automatic=self.strength == "auto", most=self.max_disagreement)
        watch = _Watch(progress, TRIALS if self.strength == "auto" else 1, len(trials.layers))
        tried: dict[float, Trial] = {}

        def judge(strength: float) -> Step:
            tried[strength] = trials.fit(strength, watch.next())
            return tried[strength].step

        automatic = self.strength == "auto"
        chosen = search(judge, trials.confidence) if automatic else judge(float(self.strength))
        self._check_price(chosen)
        watch.end()
        trial = tried[chosen.strength]
        return Defence(
            model=network.restore_modes(trial.model),
            policy="defend",
            strength=chosen.strength,
            guard=self.guard,
            curve=tuple(tried[strength].step for strength in sorted(tried)),
            chosen=chosen,
            confidence=trials.confidence,
            layers=tuple(trial.layers),
            skipped=tuple(network.skipped),
            agreement=trial.agreement,
            seconds=time.perf_counter() - begun,
            provenance=provenance(network, trial.model, settings_of(self, network.chosen)),
            contaminated=network.contaminated,
        )

    def _check_price(self, chosen: Step) -> None:
        most = self.max_disagreement
        if most is not None and not chosen.disagreement <= most:
            raise DisagreementError(
                "the defended network must disagree with the contaminated one on at most "
                f"{100 * most:.1f} % of the held-out inputs; at strength {chosen.strength} it does on "
                f"{chosen.differing} of {chosen.inputs}, {100 * chosen.disagreement:.1f} %; give more clean inputs, a "
                "smaller strength, or allow for more"
            )


class _Watch:
    """Progress over several sweeps."""

    def __init__(self, progress: Progress | None, sweeps: int, layers: int) -> None:
        self._progress, self._layers, self._sweep = progress, layers, -1
        self.total = sweeps * layers

    def next(self) -> Progress:
        """Progress of the sweep that comes."""
        self._sweep += 1
        done = self._sweep * self._layers

        def follow(name: str, number: int, _: int) -> None:
            if self._progress is not None:
                self._progress(name, done + number, self.total)

        return follow

    def end(self) -> None:
        """Everything is done, also what was not needed."""
        if self._progress is not None:
            self._progress("", self.total, self.total)


def _check_scores(confidence: float, *, automatic: bool, most: float | None) -> None:
    """Refuse to count classes where there are none."""
    asked = {'strength="auto"': automatic, "max_disagreement": most is not None}
    needy = [name for name, given in asked.items() if given]
    if needy and math.isnan(confidence):
        raise InputError(
            f"{' and '.join(needy)} needs a network that gives finite scores [inputs, classes]; this one does not; "
            f"{'give a number, such as 0.1' if automatic else 'leave it out'}, or give a forward function that returns "
            "the scores"
        )
