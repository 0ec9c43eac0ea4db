"""Scan small healthy networks of many kinds against their initial weights: nothing may be called altered.

    python benchmarks/scan_healthy.py --seeds 0 1      the networks of `netpurify study healthy`, seeds 0 and 1

Each network in float32 is scanned as it is, and stored in bfloat16 and float16, with the base in float32 and in half.
Networks that diverged to NaN, as some do under L-BFGS, are counted apart: there the findings are right.
"""

import argparse
from collections import Counter

import torch

import netpurify
from netpurify.experiments.studies.healthy.networks import DTYPES, cases, make

STORED = {None: (None,), torch.bfloat16: (None, torch.bfloat16), torch.float16: (None, torch.float16)}


def stored(model: torch.nn.Module, dtype: torch.dtype | None) -> dict[str, torch.Tensor]:
    """The weights in another dtype."""
    state = model.state_dict()
    return {name: value.to(dtype) if dtype and value.is_floating_point() else value for name, value in state.items()}


def main() -> None:
    """Scan all networks and print a line for each way of storing them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    torch.set_num_threads(1)
    counts: dict[str, Counter[str]] = {}
    for case in cases(parser.parse_args().seeds):
        made = make(case)
        finite = all(bool(value.isfinite().all()) for value in made.network.state_dict().values())
        for dtype, bases in STORED.items() if DTYPES[case.dtype] == torch.float32 else [(None, (None,))]:
            for base in bases:
                line = f"{dtype or DTYPES[case.dtype]}, base {base or DTYPES[case.dtype]}".replace("torch.", "")
                count = counts.setdefault(line, Counter())
                if not finite:
                    count["diverged"] += 1
                    continue
                found = netpurify.scan(stored(made.network, dtype), stored(made.initial, base))
                count["scans"] += 1
                count["tensors"] += len(found.tensors)
                count["altered"] += sum(one.altered_count > 0 for one in found.tensors)
                count["impossible"] += sum(len(one.impossible) > 0 for one in found.tensors)
                count["outliers"] += sum(len(one.outliers) > 0 for one in found.tensors)
    print(
        "| stored as | scans | tensors | with false alterations | with impossible entries | with outliers | diverged |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for line, count in counts.items():
        told = (count[name] for name in ("scans", "tensors", "altered", "impossible", "outliers", "diverged"))
        print(f"| {line} | {' | '.join(f'{number:,}' for number in told)} |")


if __name__ == "__main__":
    main()
