"""Adapters in the format of PEFT: what they add to a base, and whether merged weights are base and adapter, no more."""
