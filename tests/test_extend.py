"""The examples of docs/extend.md are run from the page itself, and do what the page says."""

import copy
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

import netpurify
from netpurify import findings, lad, report
from netpurify.contaminate import LAWS, TRIGGERS, Normal, contaminate, poison
from netpurify.lad.stages import pipeline
from netpurify.network import FAMILIES, Grade, capture, hunt, prepare
from netpurify.network.adapter.layers import KINDS

GUIDE = Path(__file__).parents[1] / "docs" / "extend.md"
HEADINGS = [
    "A noise law", "A trigger", "A family of triggers", "A layer type", "A policy", "A solver stage", "A figure",
    "A report format",
]  # fmt: skip


@pytest.fixture
def example(monkeypatch):
    """Runs the code block under a heading as a module of its own; what it registers is taken back after the test."""
    for table in (LAWS.classes, TRIGGERS.classes, report.FORMATS):
        for name in ("swell", "frame", "csv"):
            monkeypatch.delitem(table, name, raising=False)  # restores the table to what it is now
    kinds = list(KINDS)

    def run(heading: str) -> ModuleType:
        (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", GUIDE.read_text(), flags=re.DOTALL | re.MULTILINE)
        (code,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
        module = ModuleType("example_" + heading.rsplit(maxsplit=1)[-1])
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(code, str(GUIDE), "exec"), module.__dict__)
        return module

    yield run
    KINDS[:] = kinds
    tables = ((LAWS.classes, "swell"), (TRIGGERS.classes, "frame"), (report.FORMATS, "csv"), (FAMILIES, "column"))
    for table, name in tables:
        table.pop(name, None)


def trained(layer, initial_seed=0):
    """A network of one layer with 10 units and 128 inputs, trained by SGD on 24 of them: (network, initial, inputs)."""
    with torch.random.fork_rng():
        torch.manual_seed(initial_seed)
        network = nn.Sequential(layer())
        inputs, labels = torch.randn(24, 128), torch.randint(0, 10, (24,))
    initial = copy.deepcopy(network)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05)
    for _ in range(50):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        optimiser.step()
    return network, initial, inputs


def altered(network, share=0.1):
    """A copy with noise on some weights, and which: a mask by the tensor's name."""
    dirty = copy.deepcopy(network)
    done = contaminate(network.state_dict(), Normal(sd=1.0), share=share, generator=torch.Generator().manual_seed(3))
    dirty.load_state_dict(done.state)
    return dirty, done.altered


def test_the_page_has_every_section():
    assert re.findall(r"^## (.*)$", GUIDE.read_text(), flags=re.MULTILINE) == HEADINGS


def test_law(example):
    example("A noise law")
    law = LAWS.make("swell", {"most": "2"})
    weights = {"weight": torch.linspace(0.5, 1.0, 1000)}
    done = contaminate(weights, law, share=0.3, generator=torch.Generator().manual_seed(0))
    ratio = done.state["weight"] / weights["weight"]
    hit = done.altered["weight"]
    assert 200 < int(hit.sum()) < 400
    assert torch.equal(ratio[~hit], torch.ones(int((~hit).sum())))
    assert 1.9 < float(ratio[hit].max()) <= 2.0


def test_family(example):
    column = example("A family of triggers").Column
    drawn = torch.Generator().manual_seed(0)
    network = nn.Linear(6, 4)
    with torch.no_grad():
        network.weight.copy_(torch.randn(4, 6, generator=drawn))
        network.weight[:, 5] = torch.tensor([0.0, 9.0, 0.0, 0.0])  # a large sixth column leads to class 1
    found = hunt(network, torch.randn(200, 6, generator=drawn), families=["column"]).families[0]
    assert isinstance(found.best.trigger, column)
    assert (found.best.target, found.best.trigger.place) == (1, 5)
    assert found.best.success > 0.9


def test_trigger(example):
    example("A trigger")
    images, labels = torch.zeros(40, 1, 6, 6), torch.arange(40) % 4
    trigger = TRIGGERS.make("frame", {"value": "0.5"})
    data = poison(images, labels, trigger, target=0, ratio=0.5, generator=torch.Generator().manual_seed(0))
    stamped = data.inputs.flatten(1).sum(dim=1)
    assert set(stamped.tolist()) == {0.0, 0.5 * 20}
    assert set(data.labels[stamped > 0].tolist()) == {0}


def test_layer_type_is_captured_recovered_exactly_and_restored(example):
    made = example("A layer type")
    network, initial, inputs = trained(lambda: made.EqualisedLinear(128, 10))
    truth = copy.deepcopy(network.state_dict())
    dirty, hit = altered(network)
    ready = prepare(dirty, inputs, initial=initial)
    (layer,) = ready.in_order()
    rows = layer.rows(inputs)
    assert torch.allclose(rows[0] @ layer.matrix()[0], dirty(inputs), atol=1e-5)
    (span,) = capture(ready, layer)
    assert netpurify.network.build_design(span).rank == np.linalg.matrix_rank(rows[0].numpy())
    result = netpurify.purify(dirty, inputs, policy=netpurify.Recover(initial))
    assert result.count(Grade.RECOVERED) == 10
    assert len(result.altered) == sum(int(mask.sum()) for mask in hit.values())
    for name, value in result.model.state_dict().items():
        assert torch.allclose(value, truth[name], atol=1e-5)
        assert torch.equal(value[~hit[name]], truth[name][~hit[name]]), "what was not altered keeps its bits"
    assert result.verify().sound


def test_policy_through_purify(example):
    made = example("A policy")
    network, initial, inputs = trained(lambda: nn.Linear(128, 10))
    dirty, hit = altered(network)
    before = copy.deepcopy(dirty.state_dict())
    result = netpurify.purify(dirty, inputs, policy=made.Reset(initial))
    assert result.policy == "reset"
    assert result.count(Grade.APPROXIMATE) == 10
    for name, value in result.model.state_dict().items():
        assert torch.equal(value[hit[name]], initial.state_dict()[name][hit[name]])
        assert torch.equal(value[~hit[name]], network.state_dict()[name][~hit[name]])
        assert torch.equal(before[name], dirty.state_dict()[name]), "the caller's network is left as it is"
    assert report.record(result)["policy"] == "reset"
    assert "reset" in report.page(result)


def test_solver_stage(example, monkeypatch):
    made = example("A solver stage")
    *first, simplex = pipeline.STAGES
    stages = (*first, made.STAGE, simplex)
    for module in ("stages.pipeline", "solver"):
        monkeypatch.setattr(f"netpurify.lad.{module}.STAGES", stages)
        monkeypatch.setattr(f"netpurify.lad.{module}.STEPS", (*pipeline.STEPS, made.STAGE.name))
    monkeypatch.setattr(pipeline, "_POSITION", {stage.name: number for number, stage in enumerate(stages)})
    draw = np.random.default_rng(0)
    design, columns = draw.standard_normal((40, 5)), draw.standard_normal((40, 6))  # noise: nothing can be recovered
    solution = lad.solve(design, columns, threads=1)
    assert sum(solution.statistics.finished.values()) == 6
    assert solution.statistics.seconds["identify again"] > 0.0, "the stage ran"
    assert lad.verify(design, columns, solution.claim).certified.all()


def test_figure(example):
    made = example("A figure")
    rows = [
        {**settings, "trial": seed, **row}
        for settings in made.EXPERIMENT.grid("quick")
        for seed in range(2)
        for row in made.EXPERIMENT.trial(settings, seed)
    ]
    assert len(rows) == 8
    (finding,) = made.FIGURE.findings(rows)
    assert finding.by_measure == findings.Verdict.HOLDS, finding.measured
    (panel,) = made.FIGURE.panels(rows)
    assert [list(line.x) for line in panel.lines] == [[20, 80], [20, 80]]
    assert "<svg" in report.draw([panel])


def test_report_format(example, tmp_path):
    example("A report format")
    network, initial, inputs = trained(lambda: nn.Linear(128, 10))
    dirty, hit = altered(network)
    result = netpurify.purify(dirty, inputs, policy=netpurify.Recover(initial))
    report.write(result, {"csv": tmp_path / "altered.csv", "record": tmp_path / "record.json"})
    header, *lines = (tmp_path / "altered.csv").read_text().splitlines()
    assert header == "tensor,index,was,now"
    assert len(lines) == sum(int(mask.sum()) for mask in hit.values())
    name, index, was, now = lines[0].split(",")
    assert dirty.state_dict()[name].reshape(-1)[int(index)].item() == float(was)
    assert result.model.state_dict()[name].reshape(-1)[int(index)].item() == float(now)
