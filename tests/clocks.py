"""Time that passes when a test says so."""

from __future__ import annotations

import pytest


class Clock:
    """A monotonic clock that stands still until told to move."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def stopped(monkeypatch: pytest.MonkeyPatch, *names: str) -> Clock:
    """A clock in the place of each of those functions, such as `tpusmi.agent.steps.monotonic`."""
    clock = Clock()
    for name in names:
        monkeypatch.setattr(name, clock)
    return clock
