"""Small networks to repair, and what tests ask of them."""

import itertools
from dataclasses import replace

import torch
from torch import nn

from netpurify import Seeded

WIDTH, PLANTED = 12, 7


def network(seed, *, norm):
    def layers():
        middle = [nn.BatchNorm2d(WIDTH)] if norm else []
        convolution = nn.Conv2d(1, WIDTH, 5, stride=2, bias=not norm)
        return nn.Sequential(
            convolution, *middle, nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(WIDTH * 9, 10)
        ).eval()

    return Seeded(layers, seed).build()


def perceptron(seed, *sizes):
    def layers():
        inner = [part for pair in itertools.pairwise(sizes) for part in (nn.Linear(*pair), nn.ReLU())]
        return nn.Sequential(nn.Flatten(), *inner[:-1])

    return Seeded(layers, seed).build()


def state(found):
    return {name: value.clone() for name, value in found.state_dict().items()}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def repair(baseline, contaminated, clean, *, seed=0):
    initial = network(0, norm=isinstance(contaminated[1], nn.BatchNorm2d))
    return baseline.repair(contaminated, replace(clean, initial=initial, seed=seed))


def hits(found, clean):
    return int((found(clean.images).argmax(1) == clean.labels).sum())
