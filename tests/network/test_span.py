"""What is gathered batch by batch spans what all rows together span."""

import numpy as np
import pytest
import torch

from netpurify.errors import InputError
from netpurify.network.adapter import span as spans
from netpurify.network.adapter.span import Span


def rows_of(count, fan_in, rank, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    left = torch.randn(count, rank, generator=generator, dtype=torch.float64)
    return (left @ torch.randn(rank, fan_in, generator=generator, dtype=torch.float64)).to(dtype)


def gathered(rows, batch):
    found = Span(rows.shape[1], torch.finfo(rows.dtype).eps)
    for part in rows.split(batch):
        found.add(part)
    return found


def same_space(a, b):
    """Whether the columns of two matrices span the same, by the largest angle between the spaces."""
    bases = [np.linalg.svd(matrix, full_matrices=False)[:2] for matrix in (a, b)]
    p, q = (left[:, values > 1e-5] for left, values in bases)
    return p.shape == q.shape and np.linalg.norm(p - q @ (q.T @ p)) < 1e-4


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("count", "fan_in", "rank"), [(30, 60, 20), (2000, 60, 20), (2000, 60, 59), (5000, 300, 7)])
def test_spans_what_all_rows_span(dtype, count, fan_in, rank):
    rows = rows_of(count, fan_in, rank, dtype=dtype)
    found = gathered(rows, 128)
    assert not found.full
    assert found.count == count
    assert found.design().rank == found.rank() == rank
    assert same_space(found.matrix(), rows.double().numpy().T)


def test_cut_into_batches_does_not_change_a_bit():
    rows = rows_of(3000, 40, 11)
    assert np.array_equal(gathered(rows, 17).matrix(), gathered(rows, 3000).matrix())


def test_cut_into_batches_does_not_change_a_bit_of_a_full_span():
    rows = rows_of(20_000, 40, 40) * torch.linspace(1.0, 0.1, 40, dtype=torch.float64)
    found = [gathered(rows, batch) for batch in (17, 500, 20_000)]
    assert all(span.full for span in found)
    for rank in (5, 20):
        assert np.array_equal(found[0].strongest(rank), found[1].strongest(rank))
        assert np.array_equal(found[0].strongest(rank), found[2].strongest(rank))
    # The rows that are weighed stand for all of them.
    exact = torch.linalg.eigvalsh(rows.T @ rows).flip(0).numpy()
    assert np.allclose(found[0].energies() / exact, 1.0, atol=0.2)


def test_full_span_is_noticed_and_weighs_directions():
    rows = rows_of(4000, 50, 50) * torch.linspace(1.0, 0.1, 50, dtype=torch.float64)
    found = gathered(rows, 500)
    assert found.full
    assert found.rank() == 50
    with pytest.raises(InputError, match="set a rank"):
        found.design()
    _, vectors = np.linalg.eigh(rows.numpy().T @ rows.numpy())
    best = vectors[:, ::-1][:, :3]
    assert np.linalg.norm(best - found.strongest(5) @ (found.strongest(5).T @ best)) < 0.5
    assert np.all(np.diff(found.energies()) <= 0.0)


def test_strongest_directions_of_a_large_full_span_are_the_eigenvectors():
    generator = torch.Generator().manual_seed(1)
    scale = torch.logspace(1.0, -1.0, 200, dtype=torch.float64)
    rows = torch.randn(3000, 200, generator=generator, dtype=torch.float64) * scale
    found = gathered(rows, 3000)
    assert found.full
    found_basis = found.strongest(10)
    assert np.allclose(found_basis.T @ found_basis, np.eye(10), atol=1e-10)
    exact = found._principal()[:, :10]
    assert np.linalg.norm(exact - found_basis @ (found_basis.T @ exact)) < 5e-2


def test_dead_coordinates_stay_dead():
    rows = rows_of(3000, 30, 8)
    rows[:, 4] = 0.0
    found = gathered(rows, 100)
    assert not found.live()[4]
    assert found.live().sum() == 29
    assert found.design().live.size == 29


def test_span_of_all_live_directions_is_full_though_some_are_dead():
    rows = rows_of(3000, 30, 30)
    rows[:, 4] = 0.0
    found = gathered(rows, 100)
    assert found.full
    assert found.rank() == found.live().sum() == 29


def test_order_of_the_rows_does_not_matter_where_coordinates_light_up_late():
    early, late = torch.zeros(1000, 60), torch.zeros(5, 60)
    early[:, :20], late[:, 20:] = rows_of(1000, 20, 20), rows_of(5, 40, 5)
    for order in ((early, late), (late, early)):
        found = gathered(torch.cat(order), 100)
        assert not found.full
        assert (found.rank(), int(found.live().sum())) == (25, 60)
        assert same_space(found.matrix(), torch.cat(order).double().numpy().T)


@pytest.mark.parametrize("batch", [32, 600, 700])
def test_a_coordinate_that_lights_up_late_in_a_batch_is_not_missed(batch):
    rows = rows_of(700, 40, 40)
    rows[:, 38:] = 0.0
    rows[600, 38:] = torch.tensor([1.0, 2.0])  # both coordinates light up in one row: one direction more, not two
    span = gathered(rows, batch)
    assert (span.full, span.rank(), int(span.live().sum()), span.count) == (False, 39, 40, 700)


def test_rounding_of_float32_does_not_count_as_a_direction():
    rows = rows_of(3000, 40, 12).float() @ torch.eye(40)
    assert gathered(rows, 3000).design().rank == 12


def test_rows_that_are_not_finite_are_refused():
    rows = torch.ones(4, 3)
    rows[2, 1] = torch.nan
    with pytest.raises(InputError, match="must be finite"):
        Span(3, 1e-7).add(rows)


def test_rows_that_do_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr(spans, "LIMIT", 1 << 20)
    with pytest.raises(InputError, match="give fewer clean inputs"):
        Span(1000, 1e-7).add(torch.ones(500, 1000))
