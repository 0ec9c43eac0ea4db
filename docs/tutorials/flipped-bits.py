# %% [markdown]
# # Somebody flipped bits in my classifier's head
#
# **The question.** I trained a new head on a frozen backbone. The file of weights has since been on a machine that I do
# not trust, or in memory that is known to flip bits. Are these still the weights that I trained? If not, can I have
# mine back, without training again?
#
# **The answer.** If the head was trained by SGD on fewer images than it has inputs, yes: the altered weights are named
# one by one, replaced by what they were, and every repair comes with a proof. The frozen backbone is compared with its
# base and set back to the bit. You need the weights before training and the training images, or other clean images
# that span the same directions. No labels are needed.
#
# ## A network like yours
#
# The backbone is a small CNN that has learnt the digits 0 to 4. The head is new: it learns the digits 5 to 9 from a few
# images, by plain SGD, while the backbone stays frozen. Everything is on the sample of MNIST that comes with netpurify.

# %%
import copy

import torch
from torch import nn
from torch.nn import functional

import netpurify
from netpurify import data
from netpurify.contaminate import BitFlip, Recipe, accuracy, contaminate, train

torch.set_num_threads(1)


def build() -> nn.Sequential:
    """Two convolutions and a linear head for five digits."""
    return nn.Sequential(
        nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(),
        ),
        nn.Linear(16 * 7 * 7, 5),
    )  # fmt: skip


def digits(split: str, kept: range) -> tuple[data.Images, torch.Tensor]:
    """Some digits of the sample, and their pixels as inputs of the network."""
    images = data.classes(data.load("mnist-sample", split=split), kept)
    return images, data.to_inputs(images, dtype=torch.float32).reshape(-1, 1, 28, 28)


torch.manual_seed(0)
first, first_pixels = digits("train", range(5))
base = train(build(), first_pixels, first.labels, recipe=Recipe(epochs=3, batch=64), seed=0).model
base[1].reset_parameters()  # a new head: from here on, `base` is what the weights were before fine-tuning

few = data.balanced(digits("train", range(5, 10))[0], 120, generator=torch.Generator().manual_seed(0))
inputs = data.to_inputs(few, dtype=torch.float32).reshape(-1, 1, 28, 28)

trained = copy.deepcopy(base)
optimiser = torch.optim.SGD(trained[1].parameters(), lr=0.1, momentum=0.9)
for _ in range(200):
    optimiser.zero_grad()
    functional.cross_entropy(trained(inputs), few.labels).backward()
    optimiser.step()

test, test_pixels = digits("test", range(5, 10))
print(f"accuracy after fine-tuning on {len(few)} images: {accuracy(trained, test_pixels, test.labels):.1%}")

# %% [markdown]
# ## The accident
#
# One bit is flipped in some weights of the head, and in fewer of the frozen backbone. Which of the 32 bits it is, is
# random: the sign, the exponent or the mantissa. `contaminate` keeps a record of what it did, so that we can check the
# repair against the truth. `purify` never sees this record.

# %%
chance = torch.Generator().manual_seed(2)
hit_head = contaminate(trained.state_dict(), BitFlip(), share=0.05, generator=chance, names=["1.weight", "1.bias"])
hit = contaminate(hit_head.state, BitFlip(), share=0.01, generator=chance, names=["0.0.weight", "0.2.weight"])
masks = hit_head.altered | hit.altered

broken = build()
broken.load_state_dict(hit.state)
flips = {"head": int(sum(hit_head.altered[name].sum() for name in hit_head.altered))}
flips["backbone"] = int(sum(hit.altered[name].sum() for name in hit.altered))
print(f"bits flipped: {flips['head']} in the head, {flips['backbone']} in the backbone")
print(f"accuracy now: {accuracy(broken, test_pixels, test.labels):.1%}")

# %% [markdown]
# ## Ask first
#
# `check` changes nothing. For every layer it says whether it can be repaired, and how many altered weights it would
# bear. A layer that was never trained needs no proof: it is compared with the base.

# %%
plan = netpurify.check(broken, inputs, initial=base)
print(plan)

# %% [markdown]
# ## Repair
#
# `purify` works on a copy. Each unit of the head is one regression: the change that training made to its weights must
# lie in the span of what the head saw, and the weights that do not fit are the altered ones.

# %%
result = netpurify.purify(broken, inputs, policy=netpurify.Recover(base))
print(result)
print(f"accuracy after the repair: {accuracy(result.model, test_pixels, test.labels):.1%}")

# %% [markdown]
# Now compare with the truth, which you would not have. No weight was called altered that is not. The flips that were
# not named are those of the last bits of the mantissa. They hide in the rounding errors of training itself: what the fit
# leaves of them is smaller than the *noise floor* of their unit, though the flip itself may be a few times larger, because
# the fit follows it a little. They change nothing that the network says.

# %%
truth, repaired = trained.state_dict(), result.model.state_dict()
named = {name: torch.zeros(value.shape, dtype=torch.bool) for name, value in truth.items()}
for tensor, index in zip(result.altered.tensor, result.altered.index, strict=True):
    named[result.altered.names[tensor]].view(-1)[index] = True

innocent = {name: ~masks[name] if name in masks else torch.ones_like(mask) for name, mask in named.items()}
false_alarms = sum(int((named[name] & innocent[name]).sum()) for name in named)
missed = {name: masks[name] & ~named[name] for name in masks}
sizes = torch.cat([(hit.state[name] - truth[name])[missed[name]].abs() for name in masks])
errors = torch.cat([(repaired[name] - truth[name])[named[name]].abs() for name in named])
(head,) = (layer for layer in result.layers if layer.name == "1")
print(f"altered weights named: {sum(int(mask.sum()) for mask in named.values())}; falsely named: {false_alarms}")
print(f"flips not named: {len(sizes)}; the largest of them changed its weight by {sizes.max():.1e}")
print(f"noise floor of the head's units: up to {head.noise_floor.max():.1e}")
print(f"largest error of a repaired weight: {errors.max():.1e}")

# %% The head's change in training, unit by unit: before the accident, after it with the flipped bits (cut at the ends of the scale), and after the repair. Circles are the weights that were named as altered.
from matplotlib import pyplot as plt

before = base.state_dict()["1.weight"]
scale = float((truth["1.weight"] - before).abs().quantile(0.98))
figure, axes = plt.subplots(3, 1, figsize=(9, 4.6), sharex=True, layout="constrained")
states = {"as trained": truth, "after the accident": hit.state, "after the repair": repaired}
for axis, (title, state) in zip(axes, states.items(), strict=True):
    change = (state["1.weight"] - before).nan_to_num(nan=9.0)[:, :160]
    axis.imshow(
        change.clamp(-scale, scale).numpy(), cmap="RdBu", vmin=-scale, vmax=scale, aspect="auto", interpolation="none"
    )
    axis.set_title(title, loc="left", fontsize=10)
    axis.set_yticks(range(5), [f"digit {number}" for number in range(5, 10)], fontsize=8)
rows, columns = named["1.weight"][:, :160].numpy().nonzero()
axes[1].scatter(columns, rows, s=40, facecolors="none", edgecolors="black", linewidths=0.9)
_ = axes[2].set_xlabel("weight of the head (the first 160 of each unit)")

# %% [markdown]
# ## Check the proof
#
# `verify` takes nothing on trust from the solver: it checks every repaired weight again by matrix products.

# %%
check = result.verify()
print("every change is proven:", check.sound)
netpurify.report.write(
    result, {"page": "repair.html", "sarif": "repair.sarif"}, files={"contaminated": "weights.safetensors"}
)

# %% [markdown]
# The page shows each layer with the residuals of its regressions, and lists the altered weights. The SARIF log puts
# them among the alerts of a code-scanning service.
#
# ## What to do with your own model
#
# ```
# netpurify check   weights.safetensors --initial base.safetensors --factory package.module:build --data inputs.npy
# netpurify recover weights.safetensors --initial base.safetensors --factory package.module:build --data inputs.npy \
#     -o repaired.safetensors --report repair.html --proof proof.safetensors
# ```
#
# - **Weights before training.** For a fine-tuned model this is the base checkpoint. If the head was new, keep its initial
#   weights, or the seed: `netpurify.Seeded(build, seed)`.
# - **Clean inputs.** The training images are best. Others will do if the backbone maps them into the same directions.
#   There must be fewer directions than the layer has inputs: `check` says so before any work.
# - **The optimiser.** SGD with or without momentum, weight decay and schedules is exact. Adam and its kin leave the
#   span, so that a head which they trained cannot be proven; a frozen backbone can, whatever trained the head
#   ([When it is exact](../network.md#when-it-is-exact)).
# - **No inputs at all?** `netpurify scan weights.safetensors --against base.safetensors` finds what needs no inputs:
#   every change in the backbone, and gross ones in the head ([Audit a fine-tuned checkpoint](audit.py)).
# - **Hugging Face folders** need no factory: [Purify any PyTorch network](../network.md).
