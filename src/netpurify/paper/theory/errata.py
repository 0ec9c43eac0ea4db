"""The paper's misprints, false bounds and contradictions: where, what is printed, what is right, and a number.

``netpurify theory --errata`` prints them with their numbers, computed anew; docs/errata.md is made by it.
"""

from netpurify.paper.theory.errata_of_definitions import DEFINITIONS
from netpurify.paper.theory.errata_of_proofs import BOUNDS, LEMMAS_AND_EXPERIMENTS
from netpurify.paper.theory.errata_of_the_appendix import APPENDIX

ERRATA = (*DEFINITIONS, *BOUNDS, *APPENDIX, *LEMMAS_AND_EXPERIMENTS)
