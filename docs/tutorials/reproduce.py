# %% [markdown]
# # Reproduce one figure of the paper, and change its setting
#
# **The question.** The paper's Figure 2 says that wider networks with larger inputs recover more altered weights. Is that
# so? And would it still be so if the network had been trained on twice as many samples?
#
# **The answer.** Every figure of the paper is an *experiment*: a grid of settings and a function that carries out one
# trial. Running it gives a table; plots and verdicts are functions of the table. To change a setting, give the
# experiment another grid. On the command line the first half of this tutorial is `netpurify reproduce 2 --quick`.
#
# ## Run the figure
#
# The mode `quick` has a small grid and two trials. Finished trials are recorded in the folder: if you interrupt the run and
# start it again, it goes on where it stopped.

# %%
from dataclasses import replace
from pathlib import Path

import torch
from matplotlib import pyplot as plt

from netpurify import experiments, findings, lad, report
from netpurify.experiments.figures import FIGURES

torch.set_num_threads(1)
figure = FIGURES[2]
print(figure.title)

path = experiments.run(figure.experiment, folder="results", mode="quick", engine="inline")
rows = findings.read_table(path)
print(f"{len(rows)} rows in {path}; a row has {', '.join(list(rows[0])[:12])}, ...")

# %% [markdown]
# ## What the paper says, and what was measured
#
# Each claim has a rule by which it is judged, the same in all figures that make the claim. With two trials a verdict is a
# first impression: the last statement, which is ours, asks for agreement to 0.02, and two trials cannot show that.
# [The reproduction](../reproduction.md) is the page of the full run, with the paper's own numbers of trials.

# %%
result = report.FigureResult(figure, rows, mode="quick")
for finding in result.findings:
    print(f"- {finding.claim}\n  {finding.by_measure}: {finding.measured}\n")
Path("figure02.svg").write_text(report.draw(result.panels, title=figure.title), encoding="utf-8")
Path("page.html").write_text(report.reproduction_page([result], about={"mode": "quick"}), encoding="utf-8")
print("written: figure02.svg, page.html")

# %% [markdown]
# ![Figure 2 of the paper, reproduced with the quick grid: errors of recovered weights over the share of altered weights, by layer, size of the input and width of the network.](figure02.svg)
#
# *Figure 2, reproduced with the quick grid. In each panel the error of a layer's weights is drawn over the share of altered
# weights. A network is recovered where its line lies at the bottom.*
#
# ## Change a setting
#
# What limits the recovery? The fit has as many free directions as the clean inputs span, the *rank*: samples times patches.
# A filter has k weights. If the rank is what matters, a network that is trained on twice as many samples must
# tolerate less, and `lad.recovery_probability(k, rank, share)` should say how much. So we change `n`, the number of
# samples. Everything else stays as it is, and it is the same trial that runs.

# %%
settings = figure.experiment.grid("quick")[0]
print("the first cell of the grid:", settings)


def more_samples(mode: findings.Mode) -> list[findings.TableRow]:
    """The cells of the figure that have the smallest width, with twice as many samples."""
    cells = figure.experiment.grid(mode)
    return [cell | {"n": 2 * int(cell["n"])} for cell in cells if cell["p"] == settings["p"]]


changed = replace(figure.experiment, name="twice-the-samples", title="Figure 2 with n = 10", grid=more_samples)
more = findings.read_table(experiments.run(changed, folder="results", mode="quick", engine="inline"))
print("its settings:", ", ".join(f"n = {n}, k = {k}" for n, k in sorted({(row["n"], row["k"]) for row in more})))

# %% Share of filters that are recovered exactly, over the share of altered weights, for filters of three sizes. Points are measured on two networks each; lines are what lad.recovery_probability says of a generic design of that rank. With twice the samples, fewer alterations are tolerated.
sizes = sorted({int(row["k"]) for row in rows})
errors = []
canvas, axes = plt.subplots(1, len(sizes), figsize=(9, 3), sharey=True, layout="constrained")
for axis, k in zip(axes, sizes, strict=True):
    for name, table, colour in (("the paper's samples", rows, "#1b6ca8"), ("twice as many", more, "#c4462f")):
        chosen = findings.select(table, k=k, p=settings["p"], method="l1", regime="joint")
        rank = int(chosen[0]["n"]) * int(chosen[0]["m"])
        measured = findings.summarise(chosen, ["eps"], "W_exact")
        shares = sorted(share for (share,) in measured)
        means = [measured[share,].mean for share in shares]
        odds = [lad.recovery_probability(k, rank, share) for share in shares]
        # Each point is the mean over so many filters, so that chance alone gives it this standard error.
        filters = int(settings["p"]) * len({row["trial"] for row in chosen})
        spread = [(max(chance * (1 - chance), 0.01) / filters) ** 0.5 for chance in odds]
        errors += [abs(mean - chance) / s for mean, chance, s in zip(means, odds, spread, strict=True)]
        axis.plot(shares, odds, color=colour, linewidth=1)
        axis.plot(shares, means, "o", color=colour, markersize=4, label=f"{name}: rank {rank}")
    axis.set_title(f"filters of {k} weights", fontsize=10)
    axis.set_xlabel("share of altered weights")
axes[0].set_ylabel("filters recovered exactly")
canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=9)
print(f"{len(errors)} points lie {max(errors):.1f} standard errors from the lines at most")

# %% [markdown]
# So twice the samples bear fewer alterations, and the rank says how many: the points lie on the lines as closely as so
# few filters can show. The lines hold because these inputs are Gaussian; pixels and features after a ReLU may tolerate less
# ([How much can be altered](../lad.md#how-much-can-be-altered)).
#
# ## What to do with your own model
#
# - **Another figure**: `netpurify reproduce --help` lists them; `netpurify reproduce 8 --quick --report page.html` runs one.
#   `--plan` says what a run would cost before anything is run.
# - **Another setting**: `replace(experiment, name=..., grid=...)` as above. A setting of the grid is whatever the trial reads;
#   the file of the figure in `netpurify/experiments/figures/` is short, and is read from top to bottom. The name must be
#   a new one, because tables and journals are found by it.
# - **Your own question**: an `Experiment` needs a grid and a trial; [A figure](../extend.md#a-figure) has a complete example.
# - **On more machines**: `engine="processes"` uses all cores, `engine="dask://host:8786"` a cluster. The table is the same.
# - **How much may be altered in your own network** is not a matter of these figures: `netpurify check` simulates it on
#   your own clean inputs.
