"""Neural networks as regressions: what can be repaired in a network, and its repair.

    plan = check(model, inputs, initial=initial)                      layer by layer: rank, tolerance, cost
    result = purify(model, inputs, policy=Recover(initial))           a copy, what was altered, a proof
    result.model, result.altered, result.verify()
    defence = purify(model, inputs, policy=Defend())                  deep networks, poisoned in training; no proof
    found = hunt(model, images)                                       is there a backdoor? nothing is changed
    repaired = purify(model, images, policy=Unlearn())                hunt, then train it away; no proof

A network may come from a Hugging Face folder: ``model = load_pretrained("folder")``, with netpurify[hf].

The steps of the method can be used one by one, as ``layer_by_layer`` does:

    network = prepare(model, inputs, initial=initial)
    layer = network.in_order()[0]
    weights = network.weights(layer)                                  contaminated and initial weights
    spans = capture(network, layer)                                   what the layer's clean inputs span
    designs = [build_design(span) for span in spans]
    regressions = pose(layer, weights, spans, designs)                one column for each unit
    fits = fit_units(regressions)                                     solved and verified
    outcome = Recover(initial).decide(regressions, fits)              what becomes of the layer
    network.write(layer, outcome.matrix)

Inside: ``adapter`` writes layers as matrices and their inputs as rows, ``policies`` decide, ``proof`` checks again.
"""

from netpurify.network.adapter.layers import Layer, layers_of, register_layer
from netpurify.network.adapter.names import names_in
from netpurify.network.adapter.reference import Seeded, Skipped, resolve
from netpurify.network.adapter.span import Span, SpanError
from netpurify.network.adapter.weights import Weights
from netpurify.network.agreement import Agreement, Disagreement
from netpurify.network.comparison.comparing import compare_tensors
from netpurify.network.comparison.records import Coverage, Entries, TensorComparison, TensorVerdict
from netpurify.network.comparison.scanning import Scan, scan
from netpurify.network.filling import fill
from netpurify.network.fitting import FitOptions, Regressions, UnitFits, build_design, fit_units, pose
from netpurify.network.hunting import (
    FAMILIES,
    Expectation,
    FamilyHunt,
    FoundTrigger,
    HealthyLevel,
    Hunt,
    TriggerFamily,
    calibrate,
    expectation_for,
    healthy_level,
    hunt,
    load_expectation,
    register_family,
    strongest_classes,
)
from netpurify.network.loop import PurifiedLayer, layer_by_layer
from netpurify.network.outcome import Outcome
from netpurify.network.peft.folder import Adapter, load_adapter
from netpurify.network.peft.merging import MergeCheck, MergeDifference, check_merged, expected_merge
from netpurify.network.plan import check
from netpurify.network.planned import LayerPlan, Plan
from netpurify.network.policies.defence import (
    DOUBT_SHARE,
    HELD_OUT,
    LEAST_DISAGREEMENT,
    Defence,
    Defend,
    DefendedLayer,
    Guard,
    Step,
    allowed_disagreement,
    load_defended,
    place_guards,
)
from netpurify.network.policies.policy import LayerPolicy, Policy
from netpurify.network.policies.project import Project
from netpurify.network.policies.recover import Recover
from netpurify.network.policies.recovery.low_rank import LowRankFinding, low_rank_alterations
from netpurify.network.policies.recovery.probe import Probe, probe
from netpurify.network.policies.unlearning import Unlearn, Unlearning
from netpurify.network.prepared import Network, capture, prepare
from netpurify.network.pretrained import from_config, load_pretrained
from netpurify.network.proof.file import ProofFile, load_proof, save_proof
from netpurify.network.proof.verification import LayerProofCheck, ProofCheck, RepairClaim, verify_proof
from netpurify.network.purification import Purification, purify_layers
from netpurify.network.purifying import purify
from netpurify.network.records import EDGES, Altered, Grade, LayerRecord, Proof
from netpurify.network.tolerance import Tolerance

__all__ = [
    "DOUBT_SHARE",
    "EDGES",
    "FAMILIES",
    "HELD_OUT",
    "LEAST_DISAGREEMENT",
    "Adapter",
    "Agreement",
    "Altered",
    "Coverage",
    "Defence",
    "Defend",
    "DefendedLayer",
    "Disagreement",
    "Entries",
    "Expectation",
    "FamilyHunt",
    "FitOptions",
    "FoundTrigger",
    "Grade",
    "Guard",
    "HealthyLevel",
    "Hunt",
    "Layer",
    "LayerPlan",
    "LayerPolicy",
    "LayerProofCheck",
    "LayerRecord",
    "LowRankFinding",
    "MergeCheck",
    "MergeDifference",
    "Network",
    "Outcome",
    "Plan",
    "Policy",
    "Probe",
    "Project",
    "Proof",
    "ProofCheck",
    "ProofFile",
    "Purification",
    "PurifiedLayer",
    "Recover",
    "Regressions",
    "RepairClaim",
    "Scan",
    "Seeded",
    "Skipped",
    "Span",
    "SpanError",
    "Step",
    "TensorComparison",
    "TensorVerdict",
    "Tolerance",
    "TriggerFamily",
    "UnitFits",
    "Unlearn",
    "Unlearning",
    "Weights",
    "allowed_disagreement",
    "build_design",
    "calibrate",
    "capture",
    "check",
    "check_merged",
    "compare_tensors",
    "expectation_for",
    "expected_merge",
    "fill",
    "fit_units",
    "from_config",
    "healthy_level",
    "hunt",
    "layer_by_layer",
    "layers_of",
    "load_adapter",
    "load_defended",
    "load_expectation",
    "load_pretrained",
    "load_proof",
    "low_rank_alterations",
    "names_in",
    "place_guards",
    "pose",
    "prepare",
    "probe",
    "purify",
    "purify_layers",
    "register_family",
    "register_layer",
    "resolve",
    "save_proof",
    "scan",
    "strongest_classes",
    "verify_proof",
]
