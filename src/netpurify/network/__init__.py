"""Neural networks as regressions: what can be repaired in a network, and its repair.

    plan = check(model, inputs, initial=initial)              layer by layer: rank, tolerance, cost
    result = purify(model, inputs, initial=initial)           a copy, what was altered, a proof
    result.model, result.altered, result.verify()
    defence = purify(model, inputs, policy="defend")          deep networks, poisoned in training; nothing is proven

``Layer`` writes a layer as a matrix and its inputs as rows, ``Span`` gathers what the rows span.
"""

from netpurify.network.agreement import Agreement
from netpurify.network.defence import Defence, Guard, LayerFit, Step, defend, load_defended
from netpurify.network.layers import Layer
from netpurify.network.plan import check
from netpurify.network.proofs import ProofFile, load_proof, save_proof
from netpurify.network.purification import Purification
from netpurify.network.purify import purify
from netpurify.network.recheck import LayerCheck, Recheck, recheck
from netpurify.network.records import Altered, Grade, LayerPlan, LayerRecord, Plan, Proof
from netpurify.network.reference import Seeded, Skipped
from netpurify.network.span import Span

__all__ = [
    "Agreement",
    "Altered",
    "Defence",
    "Grade",
    "Guard",
    "Layer",
    "LayerCheck",
    "LayerFit",
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
    "Step",
    "check",
    "defend",
    "load_defended",
    "load_proof",
    "purify",
    "recheck",
    "save_proof",
]
