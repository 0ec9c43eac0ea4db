"""``netpurify theory``: the paper's statements beside what one run measures."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.compiling import compiling
from netpurify.cli.screen import note, show_json, show_table
from netpurify.errors import DataError, InputError

if TYPE_CHECKING:
    from torch import Tensor

    from netpurify.paper.theory import Examination, Interval, Row

_MOST = 10**9
"""Numbers of 8 bytes in the largest array; ten million times the paper's sizes is a slip of the keyboard."""


def theory(
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,  # noqa: FBT002
) -> None:
    """Set the paper's conditions and bounds beside one measured run.

    Example: [bold]netpurify theory --k 150 --p 1000 --regime sequential --eps 0.2[/bold]
    """
    if regime not in options.REGIMES:
        raise InputError(f"regime must be {', '.join(options.REGIMES[:-1])} or {options.REGIMES[-1]}; got {regime!r}")
    if inputs is not None:
        _check_file(inputs)
    _check_sizes({"n m k": n * m * k if inputs is None else 0, "k p": k * p, "n m p": n * m * p, "n n": n * n})

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
    columns = ("where", "quantity", "the paper's bound", "measured", "verdict", "note")
    show_table(_title(found), columns, [_cells(row) for row in found.rows], numbers=(2, 3))
    note("A condition that is to be 'sufficiently small' counts as holding below 1: the paper names no constant.")


def _check_sizes(sizes: dict[str, int]) -> None:
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
