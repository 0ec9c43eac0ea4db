"""Trials that several figures share, or that are too long for the file of one figure."""
