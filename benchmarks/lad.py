"""Our solver against everybody else's: the same columns, one core, one judge.

    python benchmarks/lad.py --quick      three sizes, two minutes
    python benchmarks/lad.py              all sizes, ten seconds for each peer and case: most of an hour

Our time is that of ``lad.solve`` on raw arrays, factorisation included: the median of three or more runs. A peer
solves the first of our columns until its budget is used up; the mean over its columns counts, without the first,
which pays for set-up. The gap of every answer is computed by ``lad.verify`` with our dual. First call and memory are
measured in processes of their own. Runs on Linux, which lets a process be pinned to a core.
"""

import os

# Before numpy is imported, which reads them once; the solvers' processes inherit them.
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import json
import platform
import sys
import time
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from lad_cases import CASES, MEMORY, Case
from lad_fresh import BLOCK, first_calls, measure
from lad_peers import PEERS
from lad_race import Race
from lad_report import Row, figure, finite, summarise, summary_table, table

QUICK = {f"{size} eps {eps}" for size in ("100x25", "392x198", "784x200") for eps in (0.1, 0.4)}
QUICK |= {"392x198 eps 0.1 float32"}
QUICK_WITHOUT = {"scipy HiGHS, primal form", "R quantreg br"}
"""Left out of a quick run: scikit-learn solves the same program, and rqs is br without its overhead."""
RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    """Measure, print the tables, write the JSON and the figure."""
    options = _options()
    began = time.perf_counter()
    facts = machine()
    print(", ".join(f"{name} {value}" for name, value in facts.items()), end="\n\n")
    starts = first_calls(empty=not options.quick)
    _tell("first calls", began)
    memory = {what: measure(what, str(options.memory_columns)) for what in ("stream", "mapped")}
    _tell("memory", began)
    cases = _cases(options)
    peers = [peer for peer in PEERS if not (options.quick and peer.name in QUICK_WITHOUT)]
    rows = _race(cases, Race(peers, options.columns, options.budget, patience=8 * options.budget), began)
    summary = summarise(rows, cases)
    print(table(rows), summary_table(summary), _starts_text(starts), _memory_text(memory), sep="\n\n")
    record = {
        "machine": facts,
        "rows": [finite(asdict(row)) for row in rows],
        "summary": [finite(asdict(entry)) for entry in summary],
        "first call": starts,
        "memory": memory,
        "seconds": time.perf_counter() - began,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
    figure(rows, options.figure)
    _tell(f"written: {options.json}, {options.figure}", began)


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    packages = ("netpurify", "numpy", "scipy", "torch", "numba")
    return {
        "cpu": next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.machine()),
        "cores": len(os.sched_getaffinity(0)),
        "BLAS threads": max(pool["num_threads"] for pool in threadpool_info()),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in packages},
        **{peer.package: peer.version() for peer in PEERS},
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--quick", action="store_true", help="up to 784x200, with small budgets")
    extent.add_argument("--full", dest="quick", action="store_false", help="all sizes (the default)")
    parser.add_argument("--sizes", nargs="+", choices=sorted({case.size for case in CASES}), help="only these designs")
    parser.add_argument("--columns", type=int, default=256, help="columns for our solver (default: 256)")
    parser.add_argument("--budget", type=float, help="seconds for each peer and case (default: 10; quick: 0.3)")
    parser.add_argument("--json", type=Path, default=RESULTS / "lad.json", help="where to write all numbers")
    parser.add_argument("--figure", type=Path, default=RESULTS / "lad.svg", help="where to draw them, svg or png")
    options = parser.parse_args()
    options.budget = options.budget or (0.3 if options.quick else 10.0)
    options.memory_columns = 10_000 if options.quick else 100_000
    return options


def _cases(options: argparse.Namespace) -> list[Case]:
    cases = [case for case in CASES if not options.quick or case.name in QUICK]
    return [case for case in cases if not options.sizes or case.size in options.sizes]


def _race(cases: list[Case], race: Race, began: float) -> list[Row]:
    rows = []
    for case in cases:
        for row in race.run(case):
            rows.append(row)
            _tell(f"{row.case}: {row.solver}, {row.ms:.3g} ms {row.note}", began)
    return rows


def _starts_text(starts: dict[str, dict[str, float]]) -> str:
    return "\n".join(
        f"first call with {name} of compiled code: {seconds['first_s']:.2f} s "
        f"(import before it {seconds['import_s']:.2f} s, second call {1e3 * seconds['second_s']:.0f} ms)"
        for name, seconds in starts.items()
    )


def _memory_text(memory: dict[str, dict[str, float]]) -> str:
    stream, mapped = memory["stream"], memory["mapped"]
    return (
        f"memory at {MEMORY.name}, {stream['columns']:,} columns, peak above that after import:\n"
        f"  stream, blocks of {BLOCK:,}: {stream['peak_mb']:.0f} MB, {stream['wall_ms']:.3f} ms/column on all cores, "
        f"{stream['certified']:.1%} certified\n"
        f"  solve, B memory-mapped: {mapped['peak_mb']:.0f} MB, of which the answer takes {mapped['answer_mb']:.0f} "
        f"and the mapped file up to {mapped['file_mb']:.0f}; {mapped['certified']:.1%} certified"
    )


def _tell(what: str, began: float) -> None:
    print(f"[{time.perf_counter() - began:5.0f} s] {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
