"""Progress of purifications, defences and hunts, with the time that is left."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from torch import nn

from netpurify.cli.screen import Bar, note
from netpurify.network import HELD_OUT, layers_of
from netpurify.report import clock, duration, module_name, plural


class LayerBar:
    """Follows ``network.purify``; a layer counts as much as it has weights."""

    def __init__(self, model: nn.Module, layers: Collection[str] | None, inputs: int, *, quiet: bool) -> None:
        """``layers`` are the names that were asked for, ``None`` for all."""
        self._sizes = {
            layer.name: layer.fan_in * layer.units
            for layer in layers_of(model)
            if layers is None or layer.asked_for(layers)
        }
        self._bar = None if quiet else Bar("purify")
        self._begun = time.monotonic()
        self._names: list[str] = []
        if not quiet:
            weights = sum(self._sizes.values())
            size = f"layers: {len(self._sizes)}, weights: {weights:,}, clean inputs: {inputs}"
            note(f"{size}; netpurify check says what to expect")

    def __enter__(self) -> "LayerBar":
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*problem)

    def follow(self, name: str, done: int, total: int) -> None:
        """As ``purify`` calls it: before each layer, and at the end."""
        if self._bar is None:
            return
        finished = sum(self._sizes.get(one, 0) for one in self._names)
        self._names.append(name)
        everything = finished if done == total else sum(self._sizes.values())
        spent = time.monotonic() - self._begun
        left = f", {clock(spent * (everything - finished) / finished)} left" if finished and done < total else ""
        took = "" if done < total else f" in {duration(spent)}"
        now = module_name(name) if done < total else ""
        self._bar.to(finished, everything or 1, f"{done} of {plural(total, 'layer')}{took}{left}", name=now)


@contextmanager
def sweeps(inputs: int, *, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Follows ``network.defend``, which sweeps over the layers several times; every layer of a sweep counts alike."""
    if quiet:
        yield None
        return
    note(f"clean inputs: {inputs}, of which {inputs // HELD_OUT} are held out to judge the defence")
    begun = time.monotonic()
    with Bar("defend") as bar:

        def follow(name: str, done: int, total: int) -> None:
            spent = time.monotonic() - begun
            left = f", at most {clock(spent * (total - done) / done)} left" if 0 < done < total else ""
            took = "" if done < total else f" in {duration(spent)}"
            now = module_name(name) if done < total else ""
            bar.to(done, total, f"{done} of {plural(total, 'fit')}{took}{left}", name=now)

        yield follow


@contextmanager
def hunting(inputs: int, families: int, *, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Follows ``network.hunt``, which searches several families at a time."""
    if quiet:
        yield None
        return
    note(f"clean inputs: {inputs}, families of triggers: {families}; nothing is changed")
    with Bar("hunt") as bar:
        yield _stages(bar, "family", "families")


@contextmanager
def unlearning(inputs: int, families: int, *, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Follows ``Unlearn``: a hunt, steps of training, and another hunt."""
    if quiet:
        yield None
        return
    held_out = f"of which {inputs // HELD_OUT} are held out to judge the repair"
    note(f"clean inputs: {inputs}, {held_out}; families of triggers: {families}, searched before and after training")
    with Bar("unlearn") as bar:
        yield _stages(bar, "step", "steps")


def _stages(bar: Bar, one: str, several: str) -> Callable[[str, int, int], None]:
    """Shows how many stages are done; they take about as long as each other."""
    begun = time.monotonic()
    ended = False

    def follow(_: str, done: int, total: int) -> None:
        nonlocal ended
        if ended:  # the end is told once, though the last stage ends there too
            return
        ended = done >= total
        spent = time.monotonic() - begun
        left = f", about {clock(spent * (total - done) / done)} left" if 0 < done < total else ""
        took = "" if done < total else f" in {duration(spent)}"
        bar.to(done, total, f"{done} of {total} {one if total == 1 else several}{took}{left}")

    return follow


@contextmanager
def checking(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Follows ``network.check``; what takes its time in each layer is the simulation of what it tolerates."""
    if quiet:
        yield None
        return
    begun = time.monotonic()
    with Bar("check") as bar:
        bar.to(0, None, "clean inputs pass through the network")

        def follow(name: str, done: int, total: int) -> None:
            spent = time.monotonic() - begun
            left = f", {clock(spent * (total - done) / done)} left" if 0 < done < total else ""
            took = "" if done < total else f" in {duration(spent)}"
            bar.to(
                done,
                total or 1,
                f"{done} of {total} layers{took}{left}",
                name=module_name(name) if done < total else "",
            )

        yield follow
