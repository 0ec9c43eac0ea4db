"""A million columns through ``lad.stream`` once: time, memory, and a check of samples.

    python benchmarks/lad_stream.py                      10^6 columns of 392x198, a tenth of the entries altered
    python benchmarks/lad_stream.py --columns 100000     fewer

Says beforehand what it will take, tells how far it is, and goes on where it was if it is started again after an
interruption. Columns are drawn as they are needed; their drawing is timed apart. Some columns of each part are
checked by ``lad.verify`` on the plain matrix, which shares nothing with the solver. Memory is the peak above that after
import, the drawing of a block included; it is read as Linux tells it.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import netpurify
from lad_cases import MEMORY, Matrix
from lad_fresh import BLOCK, memory
from lad_kept import Kept
from lad_versions import digest
from netpurify import lad

BLOCKS = 25
"""Blocks in a part; what an interruption costs at most."""
CHECKED = 200
"""Columns of each part that are checked again."""
Facts = dict[str, float]


def main() -> None:
    """Stream part after part, then print one line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--columns", type=int, default=1_000_000, help="in all (default: 1,000,000)")
    parser.add_argument("--threads", type=int, help="how many panels at once (default: one for each core)")
    results = Path(__file__).parents[1] / "results"
    parser.add_argument("--kept", type=Path, default=results / "lad-stream.part", help="results so far")
    options = parser.parse_args()
    baseline = memory("VmRSS")
    design = lad.Design.prepare(MEMORY.matrix())
    lad.solve(
        design, MEMORY.columns(design.matrix, BLOCK), threads=options.threads
    )  # compiles what is not compiled yet
    trial = part(design, 0, 1, options.threads, baseline)
    expected = (trial["wall"] + trial["drawing"]) * options.columns / trial["columns"]
    tell(f"{options.columns:,} columns of {MEMORY.name}: about {expected / 60:.1f} minutes, {trial['peak_mb']:.0f} MB")
    kept = Kept(options.kept, [options.columns, options.threads, digest(Path(netpurify.__file__).parents[1])])
    starts = range(0, options.columns, BLOCK * BLOCKS)
    for start in starts:
        if str(start) not in kept.known:
            left = -(-(options.columns - start) // BLOCK)
            kept.put(str(start), part(design, start, min(BLOCKS, left), options.threads, baseline))
            tell(f"{min(options.columns, start + BLOCK * BLOCKS):,} columns, {kept.known[str(start)]['wall']:.1f} s")
    print(summary([kept.known[str(start)] for start in starts]))
    kept.done()


def part(design: lad.Design, start: int, blocks: int, threads: int | None, baseline: float) -> Facts:
    """Some blocks, from column ``start`` on."""
    counted: Facts = {"columns": 0, "certified": 0, "recovered": 0}
    claim, drawing, began = None, np.zeros(2), clock()
    for solution in lad.stream(design, drawn(design.matrix, start, blocks, drawing), threads=threads):
        counted["columns"] += solution.status.size
        counted["certified"] += int(solution.certified.sum())
        counted["recovered"] += solution.count(lad.Status.RECOVERED)
        if claim is None:
            few = slice(0, CHECKED)
            coefficients, dual = (np.asarray(part)[:, few].copy() for part in (solution.coefficients, solution.dual))
            claim = lad.Claim(coefficients, dual, solution.noise_floor[few])
    (cpu, wall), peak = clock() - began - drawing, memory("VmHWM")
    assert claim is not None
    certificate = lad.verify(design.matrix, MEMORY.columns(design.matrix, BLOCK, block=start)[:, :CHECKED], claim)
    return counted | {
        "cpu": float(cpu),
        "wall": float(wall),
        "drawing": float(drawing[1]),
        "peak_mb": peak - baseline,
        "checked": certificate.certified.size,
        "confirmed": int(certificate.certified.sum()),
    }


def drawn(A: Matrix, start: int, blocks: int, spent: Matrix) -> Iterator[Matrix]:
    """The blocks; adds to ``spent`` the seconds that drawing them takes, as ``clock`` has them."""
    for number in range(blocks):
        began = clock()
        block = MEMORY.columns(A, BLOCK, block=start + number * BLOCK)
        spent += clock() - began
        yield block


def clock() -> Matrix:
    """Seconds of the processor and by the clock."""
    return np.array([time.process_time(), time.perf_counter()])


def summary(parts: list[Facts]) -> str:
    """One line on all parts."""
    total = {name: sum(part[name] for part in parts) for name in parts[0]}
    columns = total["columns"]
    return (
        f"{columns:,.0f} columns of {MEMORY.name}: {total['wall']:.0f} s by the clock, {total['cpu']:.0f} s of the "
        f"processor ({1e3 * total['cpu'] / columns:.3f} ms a column), drawing them {total['drawing']:.0f} s; peak "
        f"{max(part['peak_mb'] for part in parts):.0f} MB above the libraries in blocks of {BLOCK:,}; "
        f"{total['certified']:,.0f} certified, {total['recovered']:,.0f} recovered; of {total['checked']:,.0f} that "
        f"lad.verify checked again, {total['confirmed']:,.0f} confirmed"
    )


def tell(what: str) -> None:
    """Progress."""
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
