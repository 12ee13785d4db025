"""Ends holders of a TPU, each after proving that it is still the one that was shown."""

from __future__ import annotations

import os


def is_readonly() -> bool:
    """True where the environment forbids to end anything."""
    return os.environ.get("TPUSMI_MODE") == "readonly"
