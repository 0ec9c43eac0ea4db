"""Does ``netpurify.purify`` leave healthy networks alone, and what does it find? The tables of docs/healthy-results.md.

    python benchmarks/healthy.py --rows healthy.jsonl --markdown docs/healthy-results.md      all of it
    python benchmarks/healthy.py --quick                                                      one network in 20

Every network of ``healthy_networks.py`` is purified as it is, with four kinds of clean inputs, and one in six again
with its training inputs after weights were altered. Every purification is a line of ``--rows``; what is there is not
run again.
"""

import argparse
import copy
import json
import math
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

import healthy_networks as networks
import netpurify
from netpurify.contaminate import BitFlip, Law, Normal, SignFlip, contaminate
from netpurify.network import Altered, Grade, Purification

LAWS: dict[str, tuple[Callable[[str], Law], float]] = {
    "N(0, 1) added, 1 %": (lambda _: Normal(0.0, 1.0), 0.01),
    "N(0, 1) added, 10 %": (lambda _: Normal(0.0, 1.0), 0.1),
    "any bit flipped, 1 %": (lambda _: BitFlip(), 0.01),
    "any bit flipped, 10 %": (lambda _: BitFlip(), 0.1),
    "highest exponent bit flipped, 1 %": (lambda dtype: BitFlip(30 if dtype == "float32" else 62), 0.01),
    "sign flipped, 1 %": (lambda _: SignFlip(), 0.01),
}
ALTERED_EVERY = 6
Row = dict[str, Any]


def jobs(case: networks.Case) -> list[tuple[str, str]]:
    """Clean inputs and law (none for the healthy network) of each purification of a case."""
    healthy = [(clean, "") for clean in networks.CLEAN]
    chosen = zlib.crc32(case.name.encode()) % ALTERED_EVERY == 0
    return healthy + [(networks.CLEAN[0], law) for law in LAWS] * chosen


def run(case: networks.Case, wanted: Iterable[tuple[str, str]]) -> Iterator[Row]:
    """Purify the network of a case in all the ways that are wanted."""
    made = networks.make(case)
    finite = all(bool(value.isfinite().all()) for value in made.network.state_dict().values())
    for clean, law in wanted:
        row: Row = {"kind": case.kind, "optimiser": case.optimiser, "steps": case.steps, "dtype": case.dtype,
                    "seed": case.seed, "clean": clean, "law": law}  # fmt: skip
        if not finite:
            yield row | {"diverged": True}
            continue
        dirty, truth = made.network, set()
        if law:
            dirty, truth = altered(made.network, law, case)
        begun = time.perf_counter()
        try:
            result = netpurify.purify(dirty, made.clean[clean], policy=netpurify.Recover(made.initial, proof=False))
        except netpurify.InputError as error:  # flips can make weights so small that a layer's inputs have no squares
            if not law:
                raise
            print(f"\n{case.name}, {law}: refused: {error}", file=sys.stderr)
            yield row | {"diverged": False, "refused": True}
            continue
        yield row | {"diverged": False, "seconds": time.perf_counter() - begun} | judge(result, truth)


def altered(network: nn.Module, law: str, case: networks.Case) -> tuple[nn.Module, set[tuple[str, int]]]:
    """A copy with some weights of its Linear and Conv layers altered, and which."""
    kinds = (nn.Linear, nn.Conv2d)
    names = [
        f"{name}.{key}"
        for name, module in network.named_modules()
        if isinstance(module, kinds)
        for key, _ in module.named_parameters(recurse=False)
    ]
    generator = torch.Generator().manual_seed(zlib.crc32(f"{case.name}, {law}".encode()))
    rule, share = LAWS[law]
    made = contaminate(network.state_dict(), rule(case.dtype), share=share, generator=generator, names=names)
    dirty = copy.deepcopy(network)
    dirty.load_state_dict(made.state)
    return dirty, {(name, int(place)) for name, mask in made.altered.items() for place in mask.reshape(-1).nonzero()}


def judge(result: Purification, truth: set[tuple[str, int]]) -> Row:
    """Counts of weights."""
    replaced, suspicious = places(result.altered), places(result.suspicious)
    proven = {
        place
        for place, grade in zip(named(result.altered), result.altered.grade.tolist(), strict=True)
        if grade == Grade.RECOVERED
    }
    return {
        "weights": sum(layer.fan_in * layer.units for layer in result.layers),
        "altered": len(truth),
        "replaced": len(replaced & truth),
        "replaced, healthy": len(replaced - truth),
        "proven, healthy": len(proven - truth),
        "suspicious": len(suspicious & truth),
        "suspicious, healthy": len(suspicious - truth),
    }


def named(table: Altered) -> list[tuple[str, int]]:
    """Tensor and place of each entry."""
    return [(table.names[tensor], int(place)) for tensor, place in zip(table.tensor, table.index, strict=True)]


def places(table: Altered) -> set[tuple[str, int]]:
    """The entries of a table."""
    return set(named(table))


def tables(rows: list[Row]) -> tuple[str, str]:
    """The tables of healthy networks and that of altered ones, as Markdown."""
    good = [row for row in rows if not row["diverged"] and not row.get("refused")]
    healthy, dirty = [row for row in good if not row["law"]], [row for row in good if row["law"]]
    sections = [
        _healthy("seed", lambda row: str(row["seed"]), healthy),
        _healthy("clean inputs", lambda row: row["clean"], healthy),
        _healthy("optimiser", lambda row: row["optimiser"], healthy),
        _healthy("network", lambda row: row["kind"], healthy),
        _healthy("steps", lambda row: str(row["steps"]), healthy),
        _healthy("dtype", lambda row: row["dtype"], healthy),
    ]
    lines = [
        "| weights altered | purifications | altered | replaced | suspicious | healthy replaced | healthy suspicious |"
    ]
    lines += ["|---|" + "---:|" * 6]
    for law in LAWS:
        mine = [row for row in dirty if row["law"] == law]
        sums = [sum(row[key] for row in mine) for key in
                ("altered", "replaced", "suspicious", "replaced, healthy", "suspicious, healthy")]  # fmt: skip
        shares = [f"{sums[0]:,}", *(f"{one:,} ({one / max(1, sums[0]):.1%})" for one in sums[1:3])]
        lines.append("| " + " | ".join([law, str(len(mine)), *shares, *(f"{one:,}" for one in sums[3:])]) + " |")
    return "\n\n".join(sections), "\n".join(lines)


def _healthy(title: str, of: Callable[[Row], str], rows: list[Row]) -> str:
    lines = [
        f"| {title} | purifications | altered | weights | replaced | of these *recovered* | per 10^8 | suspicious |"
    ]
    lines += ["|---|" + "---:|" * 7]
    groups = list(dict.fromkeys(map(of, rows)))
    for group in [*groups, "all"]:
        mine = [row for row in rows if group in ("all", of(row))]
        weights, replaced, proven, doubt = (
            sum(row[key] for row in mine)
            for key in ("weights", "replaced, healthy", "proven, healthy", "suspicious, healthy")
        )
        hurt = sum(bool(row["replaced, healthy"]) for row in mine)
        rate = 1e8 * replaced / max(1, weights)
        cells = (group, f"{len(mine):,}", f"{hurt:,}", f"{weights:,}", f"{replaced:,}", f"{proven:,}", f"{rate:,.0f}",
                 f"{doubt:,}")  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run what is not there yet, print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one network in 20")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 2], help="one network of each sort for each")
    parser.add_argument("--rows", type=Path, help="file of the rows, in which an interrupted run goes on")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.rows.read_text().splitlines()] if _there(options.rows) else []
    done = {_key(row) for row in rows}
    cases = list(networks.cases(options.seeds))[:: 20 if options.quick else 1]
    with (options.rows or Path(os.devnull)).open("a", encoding="utf-8") as file:
        for number, case in enumerate(cases):
            todo = [job for job in jobs(case) if (case.name, *job) not in done]
            for row in run(case, todo) if todo else ():
                rows.append(row)
                print(json.dumps(row), file=file, flush=True)
                if row.get("replaced, healthy") and not row["law"]:
                    print(f"\n{case.name}, {row['clean']}: {row['replaced, healthy']} replaced", file=sys.stderr)
            print(f"\r{number + 1} of {len(cases)} networks", end="", file=sys.stderr, flush=True)
    minutes = sum(row.get("seconds", 0.0) for row in rows) / 60.0
    print(f", {minutes:.1f} minutes of purification", file=sys.stderr)
    healthy, altered_ones = tables(rows)
    print(f"{healthy}\n\n{altered_ones}")
    if options.markdown:
        page = Path(__file__).with_suffix(".md").read_text()
        facts = {
            "networks": f"{len(cases):,}",
            "diverged": len({_key(row)[0] for row in rows if row["diverged"]}),
            "refused": sum(row.get("refused", False) for row in rows),
            "minutes": math.ceil(minutes),
        }
        options.markdown.write_text(page.format(healthy=healthy, altered=altered_ones, **facts))


def _there(path: Path | None) -> bool:
    return path is not None and path.exists()


def _key(row: Row) -> tuple[str, str, str]:
    case = networks.Case(*(row[key] for key in ("kind", "optimiser", "steps", "dtype", "seed")))
    return case.name, row["clean"], row["law"]


if __name__ == "__main__":
    main()
