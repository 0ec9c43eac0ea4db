"""Where the solver's time goes: microseconds of CPU per column by step, case by case, on one core.

    python benchmarks/lad_stages.py                                 all cases but the largest, some two minutes
    python benchmarks/lad_stages.py --cases MNIST "392x198 eps 0.4" --repeat 10
    python benchmarks/lad_stages.py --peer                          also quantreg's fnb on the same columns, kept in a
                                                                    temporary file for the next run

    python benchmarks/lad_stages.py --before d475ae5                another commit too, in turns with this code

Every number is that of the fastest of the repetitions; ``total`` includes the factorisation of the design, the steps do
not. ``faster`` is fnb's mean over this. Runs on Linux, which lets a process be pinned to a core.
"""

import os

# Before numpy is imported, which reads them once; the solvers' processes inherit them.
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import json
import tempfile
from collections.abc import Iterator
from math import nan
from pathlib import Path

import numpy as np

from lad_cases import CASES, QUANTILES, Case, Matrix
from lad_peers import PEERS, Run, quantreg_version, run
from lad_race import ENOUGH, one_core
from lad_versions import Version, in_turns, typical, versions
from netpurify import lad

_SHORT = {"least squares": "squares"}
LARGEST = "5000x1000"
"""Left out unless it is asked for."""
KEPT = Path(tempfile.gettempdir()) / f"netpurify-fnb-{os.getuid()}.json"


def main() -> None:
    """Print one line for each case and version, as soon as it is known."""
    options = _options()
    with versions(options.before, options.after) as running:
        titles = None
        for case, floor in chosen(options.cases):
            for cells in measure(case, floor, running, options):
                if titles is None:
                    titles = list(cells)
                    print(line(titles), flush=True)
                print(line(list(cells.values())), flush=True)


def chosen(texts: list[str]) -> Iterator[tuple[Case, float | None]]:
    """Cases and noise floors whose name contains one of ``texts``; all but the largest if there are none."""
    medians = [case for case in QUANTILES if case.quantile == 0.5]
    for case in [*CASES, *(QUANTILES if texts else medians)]:
        for floor in case.floors:
            wanted = any(text in name(case, floor) for text in texts)
            if wanted or (not texts and case.size != LARGEST and not (case.rounded and floor is None)):
                yield case, floor


def name(case: Case, floor: float | None) -> str:
    """Name of the case, and the noise floor if it is not detected."""
    return case.name + ("" if floor is None else f" noise_floor={floor:g}")


def measure(
    case: Case, floor: float | None, running: list[Version], options: argparse.Namespace
) -> Iterator[dict[str, str]]:
    """The cells of one line for each version, by the titles of their columns."""
    A = case.matrix()
    B = case.columns(A, options.columns)
    for version in running:
        version.load(A, B)
    known = {"quantile": case.quantile, "noise_floor": floor, "threads": 1}
    timings = in_turns(running, {max(os.sched_getaffinity(0))}, repeats=options.repeat, enough=ENOUGH, **known)
    fnb = peer_seconds(case, A, B, options.budget) if options.peer else nan
    micro = 1e6 / options.columns
    for version in running:
        least = typical(timings[version.name], fastest=True)
        codes = version.answer().status
        shares = [(status.name, np.mean(codes == status)) for status in lad.Status]
        yield {
            "case": name(case, floor) if version is running[0] else f"  {version.name}",
            "total": f"{micro * least.cpu:,.0f}",
            **{_SHORT.get(step, step): f"{micro * seconds:,.0f}" for step, seconds in least.steps.items()},
            "pivots": f"{least.pivots / options.columns:.1f}",
            "fnb": f"{1e6 * fnb:,.0f}" if options.peer else "-",
            "faster": f"{1e6 * fnb / (micro * least.cpu):.1f}x" if options.peer else "-",
            "status": ", ".join(f"{share:.0%} {status}" for status, share in shares if share),
        }


def peer_seconds(case: Case, A: Matrix, B: Matrix, budget: float) -> float:
    """CPU seconds per column of quantreg's fnb, measured once; NaN where R or quantreg is absent."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    key = f"{case.name}, {B.shape[1]} columns, {budget:g} s, quantreg {quantreg_version()}"
    if key not in kept:
        fnb = next(peer for peer in PEERS if peer.solve == "fnb")
        columns = A[:, lad.Design.prepare(A).pivots]  # fnb cannot do with dependent ones
        with one_core():
            done = run(fnb, columns, B, quantile=case.quantile, budget=budget, patience=20 * budget)
        if fnb.absence() or isinstance(done, str):
            return float("nan")
        kept[key] = Run.per_column(done.cpu)
        KEPT.write_text(json.dumps(kept, indent=1))
    return kept[key]


def line(cells: list[str]) -> str:
    """Cells below one another: the first and the last to the left, the others to the right."""
    first, *numbers, last = cells
    return first.ljust(37) + "".join(cell.rjust(9) for cell in numbers) + "  " + last


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", nargs="+", default=[], help="only cases whose name contains one of these")
    parser.add_argument("--repeat", type=int, default=3, help="the fastest of so many repetitions counts (default: 3)")
    parser.add_argument("--columns", type=int, default=256, help="columns of each case (default: 256)")
    parser.add_argument("--peer", action="store_true", help="also quantreg's fnb on the same columns")
    parser.add_argument("--budget", type=float, default=3.0, help="seconds for fnb on each case (default: 3)")
    parser.add_argument("--before", help="a commit of this repository, measured in turns with this code")
    parser.add_argument("--after", help="a commit to be measured instead of this code")
    return parser.parse_args()


if __name__ == "__main__":
    main()
