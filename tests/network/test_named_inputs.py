"""Clean inputs as NumPy arrays and by name, and what is said when a model does not take them."""

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from netpurify.errors import InputError
from netpurify.network import Defend, Project, Recover, check, purify
from tests.network import made_networks as networks

INPUTS = networks.seeded(lambda: torch.randn(40, 20), seed=3)


class Two(nn.Module):
    """Takes two inputs by name, and a setting that is the same for all."""

    def __init__(self):
        super().__init__()
        self.words, self.first, self.last = nn.Embedding(9, 20), nn.Linear(20, 16), nn.Linear(16, 3)

    def forward(self, ids, values, *, scale=1.0):
        return self.last(torch.relu(self.first(self.words(ids) + scale * values)))


def two():
    network, initial = networks.seeded(Two), networks.seeded(Two)
    with torch.no_grad():
        network.first.weight[2, 3] += 5.0
    return network, initial


def named(**more):
    return {"ids": torch.arange(40) % 9, "values": INPUTS} | more


def read_only(array):
    array.setflags(write=False)
    return array


FORMS = {
    "array": lambda x: x.numpy(),
    "read-only array": lambda x: read_only(x.numpy().copy()),
    "array by columns": lambda x: np.asfortranarray(x.numpy()),
    "array backwards": lambda x: x.numpy()[::-1][:, ::-1][::-1, ::-1],
    "array of another byte order": lambda x: x.numpy().astype(">f4"),
    "list of arrays": lambda x: [part.numpy() for part in x.split(7)],
    "list of pairs with labels": lambda x: [(part.numpy(), np.zeros(len(part))) for part in x.split(7)],
    "mapping": lambda x: {"input": x.numpy(), "labels": np.zeros(3)},
    "batches of mappings": lambda x: [{"input": read_only(part.numpy().copy())} for part in x.split(7)],
}


@pytest.mark.parametrize("policy", [Recover, Project, lambda _: Defend(0.1)])
@pytest.mark.parametrize("form", FORMS)
def test_arrays_give_what_the_same_tensor_gives(form, policy):
    initial = networks.seeded(lambda: nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3)))
    dirty = networks.seeded(lambda: nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3)))
    with torch.no_grad():
        dirty[0].weight[2, 3] += 5.0
    expected = purify(dirty, INPUTS, policy=policy(initial))
    found = purify(dirty, FORMS[form](INPUTS), policy=policy(initial), batch=7)
    for name, value in expected.model.state_dict().items():
        assert torch.allclose(found.model.state_dict()[name], value, atol=1e-5), name
    assert found.provenance["data"] == expected.provenance["data"]


def test_array_that_a_model_overwrites_stays_as_it_is():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(20, 3)

        def forward(self, inputs):
            return self.layer(inputs.mul_(2.0))

    array = INPUTS.numpy().copy()
    purify(networks.seeded(Net), array, policy=Recover(networks.seeded(Net)))
    assert np.array_equal(array, INPUTS.numpy())


@pytest.mark.parametrize("batch", [7, 40, 100])
def test_named_inputs_become_keyword_arguments(batch):
    network, initial = two()
    seen = []

    def forward(model, inputs):
        seen.append(len(inputs["ids"]))
        return model(**inputs)

    found = purify(network, named(scale=2.0, labels=torch.zeros(1)), policy=Recover(initial), batch=batch)
    assert networks.positions(found.altered) == {("first.weight", 43)}
    by_hand = [dict(zip(("ids", "values"), parts, strict=True)) | {"scale": 2.0}
               for parts in zip(*(value.split(batch) for value in named().values()), strict=True)]  # fmt: skip
    same = purify(network, by_hand, policy=Recover(initial))
    assert same.provenance["data"] == found.provenance["data"]
    assert networks.same_bits(same.model, found.model)
    check(network, named(), initial=initial, batch=batch, forward=forward)
    assert max(seen) == min(batch, 40)
    assert sum(seen) % 40 == 0


def test_defence_takes_named_inputs():
    network, _ = two()
    found = purify(network, named(), policy=Defend(0.1))
    assert {layer.name for layer in found.layers} == {"first", "last"}


def test_what_a_tokenizer_gives_is_taken_as_it_is():
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(**sizes, vocab_size=30, num_labels=3)
    model = networks.seeded(lambda: transformers.BertForSequenceClassification(config))
    inputs = transformers.BatchEncoding({
        "input_ids": torch.arange(24).reshape(4, 6), "attention_mask": torch.ones(4, 6, dtype=torch.int64)
    })  # fmt: skip
    plan = check(model, inputs, initial=model)
    assert "classifier" in {layer.name for layer in plan.layers}


BAD = {
    "lists": ({"ids": [[1, 2]], "values": [[1.0]]}, "must be tensors with one row.*return_tensors='pt'"),
    "nothing": ({}, "must be tensors with one row"),
    "other lengths": (named(values=INPUTS[:5]), r"as many in all of them; got \{'ids': 40, 'values': 5\}"),
    "no rows": ({"ids": torch.zeros(0), "values": torch.zeros(0, 20)}, "one row for each clean input"),
    "numbers": ({"ids": torch.tensor(1)}, "one row for each clean input"),
    "NaN": (named(values=INPUTS.numpy() * np.nan), "must be finite"),
    "texts": (np.array([["a"]]), "whole or real numbers; got an array of <U1"),
    "objects": (np.array([[None]]), "whole or real numbers; got an array of object"),
    "no rows in an array": (np.zeros((0, 3)), "at least one clean input"),
    "a text": ("file.npy", "must be a tensor, a DataLoader"),
    "unknown name": (named(extra=INPUTS), "keyword argument 'extra'; named inputs become keyword arguments; name them"),
    "missing name": ({"ids": torch.arange(40) % 9}, "'values'; give named inputs"),
    "floats to an embedding": (named(ids=torch.zeros(40)), r"looks its inputs up in a table, so give whole numbers"),
    "beyond the table": (named(ids=torch.full((40,), 99)), "beyond the model's table; .*tokenizer"),
    "one for two": (INPUTS, "give named inputs: a mapping"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_inputs_are_refused_with_a_remedy(case):
    data, words = BAD[case]
    network, initial = two()
    with pytest.raises(InputError, match=words):
        purify(network, data, policy=Recover(initial))


@pytest.mark.parametrize("network", [nn.Linear(20, 3), nn.Conv1d(1, 2, 3)])
def test_whole_numbers_given_to_a_layer_that_multiplies_are_refused_with_a_remedy(network):
    with pytest.raises(InputError, match=r"layers that multiply need floats \(inputs.float\(\), --dtype float32\)"):
        check(network, torch.ones(4, 1, 20, dtype=torch.int64), initial=network)
