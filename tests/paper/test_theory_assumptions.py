import pytest
import torch

from netpurify import data
from netpurify.findings import Verdict
from netpurify.paper.theory import ExaminedSystem, examine
from netpurify.paper.theory.assumptions import assumption_rows, gaussian_row


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(5, 500), (3, 80), (1, 40), (40, 30), (2, 5000)])
def test_gaussian_inputs_pass(shape):
    rows = [gaussian_row(normal(*shape, seed=seed)) for seed in range(150)]
    assert all(row.verdict == Verdict.HOLDS for row in rows)
    # The bound is not out of reach: the largest of so many draws comes near it.
    assert max(row.measured for row in rows) > 0.5 * rows[0].bound


def smooth(x):
    return (x[:, 1:] + x[:, :-1]) / 2**0.5


CASES = {
    "shifted": (normal(5, 500) + 0.2, "mean of all entries"),
    "wider": (1.2 * normal(5, 500), "mean square"),
    "uniform": ((2 * torch.rand(5, 500, generator=torch.Generator().manual_seed(0)) - 1).double() * 3**0.5, "within 1"),
    "signs": (normal(5, 500).sign(), "within 1"),
    "neighbours": (smooth(normal(5, 501)), "neighbouring"),
    "twins": (normal(4, 500)[[0, 1, 2, 3, 0]], "two inputs"),
    "one large": (normal(20, 200) * torch.tensor([1.0] * 19 + [1.8]).double()[:, None], "one input"),
}


@pytest.mark.parametrize("name", CASES)
def test_other_inputs_are_called_not_gaussian_and_it_is_said_why(name):
    inputs, why = CASES[name]
    row = gaussian_row(inputs)
    assert row.verdict == Verdict.FAILS
    assert why in row.note
    assert row.note.startswith("not Gaussian")


def test_pixels_are_not_gaussian_even_when_centred():
    pixels = data.load("mnist-sample").pixels[:20].reshape(20, -1).double() / 255
    for inputs in (pixels, (pixels - pixels.mean()) / pixels.std()):
        assert gaussian_row(inputs).verdict == Verdict.FAILS


def test_targets_beyond_one_are_said_to_be():
    bounded, _ = assumption_rows(normal(3, 40), torch.tensor([1.0, -1.0, 0.5]))
    assert (bounded.verdict, bounded.measured) == (Verdict.HOLDS, 1.0)
    bounded, _ = assumption_rows(normal(3, 40), torch.tensor([1.0, -1.5, 0.5]))
    assert (bounded.verdict, bounded.measured) == (Verdict.FAILS, 1.5)


@pytest.mark.slow
def test_rows_that_rest_on_a_broken_assumption_are_marked():
    inputs = (2 * torch.rand(3, 80, generator=torch.Generator().manual_seed(0)) - 1).double()
    found = examine(
        inputs,
        torch.tensor([0.5, -0.5, 1.0]).double(),
        system=ExaminedSystem(m=2, p=60, gamma=0.1, share=0.1, steps=20),
        generator=torch.Generator().manual_seed(0),
    )
    marked = {
        row.part.removesuffix(" corrected") for row in found.rows if "promised for Gaussian inputs only" in row.note
    }
    assert marked == {
        "Theorem 1", "Theorem 2", "Lemma 1", "Lemma 4", "Lemma 5", "Lemma 8", *(f"({i})" for i in range(11, 19))
    }  # fmt: skip
