"""A small network on disk in every state, and commands run as a terminal would, without a new process each time."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from netpurify import checkpoint
from netpurify.cli.app import run as run_command
from netpurify.contaminate import Normal, contaminate
from netpurify.network import Seeded

FACTORY = """
import torch
from torch import nn

def build(width=40):
    return nn.Sequential(nn.Linear(60, width), nn.ReLU(), nn.Linear(width, 5))

def one():
    print("building")
    return nn.Linear(60, 40)

def tied():
    network = nn.Sequential(nn.Linear(60, 60, bias=False), nn.Linear(60, 60, bias=False), nn.Linear(60, 3))
    network[1].weight = network[0].weight
    return network

class Spare(nn.Module):
    # The inputs never reach its last layer, and a norm is of a kind that is not examined.

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(60, 40), nn.LayerNorm(40), nn.Linear(40, 5)

    def forward(self, inputs):
        return self.norm(self.first(inputs))

class Normed(Spare):
    # Every layer is reached.

    def forward(self, inputs):
        return self.last(super().forward(inputs))

class Gated(nn.Module):
    # A parameter of its own, an LSTM, a norm with buffers alone, and a buffer that no file holds.

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(60, 40), nn.Linear(40, 5)
        self.gate, self.cell = nn.Parameter(torch.ones(40)), nn.LSTM(40, 40, batch_first=True)
        self.norm = nn.BatchNorm1d(40, affine=False)
        self.register_buffer("scratch", torch.ones(1), persistent=False)
        self.again = self.first  # a second name for the same layer

    def forward(self, inputs):
        hidden = self.gate * self.norm(self.first(inputs))
        return self.last(self.cell(hidden[:, None])[0][:, 0]) * self.scratch

class Printing(nn.Sequential):
    def forward(self, inputs):
        print("running")
        return super().forward(inputs)

class Ending(nn.Sequential):
    def forward(self, inputs):
        raise SystemExit(0)

class Stumbling(nn.Sequential):
    def forward(self, inputs):
        raise KeyError("no such key")

class Closing(nn.Sequential):
    def forward(self, inputs):
        raise GeneratorExit("closed")

def closing():
    return Closing(*build())

def closed():
    raise GeneratorExit("closed")

class Scaling(nn.Module):
    # Has weights, and no layer.

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, inputs):
        return inputs * self.weight.sum()

def scaling():
    return Scaling()

def printing():
    return Printing(*build())

def ending():
    return Ending(*build())

def stumbling():
    return Stumbling(*build())

def normed_weights():
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(60, 40, bias=False)), nn.Linear(40, 5))

def leaving():
    raise SystemExit(0)

def broken():
    raise RuntimeError("no such weather")

def number():
    return 7

ready = build()
"""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def message(self):
        return " ".join(self.err.split())


@pytest.fixture(autouse=True)
def no_columns(monkeypatch):
    """The width of the terminal in which tests run does not count."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def run(capsys, monkeypatch):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["netpurify", *map(str, arguments)])
        capsys.readouterr()
        code = run_command()
        shown = capsys.readouterr()
        return Done(code, shown.out, shown.err)

    return call


def build(width=40):
    return nn.Sequential(nn.Linear(60, width), nn.ReLU(), nn.Linear(width, 5))


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Files of one network: initial, trained, contaminated; clean inputs; a module with factories."""
    folder = tmp_path_factory.mktemp("made")
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(8, 60, generator=generator)
    labels = torch.arange(8) % 5
    initial = Seeded(build, 5).build()
    trained = Seeded(build, 5).build()
    for part in (trained[0], trained[2]):  # one after the other, so that both layers can be recovered
        optimiser = torch.optim.SGD(part.parameters(), lr=0.1)
        for _ in range(30):
            optimiser.zero_grad()
            nn.functional.cross_entropy(trained(inputs), labels).backward()
            optimiser.step()
    dirty = contaminate(trained.state_dict(), Normal(), share=0.1, generator=generator)
    states = {"initial": initial.state_dict(), "trained": trained.state_dict(), "contaminated": dirty.state}
    for name, state in states.items():
        checkpoint.save_weights(state, folder / f"{name}.safetensors")
    np.save(folder / "inputs.npy", inputs.numpy())
    (folder / "small_networks.py").write_text(FACTORY)
    return folder


@pytest.fixture
def files(made, tmp_path, monkeypatch):
    """The folder of ``made`` as the current one; what tests write goes to ``tmp_path``."""
    monkeypatch.chdir(made)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield Path(tmp_path)
    sys.modules.pop("small_networks", None)


@pytest.fixture
def common():
    return ["--factory", "small_networks:build", "--data", "inputs.npy"]
