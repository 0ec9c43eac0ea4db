"""Neural networks as regressions: what can be repaired in a network, and its repair.

    plan = check(model, inputs, initial=initial)              layer by layer: rank, tolerance, cost
    result = purify(model, inputs, initial=initial)           a copy, what was altered, a proof
    result.model, result.altered, result.verify()

``Layer`` writes a layer as a matrix and its inputs as rows, ``Span`` gathers what the rows span.
"""

from netpurify.network.agreement import Agreement
from netpurify.network.layers import Layer
from netpurify.network.plan import check
from netpurify.network.proofs import ProofFile, load_proof, save_proof
from netpurify.network.purification import Purification, purify
from netpurify.network.recheck import LayerCheck, Recheck, recheck
from netpurify.network.records import Altered, Grade, LayerPlan, LayerRecord, Plan, Proof
from netpurify.network.reference import Seeded, Skipped
from netpurify.network.span import Span

__all__ = [
    "Agreement",
    "Altered",
    "Grade",
    "Layer",
    "LayerCheck",
    "LayerPlan",
    "LayerRecord",
    "Plan",
    "Proof",
    "ProofFile",
    "Purification",
    "Recheck",
    "Seeded",
    "Skipped",
    "Span",
    "check",
    "load_proof",
    "purify",
    "recheck",
    "save_proof",
]
