"""All figures of the paper that show a measurement, by number; each file is read from top to bottom.

A file holds the claim, the grid, one trial, the plot and the findings of its figure. The modules beside the figures
hold the parts that several figures share: trials (``altered_weights``, ``backdoors``, ``three_classes``), plots
(``panels``), rules (``rules``) and how they are applied (``ladder``, ``weight_claims``, ``image_claims``, ``trends``,
``verdicts``), and the settings beside the paper's words (``settings``, ``paper_settings``, ``setting_reasons``).
"""

from netpurify.experiments.figures import (
    figure02,
    figure03,
    figure04,
    figure05,
    figure06,
    figure07,
    figure08,
    figure09,
    figure10,
    figure11,
    figure12,
    figure13,
)
from netpurify.findings import Figure

_MODULES = (
    figure02, figure03, figure04, figure05, figure06, figure07,
    figure08, figure09, figure10, figure11, figure12, figure13,
)  # fmt: skip
FIGURES: dict[int, Figure] = {module.FIGURE.number: module.FIGURE for module in _MODULES}

__all__ = ["FIGURES"]
