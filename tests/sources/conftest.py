"""Servers of metrics have the time that they need on a busy machine."""

from __future__ import annotations

import pytest
from support.waits import has_a_short_limit

LIMITS = (
    "client.DEADLINE_S",
    "client.READ_MOST_S",
    "client.ANSWER_LEAST_S",
    "pool.ANSWER_S",
    "plain.CONNECT_S",
    "sdk.WAIT_S",
)


@pytest.fixture(autouse=True)
def _patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """But where the limit itself is tested."""
    if not has_a_short_limit(request.function):
        for name in LIMITS:
            monkeypatch.setattr(f"tpusmi.sources.libtpu.{name}", 40.0)
