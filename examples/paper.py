"""The paper's system on synthetic data: train, alter a share of the weights, purify; both regimes, several widths."""

import copy

import torch

from netpurify.contaminate import Normal, contaminate
from netpurify.paper import PatchCNN, compare, purify, train
from netpurify.paper.training import Regime

N, M, K, EPS, SEEDS = 5, 5, 100, 0.2, 10


def trial(p: int, regime: Regime, seed: int) -> tuple[float, float, float, float]:
    """Share of recovered units, their largest error, that of beta's entries which they feed, RMS error of all beta."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(N, M * K, generator=generator, dtype=torch.float64)
    targets = 2.0 * torch.rand(N, generator=generator, dtype=torch.float64) - 1.0
    training = train(PatchCNN(m=M, k=K, p=p, generator=generator), inputs, targets, gamma=0.1, regime=regime)
    contaminated = copy.deepcopy(training.trained)
    altered = contaminate(contaminated.state_dict(), Normal(1.0, 1.0), share=EPS, generator=generator)
    contaminated.load_state_dict(altered.state)
    purified = purify(contaminated, training.initial, inputs)
    output = compare(purified.model, training.trained)["output"]
    error = (purified.model.output.weight - training.trained.output.weight).detach()[0].abs()
    sure = ~purified.layers[1].doubtful
    right = purified.layers[0].recovered
    exact = (purified.model.layers[0].weight - training.trained.layers[0].weight).detach().abs().amax(1)[right]
    return float(right.double().mean()), float(exact.max()), float(error[sure].max()), output.rms


def main() -> None:
    """Print one line per regime and width."""
    print(f"n = m = 5, k = {K}, eps = {EPS}, N(1, 1) added; {SEEDS} seeds")
    print(f"{'regime':18}{'p':>6}{'recovered':>11}{'their error':>13}{'beta they feed':>16}{'beta, RMS':>11}")
    regimes: tuple[Regime, ...] = ("joint", "sequential", "sequential-fixed")
    for regime in regimes:
        for p in (100, 300, 1000, 3000):
            found = torch.tensor([trial(p, regime, seed) for seed in range(SEEDS)], dtype=torch.float64)
            share, largest = float(found[:, 0].mean()), found[:, 1].max()
            beta, rms = found[:, 2].max(), found[:, 3].median()
            print(f"{regime:18}{p:6}{share:11.4f}{largest:13.1e}{beta:16.1e}{rms:11.1e}")


if __name__ == "__main__":
    main()
