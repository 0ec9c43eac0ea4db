"""Rows of a layer's inputs times its weight matrix are the layer's own output, for every option that torch has."""

import itertools

import pytest
import torch
from torch import nn

from netpurify.network.adapter.form import Form
from netpurify.network.adapter.layers import as_layers, refusal

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
SHAPES = {1: (11,), 2: (9, 8), 3: (6, 5, 7)}


def seeded(build):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build()


def product(module, inputs):
    """The layer's output made of its rows and its matrix, in the shape [groups, rows, units of a group]."""
    layer = as_layers("it", module)[0]
    return layer.rows(inputs) @ layer.matrix()


def by_rows(module, output, dimensions):
    """A convolution's output in the same shape."""
    batch = output.shape[0]
    grouped = output.reshape(batch, module.groups, -1, *output.shape[2:])
    places = range(3, 3 + dimensions)
    return grouped.permute(1, 0, *places, 2).reshape(module.groups, -1, output.shape[1] // module.groups)


@pytest.mark.filterwarnings("ignore:Using padding='same'")  # torch's word on its own speed
@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [0, 1, 2, "same", "valid"])
def test_convolutions(dimensions, mode, padding):
    for stride, dilation, groups, bias in itertools.product((1, 2), (1, 2), (1, 2, 4), (True, False)):
        if padding == "same" and stride > 1:
            continue  # torch refuses it
        kernel = (2, 3, 2)[:dimensions]
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "bias": bias}
        options |= {"kernel_size": kernel, "padding_mode": mode, "dtype": torch.float64}
        module = seeded(lambda options=options: CONVOLUTIONS[dimensions](4, 8, **options))
        inputs = seeded(lambda: torch.randn(3, 4, *SHAPES[dimensions], dtype=torch.float64))
        expected = by_rows(module, module(inputs), dimensions)
        torch.testing.assert_close(product(module, inputs), expected, rtol=1e-12, atol=1e-12)


def test_convolution_with_a_different_size_on_every_axis():
    module = seeded(lambda: nn.Conv2d(3, 6, (3, 2), (2, 1), (1, 0), (1, 3), groups=3, dtype=torch.float64))
    inputs = seeded(lambda: torch.randn(2, 3, 10, 9, dtype=torch.float64))
    torch.testing.assert_close(product(module, inputs), by_rows(module, module(inputs), 2), rtol=1e-12, atol=1e-12)


def test_depthwise():
    module = seeded(lambda: nn.Conv2d(5, 10, 3, padding=1, groups=5, dtype=torch.float64))
    inputs = seeded(lambda: torch.randn(2, 5, 6, 6, dtype=torch.float64))
    assert as_layers("it", module)[0].fan_in == 10
    torch.testing.assert_close(product(module, inputs), by_rows(module, module(inputs), 2), rtol=1e-12, atol=1e-12)


def test_one_image_without_a_batch():
    module = seeded(lambda: nn.Conv2d(2, 3, 3, dtype=torch.float64))
    inputs = seeded(lambda: torch.randn(2, 6, 6, dtype=torch.float64))
    torch.testing.assert_close(
        product(module, inputs), by_rows(module, module(inputs)[None], 2), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("shape", [(7,), (5, 7), (2, 3, 7), (2, 1, 4, 7)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_on_any_number_of_leading_axes(shape, bias):
    module = seeded(lambda: nn.Linear(7, 4, bias=bias, dtype=torch.float64))
    inputs = seeded(lambda: torch.randn(*shape, dtype=torch.float64))
    torch.testing.assert_close(product(module, inputs), module(inputs).reshape(1, -1, 4), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_matrix_and_back(groups):
    weight, bias = seeded(lambda: (torch.randn(8, 3, 2, 2), torch.randn(8)))
    form = Form("w", ("b",), groups=groups)
    there = form.matrix({"w": weight, "b": bias})
    assert there.shape == (groups, 13, 8 // groups)
    back = form.split(there, weight.shape)
    assert torch.equal(back[0], weight)
    assert torch.equal(back[1], bias)
    bare = Form("w", groups=groups)
    assert torch.equal(bare.split(bare.matrix({"w": weight}), weight.shape)[0], weight)


def test_write_keeps_bits():
    module = seeded(lambda: nn.Conv2d(4, 6, 3, groups=2))
    layer = as_layers("it", module)[0]
    before = module.weight.detach().clone()
    matrix = layer.matrix().clone()
    matrix[1, 2, 0] = 5.0
    layer.write(matrix)
    changed = (module.weight != before).nonzero().tolist()
    assert changed == [[3, 0, 0, 2]]
    assert module.weight[3, 0, 0, 2] == 5.0


class OwnLinear(nn.Linear):
    def forward(self, input):  # noqa: A002
        return super().forward(input) * 2.0


class NormedMatrix(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 3))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: nn.BatchNorm2d(3), "has a scale and a shift for each unit"),
        (lambda: nn.LayerNorm((3, 2)), "has a scale and a shift for each unit"),
        (lambda: nn.LayerNorm(3, bias=False), "LayerNorm has a scale for each unit"),
        (lambda: NormedMatrix(), "NormedMatrix is none of"),
        (lambda: nn.PReLU(3), "none of MultiheadAttention, Conv"),
        (lambda: nn.Embedding(3, 3, max_norm=1.0), "max_norm"),
        (lambda: OwnLinear(3, 3), "in its own way"),
        (lambda: nn.LazyLinear(3), "lazy"),
        (lambda: nn.Linear(3, 3, dtype=torch.complex64), "complex64"),
        (lambda: nn.Linear(3, 3, device="meta"), "meta"),
        (lambda: torch.nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), "computed from other parameters"),
        (lambda: nn.utils.spectral_norm(nn.Linear(3, 3)), "computed from other parameters"),
    ],
)
def test_what_is_refused_says_why(build, words):
    assert words in refusal(build())


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.Linear(3, 3),
        lambda: nn.Conv3d(2, 2, 1, dtype=torch.float64),
        lambda: nn.Linear(3, 3, dtype=torch.bfloat16),
        lambda: nn.Conv1d(2, 2, 1, dtype=torch.float16),
    ],
)
def test_what_is_not_refused(build):
    assert refusal(build()) is None
