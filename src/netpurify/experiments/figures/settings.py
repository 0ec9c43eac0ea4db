"""The table of settings of a figure: what the paper says beside what the grid of the full run holds."""

from collections.abc import Sequence

from netpurify.findings import Experiment, Scalar, SettingRow


def settings_of(
    number: int,
    experiment: Experiment,
    *,
    shares: Sequence[float] = (),
    counts: Sequence[int] = (),
    pixels: Sequence[int] = (),
) -> list[SettingRow]:
    """The settings of a figure of the paper, read from the grid of the full run and from its module's constants.

    Args:
        number: Number of the figure.
        experiment: Its experiment.
        shares: The shares of altered weights that a trial goes through.
        counts: The numbers of clean images with which a trial purifies.
        pixels: The pixels of the trigger.
    """
    cells = experiment.grid("full")
    names = dict.fromkeys(name for cell in cells for name in cell)
    rows = [SettingRow("figure", str(number), str(number))]
    rows += [SettingRow(name, "", _values([cell.get(name) for cell in cells])) for name in names]
    for name, constant in (("eps", shares), ("clean images", counts), ("pixels of the trigger", pixels)):
        if constant:
            rows.append(SettingRow(name, "", _values(constant)))
    return [*rows, SettingRow("trials", "", str(experiment.trials["full"]))]


def _values(values: Sequence[Scalar]) -> str:
    return ", ".join(dict.fromkeys(f"{value:g}" if isinstance(value, float) else str(value) for value in values))
