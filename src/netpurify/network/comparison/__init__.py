"""Every tensor of a network beside its initial (base) value: the same bits, altered, trained, or unknown.

This needs neither clean inputs nor the network's code: two state dicts are enough. ``netpurify scan`` is made of it,
and ``Recover`` uses it for everything that is not written as regressions.
"""
