import pytest
import torch
import victims

from baselines import Clean, Finetuning
from netpurify import data


@pytest.fixture(scope="module")
def clean():
    drawn = data.balanced(data.load("mnist-sample"), 40, generator=torch.Generator().manual_seed(0))
    images = data.to_inputs(drawn).float().reshape(-1, 1, 28, 28)
    return Clean(images, drawn.labels, None, 0)


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "norm"])
def trained(request, clean):
    return Finetuning(epochs=60, rate=0.05).repair(
        victims.network(0, norm=request.param), clean.images, clean.labels, initial=None, seed=0
    )
