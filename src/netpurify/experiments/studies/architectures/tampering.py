"""What happens to the networks: tuned in part or whole, stored in float32 or bfloat16, then altered in a known way."""

import copy

import torch
from torch import Tensor, nn

from netpurify.experiments.studies.architectures.networks import ARCHITECTURES, Inputs, output

State = dict[str, Tensor]
Places = set[tuple[str, int]]
FLIPS, SINGLES, BLOCK = 24, 8, 12
ATTACKS = ("none", "bit flips", "single weights", "norms and embeddings", "erased block")


def tuned(name: str, base: nn.Module, inputs: Inputs, how: str) -> nn.Module:
    """The network after tuning: its head by SGD, with all else frozen, or all of it by AdamW."""
    network = copy.deepcopy(base)
    head = network.get_submodule(ARCHITECTURES[name].head)
    values = list(head.parameters() if how == "head" else network.parameters())
    network.requires_grad_(requires_grad=False)
    for value in values:
        value.requires_grad_()
    with torch.no_grad():
        shape = output(network, inputs).shape
    target = torch.randn(shape, generator=torch.Generator().manual_seed(7))
    optimiser = torch.optim.SGD(values, lr=0.05) if how == "head" else torch.optim.AdamW(values, lr=1e-4)
    for _ in range(30 if how == "head" else 5):
        optimiser.zero_grad()
        (output(network, inputs) - target).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(values, 1.0)
        optimiser.step()
    return network


def altered(state: State, attack: str, seed: int) -> tuple[State, Places]:
    """A copy of the weights that was tampered with, and the tensor and index of every weight that changed."""
    generator = torch.Generator().manual_seed(seed)
    dirty = {name: value.clone() for name, value in state.items()}
    chosen = {
        "none": lambda: None,
        "bit flips": lambda: _flip(dirty, generator),
        "single weights": lambda: _set_singles(dirty, generator),
        "norms and embeddings": lambda: _set_norms(dirty, generator),
        "erased block": lambda: _erase(dirty, generator),
    }
    chosen[attack]()
    places = {
        (name, int(index))
        for name, value in dirty.items()
        if value.is_floating_point()
        for index in torch.nonzero(_bits(value) != _bits(state[name])).squeeze(1)
    }
    return dirty, places


def _flip(state: State, generator: torch.Generator) -> None:
    """Flip bits of weights, each weight and each bit with the same probability."""
    names = _floats(state)
    for _ in range(FLIPS):
        value = _bits(state[_draw(names, state, generator)])
        place = int(torch.randint(value.numel(), (), generator=generator))
        bit = int(torch.randint(8 * value.element_size(), (), generator=generator))
        width = 8 * value.element_size()
        value[place] ^= (1 << bit) if bit < width - 1 else -(1 << bit)


def _set_singles(state: State, generator: torch.Generator) -> None:
    """Set single weights of matrices to many times their usual size, as a handcrafted trigger detector does."""
    names = [name for name in _floats(state) if state[name].dim() > 1]
    for _ in range(SINGLES):
        value = state[_draw(names, state, generator)]
        place = int(torch.randint(value.numel(), (), generator=generator))
        value.view(-1)[place] = 20.0 * value.float().std().item()


def _set_norms(state: State, generator: torch.Generator) -> None:
    """Alter two entries in each of three norms (or other vectors), and four entries of the largest table."""
    vectors = [name for name in _floats(state) if state[name].dim() == 1 and state[name].numel() >= 16]
    for number in torch.randperm(len(vectors), generator=generator)[:3]:
        value = state[vectors[int(number)]]
        for place in torch.randperm(value.numel(), generator=generator)[:2]:
            value[place] = value[place] * 4.0 + 1.0
    tables = [name for name in _floats(state) if "embed" in name or "wte" in name] or _floats(state)
    largest = state[max(tables, key=lambda name: state[name].numel())]
    for place in torch.randperm(largest.numel(), generator=generator)[:4]:
        largest.view(-1)[place] += 0.5


def _erase(state: State, generator: torch.Generator) -> None:
    """Set a block of a matrix to zero."""
    names = [name for name in _floats(state) if state[name].dim() == 2 and min(state[name].shape) > 2 * BLOCK]
    value = state[_draw(names or [name for name in _floats(state) if state[name].dim() > 1], state, generator)]
    matrix = value.view(value.shape[0], -1)
    matrix[:BLOCK, :BLOCK] = 0.0


def _draw(names: list[str], state: State, generator: torch.Generator) -> str:
    """A tensor, drawn with a probability proportional to its size."""
    sizes = torch.tensor([float(state[name].numel()) for name in names])
    return names[int(torch.multinomial(sizes, 1, generator=generator))]


def _floats(state: State) -> list[str]:
    return [name for name, value in state.items() if value.is_floating_point() and value.numel() > 1]


def _bits(value: Tensor) -> Tensor:
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return value.view(-1).view(whole[value.element_size()])
