"""What a viewer that stays sees of the memory: peaks, and notices about what only grows. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tpusmi.merge.advice import notice
from tpusmi.merge.join import Join
from tpusmi.merge.leaks import LIVE, USED, Leaks
from tpusmi.merge.peaks import SeenPeaks
from tpusmi.merge.tracks import Growth
from tpusmi.model import (
    ChipKey,
    Device,
    History,
    Notice,
    Place,
    Process,
    ProcessKey,
    Snapshot,
)
from tpusmi.model.several import measured
from tpusmi.text import counted, elapsed, per_minute

GROWS = "memory_grows"
FULL_MOST_S = 30 * 86400.0
"""When a memory is full is not said where it takes longer."""


class MemoryWatch:
    """Peaks, rates, and a notice for each living job whose memory only grows: with the line of
    code, if that is known, and when a device will be full. Notices are renewed after each window.
    """

    def __init__(self) -> None:
        self._leaks, self._peaks = Leaks(), SeenPeaks()
        self._made: dict[ProcessKey, Notice] = {}
        self._made_at_s = 0.0
        self._window: int | None = None

    def add_peaks(self, machine: Join) -> None:
        """Add the peaks that no source knows to the readings of this moment."""
        machine.readings.update(self._peaks.of(machine.readings, machine.owners))

    def look(self, machine: Join, history: History, now_s: float) -> None:
        """Note what is new on the machine."""
        self._leaks.look(machine, history, now_s)

    def on(self, s: Snapshot) -> Snapshot:
        """The snapshot with these notices, and with the rates of lines of code."""
        return self._leaks.rated(s._replace(warnings=(*s.warnings, *self._notices(s))))

    def _notices(self, s: Snapshot) -> Iterator[Notice]:
        living = [p for p in s.processes if p.is_living and p.is_verified]
        if self._window != self._leaks.window:
            self._window, self._made_at_s = self._leaks.window, s.at_s
            made = ((p.key, _JobGrowth.of(s, p, self._leaks).notice()) for p in living)
            self._made = {key: n for key, n in made if n is not None}
        later_s = max(0.0, s.at_s - self._made_at_s)
        for p in living if self._made else ():
            if (n := self._made.get(p.key)) is not None:
                yield n._replace(since_s=(n.since_s or 0.0) + later_s)


class _Part(NamedTuple):
    """A device that grows, or the whole job (None)."""

    device: Device | None
    growth: Growth


class _JobGrowth(NamedTuple):
    """What grows of one job."""

    snapshot: Snapshot
    process: Process
    devices: Sequence[Device]
    leaks: Leaks

    @classmethod
    def of(cls, s: Snapshot, p: Process, leaks: Leaks) -> "_JobGrowth":
        """That of a process."""
        return cls(s, p, [d for d in s.devices if p.key in d.owners], leaks)

    def notice(self) -> Notice | None:
        """About its lines of code, else its live arrays, else its memory in use; None where none of
        these only grows.
        """
        if lines := self.leaks.lines_of(self.process):
            return self._of_lines(lines)
        if parts := self._grown(LIVE):
            return self._of_parts(parts, "live arrays grow", f"{GROWS}.lines")
        if parts := self._grown(USED):
            case = "bare" if self.process.interval_s is None else "programs"
            return self._of_parts(parts, "memory in use grows", f"{GROWS}.{case}")
        return None

    def _of_lines(self, lines: Sequence[tuple[Place, Growth]]) -> Notice:
        (place, growth), *others = lines
        total = sum(g.bytes_per_s for _, g in lines)
        more = f", and {counted(len(others), 'other line')} with it" if others else ""
        text = f"{_code(place)} keeps {per_minute(growth.bytes_per_s)} more every minute{more}"
        return self._made(f"{text}{self._full(total, self.devices)}", GROWS, growth)

    def _of_parts(self, parts: Sequence[_Part], what: str, case: str) -> Notice:
        total = sum(part.growth.bytes_per_s for part in parts)
        longest = min((part.growth for part in parts), key=lambda g: g.since_s)
        named = [part.device for part in parts if part.device is not None]
        text = f"{what} by {per_minute(total)} every minute"
        if named and len(self.devices) > 1:
            text += f" on {named[0].name if len(named) == 1 else counted(len(named), 'device')}"
        made = self._made(f"{text}{self._full(total, named or self.devices)}", case, longest)
        is_one = len(named) == 1 < len(self.devices)
        return made._replace(device=named[0].key.index) if is_one else made

    def _made(self, text: str, case: str, growth: Growth) -> Notice:
        since_s = max(0.0, self.snapshot.at_s - growth.since_s)
        return notice(case, text, self.process.pid, since_s=since_s)

    def _grown(self, name: str) -> Sequence[_Part]:
        """The whole job, if it grows, else each device that does."""
        whole = self.leaks.amount(self.process.key, name)
        if whole is not None:
            return [_Part(None, whole)]
        grown = ((d, self._growth(d, name)) for d in self.devices)
        return [_Part(d, growth) for d, growth in grown if growth is not None]

    def _growth(self, d: Device, name: str) -> Growth | None:
        """The device's growth; that of its whole chip, where that is measured, for its first."""
        own = self.leaks.amount(d.key, name)
        if own is not None or d.chip is None or d.core_on_chip:
            return own
        return self.leaks.amount(ChipKey(d.chip), name)

    def _full(self, total: float, devices: Sequence[Device]) -> str:
        """When the first of the devices will be full: at its own rate, else at its share of the
        total. Empty where that is not known.
        """
        left_s = []
        for d in devices:
            used = measured(self.snapshot, USED, d)
            limit = measured(self.snapshot, "hbm_limit_bytes", d)
            if used is not None and limit is not None and limit.value:
                growth = self._growth(d, USED)
                rate = total / len(devices) if growth is None else growth.bytes_per_s
                left_s.append(max(0.0, limit.value - used.value) / rate)
        first_s = min(left_s, default=FULL_MOST_S)
        return f": HBM full in {elapsed(first_s)}" if first_s < FULL_MOST_S else ""


def _code(place: Place) -> str:
    """A line of code, with the last directory of its file: `log_metrics (llm/metrics.py:27)`."""
    function, file, line = place
    return f"{function} ({'/'.join(file.split('/')[-2:])}:{line})"
