"""The conditions and bounds of Theorems 1 to 3, as the paper states them."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """The sizes that the theorems speak of.

    The paper's proofs take steps without the 1/n that its loss has, so the step size of the theorems is
    ``gamma`` / n of Algorithm 1.
    """

    n: int
    m: int
    k: int
    p: int
    gamma: float
    share: float

    @property
    def step(self) -> float:
        """The gamma of the theorems."""
        return self.gamma / self.n

    def conditions(self) -> dict[tuple[str, str], float]:
        """What the paper wants to be sufficiently small, by statement and expression."""
        mn, log_p = self.m * self.n, math.log(self.p)
        return {
            ("Lemma 1", "mn / k"): mn / self.k,
            ("Lemma 1", "mn / sqrt(p)"): mn / math.sqrt(self.p),
            ("Lemma 1", "n log(mn) / k"): self.n * math.log(mn) / self.k,
            ("Theorem 1", "mn log(mn) / k"): mn * math.log(mn) / self.k,
            ("Theorem 1", "(mn)^3 log(p)^4 / p"): mn**3 * log_p**4 / self.p,
            ("Theorem 1", "mn gamma / n"): mn * self.step,
            ("Theorems 2, 3", "log(p) / k"): log_p / self.k,
            ("Theorems 2, 3", "eps sqrt(mn)"): self.share * math.sqrt(mn),
        }

    @property
    def output_radius(self) -> float:
        """R_beta of (11): how far any beta_j(t) can be from beta_j(0)."""
        return 32.0 * math.sqrt((self.m * self.n) ** 2 * math.log(self.p) / self.p)

    @property
    def hidden_radius(self) -> float:
        """R_W of (12): how far any W_j(t) can be from W_j(0)."""
        return 100.0 * self.m * self.n * math.log(self.p) / math.sqrt(self.p * self.k)

    @property
    def decay(self) -> float:
        """1 - gamma/8 of (13): the factor by which |y - f(t)|^2 falls at every step, at least."""
        return 1.0 - self.step / 8.0

    @property
    def remainder(self) -> float:
        """(17) without its constant: how large |r(t)| / (gamma |y - f(t)|) can be."""
        mn = self.m * self.n
        inner = math.sqrt(self.m * self.k) * self.hidden_radius + math.sqrt(math.log(mn) / self.p)
        return mn * math.log(self.p) * inner

    @property
    def output_error(self) -> float:
        """Theorem 2's bound on |beta~ - beta|^2 / p, without its constant."""
        return (self.m * self.n) ** 3 * math.log(self.p) / self.p
