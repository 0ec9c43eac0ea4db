"""What only a fresh process can measure: the cost of the first call, and peak memory.

    python lad_fresh.py first             import, and the first call on a tiny problem
    python lad_fresh.py stream COLUMNS    memory of ``lad.stream``, block by block
    python lad_fresh.py mapped COLUMNS    memory of ``lad.solve`` on a memory-mapped right-hand side

Each prints one JSON object; ``measure`` runs one and reads it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lad_cases import MEMORY, Case, Matrix, gaussian

BLOCK = 2000
MEGABYTE = 1e6


def measure(*command: str, **environment: str) -> dict[str, float]:
    """Run ``command`` in a fresh process, with ``environment`` on top of ours."""
    done = subprocess.run(
        [sys.executable, __file__, *command],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def first_calls(*, empty: bool) -> dict[str, dict[str, float]]:
    """The first call with a warm cache of compiled code, and, if ``empty``, also with an empty one."""
    if not empty:
        measure("first")  # fills the cache where it is not filled yet
        return {"a warm cache": measure("first")}
    with tempfile.TemporaryDirectory() as cache:
        return {name: measure("first", NUMBA_CACHE_DIR=cache) for name in ("an empty cache", "a warm cache")}


def _first() -> dict[str, float]:
    case = Case("100x25", 0.4, gaussian(100, 25))  # beyond the limit of recovery, so that every stage is called
    A = case.matrix()
    B = case.columns(A, 64)
    began = time.perf_counter()
    from netpurify import lad

    imported = time.perf_counter()
    lad.solve(A, B)
    first = time.perf_counter()
    lad.solve(A, B)
    second = time.perf_counter()
    return {"import_s": imported - began, "first_s": first - imported, "second_s": second - first}


def _stream(count: int) -> dict[str, float]:
    from netpurify import lad

    A = MEMORY.matrix()
    baseline = memory("VmRSS")
    began = time.perf_counter()
    certified = sum(int(solution.certified.sum()) for solution in lad.stream(A, _blocks(A, count)))
    return _facts(count, certified, began, baseline)


def _mapped(count: int) -> dict[str, float]:
    from netpurify import lad

    A = MEMORY.matrix()
    with tempfile.NamedTemporaryFile() as file:
        for block in _blocks(A, count):
            file.write(block.tobytes(order="F"))
        file.flush()
        B = np.memmap(file.name, np.float64, "r", shape=(A.shape[0], count), order="F")
        baseline = memory("VmRSS")
        began = time.perf_counter()
        solution = lad.solve(A, B)
        facts = _facts(count, int(solution.certified.sum()), began, baseline)
    answer = sum(np.asarray(part).nbytes for part in (solution.coefficients, solution.residual, solution.dual))
    return facts | {"answer_mb": answer / MEGABYTE, "file_mb": B.nbytes / MEGABYTE}


def _blocks(A: Matrix, count: int) -> Iterator[Matrix]:
    for start in range(0, count, BLOCK):
        yield MEMORY.columns(A, min(BLOCK, count - start), block=start)


def _facts(count: int, certified: int, began: float, baseline: float) -> dict[str, float]:
    wall = time.perf_counter() - began
    return {
        "columns": count,
        "certified": certified / count,
        "wall_ms": 1e3 * wall / count,
        "baseline_mb": baseline,
        "peak_mb": memory("VmHWM") - baseline,
    }


def memory(field: str) -> float:
    """A field of /proc/self/status in MB; getrusage's peak will not do, as a process inherits its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / MEGABYTE for line in lines if line.startswith(field))


if __name__ == "__main__":
    what, *count = sys.argv[1:]
    print(json.dumps({"first": _first, "stream": _stream, "mapped": _mapped}[what](*map(int, count))))
