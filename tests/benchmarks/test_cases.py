"""The problems of the race are what their names say."""

import numpy as np
import pytest
import torch

from lad_cases import CASES, QUANTILES, Case, gaussian, mnist_patches, student
from netpurify import data, lad, paper

SMALL = [case for case in (*CASES, *QUANTILES) if case.size in ("100x25", "MNIST 392x42", "MNIST 196x396")]


def test_names_tell_cases_apart():
    names = [case.name for case in (*CASES, *QUANTILES)]
    assert len(set(names)) == len(names)
    assert "392x198 eps 0.1 float32" in names
    assert "500x8 t(3) quantile 0.05" in names


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_entries_are_hit_as_often_as_the_name_says(case):
    A = case.matrix()
    clean = Case(case.size, 0.0, case.design, law=case.law)
    hit = case.columns(A, 500) != clean.columns(A, 500)
    assert hit.mean() == pytest.approx(case.eps, abs=0.01)


def test_first_columns_do_not_depend_on_how_many_there_are():
    case = SMALL[0]
    A = case.matrix()
    np.testing.assert_array_equal(case.columns(A, 100)[:, :7], case.columns(A, 7))
    assert not np.array_equal(case.columns(A, 7), case.columns(A, 7, block=7))


def test_patches_are_those_of_the_papers_network():
    A = mnist_patches(21, 2)(np.random.default_rng(3))
    sample = data.load("mnist-sample")
    chosen = np.random.default_rng(3).choice(len(sample), 21, replace=False)
    images = sample.pixels[chosen].double().div(255).flatten(1)
    network = paper.PatchCNN(m=2, k=392, p=3, generator=torch.Generator().manual_seed(0))
    np.testing.assert_array_equal(A, network.patches(images).numpy().T)


def test_rounded_data_are_float32_and_nothing_fits_exactly_with_dense_noise():
    rounded = next(case for case in CASES if case.rounded)
    A = rounded.matrix()
    assert (A.astype(np.float32) == A).all()
    assert rounded.floors == (None, 0.0)
    dense = Case("60x4", 1.0, gaussian(60, 4), law=student)
    A = dense.matrix()
    solution = lad.solve(A, dense.columns(A, 20))
    assert (solution.status == lad.Status.OPTIMAL).all()
