"""Networks that were poisoned in training: hunt for the backdoor, then train it away without labels."""

from netpurify.network.policies.unlearning.result import Unlearning
from netpurify.network.policies.unlearning.unlearn import Unlearn

__all__ = ["Unlearn", "Unlearning"]
