"""Seconds until a first answer on an empty cache, and with a warm one, each in a process of its own.

    python benchmarks/first_call.py

Processor seconds stand beside those of the clock, since other work on the machine moves only the latter.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

WORK = """
import sys, time
import numpy as np

def lap():
    global last
    now = time.perf_counter(), time.process_time()
    print(*(after - before for before, after in zip(last, now)))
    last = now

last = time.perf_counter(), time.process_time()
import torch
lap()
from netpurify import lad
lap()
rng = np.random.default_rng(0)

def planted(rows, rank, share):
    A = rng.standard_normal((rows, rank))
    altered = rng.random((rows, 20)) < share
    return A, A @ rng.standard_normal((rank, 20)) + altered * rng.normal(1.0, 1.0, (rows, 20))

A, B = planted(392, 42, 0.1)
easy = lad.solve(A, B)
assert easy.statistics.pivots == 0
lap()
lad.verify(A, B, easy.claim)
lap()
hard = lad.solve(*planted(100, 40, 0.5))
assert hard.statistics.pivots > 0
lap()
"""
STEPS = ("import torch", "import netpurify.lad", "first easy solve", "first verify", "first solve that walks")


def run(cache: Path) -> list[tuple[float, float]]:
    """Seconds by the clock and of the processor for each step, with compiled code kept in ``cache``."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", WORK], env=environment, capture_output=True, text=True, check=True)
    return [(float(wall), float(cpu)) for wall, cpu in (line.split() for line in done.stdout.splitlines())]


def main() -> None:
    """Print one line for each step: cold and warm, clock and processor."""
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = run(Path(folder)), run(Path(folder))
    print(f"{'':24}{'empty cache, s':>16}{'processor':>11}{'warm cache, s':>16}{'processor':>11}")
    for name, first, second in zip((*STEPS, "all"), (*cold, total(cold)), (*warm, total(warm)), strict=True):
        print(f"{name:24}{first[0]:16.2f}{first[1]:11.2f}{second[0]:16.2f}{second[1]:11.2f}")


def total(steps: list[tuple[float, float]]) -> tuple[float, float]:
    """Sums over the steps."""
    return sum(wall for wall, _ in steps), sum(cpu for _, cpu in steps)


if __name__ == "__main__":
    main()
