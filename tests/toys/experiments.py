"""Experiments small enough to be run, killed and compared; in a module, so that workers can import them."""

import csv
import hashlib
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from netpurify.findings import Experiment, TableRow


def grid(mode: str) -> list[TableRow]:
    widths = [8, 16] if mode == "quick" else [8, 16, 32]
    return [{"width": width, "law": law} for width in widths for law in ("sign", "noise")]


def steady(settings: TableRow, seed: int) -> list[TableRow]:
    """One "training" that two eps values share, in numbers whose last bits would show another order of sums."""
    width = int(settings["width"] or 0)
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(width, 400, generator=generator)
    hashlib.pbkdf2_hmac("sha256", b"training", b"", 150_000)
    gram = float((weights @ weights.T).sum())
    rows: list[TableRow] = [{"eps": eps, "recovered": gram**2 * eps / 3.0, "note": "1"} for eps in (0.1, 0.2)]
    # Scalars of numpy on purpose, typed as any value: the table must take them.
    scalars: dict[str, Any] = {"certified": np.float32(0.1), "proven": np.bool_(seed % 2)}
    return [*rows, {"eps": 0.5, "recovered": float("nan"), **scalars}]


def failing(settings: TableRow, seed: int) -> list[TableRow]:
    """Fails for seed 1, and for width 16 as long as the file that the environment names is there."""
    if seed == 1:
        raise ArithmeticError("no odd seeds,\nplease")
    if settings["width"] == 16 and Path(os.environ["TOY_TROUBLE"]).exists():
        raise OSError("the disk hums")
    return [{"value": random.Random(seed).random()}]


def cost(settings: TableRow) -> float:
    return float(settings["width"] or 0) / 10.0


STEADY = Experiment(
    name="steady", title="Toys hold still", grid=grid, trial=steady, cost=cost,
    trials={"quick": 2, "default": 3, "full": 10},
)  # fmt: skip
FAILING = replace(STEADY, name="failing", trial=failing)


def without_seconds(path: Path) -> list[list[str]]:
    """A table as it stands on disk, but for the one column that may differ."""
    with path.open(newline="") as stream:
        lines = list(csv.reader(stream))
    place = lines[0].index("seconds")
    return [line[:place] + line[place + 1 :] for line in lines]
