"""One error of the paper, with what shows it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["misprint", "false", "contradiction"]


@dataclass(frozen=True, slots=True)
class Erratum:
    """One error of the paper.

    Attributes:
        kind: ``"misprint"`` if the authors clearly meant the right formula, ``"false"`` for a bound or step that is
            not true, ``"contradiction"`` where the paper says two things.
        place: Where it stands.
        printed: What is printed.
        correct: What is right; for a contradiction, what is taken here.
        shows: What shows it, with a place for each number.
        numbers: Computes the numbers.
    """

    kind: Kind
    place: str
    printed: str
    correct: str
    shows: str
    numbers: Callable[[], tuple[float, ...]] = tuple

    def evidence(self) -> str:
        """What shows it, with numbers computed now."""
        return self.shows.format(*self.numbers())


SIZES = "n = m = 5, k = 100, p = 300"
"""Where most numbers are measured: sizes of the paper's Figure 2."""
