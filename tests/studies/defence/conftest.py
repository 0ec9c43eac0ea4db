import pytest
import torch

from netpurify import data
from netpurify.experiments.studies.defence.baseline import CleanData
from netpurify.experiments.studies.defence.fine_tuning import Finetuning
from tests.toys import victims


@pytest.fixture(scope="module")
def clean():
    drawn = data.balanced(data.load("mnist-sample"), 40, generator=torch.Generator().manual_seed(0))
    images = data.to_inputs(drawn).float().reshape(-1, 1, 28, 28)
    return CleanData(images, drawn.labels, None, 0)


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "norm"])
def trained(request, clean):
    return Finetuning(epochs=60, rate=0.05).repair(victims.network(0, norm=request.param), clean)
