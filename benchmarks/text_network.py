"""Check and purify a GPT-2 of 124 million parameters through the command line, with lines of text as clean inputs.

    python benchmarks/text_network.py            writes 1 GB to a temporary folder

The network is built from its config with random weights, which are the base. One projection of the last block is tuned
by SGD on the lines; then bits are flipped in matrices, norms and embeddings all over the network. Everything comes as
Hugging Face folders (config.json, shards, tokenizer.json), and no factory is given.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

TUNED = "transformer.h.11.mlp.c_proj.weight"
FLIPS = 100
"""Of each shard."""
LINES = [
    f"line {number} of the text says that {'the weights ' * (number % 4 + 1)}were {number * 37 % 101} before training"
    for number in range(24)
]


def tokenizer(folder: Path) -> Any:
    """A small tokenizer of the lines themselves."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    built = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    built.train_from_iterator(LINES, trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]"]))
    built.save(str(folder / "tokenizer.json"))
    return built


def tuned(model: Any, words: Any) -> None:
    """A few steps of SGD on one projection."""
    value = model.get_parameter(TUNED)
    optimiser = torch.optim.SGD([value], lr=0.5)
    batch = [torch.tensor([words.encode(line).ids]) for line in LINES]
    for _ in range(2):
        for tokens in batch:
            optimiser.zero_grad()
            model(input_ids=tokens, labels=tokens).loss.backward()
            optimiser.step()


def flip(state: dict[str, torch.Tensor]) -> set[tuple[str, int]]:
    """Flip random bits of weights of all tensors, each tensor as likely as the others; gives their places."""
    generator = torch.Generator().manual_seed(1)
    names = [name for name, value in state.items() if value.numel() > 1]
    places = set()
    for _ in range(FLIPS):
        name = names[int(torch.randint(len(names), (), generator=generator))]
        value = state[name].view(-1).view(torch.int32)
        place = int(torch.randint(value.numel(), (), generator=generator))
        value[place] ^= 1 << int(torch.randint(18, 31, (), generator=generator))
        places.add((name, place))
    return places


def run(*arguments: str) -> tuple[int, float, float]:
    """Exit code, seconds and peak memory in GB of a command."""
    begun = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "netpurify", *arguments], stdout=sys.stderr)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, time.perf_counter() - begun, usage.ru_maxrss * 1024 / 1e9


def main() -> None:
    """Build, tune, tamper, check, purify, compare."""
    import transformers
    from safetensors.torch import load_file, save_file

    torch.manual_seed(0)
    model: Any = transformers.GPT2LMHeadModel(transformers.GPT2Config(bos_token_id=0, eos_token_id=0)).eval()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base, dirty = str(folder / "base"), str(folder / "dirty")
        model.save_pretrained(base)
        words = tokenizer(folder / "base")
        tuned(model, words)
        model.save_pretrained(dirty, max_shard_size="200MB")
        tokenizer(folder / "dirty")
        (folder / "lines.txt").write_text("\n".join(LINES) + "\n")
        truth: dict[str, torch.Tensor] = {}
        places: set[tuple[str, int]] = set()
        for shard in sorted(Path(dirty).glob("*.safetensors")):
            state = load_file(shard)
            truth |= {key: value.clone() for key, value in state.items()}
            places |= flip(state)
            save_file(state, shard, metadata={"format": "pt"})
        given = ["--initial", base, "--data", str(folder / "lines.txt")]
        print(f"{sum(value.numel() for value in truth.values()):,} parameters, {len(places)} weights altered")
        for command in (["check", dirty, *given], ["recover", dirty, *given, "-o", str(folder / "purified")]):
            code, seconds, memory = run(*command, "--quiet")
            print(f"{command[0]}: exit code {code}, {seconds:.0f} s, peak memory {memory:.2f} GB", flush=True)
        now = {key: value for shard in sorted((folder / "purified").glob("*.safetensors"))
               for key, value in load_file(shard).items()}  # fmt: skip
        wrong = sum(int((now[key] != truth[key]).sum()) for key in truth if key != TUNED)
        error = float((now[TUNED] - truth[TUNED]).abs().max())
        print(f"weights of frozen tensors that are not as before: {wrong}; largest error in {TUNED}: {error:.1e}")


if __name__ == "__main__":
    main()
