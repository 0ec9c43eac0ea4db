"""What a column costs as the design grows: against rows k, columns q and right-hand sides p, with fitted exponents.

    python benchmarks/lad_scale.py                      measures, writes the table, draws the figure
    python benchmarks/lad_scale.py --before d475ae5     also that commit of this repository, in turns with this code
    python benchmarks/lad_scale.py --draw               draws the figure again from the table

Two kinds of columns: a tenth of the entries altered, which is recovered, and dense noise, t(3), where nothing can be
and the solver walks from vertex to vertex. CPU time on one core, factorisation included, the fastest of some
repetitions. A run that is interrupted goes on with the next point when it is started again with the same options.
"""

import os

# Before numpy is imported, which reads them once; the solvers' processes inherit them.
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import csv
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from lad_cases import Case, gaussian, student
from lad_kept import Kept
from lad_versions import Version, in_turns, typical, versions

DOCS = Path(__file__).parents[1] / "docs"
KINDS = {"recovered": {"eps": 0.1}, "dense noise": {"eps": 1.0, "law": student}}
GRID = {
    "k": [(k, 50, 128) for k in (125, 250, 500, 1000, 2000, 4000, 8000, 16000)],
    "q": [(1600, q, 128) for q in (5, 10, 20, 40, 80, 160, 320, 640)],
    "p": [(400, 50, p) for p in (1, 4, 16, 64, 256, 1024, 4096)],
}
"""Which number grows, and k, q and p of each point."""
_COLOURS = {"recovered": "#0072B2", "dense noise": "#D55E00"}
_TITLES = {"k": "rows k; q = 50", "q": "columns q; k = 1600", "p": "right-hand sides p; k = 400, q = 50"}


@dataclass(frozen=True, slots=True)
class Point:
    """CPU milliseconds for a right-hand side of one kind, by one version of the solver."""

    version: str
    kind: str
    grows: str
    k: int
    q: int
    p: int
    ms: float
    certified: float

    @property
    def x(self) -> int:
        """The number that grows."""
        return getattr(self, self.grows)


def main() -> None:
    """Measure, write, draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draw", action="store_true", help="only draw, from the table")
    parser.add_argument("--before", metavar="COMMIT", help="a commit of this repository, timed in turns with this code")
    parser.add_argument("--after", metavar="COMMIT", help="a commit to be measured instead of this code")
    parser.add_argument("--repeat", type=int, default=3, help="the fastest of so many repetitions (default: 3)")
    parser.add_argument("--table", type=Path, default=DOCS / "results" / "lad-scale.csv", help="where the table lies")
    parser.add_argument("--figure", type=Path, default=DOCS / "figures" / "lad-scale.svg", help="where the figure goes")
    options = parser.parse_args()
    if not options.draw:
        points = sorted(measured(options), key=lambda point: (point.version, point.kind, point.grows, point.x))
        write(points, options.table)
    points = read(options.table)
    draw(points, options.figure)
    print(exponents(points))


def measured(options: argparse.Namespace) -> Iterator[Point]:
    """Every point of the grid."""
    began = time.perf_counter()
    points = [(kind, grows, sizes) for kind in KINDS for grows in GRID for sizes in GRID[grows]]
    print(f"{len(points)} points, about five minutes for each version", file=sys.stderr)
    with versions(options.before, options.after) as running:
        kept = Kept(options.table.with_suffix(".part"), [[version.digest for version in running], options.repeat])
        for number, (kind, grows, sizes) in enumerate(points, start=1):
            name = f"{kind}, {grows}, {sizes}"
            if name not in kept.known:
                kept.put(name, [asdict(point) for point in point_of(running, kind, grows, sizes, options.repeat)])
            yield from (Point(**point) for point in kept.known[name])
            spent = time.perf_counter() - began
            print(f"[{spent:5.0f} s] {number} of {len(points)}: {name}", file=sys.stderr, flush=True)
        kept.done()


def point_of(
    running: Sequence[Version], kind: str, grows: str, sizes: tuple[int, int, int], repeats: int
) -> Iterator[Point]:
    """One point of the grid, by every version."""
    k, q, p = sizes
    case = Case(f"{k}x{q}", design=gaussian(k, q), **KINDS[kind])
    A = case.matrix()
    B = case.columns(A, p)
    for version in running:
        version.load(A, B)
    core = {max(os.sched_getaffinity(0))}
    timings = in_turns(running, core, repeats=repeats, enough=0.1, noise_floor=None, threads=1)
    for version in running:
        ms = 1e3 * typical(timings[version.name], fastest=True).cpu / p
        proven = version.answer().status <= 2  # CLEAN, RECOVERED, OPTIMAL
        yield Point(version.name, kind, grows, k, q, p, round(ms, 6), float(np.mean(proven)))


def write(points: Sequence[Point], path: Path) -> None:
    """The table as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(asdict(points[0])), lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(point) for point in points)


def read(path: Path) -> list[Point]:
    """The table as it was written."""
    with path.open(newline="") as file:
        return [
            Point(
                version=row["version"],
                kind=row["kind"],
                grows=row["grows"],
                k=int(row["k"]),
                q=int(row["q"]),
                p=int(row["p"]),
                ms=float(row["ms"]),
                certified=float(row["certified"]),
            )
            for row in csv.DictReader(file)
        ]


def exponent(points: Sequence[Point]) -> float:
    """The e of the power law x^e, by least squares on the logarithms of the four largest points."""
    largest = sorted(points, key=lambda point: point.x)[-4:]
    return float(np.polyfit(np.log([p.x for p in largest]), np.log([p.ms for p in largest]), 1)[0])


def series(points: Sequence[Point], grows: str) -> dict[tuple[str, str], list[Point]]:
    """Points in which ``grows`` grows, by kind and version."""
    chosen: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        if point.grows == grows:
            chosen.setdefault((point.kind, point.version), []).append(point)
    return chosen


def exponents(points: Sequence[Point]) -> str:
    """One line for each curve."""
    lines = []
    for grows in GRID:
        for (kind, version), of_curve in series(points, grows).items():
            least = min(point.certified for point in of_curve)
            lines.append(
                f"{kind}, {version}: ms a column ~ {grows}^{exponent(of_curve):.2f} "
                f"({of_curve[0].ms:.3g} to {of_curve[-1].ms:.3g} ms, at least {least:.1%} certified)"
            )
    return "\n".join(lines)


def draw(points: Sequence[Point], path: Path) -> None:
    """Milliseconds per right-hand side against k, q and p, both axes logarithmic."""
    with mpl.rc_context({"font.size": 9, "svg.hashsalt": "lad-scale", "svg.fonttype": "none"}):
        canvas = Figure(figsize=(10.0, 3.6), layout="constrained")
        for axes, grows in zip(canvas.subplots(1, 3, sharey=True), GRID, strict=True):
            for (kind, version), of_curve in series(points, grows).items():
                now = version == "netpurify"
                axes.plot(
                    [point.x for point in of_curve],
                    [point.ms for point in of_curve],
                    marker="o" if now else "x",
                    linestyle="-" if now else "--",
                    color=_COLOURS[kind],
                    label=f"{kind}{'' if now else ', before'}: {grows}$^{{{exponent(of_curve):.2f}}}$",
                )
            axes.set(xscale="log", yscale="log", xlabel=_TITLES[grows])
            axes.tick_params(axis="x", which="minor", bottom=False)
            axes.tick_params(axis="x", labelsize=7.5)
            axes.set_xticks([sizes["kqp".index(grows)] for sizes in GRID[grows]], minor=False)
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.xaxis.set_minor_formatter("")
            axes.grid(which="major", color="0.88")
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False, fontsize=8)
        canvas.supylabel("milliseconds of CPU per column", fontsize=9)
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
