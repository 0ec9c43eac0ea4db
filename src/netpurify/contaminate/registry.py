"""Tables of classes by name: a class adds itself by a decorator, so that its name and options stand in its own file."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Generic, TypeVar, get_type_hints

from netpurify.errors import InputError

Kind = TypeVar("Kind")
Class = TypeVar("Class", bound=type)


@dataclass(frozen=True, slots=True)
class Registry(Generic[Kind]):
    """Dataclasses of one kind, by the names that the command line gives them.

    Attributes:
        kind: What the classes are, in one word for error messages: ``"law"``.
        classes: The classes by name, in the order of their definition.
    """

    kind: str
    classes: dict[str, type[Any]] = field(default_factory=dict)

    def register(self, name: str) -> Callable[[Class], Class]:
        """A decorator that adds a dataclass under ``name``.

        Raises:
            ValueError: Another class has that name.
        """

        def add(registered: Class) -> Class:
            if name in self.classes:
                raise ValueError(f"the {self.kind} {name!r} is registered twice; choose another name")
            self.classes[name] = registered
            return registered

        return add

    def make(self, name: str, options: Mapping[str, str] | None = None) -> Kind:
        """An instance of the class called ``name``, for example ``LAWS.make("normal", {"sd": "0.5"})``.

        Args:
            name: A name in ``classes``.
            options: Fields of the dataclass as text, for whole and real numbers; the others keep their defaults.

        Raises:
            InputError: No class has that name, it has no such option, an option is missing, or a value makes no sense.
        """
        if name not in self.classes:
            raise InputError(f"the {self.kind} must be one of {', '.join(self.classes)}; got {name!r}")
        kind = self.classes[name]
        known = {option.name: option for option in fields(kind)}
        given = dict(options or {})
        unknown = [option for option in given if option not in known]
        if unknown:
            raise InputError(f"the {self.kind} {name} has {_listed(known)}; got {', '.join(unknown)}")
        missing = [option for option, about in known.items() if about.default is MISSING and option not in given]
        if missing:
            raise InputError(f"the {self.kind} {name} needs {_listed(known)}; {', '.join(missing)} is missing")
        types = get_type_hints(kind)
        return kind(**{option: self._number(name, option, text, types[option]) for option, text in given.items()})

    def _number(self, name: str, option: str, text: str, expected: Any) -> float:
        whole = expected in (int, int | None)
        try:
            return int(text) if whole else float(text)
        except ValueError as error:
            words = "a whole number" if whole else "a number"
            raise InputError(f"{option} of the {self.kind} {name} must be {words}; got {text!r}") from error


def _listed(known: Mapping[str, object]) -> str:
    return f"the options {', '.join(known)}" if known else "no options"
