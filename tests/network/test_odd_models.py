"""Models that are not plain networks: each is purified without its wrapper, or refused with what to give instead."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

from netpurify.errors import InputError
from netpurify.network import Defend, Project, Recover, check, purify
from tests.network import made_networks as networks

INPUTS = networks.seeded(lambda: torch.randn(10, 20), seed=3)


def build():
    return nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3))


def plain():
    return networks.seeded(build)


def fake():
    with FakeTensorMode():
        return build()


def quietly(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of what it will take away one day
        return make()


def quantised():
    return quietly(lambda: torch.ao.quantization.quantize_dynamic(plain(), {nn.Linear}, dtype=torch.qint8))


class Packed(nn.Module):
    """Four bits a weight in whole numbers, as GPTQ keeps them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("qweight", torch.zeros(5, 16, dtype=torch.int32))
        self.register_buffer("scales", torch.ones(1, 16))

    def forward(self, inputs):
        return inputs[:, :16] * self.scales


def of_wrapped_tensors():
    network = plain()
    values = network[0].weight.detach()
    network[0].weight = nn.Parameter(TwoTensor(values, values))
    return network


REFUSED = {
    "compiled": (lambda: torch.compile(plain(), backend="eager"), "must not be compiled.*_orig_mod"),
    "with a compiled part": (
        lambda: nn.Sequential(torch.compile(plain(), backend="eager")), "must not be compiled.*_orig_mod"
    ),
    "on the meta device": (lambda: plain().to("meta"), r"meta device, which has none; .*assign=True"),
    "fake": (fake, r"0.weight is a FakeTensor, which has none; .*assign=True"),
    "dynamic int8": (quantised, r"part 0 is quantised .*purify the model in floating point, then quantise it"),
    "packed": (lambda: nn.Sequential(Packed(), nn.Linear(16, 3)), r"0.qweight is of a quantised layer.*netpurify diff"),
    "scripted": (lambda: quietly(lambda: torch.jit.script(plain())), "TorchScript.*build the model from its Python"),
    "traced": (lambda: quietly(lambda: torch.jit.trace(plain(), INPUTS)), "TorchScript.*build the model from its Pyt"),
    "of wrapped tensors": (of_wrapped_tensors, r"0.weight is a torch.*TwoTensor, often quantised or sharded"),
}  # fmt: skip
POLICIES = {
    "check": lambda model, data: check(model, data, initial=plain()),
    "recover": lambda model, data: purify(model, data, policy=Recover(plain())),
    "project": lambda model, data: purify(model, data, policy=Project(plain())),
    "defend": lambda model, data: purify(model, data, policy=Defend()),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", REFUSED)
def test_model_without_plain_weights_is_refused_with_a_remedy(kind, policy):
    make, words = REFUSED[kind]
    with pytest.raises(InputError, match=words):
        POLICIES[policy](make(), INPUTS)


@pytest.mark.parametrize("policy", POLICIES)
def test_sharded_model_is_refused_with_a_remedy(policy):
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available():
        pytest.skip("this torch has no distributed tensors")
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import Shard, distribute_tensor

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        network = plain()
        mesh = quietly(lambda: DeviceMesh("cpu", [0]))
        network[0].weight = nn.Parameter(
            quietly(lambda: distribute_tensor(network[0].weight.detach(), mesh, [Shard(0)]))
        )
        with pytest.raises(
            InputError, match=r"0.weight is sharded over processes \(DTensor\); gather it with full_tensor"
        ):
            POLICIES[policy](network, INPUTS)
    finally:
        distributed.destroy_process_group()


def damaged():
    network = plain()
    with torch.no_grad():
        network[0].weight[2, 3] += 5.0
    return network


@pytest.mark.parametrize("kind", [Recover, Project])
def test_data_parallel_model_is_purified_without_its_wrapper(kind):
    found = purify(nn.DataParallel(damaged()), INPUTS, policy=kind(nn.DataParallel(plain())))
    bare = purify(damaged(), INPUTS, policy=kind(plain()))
    assert type(found.model) is nn.Sequential
    assert networks.same_bits(found.model, bare.model)
    assert networks.positions(found.altered) == networks.positions(bare.altered)
    assert [layer.name for layer in check(nn.DataParallel(damaged()), INPUTS, initial=plain()).layers] == ["0", "2"]


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod."])
def test_initial_state_dict_may_have_the_prefix_of_a_wrapper(prefix):
    state = {prefix + name: value for name, value in plain().state_dict().items()}
    found = purify(damaged(), INPUTS, policy=Recover(state))
    assert networks.positions(found.altered) == {("0.weight", 43)}


def test_network_whose_own_part_is_called_module_keeps_its_names():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = build()

        def forward(self, inputs):
            return self.module(inputs)

    initial = networks.seeded(Outer)
    network = copy.deepcopy(initial)
    with torch.no_grad():
        network.module[0].weight[2, 3] += 5.0
    assert networks.positions(purify(network, INPUTS, policy=Recover(initial)).altered) == {("module.0.weight", 43)}


INITIAL = {
    "on the meta device": (lambda: plain().to("meta"), "the initial network must have .*meta device"),
    "dynamic int8": (quantised, "the initial weights must be in floating point; .*quantised layer"),
    "packed state": (
        lambda: {"0.qweight": torch.zeros(3, 16, dtype=torch.int32), "2.weight": torch.zeros(3, 16)},
        "0.qweight is of a quantised layer; .*netpurify diff",
    ),
    "bitsandbytes": (
        lambda: {"0.SCB": torch.ones(16), "0.weight": torch.zeros(16, 20, dtype=torch.int8)},
        "0.SCB is of a quantised layer",
    ),
}


@pytest.mark.parametrize("kind", INITIAL)
def test_initial_weights_without_plain_values_are_refused_with_a_remedy(kind):
    make, words = INITIAL[kind]
    for call in (lambda it: check(plain(), INPUTS, initial=it), lambda it: purify(plain(), INPUTS, policy=Recover(it))):
        with pytest.raises(InputError, match=words):
            call(make())


def test_float_network_may_use_a_name_of_quantised_ones():
    network = plain()
    network.register_parameter("weight_scale", nn.Parameter(torch.ones(3)))
    network.register_buffer("steps", torch.zeros(3, dtype=torch.int32))
    assert check(network, INPUTS, initial=copy.deepcopy(network)).layers
