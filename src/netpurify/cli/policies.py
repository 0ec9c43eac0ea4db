"""Which options belong to which policy: what a policy has no use for is refused rather than ignored."""

import typer

from netpurify.errors import InputError

_KNOWN = ("recover", "project", "defend")
_OF_DEFEND = ("strength", "no_guard", "max_disagreement")
_OF_FITS = (
    "initial", "initial_seed", "rank", "noise_floor", "decay", "engine", "jobs", "proof", "sarif", "show",
)  # fmt: skip


def refuse_others(context: typer.Context, policy: str) -> None:
    """Refuse options of other policies than the one that was asked for.

    Raises:
        InputError: There are some, and the message names them as they are written; or there is no such policy.
    """
    if policy not in _KNOWN:
        raise InputError(f"--policy must be {', '.join(_KNOWN[:-1])} or {_KNOWN[-1]}; got {policy!r}")
    foreign = _OF_FITS if policy == "defend" else _OF_DEFEND
    given = [one.opts[0] for one in context.command.params if one.name in foreign and _was_given(context, one.name)]
    if not given:
        return
    it = "it" if len(given) == 1 else "them"
    why = f"--policy {policy} has no use for {it}; leave {it} out, or give --policy defend"
    if policy == "defend":
        why = (
            "--policy defend starts from no initial weights, fits no L1 regressions, names no weight as altered and "
            f"proves nothing; leave {it} out, or give --policy recover or project"
        )
    raise InputError(f"{' and '.join(given)} cannot be used: {why}")


def _was_given(context: typer.Context, name: str) -> bool:
    """Whether an option was written, rather than left at its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
