"""The policy *unlearn*: hunt for a backdoor, then train it away. No labels, no proof of cleanness."""

import hashlib
import json
import time
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from netpurify.errors import DisagreementError, InputError
from netpurify.network.agreement import Disagreement, compare
from netpurify.network.hunting.expectation import Expectation, expectation_for
from netpurify.network.hunting.families import TriggerFamily
from netpurify.network.hunting.hunting import (
    EXAMPLES,
    check_arguments,
    choose_families,
    images_of,
    scorer_of,
    search_families,
)
from netpurify.network.hunting.records import Hunt
from netpurify.network.hunting.scoring import Ground
from netpurify.network.policies.defence.inputs import split
from netpurify.network.policies.policy import Progress
from netpurify.network.policies.unlearning.result import Unlearning
from netpurify.network.policies.unlearning.saved import RunFile, refuse_other_files
from netpurify.network.policies.unlearning.training import SEARCH_EVERY, STEPS, Lesson
from netpurify.network.prepared import Network, provenance
from netpurify.threads import one_torch_thread

OTHER_SEED = 1_000_003
"""Added to the seed for the hunt after the repair, so that it draws other triggers than the repair was trained with."""


@dataclass(frozen=True)
class Unlearn:
    """For networks that were poisoned during training: hunt for the backdoor, then train it away. Proves nothing.

    A hunt searches families of universal triggers for ones that lead inputs of all classes to one class. If a class is
    suspect, the network is trained for a hundred small steps: it keeps its own scores on clean inputs, and triggers
    must not add to the probability of the suspect class. Only weights change; the architecture stays, and so do the
    statistics of BatchNorm. If nothing is suspect, nothing is changed. One in five inputs is held out of all this: how
    often the repaired and the contaminated network disagree on these inputs bounds how much accuracy can be lost. It
    needs some hundred clean images, no labels and no initial weights.

    Attributes:
        families: Which families to search, by name, or classes of your own; ``None`` for all.
        seed: Of all random numbers.
        mean: What was subtracted from images in [0, 1] before they were divided by ``std``, one for each channel.
        std: What they were divided by.
        expected: What hunts in healthy networks show, from ``calibrate``; ``None`` for what this library measured.
        max_disagreement: Refuse if the repaired network disagrees on more than this share of held-out inputs.
        resume: A file in which the run is saved every 25 steps, and from which it goes on after an interruption.
        keep: Leave that file when the run is done, until its result is written; the same call then needs no training.
    """

    families: Collection[str | type[TriggerFamily]] | None = None
    _: KW_ONLY
    seed: int = 0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    expected: Expectation | None = None
    max_disagreement: float | None = None
    resume: str | Path | None = None
    keep: bool = False

    name: ClassVar[str] = "unlearn"

    @property
    def initial(self) -> None:
        """This policy takes no initial weights."""

    def __post_init__(self) -> None:
        """Refuse values that have no meaning.

        Raises:
            InputError: An option has a value that is not allowed.
        """
        choose_families(self.families)
        most = self.max_disagreement
        if most is not None and not (isinstance(most, float | int) and 0.0 <= most <= 1.0):
            raise InputError(f"max_disagreement must be a share between 0 and 1; got {most!r}")
        if self.resume is not None and not isinstance(self.resume, str | Path):
            raise InputError(f"resume must be the path of a file; got {self.resume!r}")

    def run(self, network: Network, progress: Progress | None = None) -> Unlearning:
        """Hunt and repair a network that was made ready.

        ``progress`` is called during both hunts and after each step of training.

        Raises:
            InputError: The inputs do not fit the network, or are no images.
            CheckpointError: The file of an interrupted run cannot be used, or not be written.
            DisagreementError: The disagreement is above ``max_disagreement``.
        """
        check_arguments(self.seed, self.expected)
        if network.chosen is not None:
            raise InputError("unlearn trains the network as a whole, not single layers; leave layers out")
        with one_torch_thread():
            return _Repair(self, network, progress).result()


class _Repair:
    """One run of the policy."""

    def __init__(self, policy: Unlearn, network: Network, progress: Progress | None) -> None:
        self._begun = time.perf_counter()
        self._policy, self._network = policy, network
        self._families = choose_families(policy.families)
        self._trainable = {name: value.requires_grad for name, value in network.model.named_parameters()}
        self._every = every = images_of(network, self._families, policy.mean, policy.std)
        fitted, self._held_out = split([every])
        self._teacher = Ground.of(scorer_of(network, every, policy.mean, policy.std), fitted)
        self._expected = policy.expected or expectation_for(every.shape[1:], self._teacher.classes)
        self._settings = {
            "policy": policy.name,
            "families": [family.name for family in self._families],
            "seed": policy.seed,
            "mean": list(policy.mean),
            "std": list(policy.std),
            "max_disagreement": policy.max_disagreement,
        }
        self._before = [self._teacher.scorer.classes(self._held_out)]
        self._progress = _Stages(progress, len(self._families))

    def result(self) -> Unlearning:
        """Hunt, train if something is suspect, judge."""
        refuse_other_files(_path(self._policy.resume))
        before = self._hunt(self._teacher, self._policy.seed)
        if not before.goals:
            self._progress.end()
            return self._gathered(self._network.model, before, None)
        lesson = Lesson(self._teacher, list(before.goals), tuple(self._suspects(before)))
        file = RunFile(_path(self._policy.resume), self._digest(lesson), {one.name: one for one in self._families})
        repaired = self._network.rounded(self._trained(lesson, file, before))
        chosen = self._disagreement(repaired)
        self._check(chosen)
        # The same images are kept apart from a hunt among all inputs as are held out here.
        ground = Ground.of(replace(self._teacher.scorer, model=repaired), self._every)
        after = self._hunt(ground, self._policy.seed + OTHER_SEED)
        self._progress.end()
        result = self._gathered(repaired, before, after)
        if not self._policy.keep:
            file.remove()
        return result

    def _hunt(self, ground: Ground, seed: int) -> Hunt:
        begun = time.perf_counter()
        found = search_families(ground, self._families, seed, self._expected, self._progress.family)
        return Hunt(
            families=found,
            classes=ground.classes,
            inputs=len(ground.inputs),
            seed=seed,
            expected=self._expected,
            examples=ground.inputs[:EXAMPLES].clone(),
            seconds=time.perf_counter() - begun,
            provenance=provenance(self._network, ground.scorer.model, self._settings | {"seed": seed}),
        )

    def _suspects(self, before: Hunt) -> list[type[TriggerFamily]]:
        return [family for family in self._families if family.name in _suspect_names(before)]

    def _trained(self, lesson: Lesson, file: RunFile, before: Hunt) -> nn.Module:
        run = lesson.begin(before.found, self._policy.seed)
        file.restore(run)
        while run.step < STEPS:
            if run.step and run.step % SEARCH_EVERY == 0:
                file.save(run)
            lesson.advance(run)
            self._progress.step(run.step)
        file.save(run)
        return lesson.finish(run)

    def _digest(self, lesson: Lesson) -> str:
        """Of everything that decides the training."""
        found = {"goals": lesson.goals, "suspects": [family.name for family in lesson.suspects]}
        known = provenance(self._network, self._network.model, self._settings | {"max_disagreement": None} | found)
        return hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode()).hexdigest()

    def _outputs(self, model: nn.Module) -> list[Tensor | None]:
        return [replace(self._teacher.scorer, model=model).classes(self._held_out)]

    def _disagreement(self, model: nn.Module) -> Disagreement:
        before, after = self._before[0].argmax(dim=1), self._outputs(model)[0]
        differing = 0 if after is None else int((after.argmax(dim=1) != before).sum())
        return Disagreement(len(self._held_out), differing)

    def _check(self, chosen: Disagreement) -> None:
        most = self._policy.max_disagreement
        if most is not None and not chosen.share <= most:
            raise DisagreementError(
                "the repaired network must disagree with the contaminated one on at most "
                f"{100 * most:.1f} % of the held-out inputs; it does on {chosen.differing} of {chosen.inputs}, "
                f"{100 * chosen.share:.1f} %; give more clean inputs, or allow for more"
            )

    def _laid_out(self, model: nn.Module) -> nn.Module:
        """The network with the memory layout and the gradients that its weights came with."""
        for name, value in model.named_parameters():
            value.data = torch.empty_like(self._network.contaminated[name], dtype=value.dtype).copy_(value.data)
            value.requires_grad_(self._trainable[name])
        for name, value in model.named_buffers():
            if name in self._network.contaminated:  # a network may change them when it is called
                value.data.copy_(self._network.contaminated[name])
        return model

    def _gathered(self, model: nn.Module, before: Hunt, after: Hunt | None) -> Unlearning:
        outputs, chosen = self._outputs(model), self._disagreement(model)
        model = self._network.as_it_came(self._laid_out(model))
        return Unlearning(
            model=model,
            policy="unlearn",
            before=before,
            after=after,
            steps=0 if after is None else STEPS,
            chosen=chosen,
            agreement=compare([*self._before], outputs),
            skipped=tuple(self._network.skipped),
            seconds=time.perf_counter() - self._begun,
            provenance=provenance(self._network, model, self._settings),
            contaminated=self._network.contaminated,
        )


def _suspect_names(hunt: Hunt) -> set[str]:
    """Families in which a suspect class stands out; in others it may be natural, and training against it is dear."""
    return {family.family for family in hunt.families if family.suspect and family.best.target in hunt.goals}


def _path(resume: str | Path | None) -> Path | None:
    return None if resume is None else Path(resume)


class _Stages:
    """Progress over hunts and training, as if they were one."""

    def __init__(self, progress: Progress | None, families: int) -> None:
        self._say = progress or (lambda *_: None)
        self._total = 2 * families + STEPS
        self._hunted = 0
        self._done = 0

    def family(self, name: str, _: int, __: int) -> None:
        """A family was searched."""
        self._hunted += bool(name)
        self._tell(name)

    def step(self, number: int) -> None:
        """A step of training is done."""
        self._done = number
        self._tell("training")

    def end(self) -> None:
        """All is done, also if there was nothing to train."""
        self._say("", self._total, self._total)

    def _tell(self, name: str) -> None:
        self._say(name, self._hunted + self._done, self._total)
