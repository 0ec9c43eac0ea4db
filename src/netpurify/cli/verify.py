"""``netpurify verify``: check a proof again, without solver, data or trust in who made it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from torch import Tensor

from netpurify import checkpoint, network
from netpurify.cli import options
from netpurify.cli.factory import find_factory
from netpurify.cli.screen import complain, show_line, show_table
from netpurify.cli.sources import choose_initial
from netpurify.cli.tables import named, show_recheck
from netpurify.network import ProofFile, Seeded


def verify(
    proof: Annotated[Path, typer.Argument(metavar="PROOF", help="The proof that purify wrote.")],
    contaminated: Annotated[Path, typer.Option(help="The weights that were purified.")],
    purified: Annotated[Path, typer.Option(help="The weights that came out.")],
    initial: options.Initial = None,
    initial_seed: options.InitialSeed = None,
    factory: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="Builds the network, for --initial-seed only.")
    ] = None,
    factory_args: options.FactoryArgs = None,
    quiet: options.Quiet = False,  # noqa: FBT002
) -> None:
    """Check every certificate again with matrix products alone; exit code 0 if the proof is sound, 1 if not.

    Example, on the files of [bold]netpurify demo[/bold]:

    [bold]netpurify verify netpurify-demo/proof.safetensors --contaminated netpurify-demo/contaminated.safetensors
    --purified netpurify-demo/purified.safetensors --initial netpurify-demo/initial.safetensors[/bold]
    """
    claimed = network.load_proof(proof)
    build = None if factory is None else find_factory(factory, factory_args)
    needed = "this proof" if claimed.digests["initial"] is not None else ""
    start = choose_initial(initial, initial_seed, build, weights=contaminated, needed=needed)
    states = {"contaminated": checkpoint.load_weights(contaminated), "initial": _read(start)}
    states["purified"] = checkpoint.load_weights(purified)
    problems = _compare_digests(claimed, states, quiet=quiet)
    if not problems:
        problems = _recheck(claimed, states, quiet=quiet)
    for problem in problems:
        complain(problem)
    show_line(
        "not sound" if problems else "sound: every fit is a proven minimum, every changed weight follows from one"
    )
    raise typer.Exit(1 if problems else 0)


def _read(initial: Path | Seeded | None) -> dict[str, Tensor] | None:
    if initial is None:
        return None
    if isinstance(initial, Seeded):
        return {name: value for name, value in initial.build().state_dict().items() if isinstance(value, Tensor)}
    return checkpoint.load_weights(initial)


def _compare_digests(claimed: ProofFile, states: Mapping[str, dict[str, Tensor] | None], *, quiet: bool) -> list[str]:
    rows, problems = [], []
    for role, state in states.items():
        found, wanted = None if state is None else checkpoint.digest(state), claimed.digests[role]
        rows.append((role, str(found or "-")[:16], str(wanted or "-")[:16], "yes" if found == wanted else "no"))
        if found != wanted:
            problems.append(f"the {role} weights are not those that the proof speaks of; give the file of that run")
    if not quiet:
        show_table("", ("weights", "digest", "in the proof", "the same"), rows)
    return problems


def _recheck(claimed: ProofFile, states: Mapping[str, dict[str, Tensor] | None], *, quiet: bool) -> list[str]:
    before, initial, after = states["contaminated"], states["initial"], states["purified"]
    assert before is not None
    assert after is not None
    found = network.recheck(
        claimed.proofs, claimed.decays, before, initial, after, claimed.policy, noise_floor=claimed.noise_floor
    )
    if not quiet:
        show_recheck(found)
    return [
        f"{named(layer.name)}: fits that are no proven minimum: {layer.units - layer.certified}; weights that were "
        f"changed and do not follow from a proven fit: {layer.unexplained}"
        for layer in found.layers
        if layer.certified < layer.units or layer.unexplained
    ]
