"""Conditions and bounds of Theorems 1 to 3 and of the lemmas: as the paper states them, and corrected for m patches.

Where the corrected dependence on m comes from: a feature is a sum of m rectified Gaussians, with the mean m/sqrt(2pi)
and the variance m (1/2 - 1/2pi), where the proofs often take the sum for one of them. So an entry of G is near m^2/2pi
and not near 1/2pi, G's largest eigenvalue is near n m^2/2pi, H's eigenvalues are near m/2, and |f(0)|^2 is near
n m^2/2pi. docs/errata.md has each of them with a number.
"""

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
            ("Theorem 1 corrected", "m^2 n gamma / (2pi n)"): self.output_eigenvalue * self.step,
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
    def output_eigenvalue(self) -> float:
        """(15) corrected: lambda_max(G) is n m^2 / 2pi to first order, where the paper has mn up to a constant."""
        return self.n * self.m**2 / (2.0 * math.pi)

    @property
    def hidden_eigenvalue(self) -> float:
        """(16) corrected: lambda(H) is m/2 to first order in n/k and mn/k, where the paper has 1 up to a constant."""
        return self.m / 2.0

    @property
    def output_kernel(self) -> float:
        """Lemma 5's bound on |G - G-bar|^2, without its constant."""
        mn = self.m * self.n
        return mn**2 / self.p + math.log(mn) / self.k + (self.n / self.k) ** 2

    @property
    def output_kernel_corrected(self) -> float:
        """Lemma 5 for G-bar summed over pairs of patches.

        An entry of G varies as m^(3/2) / sqrt(p), because a feature is m/sqrt(2pi) give or take sqrt(m); the diagonal
        by m log(mn) / k through the sizes of patches, and the second order adds m^2 / (4 pi k) to every entry.
        """
        n, m, k = self.n, self.m, self.k
        return m**3 * n**2 / self.p + m * math.log(m * n) / k + (m**2 * n / k) ** 2

    @property
    def hidden_kernel(self) -> float:
        """Lemma 8's bound on |H - H-bar|^2, without its constant."""
        n, m, k, p = self.n, self.m, self.k, self.p
        return (m * n) ** 2 / (p * k) + m**2 * n / p + math.log(m * n) / k + (n / k) ** 2

    @property
    def hidden_kernel_corrected(self) -> float:
        """Lemma 8 for H-bar summed over pairs of patches: the terms without p get the m's of Lemma 5 corrected."""
        n, m, k, p = self.n, self.m, self.k, self.p
        return (m * n) ** 2 / (p * k) + m**2 * n / p + m * math.log(m * n) / k + (m**2 * n / k) ** 2

    @property
    def bias(self) -> float:
        """The bound on mean |b_j| in the proof of Theorem 2, without its constant."""
        return (self.m * self.n) ** 2 * math.log(self.p) / self.p

    @property
    def simple_ratio(self) -> float:
        """Lemma 4's condition for W: what is to be small."""
        mn = self.m * self.n
        return math.sqrt(mn / self.k) * math.log(math.e * self.k / mn) / (1.0 - self.share)

    @property
    def output_error(self) -> float:
        """Theorem 2's bound on |beta~ - beta|^2 / p, without its constant."""
        return (self.m * self.n) ** 3 * math.log(self.p) / self.p
