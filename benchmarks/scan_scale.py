"""Scan decoders of growing size against their base: seconds and memory for each number of parameters.

    python benchmarks/scan_scale.py                  up to 1.1 billion parameters; writes 4.4 GB to a temporary folder
    python benchmarks/scan_scale.py --largest 124    only those of up to 124 million

Every network is built from a config (only shapes, on the meta device), filled with random bfloat16 weights tensor by
tensor, and stored in shards of about 1 GB as Hugging Face does. A copy is tampered with: flipped bits in matrices,
norms and embeddings, and erased blocks; its head was tuned. ``netpurify scan`` then runs in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

SHARD = 1 << 30
SIZES: dict[int, dict[str, Any]] = {
    15: {"hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 6, "num_attention_heads": 8},
    124: {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 11, "num_attention_heads": 12},
    410: {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 27, "num_attention_heads": 16},
    1100: {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32},
}
"""Configs of decoders, by their size in millions of parameters."""


def shapes(size: int) -> dict[str, list[int]]:
    """Names and shapes of the tensors of a decoder, from its config alone."""
    import transformers

    config = transformers.LlamaConfig(vocab_size=32000, num_key_value_heads=4, **SIZES[size])
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    return {name: list(value.shape) for name, value in model.state_dict().items()}


def tensor(shape: list[int], number: int) -> Tensor:
    """Random weights of one tensor; the same for the same number."""
    generator = torch.Generator().manual_seed(number)
    if len(shape) == 1:
        return (1.0 + 0.1 * torch.randn(shape, generator=generator)).bfloat16()
    return torch.empty(shape, dtype=torch.bfloat16).normal_(0.0, 0.02, generator=generator)


def tampered(name: str, value: Tensor, number: int) -> tuple[Tensor, int]:
    """What was done to a tensor, and how many of its entries were altered."""
    value, generator = value.clone(), torch.Generator().manual_seed(10_000 + number)
    if name == "lm_head.weight":  # tuned: every entry moves by about a tenth of its size
        return (value.float() + 0.002 * torch.randn(value.shape, generator=generator)).bfloat16(), 0
    if number % 5:
        return value, 0
    before = value.clone()
    if number % 25 == 0 and value.dim() > 1:
        value[:8, :8] = 0.0
    else:
        places = torch.randperm(value.numel(), generator=generator)[:3]
        value.view(-1).view(torch.int16)[places] ^= 1 << 13  # a bit of the exponent
    return value, int((value.view(torch.int16) != before.view(torch.int16)).sum())


def store(folder: Path, named: dict[str, list[int]], *, dirty: bool) -> int:
    """Write shards and their index, one shard in memory at a time; gives how many entries were altered."""
    from safetensors.torch import save_file

    folder.mkdir()
    shard: dict[str, Tensor] = {}
    where: dict[str, str] = {}
    altered = held = 0

    def flush() -> None:
        nonlocal held
        name = f"model-{len(set(where.values())):05}.safetensors"
        save_file(shard, folder / name)
        where.update(dict.fromkeys(shard, name))
        shard.clear()
        held = 0

    for number, (name, shape) in enumerate(named.items()):
        value = tensor(shape, number)
        if dirty:
            value, count = tampered(name, value, number)
            altered += count
        shard[name] = value
        held += value.numel() * value.element_size()
        if held > SHARD:
            flush()
    flush()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
    return altered


def measured(folder: Path) -> tuple[float, float, int, int]:
    """Seconds, peak memory in GB, exit code and altered weights of a scan."""
    command = [sys.executable, "-m", "netpurify", "scan", str(folder / "dirty"), "--against", str(folder / "base")]
    begun = time.perf_counter()
    child = subprocess.Popen([*command, "--json", "-", "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = child.stdout.read() if child.stdout else b""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    found = sum(one["altered_count"] for one in json.loads(out)["tensors"])
    return time.perf_counter() - begun, usage.ru_maxrss * 1024 / 1e9, child.returncode, found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--largest", type=int, default=max(SIZES), help="in millions of parameters")
    largest = parser.parse_args().largest
    print("| parameters | tensors | altered | found | false | exit code | seconds | peak memory |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for size in (size for size in SIZES if size <= largest):
        named = shapes(size)
        count = sum(int(torch.Size(shape).numel()) for shape in named.values())
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            store(folder / "base", named, dirty=False)
            altered = store(folder / "dirty", named, dirty=True)
            seconds, memory, code, found = measured(folder)
        print(
            f"| {count:,} | {len(named)} | {altered} | {min(found, altered)} | {max(found - altered, 0)} | {code} | "
            f"{seconds:.1f} | {memory:.2f} GB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
