"""Every peer that is installed solves the problem that is meant, for every quantile."""

import numpy as np
import pytest

from lad_cases import Case, gaussian, student
from lad_peers import PEERS, Run, run
from netpurify import lad

CASE = Case("40x3", 1.0, gaussian(40, 3), law=student)
PRESENT = [peer for peer in PEERS if peer.absence() is None]


def test_some_peers_are_always_there():
    assert {"scipy HiGHS, dual form", "scikit-learn QuantileRegressor"} <= {peer.name for peer in PRESENT}


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("peer", PRESENT, ids=lambda peer: peer.name)
def test_peers_reach_the_minimum(peer, quantile):
    A = CASE.matrix()
    B = CASE.columns(A, 5)
    done = run(peer, A, B, quantile=quantile, budget=30.0, patience=60.0)
    assert isinstance(done, Run), done
    assert done.coefficients.shape == (3, 5)
    assert (np.diff(done.wall) >= 0.0).all()
    best = lad.solve(A, B, quantile=quantile)
    found = best.loss.of(B - A @ done.coefficients)
    np.testing.assert_allclose(found, best.objective, rtol=1e-3 if "statsmodels" in peer.name else 1e-6)


def test_a_peer_that_takes_too_long_is_stopped():
    done = run(PRESENT[0], np.ones((9, 1)), np.ones((9, 1)), quantile=0.5, budget=1.0, patience=0.0)
    assert done == "stopped: not done after 0 s"


def test_the_first_column_pays_for_setup():
    assert Run.per_column(np.array([5.0, 5.5, 6.0])) == 0.5
    assert Run.per_column(np.array([5.0])) == 5.0
