import math

import pytest
import torch

from netpurify import InputError
from netpurify.paper import PatchCNN
from netpurify.paper.model import matrix, with_bias, write


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_equation_1_written_out():
    net = PatchCNN(m=3, k=4, p=5, generator=generator())
    x = torch.randn(2, 12, generator=generator(1), dtype=torch.float64)
    W, beta = matrix(net.layers[0]), matrix(net.output)[:, 0]
    expected = [
        sum(beta[j] * max(0.0, float(W[:, j] @ x[s, 4 * i : 4 * i + 4])) for j in range(5) for i in range(3))
        / math.sqrt(5)
        for s in range(2)
    ]
    assert net(x).tolist() == pytest.approx([float(v) for v in expected], abs=1e-14)


def test_deep_network_is_a_one_by_one_convolution_at_every_patch():
    net = PatchCNN(m=3, k=4, p=6, classes=2, layers=3, bias=True, generator=generator())
    x = torch.randn(5, 12, generator=generator(1), dtype=torch.float64)
    signal = x.reshape(5, 1, 12)
    for i, layer in enumerate(net.hidden):
        kernel = layer.weight[:, None, :] if i == 0 else layer.weight[:, :, None]
        signal = torch.nn.functional.conv1d(signal, kernel, layer.bias, stride=4 if i == 0 else 1).relu()
    expected = (signal.sum(2) @ net.output.weight.T + net.output.bias) / math.sqrt(6)
    assert torch.allclose(net(x), expected, atol=1e-13)


def test_initial_weights_have_the_stated_laws_and_come_from_the_generator_alone():
    before = torch.random.get_rng_state()
    nets = [PatchCNN(m=1, k=400, p=500, layers=2, generator=generator(3)) for _ in range(2)]
    assert torch.equal(before, torch.random.get_rng_state())
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.equal(a, b)
    first, second, output = (matrix(layer) for layer in nets[0].layers)
    assert float(first.var()) * 400 == pytest.approx(1.0, abs=0.02)
    assert float(second.var()) * 500 == pytest.approx(2.0, abs=0.04)
    assert float(output.var()) == pytest.approx(1.0, abs=0.2)
    assert first.dtype == torch.float64


def test_bias_is_one_more_coordinate_that_is_always_1():
    net = PatchCNN(m=2, k=3, p=4, bias=True, generator=generator())
    layer = net.layers[0]
    rows = torch.randn(6, 3, generator=generator(1), dtype=torch.float64)
    assert matrix(layer).shape == (4, 4)
    assert torch.allclose(with_bias(rows, layer) @ matrix(layer), layer(rows))
    values = torch.arange(16.0, dtype=torch.float64).reshape(4, 4)
    write(layer, values)
    assert torch.equal(matrix(layer), values)
    assert torch.equal(layer.bias, values[3])


@pytest.mark.parametrize("shape", [(2, 11), (2, 13), (12,), (2, 3, 4)])
def test_inputs_that_patches_do_not_cover_are_refused(shape):
    net = PatchCNN(m=3, k=4, p=5, generator=generator())
    with pytest.raises(InputError, match=r"inputs must be \[n, 12\]: m = 3 patches of k = 4"):
        net(torch.zeros(shape, dtype=torch.float64))


@pytest.mark.parametrize("wrong", [{"m": 0}, {"k": -1}, {"p": 0}, {"layers": 0}, {"classes": 0}, {"m": 2.5}])
def test_sizes_below_1_are_refused_by_name(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be a whole number, at least 1"):
        PatchCNN(**({"m": 1, "k": 1, "p": 1} | wrong), generator=generator())
