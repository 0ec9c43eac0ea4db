"""The parts of the policy *recover*: exact repair, approximate repair, layers that were never trained, evidence."""
