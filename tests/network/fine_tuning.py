"""Healthy fine-tuned networks of many kinds, and what can be altered in a frozen one, for the tests of scan."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

State = dict[str, Tensor]
WORDS = 120
WIDTH = 24


class Tagger(nn.Module):
    """A bit of everything: table of words, positions, LSTM, attention, both norms, a convolution, Linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.positions = nn.Parameter(0.1 * torch.randn(10, WIDTH))
        self.cell = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.mix = nn.Conv1d(WIDTH, 2 * WIDTH, 3, padding=1)
        self.batch_norm = nn.BatchNorm1d(2 * WIDTH)
        self.first = nn.Linear(2 * WIDTH, 64)
        self.last = nn.Linear(64, 6)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of six classes."""
        hidden = self.words(tokens) + self.positions[: tokens.shape[1]]
        hidden = self.cell(hidden)[0]
        hidden = self.norm(hidden + self.attention(hidden, hidden, hidden, need_weights=False)[0])
        hidden = self.batch_norm(self.mix(hidden.transpose(1, 2)))
        return self.last(torch.relu(self.first(hidden.mean(dim=2))))


class SignDescent(torch.optim.Optimizer):
    """Steps of equal size, whatever the gradient."""

    def __init__(self, parameters, lr: float = 1e-3) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None) -> None:  # noqa: ARG002 # pyright: ignore[reportIncompatibleMethodOverride] (no loss)
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(group["lr"] * parameter.grad.sign())


@dataclass(frozen=True)
class Tuning:
    """How a network is fine-tuned.

    Attributes:
        optimiser: Makes the optimiser of some parameters.
        steps: How many steps.
        trained: Whether a parameter of this name is trained.
        words: Words that the training data use.
        dtype: Of the weights in training.
        mode: Whether norms are in train mode.
        mask: Which entries of a parameter are trained, if not all.
        after: What is done to the weights afterwards.
    """

    optimiser: Callable = lambda parameters: torch.optim.SGD(parameters, lr=0.05)
    steps: int = 20
    trained: Callable[[str], bool] = lambda _name: True
    words: int = WORDS
    dtype: torch.dtype = torch.float32
    mode: bool = True
    mask: Callable[[str, Tensor, torch.Generator], Tensor] | None = None
    after: Callable[[State, State, torch.Generator], State] = field(default=lambda _base, tuned, _generator: tuned)


def made(seed: int, dtype: torch.dtype = torch.float32) -> Tagger:
    """The base: a network that was trained for a while, so that no tensor is as it was initialised."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Tagger()
        optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
        for _ in range(20):
            _step(network, optimiser, torch.randint(1, WORDS, (16, 8)), torch.randint(0, 6, (16,)))
    return network.to(dtype)


def tuned(tuning: Tuning, seed: int) -> tuple[State, State]:
    """The base and the fine-tuned network."""
    network = made(seed, tuning.dtype).train(tuning.mode)
    base = {name: value.detach().clone() for name, value in network.state_dict().items()}
    generator = torch.Generator().manual_seed(seed + 1)
    masks = {}
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(tuning.trained(name))
        if tuning.mask is not None and tuning.trained(name):
            masks[name] = tuning.mask(name, parameter, generator)
            parameter.register_hook(lambda gradient, mask=masks[name]: gradient * mask)
    chosen = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimiser = tuning.optimiser(chosen) if chosen else None
    for _ in range(tuning.steps):
        tokens = torch.randint(1, tuning.words, (16, 8), generator=generator)
        _step(network, optimiser, tokens, tokens[:, 0] % 6)
    state = {name: value.detach().clone() for name, value in network.state_dict().items()}
    return base, tuning.after(base, state, generator)


def _step(network: nn.Module, optimiser: torch.optim.Optimizer | None, tokens: Tensor, labels: Tensor) -> None:
    scores = network(tokens)
    if optimiser is not None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(scores.float(), labels).backward()
        optimiser.step()


def _sgd(lr: float, **more: float) -> Callable:
    return lambda parameters: torch.optim.SGD(parameters, lr=lr, **more)


def _adam(lr: float, **more: float) -> Callable:
    return lambda parameters: torch.optim.Adam(parameters, lr=lr, **more)


def _merged_lora(base: State, _tuned: State, generator: torch.Generator) -> State:
    state = {name: value.clone() for name, value in base.items()}
    for name in ("first.weight", "attention.in_proj_weight"):
        rows, columns = base[name].shape
        left, right = torch.randn(rows, 4, generator=generator), torch.randn(4, columns, generator=generator)
        state[name] = (base[name].float() + 0.01 * left @ right).to(base[name].dtype)
    return state


def _average(base: State, tuned: State, _generator: torch.Generator) -> State:
    return {
        name: torch.lerp(value, tuned[name], 0.001) if value.is_floating_point() else tuned[name]
        for name, value in base.items()
    }


def _smaller(_base: State, tuned: State, _generator: torch.Generator) -> State:
    return {name: value.bfloat16() if value.is_floating_point() else value for name, value in tuned.items()}


def _there_and_back(base: State, _tuned: State, _generator: torch.Generator) -> State:
    return {name: value.bfloat16().float() if value.is_floating_point() else value for name, value in base.items()}


def _decayed(base: State, _tuned: State, _generator: torch.Generator) -> State:
    return {
        name: value * (1 - 1e-4) if value.is_floating_point() and "running" not in name else value
        for name, value in base.items()
    }


def _pruned(_base: State, tuned: State, _generator: torch.Generator) -> State:
    """Of each matrix, the third with the smallest values is set to zero."""
    return {
        name: value * (value.abs() > value.abs().quantile(0.33))
        if value.is_floating_point() and value.dim() > 1
        else value
        for name, value in tuned.items()
    }


def _rows(_name: str, value: Tensor, _generator: torch.Generator) -> Tensor:
    """Every third unit: the same of a weight and of its bias."""
    chosen = torch.arange(len(value)) % 3 == 0
    return chosen.reshape(-1, *[1] * (value.dim() - 1)).to(value)


def _head(name: str) -> bool:
    return name.startswith("last")


HEALTHY: dict[str, Tuning] = {
    "SGD": Tuning(),
    "SGD, one step": Tuning(steps=1),
    "SGD, tiny steps": Tuning(_sgd(1e-7)),
    "SGD, large steps": Tuning(_sgd(1.0)),
    "SGD, momentum and decay": Tuning(_sgd(0.05, momentum=0.9, weight_decay=1e-3)),
    "Adam": Tuning(_adam(1e-3)),
    "Adam, one step": Tuning(_adam(1e-3), steps=1),
    "Adam, tiny steps": Tuning(_adam(1e-8)),
    "Adam, large steps": Tuning(_adam(0.1)),
    "Adam, eps 1e-3": Tuning(_adam(1e-3, eps=1e-3)),
    "Adagrad": Tuning(lambda parameters: torch.optim.Adagrad(parameters, lr=1e-3)),
    "RMSprop": Tuning(lambda parameters: torch.optim.RMSprop(parameters, lr=1e-4)),
    "Rprop": Tuning(lambda parameters: torch.optim.Rprop(parameters, lr=1e-4)),
    "sign descent": Tuning(SignDescent),
    "sign descent, two steps": Tuning(SignDescent, steps=2),
    "head only, SGD": Tuning(trained=_head, mode=False),
    "head only, norms in train mode": Tuning(trained=_head),
    "running statistics only": Tuning(trained=lambda _name: False),
    "running statistics, one batch": Tuning(trained=lambda _name: False, steps=1),
    "eight words, SGD": Tuning(words=8),
    "eight words, Adam": Tuning(_adam(1e-3), words=8),
    "forty words, Adam": Tuning(_adam(1e-3), words=40),
    "table of words only, five words": Tuning(trained=lambda name: name.startswith("words"), words=6, mode=False),
    "norms only": Tuning(_adam(1e-3), trained=lambda name: "norm" in name, mode=False),
    "norms only, SGD": Tuning(trained=lambda name: "norm" in name, mode=False),
    "biases only": Tuning(_adam(1e-3), trained=lambda name: "bias" in name, mode=False),
    "biases only, one step": Tuning(trained=lambda name: "bias" in name, mode=False, steps=1),
    "positions only": Tuning(_adam(1e-2), trained=lambda name: name == "positions", mode=False),
    "some rows, SGD": Tuning(mask=_rows),
    "some rows, Adam": Tuning(_adam(1e-3), mask=_rows),
    "merged LoRA": Tuning(steps=0, after=_merged_lora),
    "weight decay only": Tuning(steps=0, after=_decayed),
    "moving average": Tuning(_adam(1e-3), after=_average),
    "pruned afterwards": Tuning(_adam(1e-3), after=_pruned),
    "saved in bfloat16": Tuning(_sgd(1e-3), after=_smaller),
    "saved in bfloat16, head only": Tuning(trained=_head, mode=False, after=_smaller),
    "through bfloat16 and back": Tuning(steps=0, after=_there_and_back),
    "bfloat16, SGD": Tuning(dtype=torch.bfloat16),
    "bfloat16, small steps": Tuning(_sgd(1e-3), dtype=torch.bfloat16),
    "bfloat16, most rounded away": Tuning(_sgd(1e-4), dtype=torch.bfloat16, steps=40),
    "bfloat16, Adam": Tuning(_adam(1e-3), dtype=torch.bfloat16),
    "bfloat16, Adam, small steps": Tuning(_adam(1e-5), dtype=torch.bfloat16),
    "bfloat16, Adam, most rounded away": Tuning(_adam(1e-6), dtype=torch.bfloat16),
    "bfloat16, all but a few rounded away": Tuning(_adam(2e-8), dtype=torch.bfloat16, steps=8),
    "bfloat16, head only, most rounded away": Tuning(_adam(1e-5), trained=_head, mode=False, dtype=torch.bfloat16),
    "bfloat16, norms in train mode, most rounded away": Tuning(_sgd(1e-3, momentum=0.9), dtype=torch.bfloat16),
    "float32, all but a few rounded away": Tuning(_sgd(1e-9)),
    "bfloat16, sign descent": Tuning(lambda parameters: SignDescent(parameters, 1e-5), dtype=torch.bfloat16),
    "bfloat16, eight words, Adam": Tuning(_adam(1e-4), dtype=torch.bfloat16, words=8),
    "float16, SGD": Tuning(_sgd(1e-2), dtype=torch.float16),
    "float16, most rounded away": Tuning(_sgd(1e-5), dtype=torch.float16),
    "float64, Adam": Tuning(_adam(1e-3), dtype=torch.float64),
}


def flipped(value: Tensor, place: int, bit: int) -> Tensor:
    """The tensor with one bit of one entry flipped, counted from the least significant one."""
    raw = value.detach().clone().contiguous().reshape(-1).view(torch.uint8)
    size = value.element_size()
    raw[place * size + bit // 8] ^= 1 << (bit % 8)
    return raw.view(value.dtype).reshape(value.shape)


def tampered(base: State, seed: int) -> Iterator[tuple[str, State]]:
    """Alterations of a network that was never trained: what was done, and the weights."""
    generator = torch.Generator().manual_seed(seed)
    for name, value in base.items():
        if not value.is_floating_point():
            continue
        total = value.numel()
        place = int(torch.randint(total, (1,), generator=generator))
        top = 8 * value.element_size()
        mantissa = {torch.float32: 23, torch.bfloat16: 7, torch.float16: 10, torch.float64: 52}[value.dtype]
        for word, bit in (("sign", top - 1), ("exponent", top - 2), ("low exponent", mantissa),
                          ("high mantissa", mantissa - 1)):  # fmt: skip
            yield f"one flip, {word}: {name}", base | {name: flipped(value, place, bit)}
        for word, change in (("noise on 1 %", 0.01), ("noise on 20 %", 0.2)):
            chosen = torch.rand(value.shape, generator=generator) < change
            noise = torch.randn(value.shape, generator=generator).to(value)
            yield (
                f"{word}: {name}",
                base
                | {name: torch.where(chosen, value + noise * (value.float().std(correction=0).to(value) + 0.1), value)},
            )
        yield f"one entry doubled: {name}", base | {name: _set(value, place, 2 * value.reshape(-1)[place] + 1)}
        if value.dim() > 1:
            block = value.clone()
            block[: max(1, len(value) // 8)] = 0
            yield f"rows erased: {name}", base | {name: block}
            corner = value.clone()
            corner[: len(value) // 4, : value.shape[1] // 4] = 0
            yield f"block erased: {name}", base | {name: corner}
        yield f"all erased: {name}", base | {name: torch.zeros_like(value)}
        yield f"all scaled: {name}", base | {name: value * 3}
        yield f"one NaN: {name}", base | {name: _set(value, place, torch.nan)}


def _set(value: Tensor, place: int, entry) -> Tensor:
    changed = value.clone().reshape(-1)
    changed[place] = entry
    return changed.reshape(value.shape)
