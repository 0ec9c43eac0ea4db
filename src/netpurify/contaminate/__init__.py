"""Making things dirty: altered weights, triggers and poisoned training data, with a record of what was done.

    dirty = contaminate(model.state_dict(), Normal(sd=1.0), share=0.1, generator=generator)
    dirty.state, dirty.altered              the weights, and exactly which entries changed
    difference(model.state_dict(), dirty.state)             the same seen from outside: two states, bit for bit

    trigger = first_pixels(5, 1.0)
    data = poison(images, labels, trigger, target=0, ratio=0.05, generator=generator)
    measure(model, test_images, test_labels, trigger=trigger, target=0)     accuracy, attack success

    Patch(), Blended(0.2), Sinusoid(), Warp(seed=0)         the triggers of BadNets, Blended, SIG and WaNet
    poison(..., target="next")              all-to-all: each image the class after its own
    poison(..., source="target")            clean-label: only images of the target class, no label changes
    poison(..., cover=(warp.noisy(1), 0.2))                 a second trigger on images that keep their label

    train(model, data.inputs, data.labels, recipe=Recipe(), seed=0, folder="trained")     resumes, trains nothing twice

A law is a class with ``alter``, a trigger a class with ``stamp``: they propose, the functions here choose and measure.
Every draw comes from the generator that the caller gives.
"""

from netpurify.contaminate.backdoor import Rates, accuracy, measure
from netpurify.contaminate.difference import Difference, TensorDifference, difference
from netpurify.contaminate.entries import Contaminated, contaminate
from netpurify.contaminate.image_triggers import Blended, NoisyWarp, Patch, Sinusoid, Warp
from netpurify.contaminate.laws import (
    BitFlip,
    Cauchy,
    Constant,
    Erase,
    Laplace,
    Law,
    Normal,
    Quantise,
    Scale,
    SignFlip,
    Uniform,
    Zero,
)
from netpurify.contaminate.named import law_named
from netpurify.contaminate.poisoning import Poisoned, poison
from netpurify.contaminate.recipe import Recipe
from netpurify.contaminate.training import Trained, train
from netpurify.contaminate.trigger import Pixels, Trigger, first_pixels

__all__ = [
    "BitFlip",
    "Blended",
    "Cauchy",
    "Constant",
    "Contaminated",
    "Difference",
    "Erase",
    "Laplace",
    "Law",
    "NoisyWarp",
    "Normal",
    "Patch",
    "Pixels",
    "Poisoned",
    "Quantise",
    "Rates",
    "Recipe",
    "Scale",
    "SignFlip",
    "Sinusoid",
    "TensorDifference",
    "Trained",
    "Trigger",
    "Uniform",
    "Warp",
    "Zero",
    "accuracy",
    "contaminate",
    "difference",
    "first_pixels",
    "law_named",
    "measure",
    "poison",
    "train",
]
