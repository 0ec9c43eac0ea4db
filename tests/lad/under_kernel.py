"""The first test of every run under another kernel: the kernel that was asked for is the one that computes.

Not collected by itself: tests/lad/test_kernels.py names it to the processes that it starts.
"""

import os

import numba
import numpy as np
import scipy.linalg
import threadpoolctl
import torch

ALIASES = {"Zen": {"Zen", "Haswell"}}
"""Builds of OpenBLAS without kernels of their own for Zen take those for Haswell."""


def test_the_kernels_asked_for_are_in_use():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((8, 8))
    np.testing.assert_allclose(scipy.linalg.blas.dgemm(1.0, matrix, matrix), matrix @ matrix)  # both are loaded
    asked = os.environ.get("OPENBLAS_CORETYPE")
    if asked:
        found = [it for it in threadpoolctl.threadpool_info() if it["internal_api"] == "openblas"]
        architectures = {path: it["architecture"] for it in found if (path := it["filepath"])}
        for library in (np, scipy):
            own = [path for path in architectures if f"{library.__name__}.libs" in path]
            assert own, f"no OpenBLAS of {library.__name__} among {architectures}"
        assert set(architectures.values()) <= ALIASES.get(asked, {asked}), architectures
    if "NUMBA_CPU_NAME" in os.environ:
        # Numba documents its config, though not in __all__.
        assert os.environ["NUMBA_CPU_NAME"] == numba.config.CPU_NAME  # pyright: ignore[reportPrivateImportUsage]
    if "ATEN_CPU_CAPABILITY" in os.environ:
        assert torch.backends.cpu.get_cpu_capability().lower() == os.environ["ATEN_CPU_CAPABILITY"]
