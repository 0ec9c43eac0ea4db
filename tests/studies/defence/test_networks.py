import pytest
import torch
from torch import nn

from netpurify.errors import InputError
from netpurify.experiments.studies.defence import networks

SHAPES = {"mnist_cnn": (1, 28, 28), "resnet": (3, 32, 32), "vgg": (3, 32, 32)}


def _convolutions(network):
    return [module.weight.shape[0] for module in network.modules() if isinstance(module, nn.Conv2d)]


@pytest.mark.parametrize(("name", "widths"), [
    ("mnist_cnn", [16, 32]),
    ("resnet", [24, 48, 48, 48, 96, 96, 96, 192, 192, 192]),
    ("vgg", [32, 64, 64, 128, 128]),
])  # fmt: skip
def test_the_networks_have_the_stated_widths_and_ten_scores(name, widths):
    network = networks.build(name, 0).eval()
    assert _convolutions(network) == widths
    assert network(torch.zeros(2, *SHAPES[name])).shape == (2, 10)
    assert any(isinstance(module, nn.BatchNorm2d) for module in network.modules()) == (name != "mnist_cnn")


def test_a_seed_gives_the_same_bits_and_leaves_the_callers_random_numbers():
    before = torch.random.get_rng_state()
    first, again, other = (networks.build("resnet", seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["conv.weight"], other["conv.weight"])


def test_the_normalisation_is_inside():
    grey = torch.tensor(networks.CIFAR_MEAN).reshape(1, 3, 1, 1).expand(1, 3, 32, 32)
    normalise = networks.build("vgg", 0).get_submodule("normalise")
    assert normalise(grey).abs().max() == 0.0
    assert torch.allclose(normalise(grey + 0.247)[0, 0], torch.tensor(1.0))
    assert not list(normalise.parameters())


def test_an_unknown_network_is_refused_by_name():
    with pytest.raises(InputError, match="mnist_cnn, resnet, vgg; got 'lenet'"):
        networks.build("lenet", 0)
