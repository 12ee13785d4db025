"""Where the dashboard's snapshots come from, and the options it starts with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tpusmi.model import Chip, History, Host, Snapshot

if TYPE_CHECKING:
    from tpusmi.actions.end import Order
    from tpusmi.actions.outcome import Report
    from tpusmi.actions.plan import Plan, Request
    from tpusmi.actions.targets import OnProgress
    from tpusmi.model import ProcessKey
    from tpusmi.trace.figures import TraceProfile

    Planner = Callable[[Host, Snapshot, Request], Plan]
    KeepProfile = Callable[[ProcessKey, TraceProfile, float], object]
    CarryOut = Callable[[Host, Iterable[Chip], Plan, Order, OnProgress], Report]


class DeviceView(str, Enum):
    """How devices are shown: a row, a tile or a cell for each; `auto` takes the first that fits."""

    AUTO = "auto"
    FULL = "full"
    COMPACT = "compact"
    HEAT = "heat"


ShownSettings = dict[tuple[str, ...], "str | float | list[str]"]
"""What is shown, as settings: by their keys in the file, or table and key."""
PANELS = ("header", "devices", "graphs", "processes")
"""The parts of the main page that can be hidden, top to bottom."""


class Options(NamedTuple):
    """Options from the command line and the settings file."""

    interval_s: float = 1.0
    ascii: bool = False
    color: bool = True
    host: Host | None = None
    """The machine whose processes may be ended; None where none may be: then no key does it."""
    planner: Planner | None = None
    """Plans the end of processes; None is the planner of `actions`."""
    carry_out: CarryOut | None = None
    """Ends processes; None is what `actions` does."""
    label: str = ""
    """Shown in the header beside the host's name, such as `demo`."""
    view: str = DeviceView.AUTO
    """The view of devices at the start."""
    filter: str = ""
    """The filter of processes at the start."""
    user: str | None = None
    """The user of the dashboard; None is the user who runs it."""
    keys: Mapping[str, str] = {}
    """Keys by the id of a binding, comma separated, as Textual spells them."""
    theme: str | None = None
    """None is the default theme."""
    colors: Mapping[str, str] = {}
    """Rich styles by their names on the screen, on top of the theme."""
    terminal_colors: int = 1 << 24
    """How many colors the terminal has."""
    theme_name: str = "ansi"
    """The name of the theme in the settings; `theme` is what this terminal can show of it."""
    hidden: Collection[str] = ()
    """Panels that are hidden at the start."""
    columns: Mapping[str, tuple[str, ...]] = {}
    """Titles of the columns to show, by table; all of a table that is not in it."""
    sort: str = ""
    """The column that processes are sorted by at the start; empty for the default."""
    reverse: bool = False
    window_s: int | None = None
    """The span of graphs at the start; None for as long as there is data."""
    save: Callable[[ShownSettings], str] | None = None
    """Saves settings, and returns a sentence about that; None where they cannot be saved."""
    watch_programs: Callable[[bool], object] | None = None
    """Lets the feed ask what the cores run, or no longer; None where it cannot, or always does."""
    capturer: Sequence[str] | None = None
    """Command that captures in place of `tpusmi`, with the same arguments; None is `tpusmi`."""
    keep_profile: KeepProfile | None = None
    """Gives the feed what a capture shows, and its end by CLOCK_MONOTONIC; None where it cannot."""


class Feed(Protocol):
    """A source of snapshots."""

    @property
    def history(self) -> History:
        """The last minutes, which the feed appends to."""

    def snapshot(self) -> Snapshot:
        """The current moment. Called on its own thread, one call at a time."""


class Read(Protocol):
    """What a thread can read: a feed, or the source of a fleet."""

    def snapshot(self) -> object:
        """The current moment. Called on its own thread, one call at a time."""


Deliver = Callable[[object], object]
"""Takes a snapshot, or the error in its place."""


class Reader(threading.Thread):
    """Asks the feed for a snapshot when requested, and delivers the answer.

    A daemon thread and not a Textual worker: asyncio joins its workers' threads at exit, so a feed
    that hangs would keep the terminal.
    """

    def __init__(self, feed: Read, deliver: Deliver) -> None:
        super().__init__(name="tpusmi-feed", daemon=True)
        self._feed = feed
        self._deliver = deliver
        self._requested = threading.Event()

    def ask(self) -> None:
        """Request a snapshot; returns at once. Requests while one is on its way count as one."""
        self._requested.set()

    def run(self) -> None:
        """Answer requests forever."""
        while True:
            self._requested.wait()
            self._requested.clear()
            try:
                answer: object = self._feed.snapshot()
            except Exception as problem:  # noqa: BLE001  # the app raises it again
                answer = problem
            self._deliver(answer)
