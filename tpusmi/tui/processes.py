"""The process table: what each column shows of a process, sorts by and is found by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpusmi.model import Process, Snapshot, Value
from tpusmi.tui import quantities as q
from tpusmi.tui.columns import Column
from tpusmi.tui.look import Look, Row

_LETTERS = {"starting": "S", "compiling": "C", "running": "R", "idle": "I", "ended": "X"}
_SILENT, _DEAD, _UNKNOWN = "!", "X", "?"
_STYLES = {"R": "good", "C": "warn", "S": "warn", _SILENT: "bad", _DEAD: "dim"}
LETTERS = {
    **{v: k for k, v in _LETTERS.items()},
    _SILENT: "silent: its agent stopped writing",
    _UNKNOWN: "unknown",
}
"""What the letter in front of a process means."""


class ProcessTable:
    """Draws cells of processes from the snapshot it was given last."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self.snapshot: Snapshot | None = None
        self.sort_title = "DEVICES"
        self.upside_down = False
        self.filter = ""
        """Only processes whose pid, user, command or phase contains this are shown."""

    def columns(self) -> tuple[Column[Process], ...]:
        """The table, left to right."""
        steps, step = (
            self._number("steps_per_s", q.in_rate),
            self._number("step_time_s.p50", q.in_seconds),
        )
        p95, compiles = (
            self._number("step_time_s.p95", q.in_seconds),
            self._number("compilations", q.in_count),
        )
        known = self._known
        return (
            Column("S", self._letter, 1),
            Column(
                "PID",
                self._pid,
                5,
                most=8,
                right=True,
                text=lambda p: str(p.pid),
                sort=lambda p: p.pid,
            ),
            Column("USER", self._plain(_user), 4, 7, most=10, text=_user, sort=lambda p: p.user),
            Column(
                "DEVICES",
                self._plain(self._devices),
                8,
                4,
                most=12,
                text=self._devices,
                sort=self._first_device,
            ),
            Column(
                "MEMORY",
                self._memory,
                8,
                1,
                most=13,
                right=True,
                text=self._memory_text,
                sort=self._bytes,
            ),
            Column("STEPS/s", steps, 8, 2, right=True, sort=known("steps_per_s")),
            Column("STEP", step, 7, 3, right=True, sort=known("step_time_s.p50")),
            Column("P95", p95, 7, 8, right=True, sort=known("step_time_s.p95")),
            Column("COMP", compiles, 6, 5, right=True, sort=known("compilations")),
            Column("PHASE", self._plain(_phase), 9, 6, sort=lambda p: p.phase),
            Column("AGE", self._age, 4, 5, right=True, sort=self._seconds_old),
            Column(
                "COMMAND",
                self._plain(lambda p: p.command),
                10,
                2,
                most=400,
                sort=lambda p: p.command,
            ),
        )

    def shown(self, snapshot: Snapshot) -> list[Process]:
        """The processes that pass the filter, sorted; unknown values last, then the dead."""
        found = [p for p in snapshot.processes if self._matches(p)]
        key = next(c.sort for c in self.columns() if c.title == self.sort_title)
        assert key is not None
        found.sort(key=lambda p: p.key)
        known = sorted((p for p in found if key(p) is not None), key=key, reverse=self.upside_down)
        unknown = [p for p in found if key(p) is None]
        return sorted([*known, *unknown], key=is_dead)

    def sort_by(self, step: int) -> None:
        """Sort by the column that many sortable columns further on."""
        titles = [c.title for c in self.columns() if c.sort is not None]
        self.sort_title = titles[(titles.index(self.sort_title) + step) % len(titles)]

    def _matches(self, p: Process) -> bool:
        if not self.filter:
            return True
        text = f"{p.pid} {p.user or ''} {p.command} {p.phase or ''} {p.state}"
        return self.filter.casefold() in text.casefold()

    def _value(self, name: str, p: Process) -> Value | None:
        return None if self.snapshot is None else self.snapshot.values.get((p.key, name))

    def _known(self, name: str) -> Callable[[Process], Any]:
        def known(p: Process) -> Any:
            v = self._value(name, p)
            return None if v is None else v.value

        return known

    def _number(self, name: str, words: Callable[[float], str]) -> Callable[[Process, int], Row]:
        def draw(p: Process, width: int) -> Row:
            v = self._value(name, p)
            text = self._look.glyphs.unknown if v is None else words(v.value)
            return self._look.cell(text, width, _style(p, v), right=True)

        return draw

    def _plain(self, words: Callable[[Process], str]) -> Callable[[Process, int], Row]:
        def draw(p: Process, width: int) -> Row:
            return self._look.cell(words(p) or self._look.glyphs.unknown, width, _style(p))

        return draw

    def _letter(self, p: Process, width: int) -> Row:
        found = letter(p)
        return self._look.cell(found, width, _STYLES.get(found, "plain"))

    def _pid(self, p: Process, width: int) -> Row:
        return self._look.cell(str(p.pid), width, "dim" if is_dead(p) else "bold", right=True)

    def _devices(self, p: Process) -> str:
        return "" if self.snapshot is None else device_range(self.snapshot, p)

    def _first_device(self, p: Process) -> int | None:
        found = () if self.snapshot is None else self.snapshot.devices_of(p.key)
        return found[0].index if found else None

    def _memory_value(self, p: Process) -> tuple[Value | None, str]:
        used = self._value("hbm_used_bytes", p)
        return (used, "") if used is not None else (self._value("live_array_bytes", p), " live")

    def _memory_text(self, p: Process) -> str:
        value, note = self._memory_value(p)
        return self._look.glyphs.unknown if value is None else q.in_bytes(value.value) + note

    def _memory(self, p: Process, width: int) -> Row:
        return self._look.cell(
            self._memory_text(p), width, _style(p, self._memory_value(p)[0]), right=True
        )

    def _bytes(self, p: Process) -> Any:
        value = self._memory_value(p)[0]
        return None if value is None else value.value

    def _seconds_old(self, p: Process) -> float | None:
        if self.snapshot is None or p.sampled_at_s is None:
            return None
        return max(0.0, self.snapshot.at_s - p.sampled_at_s)

    def _age(self, p: Process, width: int) -> Row:
        old_s = self._seconds_old(p)
        text = self._look.glyphs.unknown if old_s is None else q.age(old_s)
        return self._look.cell(text, width, _style(p), right=True)


def letter(p: Process) -> str:
    """The letter for the state of a process, for those who do not see its colour."""
    if p.state in ("dead", "silent"):
        return _DEAD if p.state == "dead" else _SILENT
    return _LETTERS.get(p.phase or "", _UNKNOWN)


def is_dead(p: Process) -> bool:
    """True for a process that ended and is kept for what it left."""
    return p.state == "dead"


def device_range(snapshot: Snapshot, p: Process) -> str:
    """The devices of a process, as `0-7`: by the number in their names."""
    return q.ranges(d.index if d.id is None else d.id for d in snapshot.devices_of(p.key))


def _style(p: Process, *values: Value | None) -> str:
    return "dim" if is_dead(p) or any(v is not None and v.stale for v in values) else "plain"


def _user(p: Process) -> str:
    return p.user or ""


def _phase(p: Process) -> str:
    return "silent" if p.state == "silent" else p.phase or ""
