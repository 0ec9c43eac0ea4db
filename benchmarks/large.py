"""Layers of the largest usual sizes, altered and recovered on this machine: time, peak memory, what came back.

python benchmarks/large.py                 a Linear of 25,088 x 4,096 and a convolution of fan-in 4,608, 512 units
python benchmarks/large.py --engine processes
"""

import argparse
import copy
import time

import torch
from torch import Tensor, nn

import netpurify
from netpurify.contaminate import Normal, contaminate
from netpurify.network import Grade

SHARE = 0.05


def trained(module: nn.Module, inputs: Tensor, generator: torch.Generator) -> nn.Module:
    """The module after gradient steps on the inputs, one for each of a few random errors: what training leaves."""
    module = copy.deepcopy(module)
    for _ in range(3):
        output = module(inputs)
        error = 0.01 * torch.randn(output.shape, generator=generator)
        gradients = torch.autograd.grad((output * error).sum(), list(module.parameters()))
        with torch.no_grad():
            for value, gradient in zip(module.parameters(), gradients, strict=True):
                value -= 0.1 * gradient
    return module


def run(name: str, module: nn.Module, inputs: Tensor, engine: str | None) -> None:
    """Alter, recover, print one line."""
    generator = torch.Generator().manual_seed(0)
    true = trained(module, inputs, generator)
    made = contaminate(true.state_dict(), Normal(0.0, 1.0), share=SHARE, generator=generator)
    dirty = copy.deepcopy(true)
    dirty.load_state_dict(made.state)
    altered = sum(int(mask.sum()) for mask in made.altered.values())
    del made
    begun = time.perf_counter()
    result = netpurify.purify(dirty, inputs, policy=netpurify.Recover(module, proof=False, engine=engine))
    took = time.perf_counter() - begun
    (layer,) = result.layers
    error = max(float((new - old).abs().max()) for new, old in zip(
        result.model.state_dict().values(), true.state_dict().values(), strict=True))  # fmt: skip
    print(
        f"{name}: rank {layer.rank} of {layer.live}, {layer.count(Grade.RECOVERED)} of {layer.units} units recovered, "
        f"{len(layer.altered):,} of {altered:,} altered weights found, largest error {error:.1e}, {took:.0f} s, "
        f"peak {result.peak_bytes / 2**30:.1f} GB",
        flush=True,
    )


def main() -> None:
    """Both layers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", help="as in netpurify.purify")
    engine = parser.parse_args().engine
    with torch.random.fork_rng():
        torch.manual_seed(0)
        run("convolution", nn.Sequential(nn.Conv2d(512, 512, 3, padding=1)), torch.randn(16, 512, 7, 7).relu(), engine)
        run("Linear", nn.Sequential(nn.Linear(25088, 4096)), torch.randn(64, 25088).relu(), engine)


if __name__ == "__main__":
    main()
