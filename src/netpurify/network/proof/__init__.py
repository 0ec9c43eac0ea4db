"""Proofs of a purification: as a file, and checked again from the weights and the proof alone."""
