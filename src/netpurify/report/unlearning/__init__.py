"""A backdoor that was trained away, in words, on a page and as a record; what it shares is in ``hunt``."""
