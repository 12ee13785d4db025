"""What all pages share: the moment that is shown, how it looks, and what a person has chosen."""

from __future__ import annotations

import os

from tpusmi.merge.past import past
from tpusmi.model import (
    Device,
    DeviceKey,
    History,
    MemoryProfile,
    Process,
    ProcessKey,
    Snapshot,
)
from tpusmi.sources.users import user_name
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.graphs import Graphs
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.ending.ends import Ends
from tpusmi.tui.feed import Options

INTERVALS_S = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
CANNOT_END = "Not verified: only a file says that there is this process. It cannot be ended."


class Scene:
    """One for the whole dashboard. Only the app and its pages write to it."""

    def __init__(self, look: Look, options: Options, history: History) -> None:
        self.look, self.options, self.history = look, options, history
        self.graphs = Graphs(history)
        self.ends = Ends()
        self.interval_s = options.interval_s
        self.span_s: int | None = None
        """How far back a person wants all graphs to go; None is as far as there is anything."""
        self.paused = False
        self.late_s = 0.0
        """How long the feed has not answered, when that is worth a word."""
        self.said = ""
        """What a key has just done, in place of the footer."""
        self.device_key: DeviceKey | None = None
        """The device that a person has chosen."""
        self.process_key: ProcessKey | None = None
        self.marks: dict[ProcessKey, MemoryProfile] = {}
        """What each job held when a person set the mark, to see what has grown since."""
        self.newest: Snapshot | None = None
        self.snapshot: Snapshot | None = None
        """The moment that is shown: the newest, an earlier one, or one that stays while a person is
        asked about a process in it.
        """
        self._shown_at_s: float | None = None

    @property
    def user(self) -> str:
        """Who looks."""
        return self.options.user or user_name(os.geteuid())

    @property
    def back_s(self) -> float:
        """How long ago the moment is that is shown; 0 for the present."""
        if self._shown_at_s is None or self.newest is None:
            return 0.0
        return max(0.0, self.newest.at_s - self._shown_at_s)

    def take(self, snapshot: Snapshot) -> None:
        """A newer moment has come."""
        self.newest = snapshot

    def change_interval(self, step: int) -> None:
        """Ask for snapshots less often, or more often where `step` is negative."""
        now_s = self.interval_s
        at = min(range(len(INTERVALS_S)), key=lambda i: abs(INTERVALS_S[i] - now_s))
        self.interval_s = INTERVALS_S[min(max(at + step, 0), len(INTERVALS_S) - 1)]

    def look_at(self, back_s: float) -> None:
        """Show the moment of so long ago, as far as the history goes back; 0 is the present."""
        if self.newest is None:
            return
        oldest_s = self.history.oldest_s()
        most_s = 0.0 if oldest_s is None else self.newest.at_s - oldest_s
        back_s = min(max(back_s, 0.0), most_s, float(self.history.span_s - 1))
        self._shown_at_s = self.newest.at_s - back_s if back_s >= 1.0 else None

    def refresh(self) -> None:
        """Show the newest, or the chosen moment of the past."""
        if self.newest is not None and self._shown_at_s is not None:
            self.look_at(self.back_s)  # it may have left the history meanwhile
        if self.newest is None or self._shown_at_s is None:
            self.snapshot = self.newest
        else:
            self.snapshot = past(self.newest, self.history, self._shown_at_s)
        if (process := self.process) is not None:
            self.process_key = process.key

    def axis(self, span_s: int, width: int) -> Row:
        """The time axis below graphs of that width."""
        return plot.axis(self.look, span_s, width, "then" if self.back_s else "now")

    @property
    def device(self) -> Device | None:
        """The chosen device, or the first; None when there is none."""
        devices = () if self.snapshot is None else self.snapshot.devices
        found = [d for d in devices if d.key == self.device_key]
        if not found and self.device_key is not None:
            # A device gets another key when a job's agent begins to tell of it.
            found = [d for d in devices if d.index == self.device_key.index]
        return next(iter((*found, *devices)), None)

    @property
    def process(self) -> Process | None:
        """The chosen process, and no other in its place: keys that end it are meant for it alone.
        The first where none was ever chosen; None when it is gone.
        """
        processes = () if self.snapshot is None else self.snapshot.processes
        if self.process_key is None:
            return next(iter(processes), None)
        return next((p for p in processes if p.key == self.process_key), None)

    @property
    def owners(self) -> tuple[Process, ...]:
        """Who has the chosen device."""
        device, s = self.device, self.snapshot
        if device is None or s is None:
            return ()
        return tuple(p for p in s.processes if p.key in device.owners)
