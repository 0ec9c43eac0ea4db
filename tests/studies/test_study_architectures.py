"""The study of networks as people have them: what it counts is true of a small network."""

import pytest
import torch

from netpurify.experiments.studies.architectures import EXPERIMENT, grid, page, trial
from netpurify.experiments.studies.architectures.networks import ARCHITECTURES, build, output
from netpurify.experiments.studies.architectures.tampering import ATTACKS, altered
from netpurify.experiments.studies.study import RunFacts


def row(**settings):
    settings = {"network": "LSTM tagger", "tuned": "head", "dtype": "bfloat16", "attack": "none"} | settings
    return settings | trial(settings, 0)[0]


def test_a_healthy_network_keeps_every_bit():
    found = row()
    assert (found["altered"], found["false"], found["scan_false"], found["bits_changed"]) == (0, 0, 0, 0)
    assert found["examined"] + found["compared"] + found["unknown"] == pytest.approx(1.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("attack", ["single weights", "norms and embeddings", "erased block"])
def test_what_was_altered_in_a_frozen_backbone_is_found_and_restored_to_the_bit(attack, dtype):
    found = row(attack=attack, dtype=dtype)
    assert found["altered"] > 0
    assert found["found"] == found["scan_found"] == found["exact"] == found["altered"]
    assert (found["false"], found["scan_false"], found["bits_changed"]) == (0, 0, 0)


def test_places_are_those_that_differ():
    state = {"a.weight": torch.randn(40, 40), "b.weight": torch.randn(20), "count": torch.tensor(3)}
    for attack in ATTACKS:
        dirty, places = altered(state, attack, 1)
        differ = {(name, int(place)) for name in state for place in
                  torch.nonzero((dirty[name] != state[name]).reshape(-1)).squeeze(1)}  # fmt: skip
        assert differ <= places
        assert len(places) == len(differ) or attack == "bit flips"  # a flip may make a NaN, or another sign of zero
        assert bool(places) == (attack != "none")


def test_the_page_has_a_line_for_each_network():
    rows = [row(attack=attack) for attack in ("none", "single weights")]
    text = page({"architectures": rows}, RunFacts("netpurify study architectures", 60.0))
    healthy, changed = text.split("## Altered networks")
    assert healthy.count("| LSTM tagger |") == changed.split("## What was left")[0].count("| LSTM tagger |") == 1
    assert len(grid("quick")) == 20
    assert EXPERIMENT.name == "architectures"


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_network_is_built_and_called(name):
    pytest.importorskip("transformers")
    inputs = ARCHITECTURES[name].inputs(2, torch.Generator().manual_seed(0))
    network = build(name)
    assert torch.isfinite(output(network, inputs)).all()
    assert sum(1 for _ in network.get_submodule(ARCHITECTURES[name].head).parameters()) >= 1
