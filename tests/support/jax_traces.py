"""Traces as JAX's own reader sees them."""

from __future__ import annotations

from typing import Any

import pytest


def planes_of(data: bytes) -> dict[str, Any]:
    """The planes of a trace by their names."""
    from jax.profiler import ProfileData

    if not hasattr(ProfileData, "from_serialized_xspace"):
        pytest.skip("this JAX cannot read traces")
    return {plane.name: plane for plane in ProfileData.from_serialized_xspace(data).planes}
