"""The guard by itself: gradients, half precision, and where it is put when it is read from a file."""

import copy

import pytest
import torch
from torch import nn

from netpurify import InputError, load_defended
from netpurify.network import Guard
from tests.network.made_networks import defend


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def guard(low, high, centre, spread):
    return Guard(*(torch.full((1, 1, 1), value) for value in (low, high, centre, spread)))


@pytest.mark.parametrize("watching", [guard(0.0, 0.0, 0.0, 0.0), guard(-1.0, 1.0, 0.5, 0.5)])
def test_gradients_are_finite_where_an_image_is_the_centre_everywhere(watching):
    values = torch.full((2, 1, 3, 3), float(watching.centre), requires_grad=True)
    watching(values).sum().backward()
    assert torch.equal(watching(values), values)
    assert values.grad is not None
    assert values.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_large_values_are_kept_in_half_precision(dtype):
    wide = guard(-2000.0, 2000.0, 0.0, 1000.0)
    values = 500.0 * draw(4, 1, 8, 8)
    found = copy.deepcopy(wide).to(dtype)(values.to(dtype))
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), wide(values), rtol=0.02, atol=1.0)


def test_a_guard_that_is_read_has_the_dtype_of_its_module():
    build = lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))  # noqa: E731  # one line, used twice
    inputs = draw(40, 6)
    state = defend(build().double(), inputs, strength=0.1).model.state_dict()
    found = load_defended(build(), state)
    assert found(9 * inputs).dtype == torch.float32
    expected = load_defended(build().double(), state)
    torch.testing.assert_close(found(9 * inputs).double(), expected(9 * inputs.double()), rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="on the meta device"):
        load_defended(build().to("meta"), state)
