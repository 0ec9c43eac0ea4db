"""Layers of the largest usual sizes, altered and recovered on this machine: time, peak memory, what came back.

python benchmarks/large.py                 a Linear of 25,088 x 4,096 and a convolution of fan-in 4,608, 512 units
python benchmarks/large.py --layer Linear  only this one
python benchmarks/large.py --engine processes
python benchmarks/large.py --estimate      only the first block of each

A block of units is solved and verified first: its line says where the time goes, and what to expect of all.
"""

import argparse
import copy
import time

import torch
from torch import Tensor, nn

import netpurify
from netpurify import lad
from netpurify.contaminate import Normal, contaminate
from netpurify.network import Grade

SHARE = 0.05
BLOCK = 256


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


def ahead(dirty: nn.Module, initial: nn.Module, inputs: Tensor) -> str:
    """A block of units by the solver alone: time by step, and what all of them will take."""
    weight, bias = ((new - old).detach() for new, old in zip(dirty.parameters(), initial.parameters(), strict=True))
    rows = inputs
    if weight.ndim == 4:
        rows = nn.functional.unfold(inputs, weight.shape[2:], padding=1).transpose(1, 2).flatten(0, 1)
    design = lad.Design.prepare(nn.functional.pad(rows, (0, 1), value=1.0).T)  # the last row is that of the bias
    columns = torch.cat([weight.flatten(1), bias[:, None]], dim=1)[:BLOCK].T
    # As ``Recover`` has it: 256 rounding units of a unit's typical weight.
    floors = (2.0**-15 * next(dirty.parameters()).detach().flatten(1)[:BLOCK].abs().median(dim=1).values).numpy()
    lad.solve(design, columns[:, :8], threads=1)  # compiles what is not compiled yet
    begun = time.process_time()
    solution = lad.solve(design, columns, noise_floor=floors, threads=1)
    solved = time.process_time()
    lad.verify(design, columns, solution.claim)
    ms = [1e3 * spent / columns.shape[1] for spent in (solved - begun, time.process_time() - solved)]
    steps = ", ".join(f"{step} {1e3 * s / columns.shape[1]:.1f}" for step, s in solution.statistics.seconds.items())
    return (
        f"{columns.shape[1]} of {len(weight):,} units, milliseconds of the processor a unit: lad.solve {ms[0]:.1f} "
        f"({steps}), lad.verify {ms[1]:.1f}; all units: about {sum(ms) * len(weight) / 1e3:.0f} s of the processor"
    )


def run(name: str, module: nn.Module, inputs: Tensor, engine: str | None, *, estimate: bool = False) -> None:
    """Alter, print what to expect; unless only this is asked for, recover and print what came back."""
    generator = torch.Generator().manual_seed(0)
    true = trained(module, inputs, generator)
    made = contaminate(true.state_dict(), Normal(0.0, 1.0), share=SHARE, generator=generator)
    dirty = copy.deepcopy(true)
    dirty.load_state_dict(made.state)
    altered = sum(int(mask.sum()) for mask in made.altered.values())
    del made
    print(f"{name}: {ahead(dirty, module, inputs)}", flush=True)
    if estimate:
        return
    begun, worked = time.perf_counter(), time.process_time()
    result = netpurify.purify(dirty, inputs, policy=netpurify.Recover(module, proof=False, engine=engine))
    took, worked = time.perf_counter() - begun, time.process_time() - worked
    (layer,) = result.layers
    error = max(float((new - old).abs().max()) for new, old in zip(
        result.model.state_dict().values(), true.state_dict().values(), strict=True))  # fmt: skip
    print(
        f"{name}: rank {layer.rank} of {layer.live}, {layer.count(Grade.RECOVERED)} of {layer.units} units recovered, "
        f"{len(layer.altered):,} of {altered:,} altered weights found, largest error {error:.1e}, {took:.0f} s by the "
        f"clock, {worked:.0f} s of the processor, "
        f"peak {result.peak_bytes / 2**30:.1f} GB",
        flush=True,
    )


def main() -> None:
    """Both layers, or one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layer", choices=("convolution", "Linear"), help="only this one")
    parser.add_argument("--engine", help="as in netpurify.purify")
    parser.add_argument("--estimate", action="store_true", help="only the first block of each")
    options = parser.parse_args()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        conv, images = nn.Sequential(nn.Conv2d(512, 512, 3, padding=1)), torch.randn(16, 512, 7, 7).relu()
        if options.layer != "Linear":
            run("convolution", conv, images, options.engine, estimate=options.estimate)
        linear, rows = nn.Sequential(nn.Linear(25088, 4096)), torch.randn(64, 25088).relu()
        if options.layer != "convolution":
            run("Linear", linear, rows, options.engine, estimate=options.estimate)


if __name__ == "__main__":
    main()
