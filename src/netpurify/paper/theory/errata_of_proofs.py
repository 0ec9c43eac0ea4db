"""Errata of the bounds, the proofs and the experiments."""

from functools import partial

from netpurify.paper.theory import false_bounds as bounds
from netpurify.paper.theory.erratum import Erratum

BOUNDS = (
    Erratum(
        "false",
        "Lemma 5, G-bar",
        "1/2 on the diagonal, and the expression for one patch beside it, with P x_s = sum_a P_a x_s: near (2 sqrt(m) "
        "- 1)/2pi; G has near m^2/2pi there",
        "the same expressions for each pair of patches, summed over the m^2 pairs; the bound is then m^3 n^2/p + m "
        "log(mn)/k + m^4 n^2/k^2",
        "|G - G-bar|^2 at n = m = 5 for k, p = 200, 2000 and 800, 32000: {:.0f}, {:.0f} as printed; {:.2g}, {:.2g} "
        "corrected",
        bounds.output_distances,
    ),
    Erratum(
        "false",
        "Lemma 8, H-bar",
        "1/2 on the diagonal, a quarter of one cosine beside it",
        "summed over the m^2 pairs; the bound is then m^2 n^2/(pk) + m^2 n/p + m log(mn)/k + m^4 n^2/k^2",
        "|H - H-bar|^2 with the lemma's own H, same sizes: {:.1f}, {:.1f}; with the product of Jacobians {:.1f}, "
        "{:.1f}; that corrected {:.2g}, {:.2g}",
        bounds.hidden_distances,
    ),
    Erratum(
        "false",
        "(15)",
        "lambda_max(G) ≲ mn",
        "m^2 n / 2pi + m (1/2 - 1/2pi) to first order",
        "mean of G over W at n = 5, k = 20,000, where mn log(mn) / k <= 0.053, m = 1, 10, 40: lambda_max over mn is "
        "{:.2f}, {:.2f}, {:.2f}; over m^2 n / 2pi it is {:.2f}, {:.2f}, {:.2f}",
        partial(bounds.largest_eigenvalues, 0),
    ),
    Erratum(
        "false",
        "(16) and Lemma 8, upper",
        "lambda_max(H) ≲ 1",
        "m/4 (1 + (1 + sqrt(n/k))^2) + m^2 n / (2pi k): about m/2; the lower bound 1/6 holds, and m/6 too",
        "mean of H over W and beta, same sizes: {:.2f}, {:.2f}, {:.1f}; over m/2: {:.2f}, {:.2f}, {:.2f}",
        partial(bounds.largest_eigenvalues, 1),
    ),
    Erratum(
        "contradiction",
        "|G|",
        "(mn)^2 in Lemma 5, mn in its proof and in (15)",
        "m^2 n / 2pi: the lemma's (mn)^2 is true and loose, mn is false for large m",
        "n = 5, m = 40, k = 20,000: {:.0f} in the mean over W; mn = {:.0f}, (mn)^2 = {:.0f}, m^2 n / 2pi = {:.0f}",
        bounds.output_norms,
    ),
    Erratum(
        "false",
        "Theorem 1, condition",
        "mn gamma small",
        "m^2 n gamma small: gradient descent needs gamma lambda_max(G + H) < 2, and lambda_max(G) = m^2 n/2pi whatever "
        "k and p are",
        "n = 1 (so that gamma/n = gamma), m = 40, k = p = 1000: mn gamma = {:.3f}, but m^2 n gamma/2pi = {:.1f}, and "
        "(13) is violated {:.0f}-fold within 20 steps; the theorem's other conditions are not met here (p would have "
        "to be near 10^12), but G's size does not depend on them",
        bounds.unstable_decay,
    ),
    Erratum(
        "false",
        "proof of Theorem 1, |f(t+1) - f(t)|^2",
        "gamma^2 mn |y - f|^2",
        "gamma^2 lambda_max(G + H)^2 |y - f|^2, a square more; |K r|^2 <= lambda_max(K) r'K r with (18) saves the "
        "conclusion",
        "sup |(G + H) r|^2 / (mn |r|^2) at m = 1, k = 20,000, in the mean over W and beta: {:.2f} for n = 20, {:.1f} "
        "for n = 200",
        bounds.squared_changes,
    ),
    Erratum(
        "misprint",
        "proof of Theorem 1, twice after (18)",
        "R_W + sqrt(log mn / p)",
        "sqrt(mk) R_W + ..., as in (17)",
        "sqrt(mk) = {:.1f} at m = 5, k = 100",
        lambda: ((5 * 100) ** 0.5,),
    ),
    Erratum(
        "false",
        "proofs of (11), (12), of mean |b_j|, of Theorem 3 and of Lemma 6",
        "sum_sa |r_s| c_sa <= |r| sqrt(sum_sa c_sa^2)",
        "sqrt(m) more on the right",
        "r = (1, ..., 1), c_sa = |P_a x_s|, m = 40: {:.2f} times the printed bound; sqrt(m) = {:.2f}",
        bounds.lost_root,
    ),
    Erratum(
        "false",
        "proofs of Theorems 1 and 2, f(0)",
        "|f(0)| <= sqrt(mn) log(p)^(1/4) in Theorem 1; E f_s(0)^2 <= 1 and |f(0)|^2 ≲ mn in Theorem 2",
        "E f_s(0)^2 = m/2 + m(m-1)/2pi, |f(0)|^2 ≲ m^2 n",
        "Var f_s(0) given the inputs, k = 20,000, m = 1, 5, 20: {:.2f}, {:.2f}, {:.1f}; the formula gives {:.1f} for m "
        "= 20",
        bounds.initial_outputs,
    ),
)
LEMMAS_AND_EXPERIMENTS = (
    Erratum(
        "false",
        "proof of Lemma 6, moments of a feature",
        "one patch's variance |W|^2 (1 - 1/pi)/2 and mean |W|/sqrt(2pi), for the sum over m",
        "m times each",
        "m = 5, 100,000 draws: variance {:.2f}, printed {:.2f}; mean {:.2f}, printed {:.2f}",
        bounds.feature_moments,
    ),
    Erratum(
        "false",
        "proof of Lemma 6, (8)",
        "sum_l E(1/p sum_j sum_i relu)^2 <= sum of squares = mn",
        "at most m^2 n / 2 (a sum of m squared), and a squared ReLU has mean 1/2",
        "m = 20, n = 5: {:.0f}; the sum of squares is mn/2 = {:.0f}, printed mn = {:.0f}",
        bounds.mean_features,
    ),
    Erratum(
        "false",
        "proof of (15), G(k) - G(0)",
        "bounded by the change of the features alone",
        "the change of one feature times the other",
        "W(k) = 1.01 W(0), m = 20, mean over entries: {:.2f}; printed bound {:.2f}",
        bounds.kernel_motion,
    ),
    Erratum(
        "misprint",
        "proof of Lemma 3",
        "inf >= (2pi)^-1 - ...",
        "(2pi)^-1/2, half of sqrt(2/pi)",
        "{:.3f} in the place of {:.3f}",
        lambda: (0.5 / 3.141592653589793, (0.5 / 3.141592653589793) ** 0.5),
    ),
    Erratum(
        "misprint",
        "proof of Lemma 5, cov",
        "E relu(U) relu(V) = rho",
        "rho is E U V; E relu(U) relu(V) = (sqrt(1 - rho^2) + rho (pi - arccos rho)) / 2pi",
        "rho = 0, a million draws: {0:.3f}",
        bounds.orthant,
    ),
    Erratum(
        "misprint",
        "proof of Lemma 8, rho < 0",
        "Phi(sqrt(rho/(1 - rho)) Z), a root of a negative number",
        "sqrt(-rho/(1 + rho)); P(U > 0, V > 0) = 1/4 + arcsin(rho)/2pi",
        "rho = -0.2, a million draws: {1:.3f}; the formula gives 0.218",
        bounds.orthant,
    ),
    Erratum(
        "misprint",
        "Lemma 4",
        "sqrt(mn/k) log(ek/mn)",
        "sqrt(mn/k log(ek/mn)), which is what Lemmas 2 and 3 give; the printed condition is stricter",
        "mn/k = 1/4: {:.2f} as printed, {:.2f} as Lemmas 2 and 3 give; the printed lemma is true",
        lambda: (0.5 * 2.386294361, (0.25 * 2.386294361) ** 0.5),
    ),
    Erratum(
        "contradiction",
        "Figure 5",
        "n = 21 in the caption, n = 99 in the text",
        "n = 21, with n = 99 as a control",
        "with n = 99 the design has {:.0f} columns for k = {:.0f} rows at m = 4 (and {:.0f} for {:.0f} at m = 7); n = "
        "21 gives {:.0f}",
        lambda: (99 * 4, 784 / 4, 99 * 7, 784 / 7, 21 * 4),
    ),
    Erratum(
        "contradiction",
        "V-E, Figures 10 to 13",
        '"the same sizes" of repair data, 36 on MNIST and 69 on CIFAR-10',
        "36 (text, Figure 11) and 69 (text, Figures 12, 13)",
        "{:.0f} would be the unpoisoned ones of 99 at a ratio of 30 %, which the paper does not say",
        lambda: (99 - round(0.3 * 99),),
    ),
)
