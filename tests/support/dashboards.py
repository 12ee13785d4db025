"""A dashboard whose keys a test presses, and what is on its screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from support.feeds import Inline
from tpusmi.collect import look
from tpusmi.model import History, Host, Snapshot
from tpusmi.tui import Feed, Options
from tpusmi.tui.app import Dashboard
from tpusmi.tui.draw.lines import Lines

WITHIN_S = 60.0
MESSAGES_DEEP = 4
"""So many messages, each of which leads to the next, come of a key at most."""


@asynccontextmanager
async def dashboard(
    feed: Feed, size: tuple[int, int] = (100, 30), **options: object
) -> AsyncIterator[Pilot[None]]:
    """The dashboard on a script, with its first snapshot drawn."""
    given = {"user": "ada", **options}  # whoever runs the tests
    app = Dashboard(feed, Options(**given), reader=Inline)  # type: ignore[arg-type]
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        yield pilot


async def settle(pilot: Pilot[None]) -> None:
    """Wait until all is handled. A pilot alone takes a process that gets no time for idle."""
    for _ in range(int(WITHIN_S / 0.02)):
        if pilot.app._resize_timer is None:
            break
        await pilot.pause(0.02)
    for _ in range(3):
        await pilot.pause()
        await _handled(pilot)


async def _handled(pilot: Pilot[None]) -> None:
    """Wait until messages are handled, and those that come of them."""
    for _ in range(MESSAGES_DEEP):
        await pilot._wait_for_screen()


async def press(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await _handled(pilot)
    await settle(pilot)


def text(pilot: Pilot[None], part: str) -> str:
    return pilot.app.page.query_one(f"#{part}", Lines).text()


def screen_text(pilot: Pilot[None]) -> list[str]:
    """Every line of the screen, as the terminal gets it."""
    strips = pilot.app.screen._compositor.render_strips()
    return [strip.text for strip in strips]


def shown(pilot: Pilot[None]) -> str:
    return "\n".join(screen_text(pilot))


def row(pilot: Pilot[None], pid: int) -> str:
    return next(line for line in text(pilot, "processes").splitlines() if str(pid) in line)


def order(pilot: Pilot[None]) -> list[str]:
    """Pids in the order of the process table."""
    lines = text(pilot, "processes").splitlines()[1:]
    return [line.split()[1].partition("!")[0] for line in lines if line.strip()]


def selected(pilot: Pilot[None]) -> str:
    """Pid that the details are of."""
    return text(pilot, "detail").split()[1]


def height(pilot: Pilot[None], part: str) -> int:
    found = pilot.app.page.query_one(f"#{part}", Lines)
    return found.size.height if found.display else 0


async def until(pilot: Pilot[None], seen: Callable[[], bool]) -> None:
    """Wait for what another thread has still to say."""
    for _ in range(int(WITHIN_S / 0.02)):
        if seen():
            return
        await pilot.pause(0.02)
    raise AssertionError("not seen on\n" + "\n".join(screen_text(pilot)))


class HostFeed:
    """A look at the host whenever it is asked."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.history = History()

    def snapshot(self) -> Snapshot:
        """A look."""
        return look(self._host)
