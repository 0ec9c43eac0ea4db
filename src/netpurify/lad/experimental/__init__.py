"""Parts that work and are tested, but whose benefit was never measured."""
