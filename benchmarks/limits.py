"""Predicted against simulated recovery: ``lad.recovery_probability`` on Gaussian designs, solved by ``lad.solve``.

    python limits.py                 400 trials for each line, both signs alike
    python limits.py --mean 1        alterations N(1, 1), which lean to one sign
    python limits.py --trials 2000 --fan-ins 100
    python limits.py --overview      what designs of some sizes survive, on average and for certain; no simulation

A unit's trials are columns, ten to a design; a layer's trials are designs. The deviation is in standard errors of the
simulation if the prediction is true; were all predictions true, its root mean square would be 1.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from netpurify import lad

RATIOS = (2.0, 2.5, 4.0, 8.0, 20.0)
PROBABILITIES = (0.98, 0.95, 0.5, 0.05, 0.02)
LAYERS = ((50, 20), (50, 6), (100, 25), (100, 12), (200, 25), (392, 98))
UNITS = (100, 300, 1000)
PER_DESIGN = 10
SIZES = ((100, 25), (392, 42), (392, 98), (784, 198))


@dataclass(frozen=True, slots=True)
class Point:
    """One line of the table: ``units`` units of ``fan_in`` x ``rank`` at the share predicted for ``probability``."""

    fan_in: int
    rank: int
    units: int
    probability: float

    @property
    def share(self) -> float:
        """Share of altered entries."""
        return lad.largest_share(self.fan_in, self.rank, units=self.units, probability=self.probability)

    def simulate(self, trials: int, *, mean: float, rng: np.random.Generator) -> float:
        """Share of ``trials`` in which all units come out right; single units are drawn ten to a design."""
        together = PER_DESIGN if self.units == 1 else self.units
        designs = -(-trials // PER_DESIGN) if self.units == 1 else trials
        right = [recovered(self, together, mean=mean, rng=rng) for _ in range(designs)]
        return float(np.mean(right if self.units == 1 else np.all(right, axis=1)))


def recovered(point: Point, columns: int, *, mean: float, rng: np.random.Generator) -> np.ndarray:
    """Which of ``columns`` columns on one fresh design come out as they were, compared with the truth."""
    A = rng.standard_normal((point.fan_in, point.rank))
    U = rng.standard_normal((point.rank, columns))
    hit = rng.random((point.fan_in, columns)) < point.share
    solution = lad.solve(A, A @ U + hit * rng.normal(mean, 1.0, hit.shape))
    return np.abs(np.asarray(solution.coefficients) - U).max(axis=0) < 1e-7


def points(fan_ins: list[int]) -> Iterator[Point]:
    """Single units over the grid, then layers."""
    for fan_in in fan_ins:
        for ratio in RATIOS:
            for probability in PROBABILITIES:
                yield Point(fan_in, round(fan_in / ratio), 1, probability)
    for fan_in, rank in LAYERS:
        if fan_in in fan_ins:
            for units in UNITS:
                for probability in (0.9, 0.5):
                    yield Point(fan_in, rank, units, probability)


def overview() -> None:
    """Print shares of altered entries for half of all units, 95 % of units, 95 % of layers, and any alteration."""
    print(f"{'design':>9} {'half':>6} {'unit':>6} {'layer':>6} {'certain':>8} {'breaking':>8} {'seconds':>8}")
    for fan_in, rank in SIZES:
        A = np.random.default_rng([fan_in, rank]).standard_normal((fan_in, rank))
        began = time.perf_counter()
        certain = lad.worst_case(A)
        seconds = time.perf_counter() - began
        unit, layer = (lad.largest_share(fan_in, rank, units=units) for units in (1, 300))
        print(
            f"{fan_in:>5}x{rank:<3} {lad.tolerance(fan_in, rank):>6.3f} {unit:>6.3f} {layer:>6.3f} "
            f"{certain.alterations:>8} {certain.breaking:>8} {seconds:>8.2f}"
        )


def main() -> None:
    """Print the table line by line, then how well it agrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--layer-trials", type=int, default=100, help="designs for each layer")
    parser.add_argument("--mean", type=float, default=0.0, help="mean of the alterations; their spread is 1")
    parser.add_argument("--fan-ins", type=int, nargs="+", default=[50, 100, 200, 392])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--overview", action="store_true", help="print what designs survive, and stop")
    options = parser.parse_args()
    if options.overview:
        overview()
        return
    rng = np.random.default_rng(options.seed)
    deviations: dict[str, list[float]] = {"units": [], "layers": []}
    print(f"{'design':>9} {'units':>5} {'share':>6} {'predicted':>9} {'simulated':>9} {'deviation':>9}")
    for point in points(options.fan_ins):
        trials = options.trials if point.units == 1 else options.layer_trials
        simulated = point.simulate(trials, mean=options.mean, rng=rng)
        error = np.sqrt(point.probability * (1.0 - point.probability) / trials)
        deviation = (simulated - point.probability) / error
        deviations["units" if point.units == 1 else "layers"].append(deviation)
        print(
            f"{point.fan_in:>5}x{point.rank:<3} {point.units:>5} {point.share:>6.3f} {point.probability:>9.3f} "
            f"{simulated:>9.3f} {deviation:>+9.1f}",
            flush=True,
        )
    for name, values in deviations.items():
        if values:
            spread = np.sqrt(np.mean(np.square(values)))
            print(
                f"{name}: {len(values)} lines, mean deviation {np.mean(values):+.2f}, root mean square {spread:.2f}, "
                f"largest {np.abs(values).max():.1f}"
            )


if __name__ == "__main__":
    main()
