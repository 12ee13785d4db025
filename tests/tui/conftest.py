"""One time zone for every screen, pictures only of the Textual they were taken with, and no waits
that are longer than needed.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest
import textual
from support.screens import GoldenScreen
from textual import app, pilot, screen

from tpusmi.tui import base_app

PICTURED_TEXTUAL = "8.2.8"

screen.UPDATE_PERIOD /= 8  # no test looks at an animation


async def _go_on(*_: object) -> None:
    """In place of a guess: a pilot takes a process for idle that gets no processor time, so that
    tests fail on a busy machine. `support.dashboards` waits until each message is handled.
    """
    await asyncio.sleep(0)


for module in (app, pilot):
    module.wait_for_idle = _go_on


@pytest.fixture(autouse=True)
def _usual_screen(utc: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The header shows the local time."""
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture(autouse=True)
def _continued_by_none_that_has_ended() -> Iterator[None]:
    """Each dashboard asks the one before, which in its own process there is not."""
    before = signal.getsignal(signal.SIGCONT)
    yield
    signal.signal(signal.SIGCONT, before)


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
