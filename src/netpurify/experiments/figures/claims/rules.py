"""How the paper's claims are judged: one rule for one claim, in every figure that makes it.

The rules are taken from the paper's words, before the verdicts of the page were computed. Every threshold is a constant
of this file, so that the text on the page and the functions that judge have the same numbers.
"""

from netpurify.findings import Rule

LADDER = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Errors at which limits of eps are asked, because the paper names no error below which a recovery is successful."""
STEP = 0.05
"""Finest step of eps in the grids; two limits that differ by less count as equal."""
RECOVERED = 0.5
"""A layer counts as recovered if its error is at most this share of the error of the initial weights in the same trial.

A fixed error would not do: lazy training leaves the initial weights close to the true ones, closer for larger p.
"""
SMALL_EPS, SMALL_ERROR = 0.2, 0.1
AT = 0.1
"""The share of altered weights at which theorems and few clean images are judged."""
EXACT = 0.99
"""Share of filters that counts as all of W: one in a hundred may be beyond its limit."""
OFTEN = 0.95
"""Share of trials that counts as "with high probability"."""
TENTH = 0.1
SIMILAR, LESS_SIMILAR = 1.25, 2.0
KEPT_GAIN, HALF_GAIN = 0.8, 0.5
UP_TO = 0.3
"""The largest share of poisoned images that the paper speaks of."""

_LADDER_TEXT = ", ".join(f"{rung:g}" for rung in LADDER)
_LIMIT = (
    f"At each error of the ladder {_LADDER_TEXT}, the limit of a trial is the largest eps of the grid up to which the "
    "error stays at or below it; an error counts if limits are neither all 0 nor all at the end of the grid. A limit "
    f"rises if the change from the first step to the last, within trials, exceeds twice its standard error and is at "
    f"least {STEP:g}."
)
_HALF = (
    f"Recovered means an error of at most {RECOVERED:g} times that of the initial weights in the same trial. The limit "
    "of eps up to which that is so"
)
_FEATURES = (
    "The paper leaves open whether the features that recover beta are those of the purified or of the initial W, so "
    "that both are asked. "
)
_NO_ERROR = (
    'The paper measures "the average l2 norm" of the error and speaks of "the limit of eps for successful recovery", '
    "but names no error below which a recovery is successful: so a claim about limits is asked at several. "
)
_LAZY = "Lazy training leaves the initial weights close to the true ones, which makes them the other yardstick."
_ROOT = (
    "Error of W: mean over filters of the norm of W~_j - W_j; of beta: the norm of beta~ - beta over the square root "
    "of p. "
)

FILTERS_BY_SIZE = Rule(
    claim="When k increases, the limit of eps for successful recovery of W increases.",
    where="V-A; captions of Figures 2 and 3",
    measure=f"{_LIMIT} Asked of the error of W, mean over p, from the smallest k to the largest. Holds: it rises at "
    "every error that counts. With limits: at half of them or more, and it falls at none.",
    nothing=f"{_HALF} rises: holds; else it does not hold.",
    reason=_NO_ERROR + _ROOT + _LAZY,
)
BETA_BY_WIDTH = Rule(
    claim="When p increases, the limit of eps for successful recovery of beta increases.",
    where="V-A, V-B; captions of Figures 2, 3 and 5",
    measure=f"{_LIMIT} Asked of the error of beta, mean over k (Figure 5: over m), from the smallest p to the largest, "
    "with both choices of features. Holds: it rises at every error that counts, with both. With limits: it does with "
    "one choice; or at half of all errors that count or more, falling at none.",
    nothing=f"{_HALF} rises with both choices of features: holds; with one: with limits.",
    reason=_FEATURES + _NO_ERROR + _LAZY,
)
FILTERS_BY_PATCHES = Rule(
    claim="When m decreases, the limit of eps for successful recovery of W increases.",
    where="V-A; caption of Figure 4",
    measure=f"{_LIMIT} Asked of the error of W, from m = 30 down to 1. Holds: it rises at every error that counts. "
    "With limits: at half of them or more, and it falls at none.",
    nothing=f"{_HALF} rises: holds; else it does not hold.",
    reason=_NO_ERROR + "At m = 40 the patches span every direction: a control that cannot work and is not judged. "
    + _LAZY,
)  # fmt: skip
BETA_BY_PATCHES = Rule(
    claim="When m decreases, the limit of eps for successful recovery of beta increases.",
    where="V-A; caption of Figure 4",
    measure=f"{_LIMIT} Asked of the error of beta, from m = 30 down to 1, with both choices of features. Holds: it "
    "rises at every error that counts, with both. With limits: it does with one choice; or at half of all errors that "
    "count or more, falling at none.",
    nothing=f"{_HALF} rises with both choices of features: holds; with one: with limits.",
    reason=_FEATURES + _NO_ERROR + _LAZY,
)
SMALL_SHARES = Rule(
    claim="When eps is small, e.g., eps < 0.2, the recovery of both W and beta is more likely to be successful.",
    where="V-A",
    measure=f"Asked of every cell (k, p) and every eps of the grid above 0 and below {SMALL_EPS:g}: the mean errors of "
    f"both layers are smaller than at every larger eps, and at most {SMALL_ERROR:g}. Holds: in every cell. With "
    "limits: in half of the cells or more.",
    nothing=f"The mean errors are at most {RECOVERED:g} times those of the initial weights in the same trials. Holds: "
    "in every cell. With limits: in half of the cells or more.",
    reason='"More likely" compares with larger eps, "successful" asks for a small error. Both layers are those of '
    "Algorithm 2 run as it is written, beta on the features of the purified W.",
)
THEOREM_2 = Rule(
    claim="W~ = W, and beta~ has an error that falls with p (Theorem 2).",
    where="Theorem 2",
    measure=f"At eps = {AT:g}: {EXACT:.0%} of the filters are exact, and the error of beta falls clearly (by more than "
    "twice the standard error, within trials) from the smallest p to the largest. Holds: for every k. With limits: for "
    "some k.",
    nothing="In addition the error of beta as a share of that of the initial weights falls clearly, and is at most "
    f"{RECOVERED:g} at the largest p. Holds: for every k. With limits: for some k.",
    reason="The theorem promises an exact W and an error of beta of order (mn)^3 log(p) / p with high probability; one "
    "filter in a hundred may be beyond its limit. The error of the initial weights falls with p too, so that a fall "
    "alone says little.",
)
THEOREM_3 = Rule(
    claim="W~ = W and beta~ = beta with high probability (Theorem 3).",
    where="Theorem 3",
    measure=f"At eps = {AT:g}: {EXACT:.0%} of the filters are exact, and beta is exact in {OFTEN:.0%} of the trials at "
    "every p. Holds: for every k. With limits: for some k.",
    nothing=f"At eps = {AT:g} the errors of both layers are at most {RECOVERED:g} times those of the initial weights "
    f"in {OFTEN:.0%} of the trials at every p. Holds: for every k. With limits: for some k.",
    reason="The theorem promises that both layers are exact, so that exactness is the measure.",
)
FEW_IMAGES = Rule(
    claim="Good performance even with a small number of clean data points, potentially not from the training data.",
    where="V-B, V-C; captions of Figures 6 and 7",
    measure=f"At eps = {AT:g}, with 9, 21 and 36 images of both places: the mean error is at most {TENTH:g} times that "
    "of the contaminated weights in the same trials. Holds: for both layers at every n and place. With limits: for "
    "one layer.",
    nothing=f"The mean error is at most {RECOVERED:g} times that of the initial weights in the same trials. Holds: for "
    "both layers at every n and place. With limits: for one layer.",
    reason='The paper gives no number for "good": most of the contamination must be gone. ' + _LAZY,
)
LIMIT_BY_IMAGES = Rule(
    claim="When n decreases, the limit of eps for successful recovery of both W and beta increases.",
    where='captions of Figures 6 and 7; V-B, V-C: "the recovery performance improves when n decreases"',
    measure=f"{_LIMIT} Asked of both layers and both places, from n = 99 down to 9. Holds: it rises at every error "
    "that counts, for both layers and both places. With limits: it does for one layer in both places; or at half of "
    "all errors that count or more, falling at none.",
    nothing=f"{_HALF} rises for both layers and both places: holds; for one layer in both places: with limits.",
    reason=_NO_ERROR + _LAZY,
)
OUTSIDE_WEIGHTS = Rule(
    claim="With a small amount of data from other resources the purification will not be affected.",
    where="V-B; Figure 6",
    measure=f"At eps = {AT:g}, with 9, 21 and 36 images and for both layers: the mean error with images from outside "
    f"is at most {SIMILAR:g} times that with training images: holds; at most {LESS_SIMILAR:g} times: with limits.",
    nothing="The share of the initial weights' error that is taken off with images from outside is at least "
    f"{KEPT_GAIN:g} of that taken off with training images, which must be above 0, at these n and for both layers: "
    f"holds; at least {HALF_GAIN:g}: with limits.",
    reason='The paper says it of a small amount of data, on MNIST. "Not affected" asks for about the same error; a '
    "quarter more is within what n changes from one figure to the next.",
)
OUTSIDE_RATES = Rule(
    claim="With repair data from outside the training set the results are similar.",
    where="V-D, V-E; Figures 8 to 13",
    measure="Attack success and accuracy after purification differ between the two places by at most 5 points at every "
    f"n (or depth) and every ratio up to {UP_TO:g}: holds; by at most 10 points: with limits.",
    nothing="The gain of robust accuracy (see below) with images from outside is at least 0.8 of that with training "
    f"images, which must be above 0, at ratio {UP_TO:g} for every n (or depth): holds; at least 0.5: with limits.",
    reason='"Similar results" and "consistent with" are read as a few points of the rates that the figures show.',
)

GAIN = (
    "Doing nothing means to keep the poisoned network, in which the attack works, or to return the initial weights, "
    "which guess. Robust accuracy (the share of triggered images of other classes that are still classified rightly) "
    "sees both; that of doing nothing is the larger of the two means. The gain is what purification adds to it, as a "
    "share of what a network trained without poisoned images would add, by means over trials."
)
"""What "against doing nothing" means for attacks; a remark of the figures that use it."""
KEPT = (
    "Of the accuracy that the poisoned network has above the initial weights, at least 0.9 is kept {where}: holds; at "
    "least 0.75: with limits."
)

WITHOUT_POISON = Rule(
    claim="Without poisoned images the trained CNN has an accuracy of 95 %, and an attack success rate of 33 %, that "
    "of random guessing.",
    where="V-D; Figure 8",
    measure="Ratio 0: the accuracy is within 3 points of 95 %, and attack success within 5 points of 1/3: holds; "
    "within 6 and 10 points: with limits.",
    reason="The paper's two numbers, with the rounding that they leave.",
)
ATTACK_RISES = Rule(
    claim="Before purification the attack success rate continuously increases and reaches 100 % at a ratio of 30 %.",
    where="V-D; Figures 8 and 9",
    measure="It rises clearly (by more than twice the standard error, within trials) at every step of the ratio up to "
    f"{UP_TO:g}, and is at least 0.95 there: holds; at least 0.8 there, and clearly above that without poisoned "
    "images: with limits.",
    reason='"Reaches 100 %" leaves five points for trials in which one image in twenty resists.',
)
ATTACK_GONE = Rule(
    claim="After purification the attack success rate stays at the level of random guessing for ratios up to 30 %, "
    "even with 9 data points.",
    where="V-D; Figure 8",
    measure="With 9 training images it is at most 1/3 + 0.05 at every ratio up to "
    f"{UP_TO:g}: holds; at most 1/3 + 0.1: with limits.",
    nothing=f"The gain of robust accuracy with 9 training images at ratio {UP_TO:g} is at least 0.9: holds; at least "
    "0.5: with limits.",
    reason="Guessing among three classes sends one image in three to the target. " + GAIN,
)
ATTACK_WEAKENED = Rule(
    claim="Using just one third of the training data reduces the attack success rate by 20 %.",
    where="V-D; Figure 9",
    measure=f"With 33 training images at ratio {UP_TO:g} it falls by at least 18 points: holds; by at least 10: with "
    "limits.",
    nothing=f"The gain of robust accuracy with 33 training images at ratio {UP_TO:g} is at least 0.5: holds; at least "
    "0.2: with limits.",
    reason='"By 20 %" is read as 20 points of the figure, with its rounding; the paper says weakened, not removed, so '
    "that half of the gain is enough. " + GAIN,
)
DEEP_ATTACK = Rule(
    claim="A notable reduction of the attack success rate with several hidden layers, for ratios up to 30 %.",
    where="V-E; Figures 10 to 13",
    measure=f"At ratio {UP_TO:g} it falls by at least 20 points at every depth: holds; by at least 10: with limits.",
    nothing=f"The gain of robust accuracy at ratio {UP_TO:g} is at least 0.5 at every depth: holds; at least 0.2: with "
    "limits.",
    reason='The paper gives no number for "notable"; 20 points is the number of its section V-D. ' + GAIN,
)
DEEP_ACCURACY = Rule(
    claim="The decline in accuracy is relatively minor.",
    where="V-E; Figures 10 to 13",
    measure=f"Accuracy falls by at most 3 points at every depth and every ratio up to {UP_TO:g}: holds; by at most 6: "
    "with limits.",
    nothing=KEPT.format(where=f"at every depth and every ratio up to {UP_TO:g}"),
    reason='The paper gives no number for "minor"; the drops that it names in V-D are 5 and 2 points.',
)
DEPTH = Rule(
    claim="Average test accuracy tends to decrease marginally with more hidden layers.",
    where="V-E; Figures 10 to 13",
    measure="From one hidden layer to the most, accuracy falls clearly (by more than twice the standard error, within "
    f"trials) and by at most 5 points, before and after purification, at every ratio up to {UP_TO:g}: holds; at some "
    "ratio, before or after, and it rises clearly at none: with limits.",
    reason='"Tends to decrease" asks for a fall that can be told from noise, "marginally" for a small one.',
)


def accuracy_kept(points: float) -> Rule:
    """The claim about accuracy of Figures 8 and 9, which name different drops with a tenth of the training images."""
    return Rule(
        claim="Accuracy stays relatively stable with all 99 training images, and drops by about "
        f"{points:g} points with 10 % of them.",
        where=f"V-D; Figure {8 if points > 2 else 9}",
        measure=f"At every ratio up to {UP_TO:g} the mean accuracy changes by at most 2 points with 99 training images "
        f"and falls by at most {points + 2:g} with 9: holds; by at most 5 with 99 and {2 * points + 2:g} with 9: with "
        "limits.",
        nothing=KEPT.format(where=f"with 99 and with 9 training images, at every ratio up to {UP_TO:g}"),
        reason='"Stable" and "about" leave 2 points. ' + "Returning the initial weights would lose all of it.",
    )
