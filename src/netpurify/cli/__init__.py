"""The command line: each command parses, calls one public function, shows the result and chooses the exit code.

Exit codes: 0 all well, 1 findings, or a defence that costs too much, 2 usage or bad input, 3 a fault of netpurify.
"""

import io
import sys
import traceback
from importlib.metadata import version
from typing import Annotated

import typer

from netpurify.cli import check, contaminate, data, demo, diff, purify, reproduce, theory, verify
from netpurify.cli.screen import complain
from netpurify.errors import DisagreementError, NetpurifyError

app = typer.Typer(
    name="netpurify",
    help="Purify contaminated neural networks without labels and without retraining.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
app.command("check")(check.check)
app.command("purify")(purify.purify)
app.command("verify")(verify.verify)
app.command("contaminate")(contaminate.contaminate)
app.command("diff")(diff.diff)
app.command("demo")(demo.demo)
app.command("reproduce")(reproduce.reproduce)
app.command("theory")(theory.theory)
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def _options(
    asked: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,  # noqa: FBT002
) -> None:
    if asked:
        typer.echo(f"netpurify {version('netpurify')}")
        raise typer.Exit


def main() -> None:
    """Run the command line and exit with a code that scripts can use."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a sign must not end the run
    try:
        app(prog_name="netpurify")
    except NetpurifyError as error:
        complain(str(error))
        sys.exit(1 if isinstance(error, DisagreementError) else 2)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(130)
    except Exception:
        traceback.print_exc()
        complain("this is a fault of netpurify, not of your input; please report it with the lines above")
        sys.exit(3)
