"""The check of an answer: gap, evidence and status from the matrix, the data and the claim."""
