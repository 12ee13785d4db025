"""Where the dashboard's snapshots come from, and what it was asked to look like."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from tpusmi.actions.end import Order, carry_out
from tpusmi.actions.ending import OnProgress
from tpusmi.actions.outcome import Report
from tpusmi.actions.plan import Plan, Request
from tpusmi.actions.planning import planned
from tpusmi.model import Chip, History, Host, Snapshot

Planner = Callable[[Host, Snapshot, Request], Plan]
CarryOut = Callable[[Host, Iterable[Chip], Plan, Order, OnProgress], Report]


class Options(NamedTuple):
    """What the command line decided."""

    interval_s: float = 1.0
    ascii: bool = False
    color: bool = True
    host: Host | None = None
    """The machine whose processes may be ended; None where none may be: then no key does it."""
    planner: Planner = planned
    carry_out: CarryOut = carry_out
    label: str = ""
    """Said in the header beside the host's name, as `demo`."""
    view: str = "auto"
    """How devices are shown at first: `auto`, `full`, `compact` or `heat`."""
    filter: str = ""
    """Only processes that contain this are shown at first."""
    user: str | None = None
    """Whose processes are one's own; None is the user who runs this."""
    keys: Mapping[str, str] = {}
    """Keys by the id of a binding, comma separated, as Textual spells them."""
    theme: str | None = None
    """None is the default theme."""
    colors: Mapping[str, str] = {}
    """Rich styles by their names on the screen, on top of the theme."""


class Feed(Protocol):
    """Something that can be asked for the present at any time."""

    @property
    def history(self) -> History:
        """The last minutes, appended to as time goes by."""

    def snapshot(self) -> Snapshot:
        """The present moment. Called on a thread of its own, one call at a time."""


Deliver = Callable[["Snapshot | Exception"], object]


class Reader(threading.Thread):
    """Asks the feed for a snapshot whenever told to, and hands on the answer.

    A daemon of its own and not a Textual worker: asyncio joins its workers' threads at exit, so a
    feed that hangs would keep the terminal.
    """

    def __init__(self, feed: Feed, deliver: Deliver) -> None:
        super().__init__(name="tpusmi-feed", daemon=True)
        self._feed = feed
        self._deliver = deliver
        self._wanted = threading.Event()

    def ask(self) -> None:
        """Ask for one more snapshot; returns at once. Asking while one is on its way asks once."""
        self._wanted.set()

    def run(self) -> None:
        """Answer for ever."""
        while True:
            self._wanted.wait()
            self._wanted.clear()
            try:
                answer: Snapshot | Exception = self._feed.snapshot()
            except Exception as problem:  # noqa: BLE001  # the app raises it again
                answer = problem
            self._deliver(answer)
