"""Why a setting is as it is, where the paper leaves it open or contradicts itself."""

_OPEN = {
    "step size": "The paper gives no number. Taken large enough to end training in reasonable time, and small enough "
    "not to diverge.",
    "stop": "The paper has t_max without a number.",
    "eps": "The paper's curves are over eps; the values are chosen here.",
    "features": "The paper's A_beta has a W without saying which; both are judged.",
    "error": "The paper does not say over what it averages.",
    "p": "The list is chosen here.",
    "test": "The paper does not say which images it tests on.",
    "target": "As the paper.",
}
_TARGETS = "The theory asks for |y| <= 1."
_NOT_RECORDED = (
    "The paper has t_max without a number. Whether training reached the tolerance is not recorded in the table."
)
_CENTRED = "Centring is ours: the paper does not say whether it centres."
_CLEAN_COPIES = (
    'The paper asks for "benign data": of a poisoned training image the defender has the copy without the trigger.'
)
_ATTACK = {
    "trigger": 'In the words of the format of MNIST 255 is "foreground (black)": ink.',
    "p": "The paper does not say.",
    "m": "The paper does not say; with its Figure 5 two patches are the fewest.",
    "k": "The pixels over m.",
    "origins": _CLEAN_COPIES,
    "poison": "The text does not exempt the target class.",
    "attack success": "Over all test images, so that guessing gives 1/3, the number that the paper names.",
    "architecture": "The paper does not say what further hidden layers are.",
    "variants": "Each changes what its name says, at a ratio of 0.3, to show how much hangs on a choice.",
}
_OF_FIGURE: dict[int, dict[str, str]] = {
    2: {"targets": _TARGETS, "stop": _NOT_RECORDED},
    3: {"targets": _TARGETS, "stop": f"{_NOT_RECORDED} Both phases have this cap."},
    4: {
        "targets": _TARGETS,
        "stop": _NOT_RECORDED,
        "m": "The list is chosen here; m = 40 is a control that cannot work and is not judged.",
        "p": "",
        "step size": "gamma = min(1, 5 / m^2): the largest eigenvalue that training meets grows with m^2, and a fixed "
        "gamma would diverge.",
    },
    5: {
        "targets": _TARGETS,
        "training": "The caption says 21, the text 99. The plots are of 21; what 99 changes is under What we add.",
        "pixels": "The paper does not say.",
        "origins": "The theory recovers with the inputs of training.",
    },
    6: {
        "targets": _TARGETS,
        "counts": "The list is chosen here.",
        "m": "The paper does not say; two patches are the fewest of its Figure 5.",
        "k": "784 / m",
        "p": "The paper does not say.",
        "pixels": "The paper does not say.",
    },
    7: {
        "targets": _TARGETS,
        "counts": "The list is chosen here.",
        "m": "The paper does not say; as on MNIST.",
        "k": "1024 / m",
        "p": "The paper does not say.",
        "pixels": "Grey as in the paper's Figure 9. Centring is ours: the paper does not say.",
        "classes": "The paper names these three for Figure 9.",
    },
    8: {"pixels": "The paper does not say.", "counts": "9, 99 and the numbers of Figures 10 and 12 (36, 69)."},
    9: {
        "pixels": _CENTRED,
        "trigger": "As the paper says; the value is that of black after centring.",
        "target": "The set-up of MNIST; the paper does not name the class.",
        "counts": "9, 33 (one third), 99, and the numbers of Figures 10 and 12 (36, 69).",
    },
    10: {"pixels": "The paper does not say.", "layers": "A third layer is more than the paper shows on MNIST."},
    12: {
        "pixels": _CENTRED,
        "trigger": "As the paper says; the value is that of black after centring.",
        "target": "The set-up of MNIST; the paper does not name the class.",
        "counts": 'The text says "the same sizes ... as in the MNIST tests" and 69; MNIST has 36. The caption says 69.',
    },
}
_OF_FIGURE |= {11: _OF_FIGURE[10], 13: _OF_FIGURE[12]}
_FIRST_ATTACK = 8


def reason_for(number: int, name: str) -> str:
    """Why a setting of a figure is as it is; empty where it is simply the paper's."""
    attack = _ATTACK if number >= _FIRST_ATTACK else {}
    return (_OPEN | attack | _OF_FIGURE.get(number, {})).get(name, "")
