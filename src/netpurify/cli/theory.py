"""``netpurify theory``: the paper's statements beside what runs measure, along one letter, and the paper's errata."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.compiling import compiling
from netpurify.cli.outputs import check_outputs
from netpurify.cli.screen import note, show_json, show_line, show_table
from netpurify.errors import DataError, InputError

if TYPE_CHECKING:
    from torch import Tensor

    from netpurify.paper.theory import Examination, Interval, Row, Setting, TheorySweep

_SWEEPS = {"m": "1,2,5,10,20,40", "k": "50,100,200,400", "p": "100,300,1000,3000", "n": "2,5,10,20"}
"""The letters of a sweep, and the values that each takes if none are given."""
_MOST = 10**9
"""Numbers of 8 bytes in the largest array; ten million times the paper's sizes is a slip of the keyboard."""


def theory(
    context: typer.Context,
    n: Annotated[int, typer.Option("--n", min=1, help="Training inputs, which also purify.")] = 5,
    m: Annotated[int, typer.Option("--m", min=1, help="Patches of an input.")] = 5,
    k: Annotated[int, typer.Option("--k", min=1, help="Entries of a patch.")] = 100,
    p: Annotated[int, typer.Option("--p", min=2, help="Filters.")] = 300,
    gamma: Annotated[float, typer.Option(help="Step size of Algorithm 1.")] = 0.1,
    eps: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of altered weights, N(1, 1) added.")] = 0.2,
    regime: Annotated[
        str, typer.Option(help="joint (Theorem 2), sequential or sequential-fixed (Theorem 3).")
    ] = "joint",
    steps: Annotated[int, typer.Option(min=1, max=10**9, help="Most steps of gradient descent.")] = 1000,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Seed of data, initial weights and contamination.")
    ] = 0,
    inputs: Annotated[Path | None, typer.Option(help="Training inputs [n, m k] as .npy instead of N(0, I).")] = None,
    sweep: Annotated[
        str | None,
        typer.Option(metavar="LETTER", help="Follow the statements up to a constant along m, k, p or n instead."),
    ] = None,
    values: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Values of the sweep; for m 1,2,5,10,20,40.")
    ] = None,
    errata: Annotated[bool, typer.Option("--errata", help="The paper's errata, with numbers, instead.")] = False,  # noqa: FBT002
    markdown: Annotated[Path | None, typer.Option(help="Write the errata to this file as a page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,  # noqa: FBT002
) -> None:
    """Set the paper's conditions and bounds beside one measured run, or follow them along one letter.

    Example: [bold]netpurify theory --k 150 --p 1000 --regime sequential --eps 0.2[/bold]

    Example: [bold]netpurify theory --sweep m --values 1,2,5,10[/bold]
    """
    _check_modes(sweep=sweep, values=values, errata=errata, markdown=markdown, as_json=as_json, inputs=inputs)
    if errata:
        _refuse_sizes(context)
        _show_errata(markdown)
        return
    if regime not in options.REGIMES:
        raise InputError(f"regime must be {', '.join(options.REGIMES[:-1])} or {options.REGIMES[-1]}; got {regime!r}")
    if inputs is not None:
        _check_file(inputs)
    letters = {"n": n, "m": m, "k": k, "p": p}
    swept = _parse_values(sweep, values) if sweep else []
    for changed in [{sweep: value} for value in swept] if sweep else [{}]:
        _check_sizes(letters | changed, given=inputs is not None)
    if sweep:
        if regime != "joint":
            raise InputError(f"a sweep trains jointly; got the regime {regime!r}; leave --regime out")
        base = {**letters, "gamma": gamma, "share": eps}
        _sweep(sweep, swept, base, steps=steps, seed=seed, as_json=as_json)
        return

    import torch

    from netpurify.paper.theory import ExaminedSystem, examine

    generator = torch.Generator().manual_seed(seed)
    given = _read(inputs, m * k) if inputs else torch.randn(n, m * k, generator=generator, dtype=torch.float64)
    targets = 2.0 * torch.rand(given.shape[0], generator=generator, dtype=torch.float64) - 1.0
    chosen: Any = {"m": m, "p": p, "gamma": gamma, "share": eps, "regime": regime, "steps": steps}
    with compiling():
        found = examine(
            given,
            targets,
            system=ExaminedSystem(**chosen),
            generator=generator,
            progress=None if as_json else note,
        )
    if as_json:
        show_json(netpurify.report.examination_record(found, seed=seed))
        return
    columns = ("where", "quantity", "bound", "measured", "verdict", "note")
    show_table(_title(found), columns, [_cells(row) for row in found.rows], numbers=(2, 3))
    note("A condition that is to be 'sufficiently small' counts as holding below 1: the paper names no constant.")
    note("Bounds are the paper's, but for rows that say corrected. Extremes of G, H, r are over t = 0, 1, 2, 4, 8, ...")


def _refuse_sizes(context: typer.Context) -> None:
    """The errata have their own sizes, so that others would be ignored."""
    sizes = ("n", "m", "k", "p", "gamma", "eps", "regime", "steps", "seed")
    given = [f"--{name}" for name in sizes if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    if given:
        raise InputError(f"--errata has sizes of its own, which its rows name; leave out {', '.join(given)}")


def _check_modes(
    *,
    sweep: str | None,
    values: str | None,
    errata: bool,
    markdown: Path | None,
    as_json: bool,
    inputs: Path | None,
) -> None:
    if sweep is not None and sweep not in _SWEEPS:
        raise InputError(f"--sweep must be one of {', '.join(_SWEEPS)}; got {sweep!r}")
    if sweep is None and values is not None:
        raise InputError("--values are those of --sweep; name the letter with --sweep m, k, p or n")
    if sweep is not None and (errata or inputs is not None):
        raise InputError("--sweep draws its own inputs and goes neither with --inputs nor with --errata")
    if markdown is not None and not errata:
        raise InputError("--markdown writes the errata; give --errata too")
    if errata and as_json:
        raise InputError("--errata prints a table, or a page with --markdown FILE; it has no JSON")
    check_outputs([markdown], inputs=[inputs])


def _parse_values(letter: str, values: str | None) -> list[int]:
    words = (values or _SWEEPS[letter]).split(",")
    least = 2 if letter == "p" else 1
    if not all(word.strip().isdecimal() and len(word) < 20 for word in words):
        raise InputError(f"--values must be whole numbers with commas between them, such as 1,2,5; got {values!r}")
    found = [int(word) for word in words]
    if len(set(found)) < 3 or min(found) < least:
        raise InputError(f"--values must have at least three different numbers, from {least} on; got {values!r}")
    return found


def _sweep(letter: str, values: list[int], base: dict[str, Any], *, steps: int, seed: int, as_json: bool) -> None:
    import torch

    from netpurify.paper import theory as paper_theory

    generator = torch.Generator().manual_seed(seed)
    setting = paper_theory.Setting(**base)
    chosen: Any = letter
    with compiling():
        found = paper_theory.sweep(
            chosen, values, base=setting, generator=generator, steps=steps, progress=None if as_json else note
        )
    if as_json:
        show_json(netpurify.report.sweep_record(found, seed=seed))
        return
    columns = ("where", "measured over bound", *(f"{letter}={value}" for value in found.values), "exponent", "verdict")
    rows = [
        (one.part, one.quantity, *(f"{value:.2g}" for value in one.constants), f"{one.exponent:.2f} ± {one.error:.2f}",
         str(one.verdict) or "not clear")
        for one in found.statements
    ]  # fmt: skip
    show_table(_sweep_title(found, setting), columns, rows, numbers=range(2, 3 + len(found.values)))
    note("A statement up to a constant fails in a letter where the constant grows with it: where the exponent of a")
    note("power law fitted to all runs is above 0.2 by two standard errors. It holds where it is below by as much.")


def _sweep_title(found: TheorySweep, base: Setting) -> str:
    sizes = {"n": base.n, "m": base.m, "k": base.k, "p": base.p}
    fixed = ", ".join(f"{name} = {size}" for name, size in sizes.items() if name != found.letter)
    gammas = [setting.gamma for setting in found.settings]
    gamma = f"{base.gamma:g}" if min(gammas) == base.gamma else f"{max(gammas):g} to {min(gammas):g} (at most 2/m^2)"
    return f"{fixed}, gamma = {gamma}, eps = {base.share:g}, joint, {found.trials} runs per value"


def _show_errata(markdown: Path | None) -> None:
    from netpurify.paper.theory import ERRATA, surviving_orders

    with compiling():
        if markdown is not None:
            netpurify.report.save(markdown, netpurify.report.errata_markdown(ERRATA, surviving_orders()))
            show_line(f"{len(ERRATA)} errata: {markdown}")
            return
        rows = [(one.kind, one.place, one.printed, one.correct, one.evidence()) for one in ERRATA]
    show_table("Errata of the paper", ("kind", "where", "printed", "right", "what shows it"), rows)


def _check_sizes(letters: dict[str, int], *, given: bool) -> None:
    n, m, k, p = (letters[name] for name in "nmkp")
    sizes = {
        "n m k": 0 if given else n * m * k,
        "k p": k * p,
        "n m p": n * m * p,
        "n n": n * n,
        "n n m m": (n * m) ** 2,
    }
    for name, size in sizes.items():
        if size > _MOST:
            raise InputError(
                f"the largest array may have {_MOST:,} numbers; {name} is {size:,}; give smaller --n, --m, --k or --p"
            )


def _check_file(path: Path) -> None:
    try:
        problem = "" if stat.S_ISREG(path.stat().st_mode) else "Not a regular file"
    except OSError as error:
        problem = error.strerror
    if problem:
        raise InputError(f"--inputs must be a .npy file of numbers [n, m k]; {path}: {problem}")


def _read(path: Path, size: int) -> Tensor:
    import torch

    from netpurify.checkpoint import open_regular
    from netpurify.data import read_npy

    try:
        with open_regular(path) as stream:
            values = read_npy(stream, str(path), limit=None)
    except OSError as error:
        raise InputError(f"--inputs must be a .npy file of numbers [n, m k]; {path}: {error.strerror}") from error
    except DataError as error:
        raise InputError(f"--inputs must be a .npy file of numbers [n, m k]; {error}") from error
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise InputError(f"--inputs must hold real numbers [n, m k]; {path} does not")
    if values.shape[1] != size:
        raise InputError(f"--inputs must be [n, m k] = [n, {size}]; {path} holds {list(values.shape)}; set --m and --k")
    return torch.from_numpy(values.astype("float64"))


def _title(found: Examination) -> str:
    s, path = found.setting, found.training.trajectories
    took = " + ".join(f"{phase.steps} steps{'' if phase.converged else ' (not converged)'}" for phase in path)
    return f"n = {s.n}, m = {s.m}, k = {s.k}, p = {s.p}, gamma = {s.gamma:g}, eps = {s.share:g}, {found.regime}: {took}"


def _cells(row: Row) -> tuple[str, ...]:
    bound = row.relation if row.bound is None else f"{row.relation} {row.bound:.4g}".strip()
    return row.part, row.quantity, bound, _number(row.measured), str(row.verdict), row.note


def _number(value: float | Interval | None) -> str:
    from netpurify.paper.theory import Interval

    if value is None:
        return "-"
    return f"[{value.low:.4g}, {value.high:.4g}]" if isinstance(value, Interval) else f"{value:.4g}"
