"""Compiled building blocks: products, factorisations, order statistics."""
