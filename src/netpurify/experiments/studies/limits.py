"""Predicted against simulated recovery, and how much given designs survive for certain.

``lad.recovery_probability`` is compared with ``lad.solve`` on Gaussian designs: a cell is the share of altered entries
at which a given probability is predicted, and its trial simulates how often all units come out right. A single unit is
simulated ten times on each fresh design; of a layer all units share the design. The deviation is in standard errors of
the simulation if the prediction is true: if all predictions are true, its root mean square is about 1.
"""

import time
from itertools import product

import numpy as np

from netpurify import lad
from netpurify.experiments.studies import markdown
from netpurify.experiments.studies.study import RunFacts, Study, Tables, always
from netpurify.findings import Experiment, Mode, TableRow, group, select

RATIOS = (2.0, 2.5, 4.0, 8.0, 20.0)
"""Fan-in over rank."""
PROBABILITIES = (0.98, 0.95, 0.5, 0.05, 0.02)
LAYERS = ((50, 20), (50, 6), (100, 25), (100, 12), (200, 25), (392, 98))
"""Fan-in and rank of whole layers."""
UNITS = (100, 300, 1000)
UNITS_EACH = 10
"""Simulations of a single unit that share one design."""
SIZES = ((100, 25), (392, 42), (392, 98), (784, 198))
PAGE = """# How much can be altered: predictions, simulation, worst cases

Made by `{commands}`
in {core_time} of one core ([simulation](results/limits.csv.gz), [worst cases](results/limits-worst-case.csv.gz)).

## Gaussian designs of some sizes

Shares of altered entries that half of all units, 95 % of units and 95 % of layers of 300 units survive; then the number
of entries that may be altered in any way, which is proven, and a number of alterations that break recovery.

{worst}

## Predictions against simulation

The deviation of the simulated from the predicted probability, in standard errors of the simulation. Alterations are
N(mean, 1). If nearly all alterations have one sign, units of a layer fail together, and whole layers survive more often
than predicted.

{agreement}

{simulated}
"""


def grid(mode: Mode) -> list[TableRow]:
    """Single units over ratios and probabilities, then layers; alterations of both signs, and mostly of one sign."""
    quick = mode == "quick"
    fan_ins = (50,) if quick else (50, 100, 200, 392)
    units, layers = (100, 10) if quick else (400, 100)
    points = [(fan_in, round(fan_in / ratio), 1, p) for fan_in, ratio, p in product(fan_ins, RATIOS, PROBABILITIES)]
    points += [
        (fan_in, rank, count, p) for (fan_in, rank), count, p in product(LAYERS, UNITS, (0.9, 0.5)) if fan_in in fan_ins
    ]
    return [
        {"fan_in": fan_in, "rank": rank, "units": count, "probability": p, "mean": mean,
         "simulations": units if count == 1 else layers}
        for mean in ((0.0, 1.0) if mode == "full" else (0.0,))
        for fan_in, rank, count, p in points
    ]  # fmt: skip


def trial(settings: TableRow, seed: int) -> list[TableRow]:
    """The share of simulations in which all units come out right."""
    fan_in, rank, units, simulations = (int(settings[name] or 0) for name in ("fan_in", "rank", "units", "simulations"))
    probability, mean = float(settings["probability"] or 0.0), float(settings["mean"] or 0.0)
    share = lad.largest_share(fan_in, rank, units=units, probability=probability)
    rng = np.random.default_rng([seed, fan_in, rank, units, round(1000 * probability), round(1000 * mean)])
    together = UNITS_EACH if units == 1 else units
    designs = -(-simulations // UNITS_EACH) if units == 1 else simulations
    right = np.array([recovered((fan_in, rank, together), rng, share=share, mean=mean) for _ in range(designs)])
    simulated = float(right.mean() if units == 1 else right.all(axis=1).mean())
    error = float(np.sqrt(probability * (1.0 - probability) / simulations))
    return [{"share": share, "simulated": simulated, "deviation": (simulated - probability) / error}]


def recovered(shape: tuple[int, int, int], rng: np.random.Generator, *, share: float, mean: float) -> np.ndarray:
    """Which columns come out as they were on one fresh design; ``shape`` is fan-in, rank and number of columns."""
    fan_in, rank, columns = shape
    design = rng.standard_normal((fan_in, rank))
    truth = rng.standard_normal((rank, columns))
    altered = rng.random((fan_in, columns)) < share
    solution = lad.solve(design, design @ truth + altered * rng.normal(mean, 1.0, altered.shape), threads=1)
    return np.abs(np.asarray(solution.coefficients) - truth).max(axis=0) < 1e-7


def worst_grid(_: Mode) -> list[TableRow]:
    """Designs of some sizes."""
    return [{"fan_in": fan_in, "rank": rank} for fan_in, rank in SIZES]


def worst_trial(settings: TableRow, seed: int) -> list[TableRow]:
    """What one Gaussian design survives on average and for certain; seed 0 gives the design of the page."""
    fan_in, rank = (int(settings[name] or 0) for name in ("fan_in", "rank"))
    key = [fan_in, rank] if seed == 0 else [fan_in, rank, seed]
    design = np.random.default_rng(key).standard_normal((fan_in, rank))
    begun = time.perf_counter()
    worst = lad.worst_case(design)
    return [
        {
            "half_of_units": lad.tolerance(fan_in, rank),
            "most_units": lad.largest_share(fan_in, rank, units=1),
            "most_layers": lad.largest_share(fan_in, rank, units=300),
            "certain": worst.alterations,
            "breaking": worst.breaking,
            "proof_seconds": time.perf_counter() - begun,
        }
    ]


def page(tables: Tables, facts: RunFacts) -> str:
    """The page: worst cases, agreement in a few numbers, and every prediction."""
    return PAGE.format(
        commands=facts.commands,
        core_time=facts.core_time,
        worst=worst_cases(tables["limits-worst-case"]),
        agreement=agreement(tables["limits"]),
        simulated=predictions(tables["limits"]),
    )


def worst_cases(rows: list[TableRow]) -> str:
    """What designs survive on average and for certain."""
    columns = (
        "design", "half of all units", "95 % of units", "95 % of layers", "any alterations", "some that break it",
        "proof, s",
    )  # fmt: skip
    shares = ("half_of_units", "most_units", "most_layers")
    lines = [
        [
            f"{row['fan_in']}x{row['rank']}",
            *(f"{row[name]:.3f}" for name in shares),
            str(row["certain"]),
            str(row["breaking"]),
            f"{row['proof_seconds']:.1f}",
        ]
        for row in rows
    ]
    return markdown.table(columns, lines)


def predictions(rows: list[TableRow]) -> str:
    """Every prediction beside its simulation."""
    columns = ("design", "units", "mean", "share altered", "predicted", "simulated", "deviation")
    lines = [
        [
            f"{row['fan_in']}x{row['rank']}",
            str(row["units"]),
            f"{row['mean']:g}",
            *(f"{row[name]:.3f}" for name in ("share", "probability", "simulated")),
            f"{row['deviation']:+.1f}",
        ]
        for row in rows
    ]
    return markdown.table(columns, lines)


def agreement(rows: list[TableRow]) -> str:
    """How far predictions are from the simulation, for single units and for layers, by the mean of the alterations."""
    lines = []
    for (mean,), own in group(rows, ["mean"]).items():
        layers = [row for row in own if row["units"] != 1]
        for kind, chosen in (("units", select(own, units=1)), ("layers", layers)):
            deviations = np.array([markdown.number(row["deviation"]) for row in chosen])
            spread = np.sqrt(np.mean(deviations**2))
            numbers = (f"{deviations.mean():+.2f}", f"{spread:.2f}", f"{np.abs(deviations).max():.1f}")
            lines.append([f"N({mean:g}, 1), {kind}", str(len(chosen)), *numbers])
    return markdown.table(("alterations", "predictions", "mean deviation", "root mean square", "largest"), lines)


EXPERIMENT = Experiment(
    name="limits",
    title="predicted against simulated recovery",
    grid=grid,
    trial=trial,
    cost=lambda cell: 1e-7 * float(cell["units"] or 0) * float(cell["simulations"] or 0) * float(cell["fan_in"] or 0),
    trials={"quick": 1, "default": 1, "full": 1},
)
WORST_CASE = Experiment(
    name="limits-worst-case",
    title="alterations that given designs survive for certain",
    grid=worst_grid,
    trial=worst_trial,
    cost=lambda cell: 1e-5 * float(cell["fan_in"] or 0) ** 2,
    trials={"quick": 1, "default": 1, "full": 1},
)
STUDY = Study(
    name="limits",
    title="Does simulation agree with the predicted limits of recovery?",
    document="limits-results.md",
    experiments=always(EXPERIMENT, WORST_CASE),
    page=page,
)
