"""Given a plain matrix, the verifier uses nothing of the solver, and agrees with the check that uses its ``Design``."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import netpurify
from netpurify import lad
from netpurify.lad.kernels import compiled
from netpurify.lad.verifier.plain_space import PlainSpace
from tests.lad.problems import PROBLEMS, planted

SOURCE = Path(netpurify.__file__).parent
ALLOWED = {"netpurify.errors", "netpurify.threads", *(f"netpurify.lad.{name}" for name in ("arrays", "loss", "status"))}
"""What the verifier may import besides its own room: errors, the limit of threads, input arrays, what a residual costs,
names of statuses."""


def imported(module: str) -> set[str]:
    """Names of the modules that the file of a module imports."""
    path = SOURCE.parent / module.replace(".", "/")
    tree = ast.parse(path.with_suffix(".py").read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            folder = (SOURCE.parent / str(node.module).replace(".", "/")).is_dir()
            names |= {f"{node.module}.{alias.name}" for alias in node.names} if folder else {str(node.module)}
    return names


def test_verifier_imports_no_part_of_the_solver():
    seen, waiting = (
        set(),
        {f"netpurify.lad.verifier.{path.stem}" for path in (SOURCE / "lad/verifier").glob("[!_]*.py")},
    )
    assert "netpurify.lad.verifier.plain_space" in waiting
    while waiting:
        module = waiting.pop()
        seen.add(module)
        waiting |= {name for name in imported(module) if name.startswith("netpurify")} - seen
        assert not {name.split(".")[0] for name in imported(module)} & {"numba", "llvmlite", "torch"} - (
            {"torch"} if module in ALLOWED else set()
        ), f"{module} imports compiled code or torch"
    assert {name for name in seen if not name.startswith("netpurify.lad.verifier.")} == ALLOWED


def test_verification_of_a_plain_matrix_calls_no_part_of_the_solver(monkeypatch):
    problem = planted(80, 12, 6, 0.15, seed=100)
    design = lad.Design.prepare(problem.A)
    claim = lad.solve(design, problem.B).claim
    expected = lad.verify(design, problem.B, claim)

    def never(*_arguments, **_options):
        raise AssertionError("the solver was called")

    monkeypatch.setattr(compiled._Kernel, "__call__", never)  # every compiled loop, the matrix product among them
    for name in ("prepare", "_factor", "coordinates", "fitted", "predicted"):
        monkeypatch.setattr(lad.Design, name, never)
    with pytest.raises(AssertionError, match="the solver was called"):
        lad.verify(design, problem.B, claim)
    certificate = lad.verify(problem.A, problem.B, claim)
    assert (certificate.status == lad.Status.RECOVERED).all()
    assert np.array_equal(certificate.surplus, expected.surplus)


def compare(A, B, **options):
    """Both ways of verification find the same for an answer of the solver."""
    design = lad.Design.prepare(A)
    claim = lad.solve(design, B, threads=1, **options).claim
    ours, plain = lad.verify(design, B, claim), lad.verify(A, B, claim)
    assert PlainSpace.of(A).rank == design.rank
    for name in ("status", "zeros", "unique", "noise_floor"):
        assert np.array_equal(getattr(ours, name), getattr(plain, name)), name
    # How many zeros are discounted steps with the median residual, which rounding moves where residuals are tiny.
    assert np.abs(ours.surplus - plain.surplus).max(initial=0) <= 1
    size = np.nansum(np.abs(B), axis=0)
    np.testing.assert_array_less(np.abs(ours.objective - plain.objective), 1e-12 * size + 1e-300)
    np.testing.assert_array_less(np.abs(ours.lower_bound - plain.lower_bound), 1e-12 * size + 1e-300)
    np.testing.assert_allclose(plain.stability, ours.stability, rtol=1e-4)


@pytest.mark.parametrize("options", [{}, {"noise_floor": 0.0}, {"method": "simplex"}], ids=str)
@pytest.mark.parametrize("name", PROBLEMS)
def test_both_ways_agree_on_the_catalogue(name, options):
    compare(PROBLEMS[name].A, PROBLEMS[name].B, **options)


@pytest.mark.parametrize("shape", [(392, 98, 0.38), (100, 40, 0.6), (60, 50, 0.3), (30, 60, 0.2)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_both_ways_agree_at_the_limit_of_recovery(shape, dtype):
    rng = np.random.default_rng(7)
    rows, columns, share = shape
    A = rng.standard_normal((rows, columns))
    hit = rng.random((rows, 30)) < share
    compare(A, (A @ rng.standard_normal((columns, 30)) + hit * rng.normal(1, 1, hit.shape)).astype(dtype))


def test_another_order_of_additions_may_exceed_the_floor_by_its_rounding_only():
    rng = np.random.default_rng(9)
    A, u = rng.integers(-9, 10, (40, 6)).astype(float), rng.integers(1, 9, 6).astype(float)  # products are exact
    off = np.zeros(40)
    off[7] = 1.0
    A[7] = u[1], -u[0], 0.0, 0.0, 0.0, 0.0  # where the fit is 0, the residual is the datum itself
    dual, rounding = np.zeros(40), float(PlainSpace.of(A).rounding(u[None])[0])
    assert 1e-14 < rounding < 1e-12

    def zeros(residual: float, floor: float, coefficients=u) -> int:
        b = A @ coefficients + residual * off
        return int(lad.verify(A, b, lad.Claim(coefficients, dual, floor)).zeros)

    assert zeros(1e-12 + 0.5 * rounding, floor=1e-12) == 40, "within the rounding of this product"
    assert zeros(1e-12 + 1.5 * rounding, floor=1e-12) == 39, "beyond it"
    assert zeros(0.5 * rounding, floor=0.0) == 39, "without a floor every digit counts"
    floor = 2.0**30 * rounding / 100.0
    assert zeros(1.9 * floor, floor=floor, coefficients=2.0**30 * u) == 40
    assert zeros(2.1 * floor, floor=floor, coefficients=2.0**30 * u) == 39, (
        "the floor again at most, however large u is"
    )


@pytest.mark.parametrize("shape", [(50, 8), (8, 50), (30, 30)])
def test_basis_is_orthonormal_and_spans_the_columns(shape):
    rng = np.random.default_rng(8)
    A = rng.standard_normal((shape[0], 4)) @ rng.standard_normal((4, shape[1])) * 10.0 ** rng.uniform(-5, 5, shape[1])
    space = PlainSpace.of(A)
    assert space.rank == 4 == space.pivots.size
    np.testing.assert_allclose(space.compact.T @ space.compact, np.eye(space.rank), atol=1e-14)
    np.testing.assert_allclose(space.orthogonal(A.T), 0.0, atol=1e-13 * np.abs(A).max())
    chosen = A[:, space.pivots] / np.abs(A[:, space.pivots]).max(axis=0)
    assert np.linalg.matrix_rank(chosen) == space.rank


@pytest.mark.slow
def test_importing_the_solver_does_not_import_torch():
    check = "import sys; import netpurify.lad; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
