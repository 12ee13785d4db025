"""Ends holders of a TPU, each after proving that it is still the one that was shown."""
