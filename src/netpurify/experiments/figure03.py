"""Figure 3: the same in the sequential regime (Theorem 3), where beta is recovered exactly too."""

from typing import Any

from netpurify.experiments import figure02
from netpurify.experiments.experiment import Row
from netpurify.experiments.figure import Figure, Finding, Panel, Verdict
from netpurify.experiments.views import error_panel, level, limit, line, listed, number, rising, show, values

EXPERIMENT = figure02.EXPERIMENT
FIXED: dict[str, Any] = {"method": "l1", "regime": "sequential"}


def panels(rows: list[Row]) -> list[Panel]:
    """Errors of beta by k; W is that of Figure 2, number by number."""
    return [_panel(rows, k) for k in values(rows, "k")]


def _panel(rows: list[Row], k: int) -> Panel:
    widest = values(rows, "p")[-1]
    lines = [line(rows, f"p = {p}", x="eps", y="beta_error", k=k, p=p, **FIXED) for p in values(rows, "p")]
    joint: dict[str, Any] = {"regime": "joint", "method": "l1"}
    lines.append(
        line(rows, f"joint training, p = {widest}", x="eps", y="beta_error", baseline=True, k=k, p=widest, **joint)
    )
    for name in ("l1, initial features", "initial weights", "l2"):
        fixed: dict[str, Any] = {"regime": "sequential", "method": name, "k": k, "p": widest}
        lines.append(line(rows, f"{name}, p = {widest}", x="eps", y="beta_error", baseline=True, **fixed))
    return error_panel(f"beta, k = {k}", "error of beta", lines)


def findings(rows: list[Row]) -> list[Finding]:
    """Theorem 3, and the caption."""
    widths, sizes = values(rows, "p"), values(rows, "k")
    k = sizes[-1]
    exact = [(p, level(rows, "beta_error", eps=0.1, k=k, p=p, **FIXED)) for p in widths]
    by_p = [limit(rows, "beta_error", most=figure02.RECOVERED, p=p, k=k, **FIXED) for p in widths]
    by_k = [limit(rows, "W_exact", least=0.95, k=size, **FIXED) for size in sizes]
    other = level(rows, "beta_error", eps=0.1, k=k, p=widths[-1], regime="sequential", method="l1, initial features")
    return [
        Finding(
            "W~ = W and beta~ = beta with high probability (Theorem 3).",
            f"error of beta at eps = .1, k = {k}: " + listed((f"p = {p}", show(found)) for p, found in exact),
            Verdict.HOLDS if all(found.mean < 1e-9 for _, found in exact) else Verdict.LIMITS,
            "As long as every filter comes back. One that does not makes its own entry of beta wrong, which is what "
            f"lifts the mean; with features of the initial W there is a floor of {show(other)} instead.",
        ),
        Finding(
            "When p increases, the limit of eps for beta increases; when k increases, that for W increases.",
            f"beta up to {figure02.RECOVERED}, k = {k}: "
            + listed((f"p = {p}", number(found)) for p, found in zip(widths, by_p, strict=True))
            + "; W 95 % exact: "
            + listed((f"k = {size}", number(found)) for size, found in zip(sizes, by_k, strict=True)),
            Verdict.HOLDS if rising(by_p) and rising(by_k) else Verdict.LIMITS,
            "For beta the fan-in is p and the rank n = 5, so that the limit of L1 itself is far away already at "
            "p = 500; what is left is set by the filters that do not come back.",
        ),
    ]


FIGURE = Figure(
    number=3,
    title="Larger p and k recover more (W first, then beta: Theorem 3)",
    setting="As Figure 2; then W is frozen and beta trained from 0. W is the same as in Figure 2, bit for bit, and so "
    "are its errors.",
    experiment=EXPERIMENT,
    panels=panels,
    findings=findings,
)
