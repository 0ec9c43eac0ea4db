"""What the paper says about the settings of its figures, quoted; a test compares the numbers with the grids.

Quotations are the paper's words with its formulas in plain letters. What is not here the paper does not say.
"""

NOT_SAID = "not said"

_SYNTHETIC = {
    "inputs": '"x_s ~ N(0, I_d)"',
    "n": '"the number of data points n = 5"',
    "law": '"generated from N(1,1)"',
    "error": '"the error is measured by the average l2 norm"',
    "trials": '"averaged over 100 trials"',
}
_K = {"m": '"the number of partitions m = 5"', "k": '"k = 50, 100, 150"', "p": '"under different p"'}
_IMAGES = {
    "law": '"generated from N(1,1)"',
    "error": '"the error is measured by the average l2 norm"',
    "trials": '"averaged over 10 trials"',
}
_FEW = {
    **_IMAGES,
    "training": '"training batch size = 99"',
    "counts": '"a limited number of clean data points"; no number',
    "origins": '"selected from the training batch", "selected outside of the training batch"',
    "regime": '"settings in Theorem 2"',
}
_MNIST = '"randomly selected from MNIST training dataset"'
_CIFAR = '"the CIFAR-10 dataset"'
_MNIST_CLASSES = '"digits zero, one, and two"'
_CIFAR_CLASSES = '"airplane, automobile, and bird"'
_CIFAR_PIXELS = '"from RGB to grayscale"'
_BACKDOOR = {
    "loss": '"softmax cross entropy loss"',
    "trigger": '"the first five pixels of input images are set to black"',
    "target": '"class zero (digit 0)"',
    "training": '"fixing the training batch size to 99"',
    "ratio": '"the range of 0 to 30 percentage"',
    "attack success": '"the percentage of test data that has been successively attacked"',
    "trials": '"averaged over 10 trials"',
}
_SAME = '"the same experimental setup as with MNIST except"'
_DEEP = '"maintaining consistent backdoor attack scenarios as used in the single-layer experiments"'

SAID: dict[int, dict[str, str]] = {
    2: {**_SYNTHETIC, **_K, "regime": '"settings in Theorem 2"'},
    3: {**_SYNTHETIC, **_K, "regime": '"setting in Theorem 3"'},
    4: {
        **_SYNTHETIC,
        "m": '"under different m"',
        "k": '"each partition dimension k = 200"',
        "p": '"the number of first-layer neurons p = 500"',
        "regime": '"settings in Theorem 2"',
    },
    5: {
        **_IMAGES,
        "data": _MNIST,
        "classes": '"three classes"',
        "training": '"(n = 21)" in the caption; "n = 99" in the text',
        "m and k": '"m = 2, k = 392", "m = 4, k = 196", "m = 7, k = 112"',
        "p": '"under different p, m, k"',
        "regime": '"the setting in Theorem 2"',
    },
    6: {**_FEW, "data": _MNIST, "classes": '"three classes"'},
    7: {
        **_FEW,
        "data": _CIFAR,
        "classes": '"three of the dataset\'s classes"',
        "law": '"following a Gaussian distribution N(1,1)"',
        "origins": '"directly selected from the training batch", "chosen from outside the training batch"',
    },
    8: {
        **_BACKDOOR,
        "data": '"the same data selected from the MNIST dataset"',
        "classes": _MNIST_CLASSES,
        "step size": '"settings in Theorem 2": gamma, and gamma / k for W (Algorithm 1)',
        "counts": '"all 99 training instances", "10 percentage", "only 9 data points"',
        "origins": '"training instances", "non-training instances"',
        "layers": '"one-hidden-layer"; 1',
    },
    9: {
        **_BACKDOOR,
        "data": _CIFAR,
        "classes": _CIFAR_CLASSES,
        "pixels": _CIFAR_PIXELS,
        "step size": _SAME,
        "poison": _SAME,
        "target": _SAME,
        "counts": '"all 99 training instances", "one third of the trained data", "10 percentage"',
        "origins": '"training instances", "non-training resources"',
        "layers": '"one-hidden-layer"; 1',
    },
}
CIFAR_FROM = 12
"""The first of the figures with several hidden layers that is of CIFAR-10."""
for _number in (10, 11, 12, 13):
    SAID[_number] = {
        **_BACKDOOR,
        "data": _MNIST if _number < CIFAR_FROM else _CIFAR,
        "classes": _MNIST_CLASSES if _number < CIFAR_FROM else _CIFAR_CLASSES,
        "step size": _DEEP,
        "poison": _DEEP,
        "origins": '"training instances"' if _number % 2 == 0 else '"non-training instances"',
    }
    if _number < CIFAR_FROM:
        SAID[_number] |= {
            "training": '"the training batch size at 99"',
            "counts": '"the size of the repair data at 36"',
            "layers": '"two-hidden-layer CNNs"; the curves show l = 1, 2',
        }
    else:
        SAID[_number] |= {
            "pixels": _CIFAR_PIXELS,
            "target": _DEEP,
            "training": '"training batch size = 99"',
            "counts": '"the same sizes for training batches and repair data as in the MNIST tests, at 99 and 69"',
            "layers": '"up to three hidden layers"',
        }
