"""All commands, and what becomes of whatever they raise."""

import sys
import traceback
from typing import Annotated

import typer

import netpurify
from netpurify.cli import (
    BROKEN,
    INTERRUPTED,
    check,
    contaminate,
    data,
    defend,
    demo,
    diff,
    hunt,
    project,
    recover,
    reproduce,
    scan,
    study,
    theory,
    unlearn,
    verify,
)
from netpurify.cli.screen import complain, complain_at_length
from netpurify.errors import DisagreementError, NetpurifyError

_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""Whatever the parser refuses; typer exports only this one kind of it."""

app = typer.Typer(
    name="netpurify",
    help="Find and repair altered or poisoned weights of neural networks without labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
app.command("scan")(scan.scan)
app.command("check")(check.check)
app.command("recover")(recover.recover)
app.command("project")(project.project)
app.command("defend")(defend.defend)
app.command("hunt")(hunt.hunt)
app.command("unlearn")(unlearn.unlearn)
app.command("verify")(verify.verify)
app.command("contaminate")(contaminate.contaminate)
app.command("diff")(diff.diff)
app.command("demo")(demo.demo)
app.command("reproduce")(reproduce.reproduce)
app.command("study")(study.study)
app.command("theory")(theory.theory)
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def _options(
    asked: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,  # noqa: FBT002
) -> None:
    if asked:
        typer.echo(f"netpurify {netpurify.__version__}")
        raise typer.Exit


def run() -> int:
    """Run the command that ``sys.argv`` names; what it raises becomes a message and an exit code."""
    try:
        code = app(prog_name="netpurify", standalone_mode=False)
        sys.stdout.flush()
    except _UsageError as error:
        return _refuse(error)
    except NetpurifyError as error:
        complain(str(error))
        return 1 if isinstance(error, DisagreementError) else 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except typer.Abort as error:
        # The parser makes one of an EOFError too, such as that of a file which is cut short; no command asks questions.
        return _fault() if isinstance(error.__cause__, EOFError) else INTERRUPTED
    except MemoryError as error:
        return _short_of_memory(error)
    except ImportError as error:
        complain_at_length(traceback.format_exc())
        complain(f"netpurify is not installed whole ({error}); install it again with all that it needs")
        return BROKEN
    except BaseException as error:
        if isinstance(error, RuntimeError) and "can't allocate memory" in str(error):  # as torch says it
            return _short_of_memory(error)
        return _fault()
    return code if isinstance(code, int) else 0


def _fault() -> int:
    complain_at_length(traceback.format_exc())
    complain("this is a fault of netpurify, not of your input; please report it with the lines above")
    return BROKEN


def _short_of_memory(error: Exception) -> int:
    complain(f"there is not enough memory for it ({error}); give fewer or smaller inputs, or a smaller --batch")
    return 2


def _refuse(error: Exception) -> int:
    """What the parser could not understand, and where the help is."""
    context, message = getattr(error, "ctx", None), error.format_message()  # pyright: ignore[reportAttributeAccessIssue]
    if message:  # with rich, the help that a bare command gives is printed already
        complain(message)
    if message and context is not None:
        complain_at_length(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n")
    return 2
