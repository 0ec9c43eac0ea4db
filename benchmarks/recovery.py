"""What ``netpurify.purify`` recovers in networks that are trained here: the table of docs/network-results.md.

    python benchmarks/recovery.py --markdown docs/network-results.md      all of it
    python benchmarks/recovery.py --quick                                 one share, smaller networks

Every network is trained on images of the bundled MNIST sample, which also purify it. All Linear and Conv weights are
altered, each with the given probability, by N(0, 1) added, by flipping one random bit, or by erasure (NaN).
"""

import argparse
import copy
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import netpurify
from netpurify import data
from netpurify.contaminate import BitFlip, Erase, Law, Normal, contaminate
from netpurify.network import Grade, Purification

LAWS: dict[str, Law] = {"noise": Normal(0.0, 1.0), "bit flip": BitFlip(), "erasure": Erase()}
SHARES = (0.05, 0.1, 0.2, 0.3)
EXACT = 1e-5
COLUMNS = (
    "network", "altered", "share", "precision", "recall", "units exact", "approximate", "left alone", "unjudged",
    "suspicious", "largest error", "seconds",
)  # fmt: skip


class Block(nn.Module):
    """A residual block with BatchNorm."""

    def __init__(self, width: int) -> None:  # noqa: D107
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])

    def forward(self, inputs: Tensor) -> Tensor:
        """The block's output."""
        return (inputs + self.norms[1](self.second(self.norms[0](self.first(inputs)).relu()))).relu()


def mlp() -> nn.Sequential:
    """Three layers on 784 pixels."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 100), nn.ReLU(), nn.Linear(100, 10)
    )


def lenet() -> nn.Sequential:
    """Two convolutions and three fully connected layers."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 240), nn.ReLU(), nn.Linear(240, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def resnet() -> nn.Sequential:
    """A small ResNet with BatchNorm and a head on 256 features."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), Block(16), nn.MaxPool2d(2),
        Block(16), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def depthwise() -> nn.Sequential:
    """Depthwise and pointwise convolutions, and a head on 512 features."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1, groups=32),
        nn.Conv2d(32, 32, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A network, how many images train it, and which of its layers are trained, in groups one after the other."""

    name: str
    build: Callable[[], nn.Sequential]
    images: int
    phases: tuple[tuple[int, ...], ...]


CASES = (
    Case("MLP, one layer after the other", mlp, 40, ((1,), (3,), (5,))),
    Case("MLP, all layers at once", mlp, 40, ((1, 3, 5),)),
    Case("LeNet, fully connected layers one after the other", lenet, 30, ((7,), (9,), (11,))),
    Case("ResNet with BatchNorm, head", resnet, 60, ((8,),)),
    Case("depthwise CNN, head", depthwise, 60, ((7,),)),
)


def images(count: int) -> tuple[Tensor, Tensor]:
    """Images of all ten digits, in balance."""
    source = data.load("mnist-sample")
    drawn = data.balanced(source, count, generator=torch.Generator().manual_seed(0))
    return data.to_inputs(drawn).float().reshape(-1, 1, 28, 28), drawn.labels


def train(case: Case, inputs: Tensor, labels: Tensor) -> tuple[nn.Sequential, nn.Sequential]:
    """The trained network and its initial weights; BatchNorm runs on its initial statistics throughout."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = case.build().eval()
    initial = copy.deepcopy(network)
    for phase in case.phases:
        optimiser = torch.optim.SGD([value for number in phase for value in network[number].parameters()], lr=0.05)
        for _ in range(300):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(inputs), labels).backward()
            optimiser.step()
    return network, initial


def rows(case: Case, shares: tuple[float, ...]) -> Iterator[tuple[str, ...]]:
    """One row for the healthy network, then one for each way and share of altering it."""
    inputs, labels = images(case.images)
    network, initial = train(case, inputs, labels)
    kept = [name for name, module in network.named_modules() if isinstance(module, nn.Linear | nn.Conv2d)]
    names = [name for name in network.state_dict() if name.rpartition(".")[0] in kept]
    for law, share in [("healthy", 0.0), *((law, share) for law in LAWS for share in shares)]:
        dirty = copy.deepcopy(network)
        generator = torch.Generator().manual_seed(1)
        made = contaminate(network.state_dict(), LAWS.get(law, Erase()), share=share, generator=generator, names=names)
        dirty.load_state_dict(made.state)
        begun = time.perf_counter()
        result = netpurify.purify(dirty, inputs, policy=netpurify.Recover(initial))
        yield case.name, law, f"{share:.0%}", *judge(result, network, made.altered, time.perf_counter() - begun)


def judge(result: Purification, true: nn.Module, altered: dict[str, Tensor], seconds: float) -> tuple[str, ...]:
    """The cells of a row from precision on."""
    table = result.altered
    named = {(table.names[tensor], int(index)) for tensor, index in zip(table.tensor, table.index, strict=True)}
    state = true.state_dict()
    hits = misses = 0
    for layer in result.layers:
        floor = float(np.nanmax(np.append(layer.noise_floor, 0.0)))
        for name in (f"{layer.name}.weight", f"{layer.name}.bias"):
            if name not in altered:
                continue
            change = (result.contaminated[name] - state[name]).abs()
            for index in altered[name].reshape(-1).nonzero().reshape(-1).tolist():
                found = (name, index) in named
                hits += found
                # A flip of a last bit drowns in rounding: nobody can see it, and it does no harm.
                misses += not found and not float(change.reshape(-1)[index]) <= floor
    units = sum(layer.units for layer in result.layers)
    worst, exact = 0.0, 0
    purified = result.model.state_dict()
    for layer in result.layers:
        name = f"{layer.name}.weight"
        error = (purified[name] - state[name]).abs().flatten(1)
        exact += int((error.amax(1) <= EXACT).sum())
        good = torch.from_numpy(layer.grade == Grade.RECOVERED)
        # What was neither replaced nor right was left unjudged, and is counted as such.
        repaired = (purified[name] != result.contaminated[name]).flatten(1)[good]
        worst = max(worst, float((error[good] * repaired).max()) if good.any() else 0.0)
    return (
        f"{hits / len(named):.3f}" if named else "-",
        f"{hits / (hits + misses):.3f}" if hits + misses else "-",
        f"{exact} of {units}",
        str(result.count(Grade.APPROXIMATE)),
        str(result.count(Grade.LEFT_ALONE)),
        str(sum(layer.unjudged for layer in result.layers)),
        str(len(result.suspicious)),
        f"{worst:.1e}",
        f"{seconds:.1f}",
    )


def main() -> None:
    """Print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one share only")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    options = parser.parse_args()
    begun = time.perf_counter()
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * 3 + "---:|" * (len(COLUMNS) - 3)]
    print("\n".join(lines))
    for case in CASES:
        for row in rows(case, SHARES[2:3] if options.quick else SHARES):
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], flush=True)
    took = (time.perf_counter() - begun) / 60.0
    print(f"{took:.1f} minutes", file=sys.stderr)
    if options.markdown:
        text = Path(__file__).with_name("recovery.md").read_text()
        options.markdown.write_text(text.format(table="\n".join(lines), minutes=f"{took:.0f}", exact=f"{EXACT:g}"))


if __name__ == "__main__":
    main()
