"""Our solver against everybody else's and against itself: the same columns, one core, one judge.

    python benchmarks/lad.py --quick                 three sizes, three minutes
    python benchmarks/lad.py                         all cases, ten seconds for each peer and case: most of an hour
    python benchmarks/lad.py --before d475ae5        also that commit of this repository, in turns with this code
    python benchmarks/lad.py --cases MNIST t(3)      only cases whose name contains one of these
    python benchmarks/lad.py --markdown tables.md    the tables as they stand in docs/lad.md

Our time is that of ``lad.solve`` on raw arrays, factorisation included: the median of three or more runs. A peer
solves the first of our columns until its budget is used up; the mean over its columns counts, without the first,
which pays for set-up. The gap of every answer is computed by ``lad.verify`` with our dual. First call and memory are
measured in processes of their own. A run that is interrupted goes on with the next case when it is started again with
the same options. Runs on Linux, which lets a process be pinned to a core.
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

from lad_cases import CASES, MEMORY, QUANTILES, Case
from lad_figure import figure
from lad_fresh import BLOCK, first_calls, measure
from lad_kept import Kept
from lad_peers import PEERS
from lad_race import Race
from lad_report import Row, aligned, finite, markdown, solvers_table, steps_table, summarise, summary_table, table
from lad_versions import versions

QUICK = {f"{size} eps {eps}" for size in ("100x25", "392x198", "784x200") for eps in (0.1, 0.4)}
QUICK |= {"392x198 eps 0.1 float32"}
QUICK_WITHOUT = {"scipy HiGHS, primal form", "R quantreg br"}
"""Left out of a quick run: scikit-learn solves the same program, and rqs is br without its overhead."""
RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    """Measure, print the tables, write the JSON, the figure and, if asked for, the tables as markdown."""
    options = _options()
    began = time.perf_counter()
    cases = _cases(options)
    peers = [peer for peer in PEERS if not (options.quick and peer.name in QUICK_WITHOUT)]
    with versions(options.before, options.after) as running:
        facts = machine() | {f"commit of {version.name}": version.source for version in running}
        print(", ".join(f"{name} {value}" for name, value in facts.items()), end="\n\n")
        _tell(f"{len(cases)} cases, at most {len(cases) * (len(peers) * options.budget + 30) / 60:.0f} minutes", began)
        setup = [facts, options.columns, options.budget, [version.digest for version in running]]
        kept = Kept(options.json.with_suffix(".part"), setup)
        race = Race(running, peers, options.columns, options.budget, patience=8 * options.budget)
        rows = _race(cases, race, kept, began)
    fresh = {} if options.without_fresh else _fresh(options, began)
    summary = summarise(rows, cases)
    tables = {"summary": summary_table(summary), "steps": steps_table(rows)}
    texts = [_starts_text(fresh["first call"]), _memory_text(fresh["memory"])] if fresh else []
    print(aligned(table(rows)), *(aligned(lines) for lines in tables.values()), *texts, sep="\n\n")
    record = {
        "machine": facts,
        "rows": [finite(asdict(row)) for row in rows],
        "summary": [finite(asdict(entry) | {"ours": entry.ours.solver}) for entry in summary],
        **fresh,
        "seconds": time.perf_counter() - began,
    }
    options.json.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
    figure(rows, options.figure)
    if options.markdown:
        pages = [markdown(lines) for lines in (*tables.values(), solvers_table(rows))]
        options.markdown.write_text("\n\n".join([*pages, *texts]) + "\n")
    kept.done()
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
    parser.add_argument("--cases", nargs="+", help="only cases whose name contains one of these")
    parser.add_argument("--before", metavar="COMMIT", help="a commit of this repository, timed in turns with this code")
    parser.add_argument("--after", metavar="COMMIT", help="a commit to be measured instead of this code")
    parser.add_argument("--without-fresh", action="store_true", help="leave out first calls and memory")
    parser.add_argument("--columns", type=int, default=256, help="columns for our solver (default: 256)")
    parser.add_argument("--budget", type=float, help="seconds for each peer and case (default: 10; quick: 0.3)")
    parser.add_argument("--json", type=Path, default=RESULTS / "lad.json", help="where to write all numbers")
    parser.add_argument("--figure", type=Path, default=RESULTS / "lad.svg", help="where to draw them, svg or png")
    parser.add_argument("--markdown", type=Path, help="where to write the tables as markdown")
    options = parser.parse_args()
    options.budget = options.budget or (0.3 if options.quick else 10.0)
    options.memory_columns = 10_000 if options.quick else 100_000
    return options


def _cases(options: argparse.Namespace) -> list[Case]:
    cases = [case for case in (*CASES, *QUANTILES) if not options.quick or case.name in QUICK]
    chosen = [case for case in cases if not options.cases or any(text in case.name for text in options.cases)]
    if not chosen:
        names = ", ".join(case.name for case in cases)
        raise SystemExit(f"expected parts of names of cases; got {options.cases}; there are {names}")
    return chosen


def _race(cases: list[Case], race: Race, kept: Kept, began: float) -> list[Row]:
    rows = []
    for case in cases:
        if case.name in kept.known:
            of_case = [Row(**row) for row in kept.known[case.name]]
            for row in of_case:
                race.remember(case, row)
            _tell(f"{case.name}: known from the run before", began)
        else:
            of_case = []
            for row in race.run(case):
                of_case.append(row)
                _tell(f"{row.case}: {row.solver}, {row.ms:.3g} ms {row.note}", began)
            kept.put(case.name, [asdict(row) for row in of_case])
        rows += of_case
    return rows


def _fresh(options: argparse.Namespace, began: float) -> dict[str, Any]:
    starts = first_calls(empty=not options.quick)
    _tell("first calls", began)
    memory = {what: measure(what, str(options.memory_columns)) for what in ("stream", "mapped")}
    _tell("memory", began)
    return {"first call": starts, "memory": memory}


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
