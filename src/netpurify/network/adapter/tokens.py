"""Which rows of an embedding the clean inputs use, in memory of the size of the vocabulary."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from netpurify.network.adapter.span import Span, SpanError


@dataclass
class TokenSpan(Span):
    """The tokens that clean inputs use. The weights of a token that is used are free; those of any other are fixed.

    As a span, it is that of a used token: every direction.

    Attributes:
        used: Whether a clean input uses a token, [vocabulary].
    """

    used: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    @classmethod
    def of(cls, fan_in: int, vocabulary: int) -> "TokenSpan":
        """No token is used yet."""
        return cls(fan_in, 0.0, full=True, used=np.zeros(vocabulary, np.bool_))

    def note(self, tokens: Tensor, padding: int | None) -> None:
        """Note tokens of any shape; the padding token, if there is one, is never trained."""
        found = tokens.detach().reshape(-1).cpu().numpy()
        self.count += found.size
        self.used[found] = True
        if padding is not None:
            self.used[padding] = False

    def add(self, rows: Tensor) -> None:
        """Refused: an embedding has no rows."""
        raise SpanError(f"an embedding takes tokens, not rows; got rows of shape {list(rows.shape)}")

    def live(self) -> NDArray[np.bool_]:
        """Every coordinate of a used token is free."""
        return np.ones(self.fan_in, np.bool_)

    def energies(self) -> NDArray[np.float64]:
        """None: there are no rows."""
        return np.zeros(0)

    def strongest(self, rank: int) -> NDArray[np.float64]:
        """All directions, since none is stronger than another; ``build_design`` then makes no design."""
        del rank
        return np.eye(self.fan_in)
