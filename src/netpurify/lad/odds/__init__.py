"""How many altered entries L1 regression tolerates: by chance, and against an adversary."""
