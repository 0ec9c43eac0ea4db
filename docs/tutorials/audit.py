# %% [markdown]
# # Audit a fine-tuned checkpoint against its base in CI
#
# **The question.** My repository holds a fine-tuned checkpoint, and the base that it was made from. Before a new
# checkpoint is merged or deployed I want a machine to say: nothing in it was altered that training would not alter.
# Nobody's code may run for that, because nobody has looked at the file yet.
#
# **The answer.** `netpurify scan WEIGHTS --against BASE` compares the two files tensor by tensor. It runs no code of the
# network and none that a pickle would like to run. Its exit code is 0, 1 or 2, and it writes a SARIF log, which GitHub and
# others show among the alerts of code scanning.
#
# ## Three checkpoints
#
# A base that has learnt the digits 0 to 4; a fine-tuned one, of which only the head was trained on the digits 5 to 9; and
# the same after somebody has overwritten a few weights of the frozen backbone.

# %%
import json
import shlex
import subprocess
import sys
from pathlib import Path

import torch
from matplotlib import pyplot as plt
from torch import nn
from torch.nn import functional

import netpurify
from netpurify import checkpoint, data
from netpurify.contaminate import Normal, Recipe, contaminate, train

torch.set_num_threads(1)


def digits(kept: range) -> tuple[torch.Tensor, torch.Tensor]:
    """Images [n, 1, 28, 28] of some digits of the sample, and their labels from 0 on."""
    images = data.classes(data.load("mnist-sample"), kept)
    return data.to_inputs(images, dtype=torch.float32).reshape(-1, 1, 28, 28), images.labels


torch.manual_seed(0)
backbone = nn.Sequential(
    nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
    nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(),
)  # fmt: skip
network = nn.Sequential()
network.add_module("backbone", backbone)
network.add_module("head", nn.Linear(16 * 7 * 7, 5))
network = train(network, *digits(range(5)), recipe=Recipe(epochs=2, batch=64), seed=0).model
checkpoint.save_weights(network.state_dict(), "base.safetensors")

inputs, labels = digits(range(5, 10))
optimiser = torch.optim.AdamW(network.get_submodule("head").parameters(), lr=1e-3)  # the optimiser does not matter here
for images, wanted in zip(inputs.split(64), labels.split(64), strict=True):
    optimiser.zero_grad()
    functional.cross_entropy(network(images), wanted).backward()
    optimiser.step()
network.eval()
checkpoint.save_weights(network.state_dict(), "tuned.safetensors")

chance = torch.Generator().manual_seed(0)
hit = contaminate(network.state_dict(), Normal(sd=0.05), share=0.01, generator=chance, names=["backbone.3.weight"])
altered = int(hit.altered["backbone.3.weight"].sum())
checkpoint.save_weights(hit.state, "tampered.safetensors")
print(f"weights overwritten in backbone.3: {altered}")

# %% [markdown]
# ## Scan
#
# In a terminal you would type these commands. The exit code is what a pipeline looks at.


# %%
def run(command: str) -> int:
    """Run a command as a terminal would, and show its output and its exit code."""
    print(f"$ {command}")
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    print((done.stdout.strip() or done.stderr.strip()) + f"\nexit code: {done.returncode}\n")
    return done.returncode


well = run("netpurify scan tuned.safetensors --against base.safetensors")
found = run("netpurify scan tampered.safetensors --against base.safetensors --sarif scan.sarif --json scan.json")

# %% [markdown]
# In the first file nothing was found. The line of coverage says how much that means: weights of the backbone were
# *examined*, because they have every bit of the base; those of the head were trained, so that they are *compared only*. A small
# alteration of a trained weight is not seen by a scan, whatever the tool. With `--strict` that is a finding too. If you
# know what was frozen, say so: `--frozen 'backbone.*'`.
#
# In the second file the tensor is named, with its altered weights, the largest changes first.

# %% What the scan found in the tampered tensor: each point is a weight, drawn at its value in the base and its value in the file. Weights that were never trained lie on the diagonal; those off the diagonal are the ones that were named.
log = json.loads(Path("scan.sarif").read_text(encoding="utf-8"))
for one in log["runs"][0]["results"]:
    print(one["ruleId"], one["level"], one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"])

before = checkpoint.load_weights("base.safetensors")["backbone.3.weight"].flatten()
after = checkpoint.load_weights("tampered.safetensors")["backbone.3.weight"].flatten()
scanned = netpurify.scan("tampered.safetensors", "base.safetensors")  # the same from Python
(tensor,) = scanned.found
named = torch.zeros(before.numel(), dtype=torch.bool)
named[tensor.altered.index] = True
figure, axis = plt.subplots(figsize=(4, 3.6), layout="constrained")
axis.plot(before[~named], after[~named], ".", color="#888888", markersize=3, label="as in the base")
axis.plot(before[named], after[named], "o", color="#c4462f", markersize=5, fillstyle="none", label="named")
axis.set_xlabel("weight in the base")
axis.set_ylabel("weight in the file")
_ = axis.legend()

# %% [markdown]
# ## A file that wants to run code
#
# A checkpoint of `torch.save` is a pickle, and a pickle may call anything when it is loaded. Here is one. The scan refuses
# it with exit code 2, and nothing in it is run.


# %%
class Payload:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple:
        """What unpickling calls."""
        return print, ("this text would be printed by a program that loads the file",)


torch.save({"head.weight": network.state_dict()["head.weight"], "note": Payload()}, "hostile.pt")
refused = run("netpurify scan hostile.pt --against base.safetensors")

# %% [markdown]
# ## In a pipeline
#
# As a GitHub Action; `OWNER` is the owner of the repository that holds netpurify:
#
# ```yaml
# name: weights
# on: [push, pull_request]
# permissions: {contents: read, security-events: write}
# jobs:
#   scan:
#     runs-on: ubuntu-latest
#     steps:
#       - uses: actions/checkout@v4
#         with: {lfs: true}
#       - uses: OWNER/netpurify@main
#         with: {weights: tuned.safetensors, against: base.safetensors, frozen: "backbone.*"}
#       - uses: github/codeql-action/upload-sarif@v3
#         if: always()
#         with: {sarif_file: netpurify.sarif}
# ```
#
# As a pre-commit hook, which scans every changed file of weights:
#
# ```yaml
# repos:
#   - repo: https://github.com/OWNER/netpurify
#     rev: main
#     hooks:
#       - id: netpurify-scan
#         args: [--against, base.safetensors, --frozen, "backbone.*", --quiet]
#         exclude: ^base\.safetensors$
# ```
#
# The step fails on exit code 1, which is what you want for a pull request. To collect alerts without failing, give the
# action `fail-on: errors`.
#
# ## What to do with your own model
#
# 1. **Keep the base** beside the checkpoint, or fetch it in the pipeline at a commit that you have looked at. Files, Hugging
#    Face folders and indices of shards are all taken; so are bfloat16 and float16.
# 2. **Name what is frozen**: `--frozen 'model.layers.*'`. For a file that should be a mere copy, `--frozen '*'`.
# 3. **Merged LoRA adapters**: `--adapter FOLDER` compares every entry with what base and adapter make, so that nothing can
#    hide behind training.
# 4. **If something was found**, look at the SARIF log or at `--report scan.html`, and repair with clean inputs:
#    [Somebody flipped bits in my classifier's head](flipped-bits.py).
# 5. **If nothing was found**, remember what a scan cannot see: alterations of trained weights as large as training's own
#    changes, and backdoors that were learnt ([My model may be backdoored](backdoored.py)).
#
# All inputs of the action, GitLab, and what each exit code means: [Scanning weights in pipelines](../ci.md).
