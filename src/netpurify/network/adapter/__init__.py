"""A network as its layers, weights and inputs: everything that knows what a torch module looks like."""
