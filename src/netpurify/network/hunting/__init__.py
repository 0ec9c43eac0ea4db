"""Hunting for backdoors: families of universal triggers, their search, and what healthy networks show."""

from netpurify.network.hunting.expectation import Expectation, HealthyLevel, expectation_for, load_expectation
from netpurify.network.hunting.families import FAMILIES, TriggerFamily, register_family
from netpurify.network.hunting.hunting import hunt
from netpurify.network.hunting.records import FamilyHunt, Hunt, calibrate, healthy_level, strongest_classes
from netpurify.network.hunting.search import FoundTrigger

__all__ = [
    "FAMILIES",
    "Expectation",
    "FamilyHunt",
    "FoundTrigger",
    "HealthyLevel",
    "Hunt",
    "TriggerFamily",
    "calibrate",
    "expectation_for",
    "healthy_level",
    "hunt",
    "load_expectation",
    "register_family",
    "strongest_classes",
]
