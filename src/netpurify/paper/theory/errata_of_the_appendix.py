"""Errata that a second reading of the Appendix and of Theorem 3's proof found, and the small misprints."""

from netpurify.paper.theory import false_bounds as bounds
from netpurify.paper.theory.erratum import Erratum

APPENDIX = (
    Erratum(
        "contradiction",
        "Lemmas 1 and 6, (8) and (10) for A_beta; proofs of Lemma 6 and Theorem 3",
        "\"some constants sigma^2\" and lambda_high in the lemmas; sigma^2 = mp follows from the proof of Lemma 6; "
        "sigma^2 ~ p and lambda_high^2 ~ mn in the proof of Theorem 3",
        "sigma^2 = m^2 p/2pi for c = (1, ..., 1), lambda_high^2 = m^2 n/2pi to first order: with lambda_low ~ sqrt(m) "
        "the condition eps sqrt(mn) stays",
        "n = m = 5, k = 100, p = 300, 1200, 4800: sigma^2 = {:.0f}, {:.0f}, {:.0f} for c = (1, ..., 1), and m^2 p/2pi "
        "= {:.0f} at the last; for lambda_high see (15)",
        bounds.constants_of_features,
    ),
    Erratum(
        "false",
        "proof of Lemma 5, G~",
        "E relu(W'P x_s) relu(W'P x_l), the ReLU of the sum of patches, as the mean of the lemma's G; and G~_ss near "
        "1/2",
        "the mean of G has the sum of ReLUs; G~_ss is near m/2",
        "m = 5, k = 800: G~ has {:.2f} on the diagonal and {:.2f} beside it (m/2, m/2pi), the mean of G {:.2f} and "
        "{:.2f}",
        bounds.relu_of_the_sum,
    ),
    Erratum(
        "false",
        "proof of (16) and (17), the bound (A.32)",
        "|sum_a change of relu'(W_j'P_a x_s)| <= one indicator of P x_s = sum_a P_a x_s",
        "the sum over a of the indicators of P_a x_s",
        "m = 20, k = 200, W moved by 2 %: the left side is {:.3f} in the mean over j and s, the right side {:.3f}; "
        "violated for {:.0%} of them",
        bounds.changed_indicators,
    ),
    Erratum(
        "false",
        "proof of Theorem 3, (8)",
        "E (sum_a relu)^2 <= E sum_a relu^2 ≲ 1 + R_W k ≲ 1",
        "m times the sum of squares, which is near m/2; and R_W^2 k in the place of R_W k, which the conditions do not "
        "make small",
        "m = 20: {:.1f} on the left, {:.0f} for the sum of squares; n = m = 5, k = 10^4, p = 10^12: R_W k = {:.1f}, "
        "R_W^2 k = {:.4f}",
        bounds.features_of_theorem_3,
    ),
    Erratum("misprint", "proof of Theorem 1, end of the part on (13)", "the claim for (14) is true",
            "for (13); (14) is the next one", ""),
    Erratum("misprint", "Lemma 7", "If eps sqrt(mn), mn/sqrt(p) and n log(mn)/k, then",
            "\"are sufficiently small\" after them", ""),
    Erratum("misprint", "proof of Lemma 6, F", "1/n sum_l eps_l |sum_i relu(W'P_i x_l) D_l|",
            "1/p sum_j eps_j |sum_l sum_i relu(W_j'P_i x_l) D_l|, as the next formulas use it", ""),
    Erratum("misprint", "proof of Lemma 5, last term", "E relu(.)^2 relu(.)^2", "E relu(.) relu(.)", ""),
    Erratum("misprint", "proof of Lemma 8, bound of the sum over s != l",
            "|P x_s| |P x_l| / k - 1 with bars, which make it 0; a sum of fourth powers without a bound",
            "without bars; ≲ n^2/k^2", ""),
    Erratum("misprint", "proof of (17)", "a product of two indicators; lambda as step size",
            "their difference; gamma", ""),
)  # fmt: skip
