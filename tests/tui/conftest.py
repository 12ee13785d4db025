"""One time zone for every screen, pictures only of the Textual they were taken with, and no waits
that are longer than needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import textual
from textual import _wait, screen

PICTURED_TEXTUAL = "8.2.8"

# A pilot sleeps until the process works no more, a little longer than a frame takes: both in an
# eighth of the usual time, as no test looks at an animation.
FASTER = 8
screen.UPDATE_PERIOD /= FASTER
_wait.SLEEP_GRANULARITY /= FASTER


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The header shows the local time."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def pictured() -> None:
    """Skip where the pictures cannot be the same."""
    if textual.__version__ != PICTURED_TEXTUAL:
        pytest.skip(f"pictures are of Textual {PICTURED_TEXTUAL}, this is {textual.__version__}")
