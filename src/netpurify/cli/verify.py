"""``netpurify verify``: check a proof again, without solver, data or trust in who made it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import netpurify
from netpurify.cli import options
from netpurify.cli.compiling import compiling
from netpurify.cli.factory import find_factory
from netpurify.cli.screen import complain, show_line, show_table
from netpurify.cli.sources import check_initial, check_sources, choose_initial, find_settings

if TYPE_CHECKING:
    from torch import Tensor

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
    check_sources([proof, contaminated, purified, initial])
    claimed = netpurify.network.load_proof(proof)
    build = None if factory is None else find_factory(factory, factory_args)
    needed = "this proof" if claimed.digests["initial"] is not None else ""
    check_initial(initial, initial_seed, needed=needed)
    start = choose_initial(initial, initial_seed, build, weights=contaminated)
    states = {"contaminated": netpurify.checkpoint.load_weights(contaminated), "initial": _read(start)}
    states["purified"] = netpurify.checkpoint.load_weights(purified)
    settings = find_settings(contaminated)
    # A file of a network of transformers may have other names than the network has, of which the proof speaks.
    if settings is not None and netpurify.checkpoint.digest(states["contaminated"]) != claimed.digests["contaminated"]:
        states = _as_in_network(states, contaminated, purified, settings)
    problems = _compare_digests(claimed, states, quiet=quiet)
    if not problems:
        with compiling(quiet=quiet):
            problems = _check_proof(claimed, states, quiet=quiet)
    for problem in problems:
        complain(problem)
    show_line(
        "not sound" if problems else "sound: every fit is a proven minimum, every changed weight follows from one"
    )
    raise typer.Exit(1 if problems else 0)


def _read(initial: Path | Seeded | None) -> dict[str, Tensor] | None:
    if initial is None:
        return None
    from netpurify.network import resolve

    return resolve(initial)


def _as_in_network(
    states: Mapping[str, dict[str, Tensor] | None], contaminated: Path, purified: Path, settings: Path
) -> dict[str, dict[str, Tensor] | None]:
    """The weights under the names of the network that transformers builds from its settings."""
    from netpurify.network import load_pretrained, names_in, resolve

    model, initial = load_pretrained(contaminated, config=settings), states["initial"]
    return {
        "contaminated": resolve(model),
        "initial": initial and {name: initial[given] for given, name in names_in(model, initial).items()},
        "purified": resolve(load_pretrained(purified, config=settings)),
    }


def _compare_digests(claimed: ProofFile, states: Mapping[str, dict[str, Tensor] | None], *, quiet: bool) -> list[str]:
    rows, problems = [], []
    for role, state in states.items():
        found, wanted = None if state is None else netpurify.checkpoint.digest(state), claimed.digests[role]
        rows.append((role, str(found or "-")[:16], str(wanted or "-")[:16], "yes" if found == wanted else "no"))
        if found != wanted:
            problems.append(f"the {role} weights are not those that the proof speaks of; give the file of that run")
    if not quiet:
        show_table("", ("weights", "digest", "in the proof", "the same"), rows)
    return problems


def _check_proof(claimed: ProofFile, states: Mapping[str, dict[str, Tensor] | None], *, quiet: bool) -> list[str]:
    from netpurify.cli.tables import show_proof_check
    from netpurify.report import module_name

    before, initial, after = states["contaminated"], states["initial"], states["purified"]
    assert before is not None
    assert after is not None
    claim = netpurify.network.RepairClaim(
        before, initial, after, claimed.policy, claimed.decays, claimed.noise_floor, claimed.frozen
    )
    found = netpurify.network.verify_proof(claimed.proofs, claim)
    if not quiet:
        show_proof_check(found)
    if not found.layers:
        return ["the proof speaks of no layer, so it proves nothing"]
    return [
        f"{module_name(layer.name)}: fits that are no proven minimum: {layer.units - layer.certified}; weights that "
        f"were changed and do not follow from a proven fit: {layer.unexplained}"
        for layer in found.layers
        if (layer.certified < layer.units and not layer.half) or layer.unexplained
    ]
