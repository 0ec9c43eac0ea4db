"""Clean inputs of every kind that ``defend`` is given: what becomes one batch, what is held out, what is refused."""

import pytest
import torch

from netpurify import InputError
from netpurify.network.policies.defence.inputs import count, split, twice


def rows(start, end):
    return torch.arange(float(start), float(end))[:, None].expand(-1, 3)


def test_every_input_is_fitted_or_held_out():
    fitted, held = split([rows(0, 30), rows(30, 50)])
    assert (len(fitted), len(held)) == (40, 10)
    assert sorted([*fitted[:, 0].tolist(), *held[:, 0].tolist()]) == list(range(50))
    assert torch.equal(twice(held), torch.cat([held, held]))


def test_what_all_inputs_share_stays_as_it_is():
    mask = torch.eye(40)
    batches = [{"x": rows(0, 9), "mask": mask, "scale": 2.0}, {"x": rows(9, 20), "mask": mask.clone(), "scale": 2.0}]
    fitted, held = split(batches)
    assert (count(fitted), count(held)) == (16, 4)  # not 40: the mask is no input
    assert torch.equal(fitted["mask"], mask)
    assert torch.equal(twice(held)["mask"], mask)
    assert held["scale"] == 2.0


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"x": rows(0, 9)}, "all batches of clean inputs must be alike"),
        ({"x": rows(0, 9), "scale": 5.0}, "the same of anything else; some of \\['float'\\] differ"),
        ({"x": rows(0, 9), "scale": ["a"] * 9}, "alike"),
        (rows(0, 9), "alike"),
        ({"x": rows(0, 9)[:, :2], "scale": 2.0}, "of one shape"),
    ],
)
def test_batches_that_do_not_go_together_are_refused(second, said):
    with pytest.raises(InputError, match=said):
        split([{"x": rows(0, 9), "scale": 2.0}, second])


def test_a_tensor_that_changes_without_being_one_for_each_input_is_refused():
    with pytest.raises(InputError, match="one row for each input, or be the same in all batches"):
        split([{"x": rows(0, 9), "weights": torch.ones(4)}, {"x": rows(0, 9), "weights": torch.zeros(4)}])
    with pytest.raises(InputError, match="alike"):
        split([[rows(0, 9), rows(0, 9)], [rows(0, 9)]])
