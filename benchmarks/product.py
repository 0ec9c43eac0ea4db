"""The solver's own matrix product against BLAS, one thread, best of many runs.

    python benchmarks/product.py

Each line is the pair of products of one step: a panel of columns times the basis, and back.
"""

import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from netpurify.lad.kernels.product import product

SIZES = ((104, 32, 256), (392, 200, 128), (784, 200, 128), (2000, 104, 128), (5000, 1000, 128))
"""Rows, rank and columns of a panel, padded as the solver pads them."""


def best(run: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the fastest of some runs."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.thread_time()
        run()
        seconds.append(time.thread_time() - start)
    return min(seconds)


def main() -> None:
    """Print one line for each size and dtype."""
    print("rows x rank, panel      dtype      BLAS, us   own, us   ratio")
    for dtype in (np.float32, np.float64):
        for rows, rank, panel in SIZES:
            rng = np.random.default_rng(0)
            basis, columns = (rng.standard_normal(shape).astype(dtype) for shape in ((rows, rank), (panel, rows)))
            transposed = np.ascontiguousarray(basis.T)
            repeats = max(5, 10**9 // (rows * rank * panel))
            with threadpool_limits(1):
                blas = best(lambda: (columns @ basis) @ transposed, repeats)  # noqa: B023
                own = best(lambda: product(product(columns, basis), transposed), repeats)  # noqa: B023
            name = f"{rows} x {rank}, {panel}"
            print(f"{name:22}  {dtype.__name__:8}  {1e6 * blas:9.0f}  {1e6 * own:8.0f}  {own / blas:6.2f}")


if __name__ == "__main__":
    main()
