# %% [markdown]
# # Ten thousand L1 regressions on one design
#
# **The question.** I have one design matrix and thousands of responses: one regression for each gene, pixel, stock or
# sensor. I want the median regression of every one of them (least absolute deviations), or another quantile, with
# weights, exactly, and I want to be sure of the answers.
#
# **The answer.** `netpurify.lad` factors the design once and solves all responses on it. Every answer comes with a dual
# vector, from which anybody can check by a few matrix products that no fit is better. It does not load torch.
#
# ## Ten thousand responses
#
# Three hundred patients, six covariates, ten thousand genes. The noise is Student's t with two degrees of freedom, which
# has no variance: least squares suffers, medians do not.

# %%
import time

import numpy as np
from matplotlib import pyplot as plt
from sklearn.linear_model import QuantileRegressor

from netpurify import lad

rng = np.random.default_rng(0)
patients, genes = 300, 10_000
age, dose = rng.uniform(20, 80, patients), rng.uniform(0, 1, patients)
others = rng.standard_normal((patients, 3))
A = np.column_stack([np.ones(patients), (age - 50) / 10, dose, others])
truth = rng.standard_normal((A.shape[1], genes))
noise = rng.standard_t(2, (patients, genes))
B = A @ truth + (0.5 + dose[:, None]) * noise  # the noise grows with the dose

lad.solve(A, B[:, :5], noise_floor=0)  # the first call compiles
begun = time.perf_counter()
median = lad.solve(A, B, noise_floor=0, threads=1)
each = (time.perf_counter() - begun) / genes
print(median)

begun = time.perf_counter()
for gene in range(5):  # the same problem, one response at a time
    peer = QuantileRegressor(quantile=0.5, alpha=0, fit_intercept=False).fit(A, B[:, gene])
    assert np.abs(B[:, gene] - A @ peer.coef_).sum() >= median.objective[gene] - 1e-6
peers = (time.perf_counter() - begun) / 5
print("a regression takes less than a tenth of the time of scikit-learn's QuantileRegressor:", each < peers / 10)

# %% [markdown]
# `OPTIMAL` is the word for a proven minimum. The noise hits every row here, so that no fit is exact. Where some rows are
# exact and others are wild, netpurify can also say whether the fit is the truth (`RECOVERED`,
# [What a status says](../lad.md#what-a-status-says)). For that it looks for rounding errors in the data. Your data
# have noise in every row, so `noise_floor=0` says: there are none, every digit is meant.
#
# Is a median regression better than least squares here? We know the truth, so we can ask:

# %%
squares = np.linalg.lstsq(A, B, rcond=None)[0]
errors = {name: np.abs(fit - truth)[2] for name, fit in (("median", median.coefficients), ("least squares", squares))}
for name, error in errors.items():
    print(f"effect of the dose, {name}: error {np.median(error):.2f} in the middle, {error.max():.1f} at worst")

# %% [markdown]
# ## Do not believe it: check it
#
# For any y with A'y = 0 and entries in [-1, 1], no fit has a smaller sum of absolute residuals than y'b. So a dual y is
# a bound, whoever found it. Here it is by hand, for all ten thousand responses at once, and by `lad.verify`, which uses
# no code of the solver.

# %%
y = np.asarray(median.dual)
objective = np.abs(B - A @ median.coefficients).sum(axis=0)
print(f"largest entry of A'y: {np.abs(A.T @ y).max():.0e}; largest |y|: {np.abs(y).max():.6f}")
print(f"largest gap between objective and bound, relative: {((objective - (y * B).sum(axis=0)) / objective).max():.0e}")

certificate = lad.verify(A, B, median.claim)
print(f"proven minima: {certificate.certified.sum()} of {genes}")

# %% [markdown]
# ## Other quantiles, and weights
#
# The loss of the quantile tau tilts the absolute value; the certificate stays the same. Quantiles tell what a mean
# cannot: here the spread grows with the dose, so that the effect of the dose is larger on high quantiles.

# %% Effect of the dose on the quantiles of the response, over all genes: the line is the median over genes, the band covers half of them. The effect grows with the quantile because the noise grows with the dose. The cross is what the model implies.
taus = (0.1, 0.25, 0.5, 0.75, 0.9)
some = slice(0, 1000)
fits = {tau: lad.solve(A, B[:, some], quantile=tau, noise_floor=0, threads=1) for tau in taus}
effects = {tau: fit.coefficients[2] - truth[2, some] for tau, fit in fits.items()}
implied = {tau: float(np.quantile(noise, tau)) for tau in taus}
for tau in taus:
    print(f"quantile {tau}: extra effect {np.median(effects[tau]):+.2f}, implied by the model {implied[tau]:+.2f}")
proven = sum(fit.certified.sum() for fit in fits.values())
print(f"proven: {proven} of {5 * 1000}")

low, middle, high = np.array([np.quantile(effects[tau], (0.25, 0.5, 0.75)) for tau in taus]).T
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
axis.fill_between(taus, low, high, alpha=0.25, color="#1b6ca8")
axis.plot(taus, middle, color="#1b6ca8", label="fitted")
axis.plot(taus, list(implied.values()), "x", color="#c4462f", label="implied by the model")
axis.set_xlabel("quantile")
axis.set_ylabel("effect of the dose\nbeyond that on the median")
_ = axis.legend()

# %% [markdown]
# We know how the noise grows, so we can weight the patients by the inverse of its size. Weights make the errors smaller:

# %%
weights = 1.0 / (0.5 + dose)
weighted = lad.solve(A, B, weights=weights, noise_floor=0, threads=1)
for name, fit in (("without weights", median), ("with weights", weighted)):
    print(f"{name}: mean absolute error {np.abs(fit.coefficients - truth).mean():.4f}")
print("proven:", lad.verify(A, B, weighted.claim, weights=weights).certified.all())

# %% [markdown]
# ## In the manner of scikit-learn
#
# `LADRegressor` is an estimator with several responses, names of features from data frames, and sample weights. It
# needs `pip install 'netpurify[sklearn]'`. It adds the constant itself.

# %%
X, Y = A[:, 1:], B[:, some]
model = lad.LADRegressor(quantile=0.9, threads=1).fit(X, Y)
below = (model.predict(X) >= Y).mean(axis=0)
print(f"coefficients {model.coef_.shape}, constants {model.intercept_.shape}")
print(f"share of patients at or below the fitted quantile of 0.9: {below.min():.3f} to {below.max():.3f}")
print("the same coefficients as lad.solve:", np.allclose(model.coef_.T, fits[0.9].coefficients[1:], atol=1e-6))

# %% [markdown]
# ## What to do with your own model
#
# ```
# solution = lad.solve(A, B, noise_floor=0)       # A [k, q], B [k, p]; numpy, torch or pandas
# solution.coefficients, solution.outcomes        # [q, p], and a word for each response
# ```
#
# - **The design again and again**: `design = lad.Design.prepare(A)` once, then `lad.solve(design, B)`.
# - **More responses than memory**: `lad.stream(design, blocks)` solves them block by block.
# - **Missing responses**: NaN in B. Their rows are left out, for that response only.
# - **Where the answer is not unique** (`lad.verify(...).unique` is False), another fit is as good. Quantile regressions
#   on whole numbers often are not unique.
# - **Standard errors** are not computed. Bootstrap weights are `weights=`, one call for each draw.
# - **How fast it is beside quantreg, HiGHS and statsmodels**: [What was measured](../lad.md#what-was-measured).
