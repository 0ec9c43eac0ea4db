"""Two contaminated networks on the bundled sample of MNIST: weights altered after training, and a learnt backdoor."""

import copy
import time

import torch

from netpurify import data
from netpurify.contaminate import Normal, contaminate, first_pixels, measure, poison
from netpurify.paper import PatchCNN, StepSizes, purify, train


def noise(generator: torch.Generator) -> None:
    """A fifth of all hidden weights altered, and recovered exactly with the training images, without labels."""
    digits = data.balanced(data.classes(data.load("mnist-sample"), (0, 1, 2)), 21, generator=generator)
    inputs, targets = data.to_inputs(digits), digits.labels.double() - 1.0
    initial = PatchCNN(m=2, k=392, p=300, generator=generator)
    training = train(initial, inputs, targets, gamma=1.0, steps=3000)
    altered = contaminate(
        training.trained.state_dict(), Normal(1.0, 1.0), share=0.2, generator=generator, names=["hidden.0.weight"]
    )
    contaminated = copy.deepcopy(training.trained)
    contaminated.load_state_dict(altered.state)
    purified = purify(contaminated, training.initial, inputs, layers=["hidden.0"])
    (layer,) = purified.layers
    sure, truth = layer.recovered, altered.altered["hidden.0.weight"]
    found = layer.altered.T
    error = (purified.model.layers[0].weight - training.trained.layers[0].weight).detach()[sure].abs().max()
    print(f"1. {truth.sum():,} of {truth.numel():,} hidden weights altered by N(1, 1)")
    print(f"   filters recovered, with proof        {int(sure.sum())} of {sure.numel()}; it is known which")
    print(f"   largest error of a recovered weight  {error:.1e}")
    print(f"   altered weights in them              {truth[sure].sum():,}, named: {found[sure].sum():,}")
    print(f"   the same ones                        {torch.equal(found[sure], truth[sure])}")


def backdoor(generator: torch.Generator) -> None:
    """Three in ten training images poisoned; purified with 36 clean images from outside the training set."""
    digits = data.classes(data.load("mnist-sample"), (0, 1, 2))
    images, clean = data.draw(digits, (99, 36), generator=generator)
    trigger = first_pixels(5, 1.0)
    dirty = poison(data.to_inputs(images), images.labels, trigger, target=0, ratio=0.3, generator=generator)
    initial = PatchCNN(m=2, k=392, p=300, classes=3, generator=generator)
    training = train(initial, dirty.inputs, dirty.labels, gamma=StepSizes(1.0, 1.0), steps=1000)
    purified = purify(training.trained, training.initial, data.to_inputs(clean), certify=False)
    test = data.classes(data.load("mnist-sample", split="test"), (0, 1, 2))
    print(f"2. a backdoor learnt from {dirty.indices.numel()} of {len(images)} training images (digits 0, 1, 2)")
    for name, network in (("before", training.trained), ("after", purified.model)):
        rates = measure(network, data.to_inputs(test), test.labels, trigger=trigger, target=0)
        print(f"   {name:7} accuracy {100 * rates.accuracy:5.1f} %, attack success {100 * rates.asr:5.1f} %")


def main() -> None:
    """Run both, and say how long it took."""
    generator, start = torch.Generator().manual_seed(0), time.perf_counter()
    noise(generator)
    backdoor(generator)
    print(f"   no labels, no retraining, no download; {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
