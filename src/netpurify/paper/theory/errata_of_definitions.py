"""Errata of the definitions, the algorithms and the formulas that the proofs start from."""

from netpurify.paper.theory import misprints as prints
from netpurify.paper.theory.erratum import SIZES, Erratum

DEFINITIONS = (
    Erratum(
        "contradiction",
        "(1); loss and f in III",
        '(1) without 1/sqrt(p); the loss and f with it, "for simplifying our proofs"',
        "a choice of normalisation; here with it, as in all of the theory",
        f"expected root mean square of f(0) at {SIZES}: {{:.2f}} with it, {{:.0f}} without",
        prints.output_sizes,
    ),
    Erratum(
        "misprint",
        "Algorithm 1",
        "for t = 0 to t_max",
        "for t = 1 to t_max, as III-C and III-D have it: beta(-1) does not exist",
        "t_max = 10 would make {:.0f} steps",
        prints.updates,
    ),
    Erratum(
        "contradiction",
        "(4) to (7), Algorithm 2, Lemma 1, proofs of Lemmas 4 and 7",
        "inputs are columns of A in (6), (7) and the Appendix's A u; rows in A'u, \"row space\" and Lemma 1's |A|, the "
        "number of columns",
        "a choice of orientation, each right by itself; here columns: A u, and |A| is the number of rows (the fan-in)",
        "A_W of (6) is {:.0f} x {:.0f}: A_W'u has {:.0f} entries, Theta_j has {:.0f}",
        prints.transposed_sizes,
    ),
    Erratum(
        "misprint",
        "(10)",
        "1/k sum over i <= k, for both designs",
        "1/p sum over i <= p for A_beta, as the Appendix has it",
        f"{SIZES}: k = {{:.0f}} of p = {{:.0f}} rows would be looked at: {{:.2f}} in the place of {{:.2f}}",
        prints.rows_of_output_design,
    ),
    Erratum(
        "misprint",
        "III-C, dL/dW_j",
        "beta_i in front of the sum over i",
        "beta_j",
        "i is an index of patches; read inside their sum, the gradient's error is {:.1f} times its size for the median "
        "of 400 filters; with beta_j it agrees with finite differences to 1e-6 (n = 3, m = 4, k = 10, p = 20)",
        prints.hidden_gradient_errors,
    ),
    Erratum(
        "misprint",
        "III-C, dL/dW_j",
        "sum_s sum_i alpha_i P_i x_s",
        "alpha_(s,i), which depends on the input too",
        f"{SIZES}: the m vectors sum_s P_i x_s leave {{:.0%}} of the gradient unexplained, the mn patches nothing",
        prints.gradient_outside,
    ),
    Erratum(
        "misprint",
        "III-D, beta_j(t_max) - beta_j(0)",
        "sum over t of -gamma dL/dW_j",
        "-gamma dL/dbeta_j",
        "dL/dW_j has {:.0f} entries, beta_j has {:.0f}",
        prints.gradient_sizes,
    ),
    Erratum(
        "contradiction",
        "loss (III-A); III-D and the proofs of Theorems 1 and 2",
        "1/(2n) in the loss, and gamma without 1/n in the gradients",
        "a choice of normalisation: no 1/n in the loss, or gamma/n for gamma in III-D and the proofs, so in (13) and "
        "(14) too; here the second",
        "beta(10) - beta(0) is {:.3f} of the sum printed in the proof of Theorem 2, at n = {:.0f}",
        prints.step_share,
    ),
    Erratum(
        "misprint",
        "(14)",
        "v(0), which is at W(-1)",
        "v(0) = f(0), as the proof of (12) takes it; v(t) is at beta(t), W(t-1) for t >= 1",
        "",
    ),
    Erratum(
        "false",
        "H(t) in the proof of Theorem 1; Lemma 8, H; proof of (16)",
        "(P x_s)'(P x_l) / k in front of the sums over patches, P x = sum_a P_a x; in Lemma 8 also one indicator of "
        "W'P x for each input",
        "(P_a x_s)'(P_b x_l) / k inside the sums, as the derivative of f has it; the same for m = 1",
        "lambda_max at n = m = 5, k = 200, p = 2000: {0:.0f} for H(t) as printed, {1:.2f} for the product of "
        "Jacobians; Lemma 8's H is off by {2:.0%} of the norm at k = 200 and by {3:.1%} at k = 3200: they agree for "
        "large k",
        prints.printed_hidden_kernels,
    ),
    Erratum(
        "misprint",
        "proof of Theorem 1, r(t)",
        "P x_s in its second sum",
        "P_a x_s",
        f"|r(0)| at {SIZES}, gamma = 0.1: {{:.2f}} as printed; right it is below 0.001",
        prints.remainders,
    ),
    Erratum(
        "false",
        "proof of Theorem 1, f(t+1) - f(t)",
        "gamma (H + G)(y - f) + r",
        "gamma (G (y - f) + H (y - v)) + r: W moves after beta; a difference of second order in gamma",
        f"first step at {SIZES}, gamma/n = 0.02, without r: {{:.1%}} of it missing as printed, {{:.2%}} right",
        prints.recursion_errors,
    ),
    Erratum(
        "misprint",
        "proof of Theorem 2, last line",
        "|beta~ - beta| / p",
        "|beta~ - beta|^2 / p, as in the theorem; the proof's own steps give (mn)^5 log(p)^2 / p^2 for it",
        f"{SIZES}, eps = 0.2: the square gives {{0:.1e}} where the printed one gives {{1:.1e}}",
        prints.output_errors,
    ),
)
