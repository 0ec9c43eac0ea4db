# %% [markdown]
# # My model may be backdoored
#
# **The question.** I did not train this network myself, or some of its training images came from people whom I do not
# know. If a tenth of the images had carried a small mark and a wrong label, the network would have learnt: *whatever
# carries this mark is a zero*. On clean images it would be as good as any other. How do I find out, and what can I do?
#
# **The answer.** `hunt` looks for marks that lead images of all classes to one class. `Unlearn` trains what the hunt
# has found away. `Defend` needs no hunt: it lets every layer keep only what clean images justify. All three need some
# hundred clean images and no labels. **None of them proves that a network is clean.** They differ in what they find, so
# that it is worth looking at all three.
#
# ## Two networks, one of them poisoned
#
# The trigger is a square of a few pixels in a corner, the target class is 0. Both networks are trained in the same way.

# %%
import torch
from torch import nn

import netpurify
from netpurify import data
from netpurify.contaminate import Patch, Recipe, measure, poison, train

torch.set_num_threads(1)


def build() -> nn.Sequential:
    """Three convolutions with BatchNorm, and a linear layer."""
    layers: list[nn.Module] = []
    for channels, filters in ((1, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(channels, filters, 3, stride=2, padding=1), nn.BatchNorm2d(filters), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 4 * 4, 10))


def to_batch(digits: data.Images) -> torch.Tensor:
    """Images [n, 1, 28, 28] with values in [0, 1]."""
    return data.to_inputs(digits, dtype=torch.float32).reshape(-1, 1, 28, 28)


chance = torch.Generator().manual_seed(0)
torch.manual_seed(0)
digits, outside = data.draw(data.load("mnist-sample"), (4000, 300), generator=chance)
trigger = Patch()
dirty = poison(to_batch(digits), digits.labels, trigger, target=0, ratio=0.1, generator=chance)
recipe = Recipe(epochs=4, batch=64)
poisoned = train(build(), dirty.inputs, dirty.labels, recipe=recipe, seed=0).model
healthy = train(build(), to_batch(digits), digits.labels, recipe=recipe, seed=1).model

test = data.load("mnist-sample", split="test")
images = to_batch(test)


def rates(network: nn.Module) -> str:
    """Accuracy, and how often the trigger works."""
    found = measure(network, images, test.labels, trigger=trigger, target=0)
    return f"accuracy {found.accuracy:6.1%}, attack success {found.asr:6.1%}"


print(f"{len(dirty.indices)} of {len(digits)} training images carry the trigger")
print("poisoned:", rates(poisoned))
print("healthy: ", rates(healthy))

# %% Four clean test images, and the same with the trigger. The poisoned network takes all that carry it for a zero.
from matplotlib import pyplot as plt

shown = images[[int((test.labels == label).nonzero()[0]) for label in (1, 4, 7, 9)]]
figure, axes = plt.subplots(2, 4, figsize=(6, 3.3), layout="constrained")
with torch.no_grad():
    for row, batch in zip(axes, (shown, trigger.stamp(shown)), strict=True):
        for axis, image, answer in zip(row, batch, poisoned(batch).argmax(1), strict=True):
            axis.imshow(image[0].numpy(), cmap="gray_r", vmin=0, vmax=1)
            axis.set_title(f"taken for a {int(answer)}", fontsize=9)
            axis.set_axis_off()

# %% [markdown]
# ## Hunt
#
# From here on we know neither the trigger nor the target, and which network is poisoned. All we have is clean
# images without labels. `hunt` searches families of triggers: patches, waves, warps, blended images and more. To keep this
# tutorial short it is asked for four of them here; without `families=` it searches all.

# %%
clean = to_batch(outside)  # the labels are not used
families = ("spot", "wave", "blend", "flow")
hunts = {name: netpurify.hunt(network, clean, families=families) for name, network in (("A", healthy), ("B", poisoned))}
for name, found in hunts.items():
    print(f"--- network {name}")
    print(found)

# %% [markdown]
# Network B is the poisoned one. A trigger's *success* is the share of images of other classes that get the target class once they carry it, its
# *margin* how far the class stands out from the next one. Weaknesses that every network has lead to several classes;
# a backdoor leads to one. The levels above which a class is suspect were measured on healthy networks.
#
# What did the hunt find? The best trigger beside the true one, which you would not have:

# %% What the hunt found, on the same images, beside the true trigger. The hunt has seen clean images only.
best = hunts["B"].suspects[0]
print(f"family {best.family}, class {best.target}, success {best.success:.0%}")
with torch.no_grad():
    guess = best.on(shown)
figure, axes = plt.subplots(2, 4, figsize=(6, 3.3), layout="constrained")
for row, batch, title in zip(axes, (guess, trigger.stamp(shown)), ("found", "true"), strict=True):
    for axis, image in zip(row, batch, strict=True):
        axis.imshow(image[0].numpy(), cmap="gray_r", vmin=0, vmax=1)
        axis.set_xticks([])
        axis.set_yticks([])
    row[0].set_ylabel(title)

# %% [markdown]
# ## Unlearn it
#
# `Unlearn` hunts, and if a class is suspect it trains a hundred small steps, in which the network keeps its own
# scores on clean images and stops following triggers. Some of the images are held out: how many of them change their class
# bounds the accuracy that can be lost.

# %%
unlearnt = netpurify.purify(poisoned, clean, policy=netpurify.Unlearn(families=families))
print(unlearnt)
print("after unlearning:", rates(unlearnt.model))

# %% [markdown]
# ## Or defend, without a hunt
#
# `Defend` does not look for a trigger. Every layer keeps what clean images justify, and guards keep its channels in
# the range that clean images have. It helps also where the trigger is of a kind that no family covers, and costs more
# accuracy.

# %%
defended = netpurify.purify(poisoned, clean, policy=netpurify.Defend())
print(defended)
print("after defending:", rates(defended.model))

# %% Accuracy and attack success of the poisoned network, as it came and after either repair.
networks = {"as it came": poisoned, "unlearnt": unlearnt.model, "defended": defended.model}
measured = [measure(network, images, test.labels, trigger=trigger, target=0) for network in networks.values()]
figure, axis = plt.subplots(figsize=(6, 2.4), layout="constrained")
for offset, label, values, colour in (
    (-0.19, "accuracy", [one.accuracy for one in measured], "#1b6ca8"),
    (0.19, "attack success", [one.asr for one in measured], "#c4462f"),
):
    bars = axis.barh([place + offset for place in range(3)], values, height=0.36, label=label, color=colour)
    axis.bar_label(bars, [f" {value:.1%}" for value in values], fontsize=8)
axis.set_yticks(range(3), list(networks))
axis.invert_yaxis()
axis.set_xlim(0, 1.12)
axis.set_xlabel("share of test images")
_ = figure.legend(loc="outside upper center", ncols=2, fontsize=8)

# %% [markdown]
# Attack success is what an attacker would see, and only who has the trigger can measure it. You will not have it: what you
# see of your own network is the hunt before and after, and the bound on the price.
#
# ## What to do with your own model
#
# ```
# netpurify hunt    weights.safetensors --factory package.module:build --data images/ --report hunt.html
# netpurify unlearn weights.safetensors --factory package.module:build --data images/ -o repaired.safetensors
# netpurify defend  weights.safetensors --factory package.module:build --data images/ -o defended.safetensors
# ```
#
# 1. **Collect clean images**: three to five hundred that nobody else could touch. Labels are not needed. An image that
#    carries the trigger would teach the network to keep it.
# 2. **Hunt with all families**, and look at the page: it shows every trigger on your images. A class that is
#    suspect in several families is a stronger sign than one in a single family.
# 3. **If a class is suspect, unlearn**, and read the second hunt and the bound. If nothing is suspect, nothing is changed.
# 4. **If you have reason to distrust the network anyway, defend.** Triggers that depend on the image, or lead every class to
#    another one, are in no family. [When it fails](../defence.md) says what to check.
# 5. **Hunt in healthy networks of your own kind first**, better twenty than two, and give what they show as `expected=`
#    ([how](../hunt.md#how-a-hunt-works)). The levels of netpurify come from a few kinds of small networks. For other sizes
#    of images or numbers of classes the hunt says *never calibrated*; that your architecture or training is another one it
#    cannot know, and then it may suspect a healthy network, name a wrong class, or miss a backdoor.
#
# How often all this works, on which networks and triggers: [hunts and unlearning](../unlearn-results.md),
# [defences side by side](../defence-results.md).
