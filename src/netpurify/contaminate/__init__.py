"""Contamination on purpose: altered weights, triggers and poisoned training data, with a record of what was done.

    dirty = contaminate(model.state_dict(), Normal(sd=1.0), share=0.1, generator=generator)
    dirty.state, dirty.altered              the weights, and exactly which entries changed
    difference(model.state_dict(), dirty.state)             the same from two states alone, compared bit for bit

    trigger = first_pixels(5, 1.0)
    data = poison(images, labels, trigger, target=0, ratio=0.05, generator=generator)
    measure(model, test_images, test_labels, trigger=trigger, target=0)     accuracy, attack success

    Patch(), Blended(0.2), Sinusoid(), Warp(seed=0)         the triggers of BadNets, Blended, SIG and WaNet
    poison(..., target="next")              all-to-all: each image the class after its own
    poison(..., source="target")            clean-label: only images of the target class, no label changes
    poison(..., cover=(warp.noisy(1), 0.2))                 a second trigger on images that keep their label

    train(model, data.inputs, data.labels, recipe=Recipe(), seed=0, folder="trained")     resumes, trains nothing twice

A law is a class with ``alter`` in the table ``LAWS``, a trigger a class with ``stamp`` in the table ``TRIGGERS``. Both
only propose values: which entries or images take them is decided here, and checked. All randomness comes from the
generator that the caller gives.
"""

from netpurify.contaminate import images, weights
from netpurify.contaminate.images import *  # noqa: F403  # the rooms say what they export
from netpurify.contaminate.training import Recipe, Trained, train
from netpurify.contaminate.weights import *  # noqa: F403

__all__ = ["Recipe", "Trained", "train"]
__all__ += weights.__all__
__all__ += images.__all__
