"""Statements up to a constant, followed along m, k, p or n: one whose constant grows does not hold in that letter."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch

from netpurify.contaminate import Normal, contaminate
from netpurify.errors import InputError
from netpurify.findings import Verdict
from netpurify.paper.model import PatchCNN, matrix
from netpurify.paper.theory.bounds import Setting
from netpurify.paper.theory.expected import corrected_kernels, printed_kernels
from netpurify.paper.theory.kernels import kernels, lemma_hidden_kernel
from netpurify.paper.theory.lemmas import fit_output, squared
from netpurify.paper.theory.watch import Watch
from netpurify.paper.training import train

Letter = Literal["m", "k", "p", "n"]
LETTERS: tuple[Letter, ...] = ("m", "k", "p", "n")
GROWTH = 0.2
"""A statement fails if the exponent of its constant is above this by two standard errors, and holds if it is below.

Not 0: logarithms and lower orders, which such statements leave to the constant, give up to 0.2 at these sizes.
"""
STEADY = 2.0
"""Most m^2 gamma of a sweep: gamma/n lambda_max(G) is then at most 1/3 or so, and gradient descent settles."""


@dataclass(frozen=True, slots=True)
class SweptStatement:
    """One statement along the values of a letter.

    Attributes:
        part: Where it stands; ``"corrected"`` is in it where the bound is not the paper's.
        quantity: What is bounded, and by what.
        constants: Measured over bound at each value, the geometric mean over trials.
        exponent: Slope of log(constant) on log(value), by least squares over all trials.
        error: The slope's standard error.
    """

    part: str
    quantity: str
    constants: tuple[float, ...]
    exponent: float
    error: float

    @property
    def verdict(self) -> Verdict:
        """Fails where the constant grows clearly, for then it is no constant; ``MEASURED`` where neither is clear."""
        if self.exponent - 2.0 * self.error > GROWTH:
            return Verdict.FAILS
        return Verdict.HOLDS if self.exponent + 2.0 * self.error <= GROWTH else Verdict.MEASURED


@dataclass(frozen=True, slots=True)
class TheorySweep:
    """What became of every statement along the values of one letter.

    Attributes:
        letter: The letter that changes.
        values: Its values, ascending.
        settings: The sizes of each run. Step sizes are the given one, or ``STEADY`` / m^2 where that is smaller.
        trials: Runs per value, each with its own data, initial weights and contamination.
        statements: One per statement.
    """

    letter: Letter
    values: tuple[int, ...]
    settings: tuple[Setting, ...]
    trials: int
    statements: tuple[SweptStatement, ...]


def sweep(
    letter: Letter,
    values: Sequence[int],
    *,
    base: Setting,
    generator: torch.Generator,
    trials: int = 5,
    steps: int = 1000,
    progress: Callable[[str], None] | None = None,
) -> TheorySweep:
    """Run the system at each value of a letter, and fit how the constant of every ≲ statement changes with it.

    Every run trains the network jointly on Gaussian inputs and targets from U(-1, 1), adds N(1, 1) to a share of beta
    and fits it with the initial features. W needs no purification here, so values with mn > k can be looked at too.

    Args:
        letter: ``"m"``, ``"k"``, ``"p"`` or ``"n"``.
        values: At least three different values, at least 1 (2 for p).
        base: All other sizes, the step size and the share.
        generator: Source of data, initial weights and contamination.
        trials: Runs per value.
        steps: Most steps of training.
        progress: Called with the setting of each value before it is run.
    """
    chosen = tuple(sorted(set(values)))
    if letter not in LETTERS:
        raise InputError(f"a sweep is over {', '.join(LETTERS[:-1])} or {LETTERS[-1]}; got {letter!r}")
    least = 2 if letter == "p" else 1
    if len(chosen) < 3 or chosen[0] < least or trials < 1:
        raise InputError(f"a sweep needs at least three different whole numbers from {least} on; got {list(values)}")
    settings = tuple(_steady(_with(base, letter, value)) for value in chosen)
    found: list[list[dict[tuple[str, str], float]]] = []
    for value, setting in zip(chosen, settings, strict=True):
        if progress:
            progress(f"{letter} = {value}")
        found.append([measure(setting, generator=generator, steps=steps) for _ in range(trials)])
    names = found[0][0]
    statements = tuple(_statement(name, chosen, [[run[name] for run in runs] for runs in found]) for name in names)
    return TheorySweep(letter, chosen, settings, trials, statements)


def _with(base: Setting, letter: Letter, value: int) -> Setting:
    changed: dict[str, int] = {letter: value}
    return replace(base, **changed)  # type: ignore[arg-type] # the letters are the fields that are whole numbers


def _steady(setting: Setting) -> Setting:
    """The setting with a step size for which gradient descent settles also at large m."""
    return replace(setting, gamma=min(setting.gamma, STEADY / setting.m**2))


def measure(setting: Setting, *, generator: torch.Generator, steps: int) -> dict[tuple[str, str], float]:
    """Measured over bound for every statement up to a constant, on one run, by part and quantity."""
    n, m, k, p = setting.n, setting.m, setting.k, setting.p
    inputs = torch.randn(n, m * k, generator=generator, dtype=torch.float64)
    targets = 2.0 * torch.rand(n, generator=generator, dtype=torch.float64) - 1.0
    model = PatchCNN(m=m, k=k, p=p, generator=generator)
    (G, H), own = kernels(model, inputs), lemma_hidden_kernel(model, inputs)  # noqa: N806
    printed, corrected = printed_kernels(model, inputs), corrected_kernels(model, inputs)
    start = float(G.trace())  # the mean of |f(0)|^2 over beta(0), which has less noise than one draw of it
    watch = Watch(model, inputs, targets)
    training = train(model, inputs, targets, gamma=setting.gamma, steps=steps, observe=watch)
    path = training.trajectories[0]
    beta, before = (matrix(network.output)[:, 0] for network in (training.trained, training.initial))
    dirty = contaminate({"beta": beta}, Normal(1.0, 1.0), share=setting.share, generator=generator).state["beta"]
    fit = fit_output(setting, watch, beta - before, dirty - before)
    high_g, high_h = (max(high for _, high in seen) for seen in (watch.output, watch.hidden))
    beyond = max(size / (setting.step * float(path.residual[t])) for t, size in watch.beyond)
    return {
        ("(11)", "max |beta_j(t) - beta_j(0)|"): float(path.moved[:, 1].max()) / setting.output_radius,
        ("(12)", "max |W_j(t) - W_j(0)|"): float(path.moved[:, 0].max()) / setting.hidden_radius,
        ("(15)", "lambda_max(G) by mn"): high_g / (m * n),
        ("(15) corrected", "lambda_max(G) by m^2 n / 2pi"): high_g / setting.output_eigenvalue,
        ("(16)", "lambda_max(H) by 1"): high_h,
        ("(16) corrected", "lambda_max(H) by m / 2"): high_h / setting.hidden_eigenvalue,
        ("(17)", "|r(t)| / (gamma/n |y - f(t)|)"): beyond / setting.remainder,
        ("Lemma 5", "|G - G-bar|^2"): squared(G - printed.output) / setting.output_kernel,
        ("Lemma 5 corrected", "|G - G-bar|^2"): squared(G - corrected.output) / setting.output_kernel_corrected,
        ("Lemma 8", "|H - H-bar|^2, H of the lemma"): squared(own - printed.hidden) / setting.hidden_kernel,
        ("Lemma 8", "|H - H-bar|^2, H by derivatives"): squared(H - printed.hidden) / setting.hidden_kernel,
        ("Lemma 8 corrected", "|H - H-bar|^2"): squared(H - corrected.hidden) / setting.hidden_kernel_corrected,
        ("Theorem 2", "E |f(0)|^2 by mn"): start / (m * n),
        ("Theorem 2 corrected", "E |f(0)|^2 by m^2 n / 2pi"): start / setting.output_eigenvalue,
        ("Theorem 2", "mean |b_j|"): float(fit.bias.abs().mean()) / setting.bias,
        ("Theorem 2", "|beta~ - beta|^2 / p"): fit.error / setting.output_error,
    }


def _statement(name: tuple[str, str], values: Sequence[int], constants: list[list[float]]) -> SweptStatement:
    logs = np.log(np.maximum(np.asarray(constants), np.finfo(float).tiny))  # [values, trials]
    across = np.repeat(np.log(np.asarray(values, dtype=float)), logs.shape[1])
    across = across - across.mean()
    flat = logs.reshape(-1)
    spread = float(across @ across)
    exponent = float(across @ flat) / spread
    left = flat - flat.mean() - exponent * across
    error = math.sqrt(float(left @ left) / (flat.size - 2) / spread)
    return SweptStatement(*name, tuple(float(value) for value in np.exp(logs.mean(1))), exponent, error)
