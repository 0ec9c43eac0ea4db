"""Changes of low rank, found without inputs: what is found in altered layers, and what is said of healthy ones.

python benchmarks/low_rank.py recall       merged adapters of rank 1 to 64, altered: found, false, seconds
python benchmarks/low_rank.py healthy      layers that optimisers trained, in which nothing is altered
python benchmarks/low_rank.py ranks        rank of the change that 1 to 20 steps of an optimiser make
python benchmarks/low_rank.py large        4,096 x 4,096
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from netpurify.contaminate import Normal, contaminate
from netpurify.network import low_rank_alterations

OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda values: torch.optim.SGD(values, lr=0.05),
    "SGD, momentum": lambda values: torch.optim.SGD(values, lr=0.02, momentum=0.9),
    "SGD, decay": lambda values: torch.optim.SGD(values, lr=0.05, weight_decay=0.01),
    "Adam": lambda values: torch.optim.Adam(values, lr=1e-3),
    "AdamW": lambda values: torch.optim.AdamW(values, lr=1e-3),
    "RMSprop": lambda values: torch.optim.RMSprop(values, lr=1e-3),
    "Adagrad": lambda values: torch.optim.Adagrad(values, lr=1e-2),
    "Rprop": lambda values: torch.optim.Rprop(values, lr=1e-3),
}
INPUTS: dict[str, Callable[[int, torch.Generator], Tensor]] = {
    "normal": lambda count, draw: torch.randn(count, 192, generator=draw),
    "not negative": lambda count, draw: torch.randn(count, 192, generator=draw).relu(),
    "sparse, zeros and ones": lambda count, draw: (torch.rand(count, 192, generator=draw) < 0.05).float(),
    "one-hot": lambda count, draw: nn.functional.one_hot(torch.randint(0, 192, (count,), generator=draw), 192).float(),
    "heavy tail": lambda count, draw: torch.randn(count, 192, generator=draw) ** 5,
}


def merged(fan_in: int, units: int, rank: int, draw: torch.Generator, size: float = 0.05) -> tuple[Tensor, Tensor]:
    """Base and merged weights: a change of this rank and of this size relative to the weights, rounded to float32."""
    base = torch.randn(units, fan_in, generator=draw) / fan_in**0.5
    strengths = torch.logspace(0.0, -1.0, rank)  # directions of an adapter are not equally strong
    up, down = torch.randn(units, rank, generator=draw) * strengths, torch.randn(rank, fan_in, generator=draw)
    delta = up @ down
    return base, base + delta * (size * base.std() / delta.std())


def altered(weights: Tensor, share: float, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """A copy in which a share is altered by N(0, 1) times the usual weight, and the mask of what is altered."""
    made = contaminate({"w": weights}, Normal(0.0, float(weights.std())), share=share, generator=draw)
    return made.state["w"], made.altered["w"]


def recall(*, seeds: int = 3) -> None:
    """A table: shapes, ranks and shares, three seeds each."""
    print("| layer | rank | altered | ranks found | altered weights found | called altered, but not | seconds |")
    print("|---|---:|---:|---|---:|---:|---:|")
    for fan_in, units, most in ((128, 128, 16), (768, 768, 64), (768, 3072, 16)):
        for rank in (rank for rank in (1, 4, 16, 64) if rank <= most):
            for share in (0.0, 0.001, 0.01, 0.05, 0.1, 0.2):
                line(fan_in, units, rank, share, seeds)


def line(fan_in: int, units: int, rank: int, share: float, seeds: int) -> None:
    """One line of the table of ``recall``, also of ``large``."""
    ranks, found, false, whole, took = [], 0, 0, 0, 0.0
    for seed in range(seeds):
        draw = torch.Generator().manual_seed(seed)
        base, true = merged(fan_in, units, rank, draw)
        dirty, mask = altered(true, share, draw)
        begun = time.perf_counter()
        finding = low_rank_alterations(dirty, base)
        took += (time.perf_counter() - begun) / seeds
        ranks.append("none" if finding is None else str(finding.rank))
        named = torch.zeros(mask.numel(), dtype=torch.bool)
        if finding is not None:
            named[torch.from_numpy(finding.index)] = True
        found += int((named & mask.reshape(-1)).sum())
        false += int((named & ~mask.reshape(-1)).sum())
        whole += int(mask.sum())
    print(f"| {fan_in:,} x {units:,} | {rank} | {share:.1%} | {', '.join(ranks)} | {found:,} of {whole:,} | {false} | "
          f"{took:.1f} |", flush=True)  # fmt: skip


def trained(
    kind: str, optimiser: str, samples: int, steps: int, draw: torch.Generator
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """The layers of a small MLP: name, weights after training, weights before."""
    inputs, labels = INPUTS[kind](samples, draw), torch.randint(0, 72, (samples,), generator=draw)
    network = nn.Sequential(nn.Linear(192, 160), nn.ReLU(), nn.Linear(160, 128), nn.ReLU(), nn.Linear(128, 72))
    with torch.no_grad():
        for value in network.parameters():
            value.copy_(torch.empty_like(value).uniform_(-0.08, 0.08, generator=draw))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    stepping = OPTIMISERS[optimiser](network.parameters())
    for _ in range(steps):
        stepping.zero_grad()
        nn.functional.cross_entropy(network(inputs), labels).backward()
        stepping.step()
    for name, value in network.state_dict().items():
        if value.dim() == 2:
            yield name, value, before[name]


def healthy(*, seeds: int = 3) -> None:
    """A table by optimiser: layers, of which of low rank, weights that were called altered or left unjudged."""
    print("| optimiser | layers | of low rank | layers with a false alteration | false alterations | unjudged |")
    print("|---|---:|---:|---:|---:|---:|")
    for optimiser in OPTIMISERS:
        counts: Counter[str] = Counter()
        for seed in range(seeds):
            for kind in INPUTS:
                for samples in (1, 4, 16, 64, 512):
                    for steps in (1, 3, 10, 50):
                        draw = torch.Generator().manual_seed(seed)
                        for name, after, before in trained(kind, optimiser, samples, steps, draw):
                            counts["layers"] += 1
                            finding = low_rank_alterations(after, before)
                            if finding is None:
                                continue
                            counts["low rank"] += 1
                            counts["false"] += len(finding.index)
                            counts["hit"] += len(finding.index) > 0
                            counts["unjudged"] += finding.unjudged
                            if len(finding.index):
                                print(f"{optimiser}, {kind}, {samples} samples, {steps} steps, {name}, seed {seed}: "
                                      f"rank {finding.rank}, {len(finding.index)} false", file=sys.stderr)  # fmt: skip
        print(f"| {optimiser} | {counts['layers']} | {counts['low rank']} | {counts['hit']} | {counts['false']} | "
              f"{counts['unjudged']} |", flush=True)  # fmt: skip


def ranks() -> None:
    """A table: rank of the change of the first layer, above rounding, by optimiser and steps; 8 samples."""
    counts = (1, 2, 3, 5, 10, 20)
    print(
        "| optimiser | "
        + " | ".join(f"{steps} step{'s' * (steps > 1)}" for steps in counts)
        + " | taken for low rank |"
    )
    print("|---|" + "---:|" * (len(counts) + 1))
    for optimiser in OPTIMISERS:
        cells, low = [], 0
        for steps in counts:
            draw = torch.Generator().manual_seed(0)
            _, after, before = next(trained("normal", optimiser, 8, steps, draw))
            values = torch.linalg.svdvals(after.double() - before.double())
            noise = 2.0**-24 * float(before.abs().max()) * (192**0.5 + 160**0.5) * steps**0.5
            cells.append(f"{int((values > noise).sum())}")
            low += low_rank_alterations(after, before) is not None
        print(f"| {optimiser} | " + " | ".join(cells) + f" | {low} of {len(counts)} |", flush=True)


def large() -> None:
    """Layers of 4,096 x 4,096, one seed."""
    for rank, share in ((16, 0.01), (64, 0.05)):
        line(4096, 4096, rank, share, 1)
    draw = torch.Generator().manual_seed(0)
    base = torch.randn(4096, 4096, generator=draw)
    begun = time.perf_counter()
    finding = low_rank_alterations(base + 0.01 * torch.randn(4096, 4096, generator=draw), base)
    print(f"a change of full rank: {finding}, {time.perf_counter() - begun:.1f} s")


def main() -> None:
    """One of the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = {"recall": recall, "healthy": healthy, "ranks": ranks, "large": large}
    parser.add_argument("table", choices=tables)
    tables[parser.parse_args().table]()


if __name__ == "__main__":
    main()
