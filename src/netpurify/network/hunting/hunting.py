"""Hunting for a backdoor: universal triggers, family by family, that lead inputs of all classes to one class."""

import copy
import os
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace

import torch
from torch import Tensor, nn

from netpurify.errors import InputError
from netpurify.network.adapter.capture import Data
from netpurify.network.hunting.asking import check_families
from netpurify.network.hunting.expectation import Expectation, expectation_for
from netpurify.network.hunting.families import FAMILIES, TriggerFamily
from netpurify.network.hunting.records import FamilyHunt, Hunt
from netpurify.network.hunting.scoring import Ground, Scorer
from netpurify.network.hunting.search import generator_for, search
from netpurify.network.policies.defence.inputs import join
from netpurify.network.prepared import Network, prepare, provenance
from netpurify.threads import one_torch_thread

HuntProgress = Callable[[str, int, int], None]
"""Called with (name of a family, families done, families in all)."""
LEAST_INPUTS = 50
"""Clean inputs, at least: with fewer than ten to judge what was found, a share of them says nothing."""
_MARGIN = 1e-3
"""By how much pixels may lie outside [0, 1]: normalising rounds."""
EXAMPLES = 8
"""Inputs that are kept for pictures."""


def hunt(
    model: nn.Module,
    data: Data,
    *,
    families: Collection[str | type[TriggerFamily]] | None = None,
    seed: int = 0,
    mean: Sequence[float] = (0.0,),
    std: Sequence[float] = (1.0,),
    expected: Expectation | None = None,
    progress: HuntProgress | None = None,
) -> Hunt:
    """Hunt for a backdoor without labels, and without changing anything.

    Families of universal triggers (waves, patches, warps, ...) are searched for triggers that lead inputs of all other
    classes to one class. A class that stands out further than in healthy networks is suspect.

    Args:
        model: The network, which gives scores of classes; it is left as it is.
        data: Clean inputs without labels, some hundred: images [n, c, h, w] as the network takes them.
        families: Which families to search, by name, or classes of your own; ``None`` for all of ``FAMILIES``.
        seed: Of all random numbers. The same seed and inputs give the same result, whatever the number of threads.
        mean: What was subtracted from images in [0, 1] before they were divided by ``std``, one for each channel.
        std: What they were divided by; 1/255 for images that go from 0 to 255.
        expected: What healthy networks show, from ``calibrate``; ``None`` for what was measured with this library.
        progress: Called as ``progress(family, done, total)`` after each family, and once before the first.

    Raises:
        InputError: An argument does not fit, such as inputs that are no images; the message says what to do.
    """
    begun = time.perf_counter()
    check_arguments(seed, expected)
    chosen = choose_families(families)
    network = prepare(model, data)
    inputs = images_of(network, chosen, mean, std)
    settings = {"policy": "hunt", "families": [one.name for one in chosen], "seed": seed}
    settings |= {"mean": list(mean), "std": list(std)}
    with one_torch_thread():
        ground = Ground.of(scorer_of(network, inputs, mean, std), inputs)
        expected = expected or expectation_for(inputs.shape[1:], ground.classes)
        found = search_families(ground, chosen, seed, expected, progress)
    return Hunt(
        families=found,
        classes=ground.classes,
        inputs=len(inputs),
        seed=seed,
        expected=expected,
        examples=inputs[:EXAMPLES].clone(),
        seconds=time.perf_counter() - begun,
        provenance=provenance(network, network.model, settings),
    )


def check_arguments(seed: int, expected: Expectation | None) -> None:
    """Refuse what would fail only after a long search.

    Raises:
        InputError: An argument is of another kind, or gradients cannot be had here.
    """
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise InputError(f"seed must be a whole number; got {seed!r}")
    if expected is not None and not isinstance(expected, Expectation):
        raise InputError(
            f"expected must be what calibrate(hunts, about) or load_expectation(path) gives; got {expected!r:.80}"
        )
    if torch.is_inference_mode_enabled():
        raise InputError("a hunt needs gradients; call it outside of torch.inference_mode()")


def search_families(
    ground: Ground,
    families: Sequence[type[TriggerFamily]],
    seed: int,
    expected: Expectation,
    progress: HuntProgress | None,
) -> tuple[FamilyHunt, ...]:
    """Search every family, several at a time; each has its own random numbers, so that their order does not matter.

    Every family has a network of its own, because a network may keep something of a call on itself.
    """

    def one(family: type[TriggerFamily]) -> FamilyHunt:
        begun = time.perf_counter()
        mine = replace(ground, scorer=replace(ground.scorer, model=copy.deepcopy(ground.scorer.model)))
        with one_torch_thread():
            found = search(mine, family, generator_for(seed, family.name))
        return FamilyHunt(family.name, tuple(found), expected.of(family.name), time.perf_counter() - begun)

    say = progress or (lambda *_: None)
    say("", 0, len(families))
    with ThreadPoolExecutor(workers()) as pool:
        tasks = [pool.submit(one, family) for family in families]
        try:
            for done, task in enumerate(as_completed(tasks), start=1):
                say(task.result().family, done, len(tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            raise
    return tuple(task.result() for task in tasks)


def workers() -> int:
    """Families that are searched at the same time: as many as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_families(asked: Collection[str | type[TriggerFamily]] | None) -> tuple[type[TriggerFamily], ...]:
    """The families that were asked for; if none was, all that change images.

    Raises:
        InputError: There is no such family.
    """
    if asked is None:
        return tuple(family for family in FAMILIES.values() if family.images)
    if isinstance(asked, str) or not isinstance(asked, Collection) or not asked:
        raise InputError(f"families must be a collection of names or classes, at least one; got {asked!r}")
    chosen = []
    for one in asked:
        if isinstance(one, str) and one not in FAMILIES:
            raise InputError(f"a family must be one of {', '.join(FAMILIES)}; got {one!r}")
        found = FAMILIES[one] if isinstance(one, str) else one
        chosen.append(found)
    check_families(chosen)
    return tuple(dict.fromkeys(chosen))


def images_of(
    network: Network, families: Sequence[type[TriggerFamily]], mean: Sequence[float], std: Sequence[float]
) -> Tensor:
    """The clean inputs as one tensor, images brought back to [0, 1].

    Raises:
        InputError: They are too few, or not what the families need.
    """
    places = {value.device.type for value in network.model.parameters()} - {"cpu"}
    if places:
        raise InputError(f"a hunt runs on the CPU; the network is on {', '.join(places)}; give model.cpu()")
    joined = join(network.runner.inputs())
    if not isinstance(joined, Tensor):
        raise InputError(
            f"a hunt needs inputs of one tensor [n, ...]; got {type(joined).__name__}; wrap the network in a module "
            "that takes a single tensor"
        )
    if len(joined) < LEAST_INPUTS:
        raise InputError(f"a hunt needs at least {LEAST_INPUTS} clean inputs, better some hundred; got {len(joined)}")
    wanting = [family.name for family in families if family.images]
    if not wanting:
        return joined.to(_dtype(network)) if joined.is_floating_point() else joined
    if joined.dim() != 4 or not joined.is_floating_point() or min(joined.shape[2:]) < 8:
        raise InputError(
            f"the families {', '.join(wanting)} change images [n, c, h, w] of at least 8 x 8 pixels, as floats; "
            f"got inputs {list(joined.shape)} of {joined.dtype}. For other inputs a hunt needs families of your own, "
            "which say what a trigger may look like there: families=[...], see docs/extend.md. netpurify defend works "
            "without families"
        )
    return _to_pixels(joined.to(_dtype(network)), mean, std)


def scorer_of(network: Network, inputs: Tensor, mean: Sequence[float], std: Sequence[float]) -> Scorer:
    """The network, ready to score images in [0, 1]."""
    model = network.model.requires_grad_(requires_grad=False)
    if inputs.dim() == 4:
        for value in model.parameters():
            if value.dim() == 4:  # the layout with which convolutions are fastest on a CPU
                value.data = value.data.contiguous(memory_format=torch.channels_last)
    broad = (1, -1, 1, 1) if inputs.dim() == 4 else (1,)
    centre, scale = (inputs.new_tensor(list(values)).reshape(broad) for values in (mean, std))
    return Scorer(model, network.runner.forward, centre, scale)


def _dtype(network: Network) -> torch.dtype:
    """The dtype in which the network computes."""
    return next((value.dtype for value in network.model.parameters() if value.is_floating_point()), torch.float32)


def _are_numbers(values: object) -> bool:
    """Whether it is a sequence of finite numbers."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        return False
    return all(isinstance(value, float | int) and abs(value) < float("inf") for value in values)


def _to_pixels(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    channels = images.shape[1]
    for name, values in (("mean", mean), ("std", std)):
        if not _are_numbers(values) or len(values) not in (1, channels):
            raise InputError(
                f"{name} must be {channels} finite numbers, one for each channel, or 1 in a list; got {values!r}"
            )
    if min(std) <= 0.0:
        raise InputError(f"std must be above 0; got {list(std)}")
    centre, scale = (images.new_tensor(list(values)).reshape(1, -1, 1, 1) for values in (mean, std))
    pixels = images * scale + centre
    if bool((pixels < -_MARGIN).any()) or bool((pixels > 1.0 + _MARGIN).any()):
        raise InputError(
            f"images must lie in [0, 1] before they are normalised; got {pixels.min():.4g} to {pixels.max():.4g}; in "
            "Python give the mean and std with which they were normalised, or std=[1/255] for a network that takes "
            "values from 0 to 255; on the command line divide what the file holds by 255: --mean and --std are applied "
            "to values in [0, 1], and --std 0.003921568627 is for a network that takes values from 0 to 255"
        )
    return pixels.clamp(0.0, 1.0)
