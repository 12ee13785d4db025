"""The state all pages share: the moment that is shown, how it looks, what the user has chosen."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tpusmi.merge.past import past
from tpusmi.model import Device, DeviceKey, History, MemoryProfile, Process, ProcessKey, Snapshot
from tpusmi.sources.users import user_name
from tpusmi.tui.base_scene import BaseScene
from tpusmi.tui.draw.graphs import Graphs
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.time_axis import axis
from tpusmi.tui.ending.ends import Ends
from tpusmi.tui.feed import Options
from tpusmi.tui.process.follower import Follower, Succession

if TYPE_CHECKING:
    from tpusmi.tui.capturing.shown_captures import ShownCaptures

ROOT = "root"
CANNOT_END = "Not verified: known only from a file, so it cannot be ended."
NONE_SELECTED = "No process is selected that could be ended"


class Scene(BaseScene):
    """The shared state of the dashboard, written to only by the app and its pages."""

    def __init__(self, look: Look, options: Options, history: History) -> None:
        super().__init__(look, options.interval_s)
        self.options, self.history = options, history
        self.graphs = Graphs(history)
        self.ends = Ends()
        self.captures: ShownCaptures | None = None
        """None before the first use."""
        self.theme = options.theme_name
        """The theme that the user has chosen, by its name in the settings."""
        self.span_s = options.window_s
        """The span the user has chosen for all graphs; None is as far back as there are values."""
        self.device_key: DeviceKey | None = None
        """The device the user has chosen."""
        self.slice_job: int | None = None
        """The job of several hosts that the user has chosen, on the slice page or the topology."""
        self.process_key: ProcessKey | None = None
        self.follower = Follower()
        self.followed: Succession | None = None
        """The chosen process that has ended, and the one that was chosen in its place just now."""
        self._announced: Succession | None = None
        self.marks: dict[ProcessKey, MemoryProfile] = {}
        """The memory of each job when the user set its mark, to show growth since."""
        self.newest: Snapshot | None = None
        self.snapshot: Snapshot | None = None
        """The moment that is shown: the newest, an earlier one, or one that stays while the user
        is asked about a process in it.
        """
        self._shown_at_s: float | None = None

    @property
    def picture_name(self) -> str:
        return "" if self.newest is None else self.newest.host.name

    @property
    def user(self) -> str:
        """The user of the dashboard."""
        return self.options.user or user_name(os.geteuid())

    @property
    def is_unusual(self) -> bool:
        """True if the header says something that must not be missed."""
        simulated = self.snapshot is not None and self.snapshot.simulated
        return simulated or self.paused or bool(self.back_s or self.late_s) or self.is_capturing

    def shown_captures(self) -> ShownCaptures:
        """The captures of this dashboard, from the first use on."""
        if self.captures is None:
            from tpusmi.tui.capturing.shown_captures import ShownCaptures

            self.captures = ShownCaptures()
        return self.captures

    @property
    def is_capturing(self) -> bool:
        """A capture is under way, which slows its process down."""
        return self.captures is not None and self.captures.running is not None

    @property
    def is_root(self) -> bool:
        """The dashboard runs as root, who may end the processes of all users."""
        return self.user == ROOT

    @property
    def back_s(self) -> float:
        """How far back in time the shown moment is; 0 for the present."""
        if self._shown_at_s is None or self.newest is None:
            return 0.0
        return max(0.0, self.newest.at_s - self._shown_at_s)

    def watch_programs(self, is_on: bool) -> None:
        """Let the feed ask what the cores run, or no longer."""
        if self.options.watch_programs is not None:
            self.options.watch_programs(is_on)

    def take(self, snapshot: Snapshot) -> None:
        """Accept a newer moment."""
        self.newest = snapshot

    def look_at(self, back_s: float) -> None:
        """Show the moment that long ago, as far as the history goes back; 0 is the present."""
        if self.newest is None:
            return
        oldest_s = self.history.oldest_s()
        most_s = 0.0 if oldest_s is None else self.newest.at_s - oldest_s
        back_s = min(max(back_s, 0.0), most_s, float(self.history.span_s - 1))
        self._shown_at_s = self.newest.at_s - back_s if back_s >= 1.0 else None

    def refresh(self) -> None:
        """Show the newest moment, or the chosen one of the past."""
        if self.newest is not None and self._shown_at_s is not None:
            self.look_at(self.back_s)  # it may have left the history
        if self.newest is None or self._shown_at_s is None:
            self.snapshot = self.newest
        else:
            self.snapshot = past(self.newest, self.history, self._shown_at_s)
        if (process := self.process) is not None:
            self.process_key = process.key
        self._follow()

    def choose_process(self, key: ProcessKey | None) -> None:
        """Choose a process because the user did."""
        self.process_key, self.followed = key, None
        self.follower.choose(self.process if key is not None else None)

    def _follow(self) -> None:
        """Choose what runs in place of the chosen process, if that has ended; not in the past."""
        if self.snapshot is None or self._shown_at_s is not None:
            return
        succession = self.follower.succession(self.snapshot, self.process)
        if succession is not None:
            self.process_key, self.followed = succession.new, succession

    def news(self) -> str:
        """That another process was chosen in place of one that has ended; once, and then empty."""
        if self.followed is None or self.followed == self._announced:
            return ""
        self._announced = self.followed
        ended, new = self.followed
        return f"pid {ended.pid} has ended: pid {new.pid} runs the same command, and is now chosen"

    def axis(self, span_s: int, width: int) -> Row:
        """The time axis below graphs of that width."""
        return axis(self.look, span_s, width, "then" if self.back_s else "now")

    @property
    def device(self) -> Device | None:
        """The chosen device, or the first; None if there is none."""
        devices = () if self.snapshot is None else self.snapshot.devices
        chosen = [d for d in devices if d.key == self.device_key]
        if not chosen and self.device_key is not None:
            # The key of a device changes when a job's agent begins to report it.
            chosen = [d for d in devices if d.index == self.device_key.index]
        return next(iter((*chosen, *devices)), None)

    @property
    def process(self) -> Process | None:
        """The chosen process; None if it is gone, for keys must not end another in its place. The
        first process if none was ever chosen.
        """
        processes = () if self.snapshot is None else self.snapshot.processes
        if self.process_key is None:
            return next(iter(processes), None)
        return next((p for p in processes if p.key == self.process_key), None)

    @property
    def owners(self) -> tuple[Process, ...]:
        """The owners of the chosen device."""
        device, s = self.device, self.snapshot
        if device is None or s is None:
            return ()
        return tuple(p for p in s.processes if p.key in device.owners)
