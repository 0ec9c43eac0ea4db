"""Large layers, on small ones."""

import pytest
import torch
from torch import nn

import large


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "sizes", "shape"),
    [("Linear", nn.Linear, (60, 8), (6, 60)), ("convolution", nn.Conv2d, (12, 8, 3, 1, 1), (1, 12, 3, 3))],
    ids=["Linear", "convolution"],
)
def test_a_layer_is_altered_and_recovered(name, kind, sizes, shape, monkeypatch, capsys):
    monkeypatch.setattr(large, "BLOCK", 8)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = kind(*sizes)
    inputs = torch.randn(*shape, generator=torch.Generator().manual_seed(0)).relu()
    large.run(name, nn.Sequential(module), inputs, engine=None)
    ahead, line = capsys.readouterr().out.splitlines()
    assert ahead.startswith(f"{name}: 8 of 8 units, milliseconds of the processor a unit: lad.solve ")
    assert "lad.verify" in ahead
    assert line.startswith(f"{name}: rank {6 if name == 'Linear' else 9} of ")
    assert "8 of 8 units recovered" in line
    assert " s of the processor, peak " in line
