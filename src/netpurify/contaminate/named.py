"""Laws by name, with options as text: what a command line has."""

from collections.abc import Mapping
from dataclasses import MISSING, fields

from netpurify.contaminate.laws import (
    BitFlip,
    Cauchy,
    Constant,
    Erase,
    Laplace,
    Law,
    Normal,
    Quantise,
    Scale,
    SignFlip,
    Uniform,
    Zero,
)
from netpurify.errors import InputError

LAWS: dict[str, type[Law]] = {
    "normal": Normal, "uniform": Uniform, "laplace": Laplace, "cauchy": Cauchy, "constant": Constant, "scale": Scale,
    "sign-flip": SignFlip, "zero": Zero, "erase": Erase, "bit-flip": BitFlip, "quantise": Quantise,
}  # fmt: skip
_WHOLE = ("bit", "bits")


def law_named(name: str, options: Mapping[str, str] | None = None) -> Law:
    """The law of that name, for example ``law_named("normal", {"sd": "0.5"})``.

    Args:
        name: One of ``LAWS``.
        options: Its parameters as text; those that are left out keep their defaults.

    Raises:
        InputError: There is no such law or option, an option is missing, or a value has no meaning.
    """
    if name not in LAWS:
        raise InputError(f"the law must be one of {', '.join(LAWS)}; got {name!r}")
    kind = LAWS[name]
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type] # every law is a dataclass
    given = dict(options or {})
    unknown = [option for option in given if option not in known]
    if unknown:
        raise InputError(f"the law {name} has {_listed(known)}; got {', '.join(unknown)}")
    absent = [option for option, field in known.items() if field.default is MISSING and option not in given]
    if absent:
        raise InputError(f"the law {name} needs {_listed(known)}; {', '.join(absent)} is missing")
    return kind(**{option: _number(name, option, text) for option, text in given.items()})


def _listed(known: Mapping[str, object]) -> str:
    return f"the options {', '.join(known)}" if known else "no options"


def _number(law: str, option: str, text: str) -> float:
    try:
        return int(text) if option in _WHOLE else float(text)
    except ValueError as error:
        kind = "a whole number" if option in _WHOLE else "a number"
        raise InputError(f"{option} of the law {law} must be {kind}; got {text!r}") from error
