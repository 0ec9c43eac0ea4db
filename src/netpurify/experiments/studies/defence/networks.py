"""Networks on which the defences are compared: images in [0, 1] in, scores of ten classes out.

build("resnet", seed) gives the initial weights; the same seed gives the same bits.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from netpurify.errors import InputError
from netpurify.network import Seeded

CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)
MNIST_MEAN, MNIST_STD = (0.1307,), (0.3081,)


class Normalise(nn.Module):
    """Images less the mean, over the deviation, channel by channel: attacks and defences see pixels in [0, 1]."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        """One mean and one deviation for each channel."""
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).reshape(-1, 1, 1))
        self.register_buffer("deviation", torch.tensor(deviation).reshape(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """The normalised images, [n, c, h, w]."""
        return (images - self.mean) / self.deviation


class DownsamplingBlock(nn.Module):
    """Two 3 x 3 convolutions with BatchNorm, and a strided 1 x 1 convolution with BatchNorm beside them."""

    def __init__(self, inputs: int, width: int) -> None:
        """``inputs`` channels come in, ``width`` go out, at half the resolution."""
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.beside = nn.Conv2d(inputs, width, 1, stride=2, bias=False)
        self.norm_beside = nn.BatchNorm2d(width)
        self.relu2 = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        """The block's output, [n, width, h / 2, w / 2]."""
        through = self.norm2(self.conv2(self.relu1(self.norm1(self.conv1(inputs)))))
        return self.relu2(through + self.norm_beside(self.beside(inputs)))


def mnist_cnn() -> nn.Sequential:
    """Two convolutions and two fully connected layers for MNIST, without BatchNorm."""
    return nn.Sequential(OrderedDict(
        normalise=Normalise(MNIST_MEAN, MNIST_STD),
        conv1=nn.Conv2d(1, 16, 5), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(16, 32, 5), relu2=nn.ReLU(), pool2=nn.MaxPool2d(2),
        flatten=nn.Flatten(), fc1=nn.Linear(512, 128), relu3=nn.ReLU(), fc2=nn.Linear(128, 10),
    ))  # fmt: skip


def resnet() -> nn.Sequential:
    """A small ResNet with BatchNorm for CIFAR-10: widths 24, 48, 96, 192."""
    return nn.Sequential(OrderedDict(
        normalise=Normalise(CIFAR_MEAN, CIFAR_STD),
        conv=nn.Conv2d(3, 24, 3, padding=1, bias=False), norm=nn.BatchNorm2d(24), relu=nn.ReLU(),
        block1=DownsamplingBlock(24, 48), block2=DownsamplingBlock(48, 96), block3=DownsamplingBlock(96, 192),
        mean=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), fc=nn.Linear(192, 10),
    ))  # fmt: skip


def vgg() -> nn.Sequential:
    """Five convolutions with BatchNorm and two fully connected layers for CIFAR-10."""
    return nn.Sequential(OrderedDict(
        normalise=Normalise(CIFAR_MEAN, CIFAR_STD),
        conv1=nn.Conv2d(3, 32, 3, padding=1, bias=False), norm1=nn.BatchNorm2d(32), relu1=nn.ReLU(),
        pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(32, 64, 3, padding=1, bias=False), norm2=nn.BatchNorm2d(64), relu2=nn.ReLU(),
        conv3=nn.Conv2d(64, 64, 3, padding=1, bias=False), norm3=nn.BatchNorm2d(64), relu3=nn.ReLU(),
        pool2=nn.MaxPool2d(2),
        conv4=nn.Conv2d(64, 128, 3, padding=1, bias=False), norm4=nn.BatchNorm2d(128), relu4=nn.ReLU(),
        conv5=nn.Conv2d(128, 128, 3, padding=1, bias=False), norm5=nn.BatchNorm2d(128), relu5=nn.ReLU(),
        pool3=nn.MaxPool2d(2),
        flatten=nn.Flatten(), fc1=nn.Linear(2048, 128), relu6=nn.ReLU(), fc2=nn.Linear(128, 10),
    ))  # fmt: skip


NETWORKS = {"mnist_cnn": mnist_cnn, "resnet": resnet, "vgg": vgg}


def build(name: str, seed: int) -> nn.Module:
    """A network with its initial weights; the caller's random numbers are left as they are.

    Raises:
        InputError: There is no such network.
    """
    if name not in NETWORKS:
        raise InputError(f"the network must be one of {', '.join(NETWORKS)}; got {name!r}")
    return Seeded(NETWORKS[name], seed).build()
