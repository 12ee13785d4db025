"""Reads the plane of one TPU device: its operations, programs and steps."""

from __future__ import annotations

import operator
import re
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tpusmi import chips
from tpusmi.text import clean, clean_or_none
from tpusmi.trace.busy_time import BusyTime, OutOfOrderError, SelfTimes, Tally
from tpusmi.trace.core_trace import CoreTrace, DeviceStep, OperationRow, ProgramRow
from tpusmi.trace.event_blocks import EventBlock, EventReader
from tpusmi.trace.messages import NotATraceError, fields
from tpusmi.trace.operation_facts import INFEED, OFF_DUTY, OperationFacts, facts_of
from tpusmi.trace.troubles import CaptureError, Trouble, too_many_operations
from tpusmi.trace.xspace import StatValue, XLine, XPlane

PLANE = re.compile(r"/device:TPU:(\d{1,9})")
OPS, MODULES, STEPS, COUNTERS = "XLA Ops", "XLA Modules", "Steps", "_counters_"
SORTED_MOST = 2_000_000
"""Events of a line that are sorted when they do not come in order."""
STEPS_MOST, STARTS_MOST, WAITS_MOST = 100_000, 20_000, 200_000
_CORE_ID = 6
_PROGRAM_ID = re.compile(r"\((\d{1,20})\)$")
_TERA, _GIGA = 1e12, 1e9
PEAK_LEAST, PEAK_MOST = 1e-3, 1e9
"""What a trace may state as a peak, in TFLOP/s or GB/s: with less, shares of it are infinite."""


class NamedEvent(NamedTuple):
    """One event of a line that has few."""

    name: str
    start: int
    duration: int


class TpuPlane:
    """One plane of a TPU device, as its lines are read."""

    def __init__(self, plane: XPlane, index: int) -> None:
        self._plane, self._index = plane, index
        self._reader = EventReader(plane)
        self._facts: dict[Hashable, OperationFacts] = {}
        self._off_duty: set[Hashable] = set()
        self._waits: list[tuple[int, int]] = []
        self._spans: dict[str, tuple[int, int]] = {}
        self._restart()

    def _restart(self) -> None:
        self._times = SelfTimes(self._tally)
        self._busy, self._duty = BusyTime(), BusyTime()
        self._waits.clear()

    def read(self, ids: CoreIds) -> CoreTrace:
        """All that the plane shows."""
        lines = {line.name: line for line in sorted(self._plane.lines(), key=_size)}
        steps = [*self._events(lines.get(STEPS), STEPS_MOST)]
        counts = StepCounts(steps)
        self._read_operations(lines.get(OPS), counts)
        programs = [*self._programs(lines.get(MODULES))]
        stats = self._plane.stats()
        kind = clean_or_none(stats.get("device_type_string"), 100)
        return CoreTrace(
            plane=clean(self._plane.name, 100),
            local_index=self._index,
            id=ids.id_of(stats.get("core_details")),
            device_type=kind,
            captured_ps=self._captured(steps),
            busy_ps=self._busy.busy,
            duty_ps=self._duty.busy,
            duty_span_ps=self._duty_span(),
            peak_flops_per_s=_peak(stats.get("peak_teraflops_per_second"), _TERA)
            or _nominal_flops(kind),
            peak_hbm_bytes_per_s=_peak(stats.get("peak_hbm_bw_gigabytes_per_second"), _GIGA)
            or _nominal_bandwidth(kind),
            operations=tuple(self._rows()),
            programs=tuple(programs),
            steps=tuple(counts.rows()),
            infeed=tuple(self._waits),
            has_counters=COUNTERS in lines,
        )

    def _captured(self, steps: list[NamedEvent]) -> int:
        """From the first operation or step to the end of the last, as xprof takes it."""
        if self._busy.first is None:
            return 0
        starts = [self._busy.first, *(s.start for s in steps)]
        return max([self._busy.end, *(s.start + s.duration for s in steps)]) - min(starts)

    def _duty_span(self) -> int:
        """From the start of the first program or operation to the end of the last."""
        spans = [self._spans[line] for line in (OPS, MODULES) if line in self._spans]
        return max((b for _, b in spans), default=0) - min((a for a, _ in spans), default=0)

    def _read_operations(self, line: XLine | None, counts: StepCounts) -> None:
        if line is None:
            return
        try:
            for block in self._reader.blocks(line):
                self._add(block, counts)
        except OutOfOrderError:
            self._restart()
            counts.restart()
            self._add(self._in_order(line), counts)

    def _add(self, block: EventBlock, counts: StepCounts) -> None:
        self._plane.file.check_time()
        self._busy.add(block.device_starts, block.device_durations)
        self._times.add(block.ids, block.device_starts, block.device_durations)
        self._extend(OPS, block)
        counts.add(block.starts)
        if self._off_duty.isdisjoint(block.ids):
            self._duty.add(block.starts, block.durations)
        else:
            self._add_some(block)

    def _add_some(self, block: EventBlock) -> None:
        """A block in which the device waits for the host at times."""
        for id, start, duration in zip(block.ids, block.starts, block.durations, strict=True):
            if id not in self._off_duty:
                self._duty.add((start,), (duration,))
            elif self._facts[id].share == INFEED and len(self._waits) < WAITS_MOST:
                self._waits.append((start, start + duration))

    def _extend(self, line: str, block: EventBlock) -> None:
        """Widens the time in which the line has events."""
        first, last = block.starts[0], max(map(operator.add, block.starts, block.durations))
        before = self._spans.get(line, (first, last))
        self._spans[line] = min(before[0], first), max(before[1], last)

    def _in_order(self, line: XLine) -> EventBlock:
        """All events of a line, sorted. Also by the other clock: both run in the same order."""
        rows: list[tuple[int, ...]] = []
        for block in self._reader.blocks(line):
            rows += zip(
                block.device_starts,
                (-duration for duration in block.device_durations),
                block.starts,
                block.durations,
                block.ids,
                strict=True,
            )
            if len(rows) > SORTED_MOST:
                sentence = f"{self._plane.file.name} has too many events that are not in order."
                raise CaptureError(Trouble.FAILED, sentence)
        rows.sort()
        device_starts, negative, starts, durations, ids = zip(*rows, strict=True)
        starts = tuple(sorted(starts))
        own = [-duration for duration in negative]
        return EventBlock(
            ids=ids,
            starts=starts,
            durations=durations,
            device_starts=device_starts,
            device_durations=own,
            tails=(),
        )

    def _tally(self, id: Hashable) -> Tally:
        if len(self._facts) >= self._plane.file.limits.operations_most:
            raise too_many_operations(self._plane.file.name)
        if id not in self._facts:
            facts = self._facts[id] = facts_of(self._plane.kind(int(id)))  # type: ignore[call-overload]
            if facts.category in OFF_DUTY:
                self._off_duty.add(id)
        return Tally()

    def _rows(self) -> Iterator[OperationRow]:
        for id, tally in self._times.tallies.items():
            yield OperationRow(self._facts[id], tally.runs, tally.own_ps)

    def _events(self, line: XLine | None, most: int) -> Iterator[NamedEvent]:
        """The events of a line by name, at most so many, sorted by start."""
        if line is None:
            return
        names: dict[int, str] = {}
        for block in self._reader.blocks(line):
            self._extend(line.name, block)
            for id, start, duration in zip(block.ids, block.starts, block.durations, strict=True):
                if id not in names:
                    names[id] = clean(self._plane.kind(id).name, 200)
                yield NamedEvent(names[id], start, duration)
                most -= 1
                if most <= 0:
                    return

    def _programs(self, line: XLine | None) -> Iterator[ProgramRow]:
        totals: dict[str, tuple[int, int]] = {}
        starts: dict[str, list[int]] = {}
        for name, start, duration in self._events(line, SORTED_MOST):
            runs, total = totals.get(name, (0, 0))
            totals[name] = runs + 1, total + duration
            if runs < STARTS_MOST:
                starts.setdefault(name, []).append(start)
        for name, (runs, total) in totals.items():
            own = tuple(sorted(starts[name]))
            yield ProgramRow(
                name=_PROGRAM_ID.sub("", name),
                id=program_id(name),
                total_ps=total,
                starts=own,
                runs=runs,
            )


class StepCounts:
    """Counts the operations that begin in each step of a device."""

    def __init__(self, steps: list[NamedEvent]) -> None:
        self._steps = sorted(steps, key=lambda step: step.start)
        self._first = 0
        self._counts = [0] * len(steps)

    def restart(self) -> None:
        """Counts again from 0."""
        self._first, self._counts = 0, [0] * len(self._steps)

    def add(self, starts: Sequence[int]) -> None:
        """Counts operations, which come sorted by start."""
        for i in range(self._first, len(self._steps)):
            step = self._steps[i]
            if step.start > starts[-1]:
                break
            end = bisect_left(starts, step.start + step.duration)
            self._counts[i] += end - bisect_left(starts, step.start)
            if step.start + step.duration <= starts[0]:
                self._first = i + 1

    def rows(self) -> Iterator[DeviceStep]:
        """The steps, with their counts."""
        for (name, start, duration), count in zip(self._steps, self._counts, strict=True):
            yield DeviceStep(name, start, start + duration, count)


class CoreIds:
    """Global ids of the devices. Zeros are not sent, so that one plane alone does not tell."""

    def __init__(self, planes: Iterable[XPlane]) -> None:
        details = [plane.stats().get("core_details") for plane in planes]
        ids = [_core_id(one) for one in details]
        self._has_ids = len(ids) == 1 or any(id is not None for id in ids)

    def id_of(self, details: StatValue | None) -> int | None:
        """The id in a plane's details; None when the trace does not number its devices."""
        if not isinstance(details, (str, bytes)) or not self._has_ids:
            return None
        return _core_id(details) or 0


def _core_id(details: StatValue | None) -> int | None:
    packed = details.encode() if isinstance(details, str) else details
    if not isinstance(packed, bytes):
        return None
    try:
        ids = [value for number, _, value in fields(packed) if number == _CORE_ID]
    except NotATraceError:
        return None
    return next((id for id in ids if isinstance(id, int) and id < 1 << 31), None)


def program_id(name: str) -> int | None:
    """The number in the parentheses of `jit_step(123)`; None without one."""
    match = _PROGRAM_ID.search(name)
    return int(match[1]) if match else None


def _size(line: XLine) -> int:
    """Bytes of a line: of two with the same name, the larger one counts."""
    return line.end - line.start


def _peak(value: StatValue | None, unit: float) -> float | None:
    """A peak of the plane; None for 0 too, which stands for a memory that is not there."""
    is_number = isinstance(value, (int, float)) and PEAK_LEAST <= value < PEAK_MOST
    return value * unit if is_number else None  # type: ignore[operator]


def _nominal_flops(kind: str | None) -> float | None:
    generation = chips.by_kind(kind or "")
    return None if generation is None else chips.peak_flops_per_device(generation)


def _nominal_bandwidth(kind: str | None) -> float | None:
    generation = chips.by_kind(kind or "")
    return None if generation is None else chips.peak_hbm_bytes_per_s_per_device(generation)
