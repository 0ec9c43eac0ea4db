"""The policy *defend*: deep networks that were poisoned in training. No labels, no training, no proof of cleanness."""

import math
import time
from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

from torch import Tensor, nn

from netpurify import checkpoint
from netpurify.errors import DisagreementError, InputError
from netpurify.network.agreement import Agreement
from netpurify.network.capture import Data, Forward, digest_of_data
from netpurify.network.defence.strength import STRENGTHS, TRIALS, Step, search
from netpurify.network.defence.sweep import LayerFit, Progress
from netpurify.network.defence.trial import Trial, Trials
from netpurify.network.reference import Skipped, resolve


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
        """Confidence of one bound by itself, at which those of all strengths that could be tried hold with 95 %.

        Which strengths are tried depends on what the others gave, so that all that the search may come to count, and
        not only those that it came to.
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


def defend(
    model: nn.Module,
    data: Data,
    *,
    strength: float | Literal["auto"] = "auto",
    guard: bool = True,
    max_disagreement: float | None = None,
    layers: Collection[str] | None = None,
    forward: Forward | None = None,
    batch: int = 32,
    progress: Progress | None = None,
) -> Defence:
    """Make a deep network forget what clean inputs cannot justify; ``purify(policy="defend")``.

    Every Linear and Conv layer, in the order of execution, is fitted to give on clean inputs, through what is already
    purified, the outputs that it used to give; a ridge makes it forget directions in which clean inputs have little
    energy. The guard then keeps every channel within the range and the spread over an image that clean inputs use. A
    part of the inputs is held out; how often the defended network disagrees there with the contaminated one bounds what
    accuracy can be lost.

    Args:
        model: The contaminated network; it is left as it is.
        data: Clean inputs, as in ``purify``; some hundred of them.
        strength: Ridge, relative to the mean energy of a layer's inputs. The guard cuts off a tenth as much of each
            channel's values at either end, and as much of the images by a channel's spread. ``"auto"`` tries several
            and takes the strongest that the network's own confidence allows for.
        guard: Whether to keep channels in range; without, the architecture stays as it is.
        max_disagreement: Refuse if the defended network disagrees on more than this share of held-out inputs.
        layers: Names of the layers to fit; ``None`` for all that can be.
        forward: As in ``purify``.
        batch: Inputs that go through at a time where networks are compared. The fit takes all at once, and twice: it
            needs some five times the memory of the largest output of a layer for them.
        progress: Called as ``progress(name, done, total)`` before each layer and at the end, over all sweeps.

    Raises:
        InputError: An argument does not fit.
        DisagreementError: The price is above ``max_disagreement``.
    """
    begun = time.perf_counter()
    _check(strength, max_disagreement, layers, batch)
    trials = Trials(model, data, forward=forward, batch=batch, layers=layers, guard=guard)
    _check_scores(trials.confidence, automatic=strength == "auto", most=max_disagreement)
    watch = _Watch(progress, TRIALS if strength == "auto" else 1, len(trials.layers))
    tried: dict[float, Trial] = {}

    def judge(one: float) -> Step:
        tried[one] = trials.fit(one, watch.next())
        return tried[one].step

    chosen = search(judge, trials.confidence) if strength == "auto" else judge(float(strength))
    if max_disagreement is not None and not chosen.disagreement <= max_disagreement:
        raise DisagreementError(
            "the defended network must disagree with the contaminated one on at most "
            f"{100 * max_disagreement:.1f} % of the held-out inputs; at strength {chosen.strength} it does on "
            f"{chosen.differing} of {chosen.inputs}, {100 * chosen.disagreement:.1f} %; give more clean inputs, a "
            "smaller strength, or allow for more"
        )
    watch.end()
    trial = tried[chosen.strength]
    for name, module in model.named_modules():
        trial.model.get_submodule(name).training = module.training
    settings = {
        "policy": "defend", "strength": strength, "guard": guard, "max_disagreement": max_disagreement,
        "layers": None if layers is None else list(layers),
    }  # fmt: skip
    contaminated = resolve(trials.contaminated)
    return Defence(
        model=trial.model,
        policy="defend",
        strength=chosen.strength,
        guard=guard,
        curve=tuple(tried[one].step for one in sorted(tried)),
        chosen=chosen,
        confidence=trials.confidence,
        layers=tuple(trial.layers),
        skipped=tuple(trials.skipped),
        agreement=trial.agreement,
        seconds=time.perf_counter() - begun,
        provenance={
            "model": checkpoint.digest(contaminated),
            "purified": checkpoint.digest(resolve(trial.model)),
            "data": digest_of_data(data),
            "versions": {name: version(name) for name in ("netpurify", "torch", "numpy", "scipy")},
            "settings": settings,
        },
        contaminated=contaminated,
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


def _check(strength: object, most: float | None, layers: object, batch: int) -> None:
    if strength != "auto" and not (isinstance(strength, int | float) and 0.0 < strength < math.inf):
        raise InputError(f'strength must be "auto" or a number above 0, such as 0.1; got {strength!r}')
    if most is not None and not 0.0 <= most <= 1.0:
        raise InputError(f"max_disagreement must be a share between 0 and 1; got {most}")
    if isinstance(layers, str):
        raise InputError(f"layers must be a collection of names; got the single string {layers!r}; give [{layers!r}]")
    if batch < 1:
        raise InputError(f"batch must be at least 1; got {batch}")


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
