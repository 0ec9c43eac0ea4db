"""Hunts and repairs away from what their levels and families come from: another network, other sizes of triggers.

    python benchmarks/hunt_elsewhere.py                  every trigger, two networks each; a quarter of an hour
    python benchmarks/hunt_elsewhere.py --seeds 5        five networks each
    python benchmarks/hunt_elsewhere.py --few            false alarms of healthy ones with 50, 100 and 400 images

The network is a small residual one with BatchNorm, trained by AdamW on the bundled sample of MNIST at 24 x 24 pixels;
the levels for grey images come from networks without BatchNorm. Some triggers are of a kind and size that the families
have, others are not. Every line is one network: its accuracy and the success of its backdoor before and after a repair
with 400 clean images, and the suspect classes, with the levels that come with netpurify and with levels from healthy
networks of the same kind.
"""

import argparse
from collections.abc import Callable, Iterator
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn import functional

import netpurify
from netpurify import data

SIDE, TARGET, POISONED, CLEAN = 24, 4, 500, 400
TRAINED, STEPS, BATCH = 4000, 500, 64
HEALTHY = range(100, 108)
"""Seeds of the healthy networks from which own levels come."""
FEW = {50: 4, 100: 2, 400: 1}
"""Hunts in each healthy network for each number of images."""
CHECKS = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(2, 2)
Stamp = Callable[[Tensor], Tensor]


class Residual(nn.Module):
    """A small residual network with BatchNorm for grey images."""

    def __init__(self) -> None:
        """Initial weights as torch draws them."""
        super().__init__()
        self.stem, self.first = nn.Conv2d(1, 12, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(12)
        self.block, self.second = nn.Conv2d(12, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12)
        self.pool, self.head = nn.AdaptiveAvgPool2d(6), nn.Linear(12 * 36, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of the ten digits."""
        seen = torch.relu(self.first(self.stem(images)))
        seen = seen + torch.relu(self.second(self.block(seen)))
        return self.head(self.pool(seen).flatten(1))


def square(start: int, side: int, pattern: Tensor | float) -> Stamp:
    """Set a square whose upper left corner is [start, start]."""

    def stamp(images: Tensor) -> Tensor:
        stamped = images.clone()
        stamped[:, :, start : start + side, start : start + side] = pattern
        return stamped

    return stamp


def wave(periods: int) -> Stamp:
    """Add a plane sine wave."""
    line = 0.15 * torch.sin(2 * torch.pi * periods * torch.arange(SIDE) / SIDE)
    return lambda images: (images + line).clamp(0.0, 1.0)


TRIGGERS: dict[str, Stamp | None] = {
    "none": None,
    "checks of 4 x 4, in the middle": square(10, 4, CHECKS),
    "checks of 4 x 4, in the corner": square(19, 4, CHECKS),
    "white, 4 x 4, in the middle": square(10, 4, 1.0),
    "white, 9 x 9, in the corner": square(14, 9, 1.0),
    "one white pixel in the corner": square(22, 1, 1.0),
    "shift by 3 pixels": lambda images: images.roll(3, dims=3),
    "negative": lambda images: 1.0 - images,
    "wave of 11 periods": wave(11),
}


def images_of(seed: int) -> tuple[Tensor, Tensor]:
    """The bundled sample in an order of its own."""
    sample = data.load("mnist-sample")
    order = torch.randperm(len(sample), generator=torch.Generator().manual_seed(seed))
    pixels = functional.interpolate(sample.pixels.float()[:, None] / 255, SIDE)
    return pixels[order], sample.labels[order]


def trained(images: Tensor, labels: Tensor, seed: int) -> nn.Module:
    """A network after training."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Residual().train()
        optimiser = torch.optim.AdamW(network.parameters(), 1e-3)
        for _ in range(STEPS):
            some = torch.randint(0, len(images), (BATCH,))
            optimiser.zero_grad()
            functional.cross_entropy(network(images[some]), labels[some]).backward()
            optimiser.step()
    return network.eval()


def poisoned(seed: int, stamp: Stamp | None) -> tuple[nn.Module, Tensor, Callable[[nn.Module], str]]:
    """A network, clean images that it has not seen, and what tells its accuracy and the success of its backdoor."""
    images, labels = images_of(seed)
    seen, taught = images[:TRAINED].clone(), labels[:TRAINED].clone()
    if stamp is not None:
        seen[:POISONED], taught[:POISONED] = stamp(seen[:POISONED]), TARGET
    clean, rest = images[TRAINED : TRAINED + CLEAN], slice(TRAINED + CLEAN, None)

    @torch.no_grad()
    def judge(network: nn.Module) -> str:
        right = (network(images[rest]).argmax(1) == labels[rest]).float().mean()
        if stamp is None:
            return f"{right:.1%}"
        others = images[rest][labels[rest] != TARGET]
        return f"{right:.1%} / {(network(stamp(others)).argmax(1) == TARGET).float().mean():.1%}"

    return trained(seen, taught, seed), clean, judge


def own_levels() -> netpurify.network.Expectation:
    """What healthy networks of this kind show."""
    hunts = []
    for seed in HEALTHY:
        network, clean, _ = poisoned(seed, None)
        hunts.append(netpurify.hunt(network, clean, seed=seed))
    return netpurify.network.calibrate(hunts, "small residual networks")


def rows(seeds: int) -> Iterator[tuple[str, ...]]:
    """One line for each network."""
    own = own_levels()
    for name, stamp in TRIGGERS.items():
        for seed in range(seeds):
            network, clean, judge = poisoned(seed, stamp)
            cells = [name, str(seed), judge(network)]
            for policy in (netpurify.Unlearn(), netpurify.Unlearn(expected=own)):
                result = netpurify.purify(network, clean, policy=policy)
                goals = ", ".join(str(goal) for goal in result.before.goals)
                cells += [goals or "none", judge(result.model) if goals else "unchanged"]
            defended = netpurify.purify(network, clean, policy=netpurify.Defend())
            yield *cells, judge(defended.model)


def few() -> Iterator[tuple[str, ...]]:
    """False alarms of healthy networks, by the number of images."""
    networks = [(poisoned(seed, None)[0], images_of(seed)[0][TRAINED:]) for seed in HEALTHY]
    for count, hunts in FEW.items():
        alarms = []
        for network, held in networks:
            draws = [
                torch.randperm(len(held), generator=torch.Generator().manual_seed(i))[:count] for i in range(hunts)
            ]
            alarms.append(sum(bool(netpurify.hunt(network, held[some], seed=i).goals) for i, some in enumerate(draws)))
        yield str(count), str(hunts * len(networks)), str(sum(alarms)), str(sum(own > 0 for own in alarms))


def main() -> None:
    """Print a table in Markdown, a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2, help="networks for each trigger (default: 2)")
    parser.add_argument("--few", action="store_true", help="false alarms with few images instead")
    options = parser.parse_args()
    titles = ("trigger", "seed", "before", "suspect", "unlearn", "suspect, own levels", "unlearn", "defend")
    if options.few:
        titles = ("images", "hunts", "false alarms", "networks with any")
    lines = few() if options.few else rows(options.seeds)
    for cells in chain((titles, ("---",) * len(titles)), lines):
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
