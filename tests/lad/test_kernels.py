"""The solver keeps its promises with the kernels of other CPUs, which are chosen when a process starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite.binding import get_host_cpu_features

ROOT = Path(__file__).parents[2]
NEEDS = {
    "Nehalem": {"sse4.2"},
    "Sandybridge": {"avx"},
    "Haswell": {"avx2", "fma"},
    "Zen": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"},
}
"""Kernels of OpenBLAS for x86, and what a CPU must have in order to run them."""
HAS = {feature for feature, present in get_host_cpu_features().items() if present}
LACKING = [name for name, features in NEEDS.items() if not features <= HAS]
ENVIRONMENTS = {name: {"OPENBLAS_CORETYPE": name} for name in NEEDS if name not in LACKING} | {
    "generic": {"NUMBA_CPU_NAME": "generic", "ATEN_CPU_CAPABILITY": "default"}
}
TESTS = ["under_kernel.py", "test_symmetry.py", "test_contract.py"]
LEFT_OUT = [
    "test_symmetry.py::test_bits_do_not_depend_on_blocks[1]",  # three seconds; ragged sizes have a column alone, too
    "test_contract.py::test_minimum_is_no_worse_than_that_of_highs",  # certificates prove the same minimum
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_determinism_and_contract_hold(name, tmp_path, record_property):
    record_property("kernel", name)
    record_property("kernels lacking", LACKING)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-skips"]
    command += ["--basetemp", str(tmp_path / "run")]
    command += [f"tests/lad/{file}" for file in TESTS] + [f"--deselect=tests/lad/{test}" for test in LEFT_OUT]
    chosen = {"OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "ATEN_CPU_CAPABILITY", "PYTEST_ADDOPTS"}
    plain = {key: value for key, value in os.environ.items() if key not in chosen}
    plain |= {"OPENBLAS_NUM_THREADS": "2"}  # more than one, of which the solver must not depend
    done = subprocess.run(
        command, cwd=ROOT, env=plain | ENVIRONMENTS[name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"under {ENVIRONMENTS[name]}:\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
