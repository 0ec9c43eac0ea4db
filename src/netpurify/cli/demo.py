"""``netpurify demo``: three small networks on bundled images, and files on which to try the other commands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import netpurify
from netpurify.atomic import write_atomically
from netpurify.cli.compiling import compiling
from netpurify.cli.outputs import all_or_none, check_drawing, check_outputs
from netpurify.cli.screen import note, show_line, show_table
from netpurify.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from netpurify.experiments import demo as stories

_FILES = (
    "initial.safetensors", "contaminated.safetensors", "purified.safetensors", "proof.safetensors", "inputs.npy",
    "images.npy", "report.html",
)  # fmt: skip


def demo(
    folder: Annotated[Path, typer.Option(help="Where the report and the files to try are written.")] = Path(
        "netpurify-demo"
    ),
) -> None:
    """Recover altered weights, remove a backdoor, leave a healthy network alone: no download, half a minute of work.

    Example: [bold]netpurify demo --folder netpurify-demo[/bold]
    """
    _make(folder)
    check_outputs([folder / name for name in _FILES], inputs=[])
    check_drawing(folder / "report.html")

    from netpurify.cli.tables import show_layers
    from netpurify.experiments import demo as stories

    begun = time.monotonic()
    note("1. a CNN whose weights were altered after training")
    with compiling():
        story = stories.recovery()
    show_layers(story.result)
    _show_largest(story, 5)
    note("2. a CNN that learnt a backdoor from poisoned images")
    with compiling():
        learnt = stories.backdoor()
    note("3. a healthy CNN")
    untouched = stories.healthy(story.trained, story.inputs, story.initial)
    with all_or_none():
        _save(story, folder)
        show_line("")
        columns = ("", "network", "measured", "before", "after")
        show_table("", columns, _rows(story, learnt, untouched=untouched), numbers=(3, 4))
        show_line(f"report: {folder / 'report.html'}; {time.monotonic() - begun:.0f} s, no labels, no download")
        show_line(f"try: {_command(folder, stories.SEED)}")
    raise typer.Exit(0 if story.right and untouched else 1)


def _show_largest(story: stories.Recovery, count: int) -> None:
    truth = story.trained.state_dict()
    rows = [
        (netpurify.report.place(entry), f"{entry.was:.7g}", f"{entry.now:.7g}",
         f"{float(truth[entry.tensor][entry.index]):.7g}")
        for entry in netpurify.report.largest_changes(story.result, count)
    ]  # fmt: skip
    show_line("")
    show_table("", ("altered weight", "contaminated", "recovered", "true"), rows, numbers=(1, 2, 3))


def _rows(story: stories.Recovery, learnt: stories.Backdoor, *, untouched: bool) -> list[tuple[str, ...]]:
    hit = sum(int(mask.sum()) for mask in story.hit.values())
    total = sum(mask.numel() for mask in story.hit.values())
    poisoned = f"{learnt.poisoned} of {learnt.training} images poisoned"
    rates = [
        [f"{100 * rate:.1f} %" for rate in (found.accuracy, found.asr, found.asr_all, found.ra)]
        for found in learnt.rates
    ]
    titles = ("accuracy (ACC)", "attack success (ASR)", "the same, all images", "robust accuracy (RA)")
    return [
        ("1", "altered after training", "altered weights", f"{hit:,} of {total:,}", ""),
        ("", "", "called altered", "", f"{len(story.result.altered):,}"),
        ("", "", "exactly the altered ones", "", "yes" if story.right else "no"),
        ("", "", "largest error of a weight", f"{_error(story):.1e}", f"{story.largest_error:.1e}"),
        *((("2", poisoned) if not place else ("", "")) + (title, rates[0][place], rates[1][place])
          for place, title in enumerate(titles)),
        ("3", "healthy", "left bit for bit as it was", "", "yes" if untouched else "no"),
    ]  # fmt: skip


def _error(story: stories.Recovery) -> float:
    truth, dirty = story.trained.state_dict(), story.contaminated.state_dict()
    return max(float((dirty[name] - truth[name]).abs().max()) for name in truth)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"--folder {folder} cannot be made ({problem.strerror}); choose another place") from problem


def _save(story: stories.Recovery, folder: Path) -> None:
    import numpy as np

    from netpurify.experiments import demo as stories

    networks: dict[str, nn.Module] = {
        "initial": story.initial, "contaminated": story.contaminated, "purified": story.result.model,
    }  # fmt: skip
    for name, model in networks.items():
        netpurify.checkpoint.save_weights(model.state_dict(), folder / f"{name}.safetensors")
    netpurify.network.save_proof(story.result, folder / "proof.safetensors")
    with write_atomically(folder / "inputs.npy") as stream:
        np.save(stream, story.inputs.numpy())
    with write_atomically(folder / "images.npy") as stream:
        np.save(stream, stories.further_images().numpy())
    files = {name: f"{name}.safetensors" for name in networks} | {"data": "inputs.npy"}
    text = netpurify.report.page(
        story.result, title="A fifth of the weights altered", command=_command(folder, stories.SEED), files=files
    )
    netpurify.report.save(folder / "report.html", text)


def _command(folder: Path, seed: int) -> str:
    return (
        f"netpurify recover {folder / 'contaminated.safetensors'} --factory netpurify.experiments.demo:network "
        f"--initial-seed {seed} --data {folder / 'inputs.npy'} -o {folder / 'again.safetensors'}"
    )
