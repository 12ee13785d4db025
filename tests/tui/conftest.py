"""One time zone for every screen, pictures only of the Textual they were taken with, and no waits
that are longer than needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import textual
from support.screens import GoldenScreen
from textual import _wait, screen

from tpusmi.tui import base_app

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


@pytest.fixture(autouse=True)
def _messages_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The footer shows a message until the test has looked, also on a machine that stands still."""
    assert 2 <= base_app.MESSAGE_S <= 10
    monkeypatch.setattr(base_app, "MESSAGE_S", 3600.0)


@pytest.fixture
def pictured() -> None:
    """Skip where the pictures cannot be the same."""
    if textual.__version__ != PICTURED_TEXTUAL:
        pytest.skip(f"pictures are of Textual {PICTURED_TEXTUAL}, this is {textual.__version__}")


@pytest.fixture
def golden_screen(request: pytest.FixtureRequest, pictured: None) -> GoldenScreen:
    """Named after the test: `tests/tui/goldens/FILE/TEST-PARAMETERS.txt`."""
    node = request.node
    words = [node.originalname.removeprefix("test_")]
    if hasattr(node, "callspec"):
        words.append(node.callspec.id)
    folder = node.path.stem.removeprefix("test_").removesuffix("_screens")
    return GoldenScreen(node.path.parent / "goldens" / folder / f"{'-'.join(words)}.txt")
