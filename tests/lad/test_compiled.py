"""Where compiled code is kept, and who is told while it is made."""

import os
import subprocess
import sys

import pytest
from numba import njit

from netpurify.lad.kernels.compiled import compilation

pytestmark = pytest.mark.slow  # processes that compile anew

NOWHERE = """
import os, pathlib
from netpurify import lad
import numpy as np
A = np.vander(np.arange(1.0, 9.0), 2)
print(lad.solve(A, A @ [1.0, 2.0]).status)
folder = os.environ.get("NUMBA_CACHE_DIR")
print(folder and oct(pathlib.Path(folder).stat().st_mode & 0o777))
print(folder)
"""


@pytest.mark.slow
@pytest.mark.parametrize("temporary", [True, False])
def test_it_works_where_nothing_is_writable(tmp_path, temporary):
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["NUMBA_CACHE_LOCATOR_CLASSES"] = "UserProvidedCacheLocator"  # neither the package nor the home will do
    environment["TMPDIR"] = str(tmp_path if temporary else tmp_path / "missing")
    work = NOWHERE if temporary else f"import tempfile\ntempfile.tempdir = {str(tmp_path / 'missing')!r}\n{NOWHERE}"
    done = subprocess.run([sys.executable, "-c", work], env=environment, capture_output=True, text=True, check=True)
    status, mode, folder = done.stdout.splitlines()
    assert status == "0"
    assert mode == ("0o700" if temporary else "None")
    assert folder.startswith(str(tmp_path)) == temporary
    assert not any(tmp_path.iterdir()), "the temporary folder must go with its process"


CUT = """
import numpy as np
from netpurify.lad.kernels.product import product
print(product(np.ones((4, 8)), np.ones((8, 3))).sum())
"""


@pytest.mark.parametrize(("ending", "size"), [(".nbi", 0), (".nbc", 1000)])
def test_a_file_of_compiled_code_that_is_cut_is_made_good(tmp_path, ending, size):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", CUT], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == "96.0\n"
        (kept,) = tmp_path.rglob(f"product._multiply*{ending}")
        kept.write_bytes(kept.read_bytes()[:size])


def test_compilation_is_announced_once_and_ended():
    said = []
    with compilation(lambda: said.append("begin"), lambda: said.append("end")):
        helper = njit(lambda x: x + 1)
        njit(lambda x: helper(x) + helper(x))(1)
    njit(lambda x: x + 2)(1)
    assert said == ["begin", "end"]
