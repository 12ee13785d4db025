"""Devices whose operations are spread over several lines: streams of a GPU, threads of a CPU."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator

from tpusmi.text import clean, clean_or_none
from tpusmi.trace.busy_time import EventColumns, SelfTimes, Tally, union_of_lines
from tpusmi.trace.core_trace import CoreTrace, OperationRow, ProgramRow
from tpusmi.trace.event_blocks import EventReader, stat_head, stat_messages
from tpusmi.trace.operation_facts import (
    COLLECTIVES,
    HOST,
    NAME_MOST,
    UNNAMED,
    OperationFacts,
    OperationKey,
    framework_name,
    share_of,
)
from tpusmi.trace.troubles import CaptureError, Trouble, too_many_operations
from tpusmi.trace.xspace import StatValue, XLine, XPlane

GPU_PLANE = re.compile(r"/device:GPU:(\d{1,9})")
EVENTS_MOST = 2_000_000
DERIVED_LINES = frozenset(
    (
        "Steps", "XLA Modules", "XLA Ops", "Async XLA Ops", "Framework Ops", "Source code",
        "Framework Name Scope", "Source", "XLA TraceMe", "Launch Stats", "Host Offload Ops",
        "_counters_",
    )
)  # fmt: skip
"""Lines that only repeat what the streams have, or have no operations."""
KEY_STATS = ("hlo_module", "hlo_op", "program_id", "name", "tf_op")
"""Stats of an event that tell its operation from others."""


class _Everything:
    def wants(self, id: bytes, rest: bytes) -> bool:
        """Always true."""
        return True


class StreamDevice:
    """Sums up one device, line by line."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines: list[EventColumns] = []
        self._tallies: dict[OperationKey, Tally] = {}

    def add(self, line: EventColumns) -> None:
        """Adds the operations of one line."""
        line.sort()
        SelfTimes(self._tally).add(line.keys, line.starts, line.durations)
        self._lines.append(line)

    def _tally(self, key: Hashable) -> Tally:
        if len(self._tallies) >= self._limit:
            raise too_many_operations("The trace")
        return self._tallies.setdefault(key, Tally())  # type: ignore[arg-type]

    def trace(self, plane: str, index: int | None, stats: dict[str, StatValue]) -> CoreTrace:
        """The sums."""
        busy = union_of_lines(self._lines)
        return CoreTrace(
            plane=clean(plane, 100),
            local_index=index,
            id=None,
            device_type=clean_or_none(stats.get("device_vendor"), 100),
            captured_ps=busy.span,
            busy_ps=busy.busy,
            duty_ps=busy.busy,
            duty_span_ps=busy.span,
            peak_flops_per_s=None,
            peak_hbm_bytes_per_s=_rate(stats.get("memory_bandwidth")),
            operations=tuple(self._rows()),
            programs=tuple(self._programs()),
        )

    def _rows(self) -> Iterator[OperationRow]:
        for key, tally in self._tallies.items():
            facts = OperationFacts(
                name=key.name or key.kernel or UNNAMED,
                category=_category(key),
                program_id=key.program_id,
                program=key.program or None,
                framework_name=key.path or None,
                source=None,
                flops=None,
                hbm_bytes=None,
                share=_share(key),
                is_custom=False,
            )
            yield OperationRow(facts, tally.runs, tally.own_ps)

    def _programs(self) -> Iterator[ProgramRow]:
        """The programs by the operations that name them: as many runs as of their rarest one."""
        programs: dict[tuple[str, int | None], list[Tally]] = {}
        for key, tally in self._tallies.items():
            if key.program:
                programs.setdefault((key.program, key.program_id), []).append(tally)
        for (name, id), tallies in programs.items():
            total = sum(tally.own_ps for tally in tallies)
            yield ProgramRow(
                name=name,
                id=id,
                total_ps=total,
                starts=(),
                runs=min(tally.runs for tally in tallies),
            )


class GpuPlane:
    """One GPU, as its streams are read."""

    def __init__(self, plane: XPlane, index: int) -> None:
        self._plane, self._index = plane, index
        self._reader = EventReader(plane)
        ids = plane.stat_ids(*KEY_STATS)
        self._key_heads = tuple(stat_head(id) for id in ids if id is not None)
        self._keys: dict[tuple[object, ...], OperationKey] = {}
        self._left = EVENTS_MOST

    def read(self) -> CoreTrace:
        """All that the plane shows: the union of its streams."""
        device = StreamDevice(self._plane.file.limits.operations_most)
        for line in self._plane.lines():
            if line.name not in DERIVED_LINES:
                device.add(self._events(line))
        return device.trace(self._plane.name, self._index, self._plane.stats())

    def _events(self, line: XLine) -> EventColumns:
        columns = EventColumns()
        for block in self._reader.blocks(line, _Everything()):
            self._left -= len(block.ids)
            if self._left < 0:
                sentence = f"{self._plane.file.name} has more events of one GPU than the limit."
                raise CaptureError(Trouble.FAILED, sentence)
            for id, start, took, tail in zip(
                block.ids, block.starts, block.durations, block.tails, strict=True
            ):
                columns.add(start, took, self._key(id, tail))
        return columns

    def _key(self, id: int, tail: bytes) -> OperationKey:
        """The key of an event. Equal stats mean an equal key, which is then not made again."""
        stats = [one for one in stat_messages(tail) if one.startswith(self._key_heads)]
        raw = (id, *stats)
        if raw not in self._keys:
            if len(self._keys) >= self._plane.file.limits.operations_most:
                raise too_many_operations(self._plane.file.name)
            kernel = clean(self._plane.kind(id).name, NAME_MOST)
            self._keys[raw] = _key(kernel, self._plane.named(stats))
        return self._keys[raw]


def read_cpu(index: int | None, lines: Iterable[EventColumns], limit: int) -> CoreTrace:
    """One device of the CPU backend: the union of its threads. None is all devices together."""
    device = StreamDevice(limit)
    for line in lines:
        device.add(line)
    name = "All CPU devices" if index is None else f"CPU device {index}"
    return device.trace(name, index, {})


def _key(kernel: str, stats: dict[str, StatValue]) -> OperationKey:
    program_id = stats.get("program_id")
    path = framework_name(stats.get("name")) or framework_name(stats.get("tf_op")) or ""
    return OperationKey(
        program=clean_or_none(stats.get("hlo_module"), NAME_MOST) or "",
        program_id=program_id if isinstance(program_id, int) else None,
        name=clean_or_none(stats.get("hlo_op"), NAME_MOST) or "",
        kernel=kernel,
        path="" if path == "XlaModule" else path,
    )


def _rate(value: StatValue | None) -> float | None:
    is_number = isinstance(value, (int, float)) and 0 < value < 1e18
    return float(value) if is_number else None  # type: ignore[arg-type]


def _category(key: OperationKey) -> str | None:
    share = _share(key)
    if share == HOST:
        return "copy"
    return "collective" if share == COLLECTIVES else ("kernel" if key.kernel else None)


def _share(key: OperationKey) -> str:
    kernel = key.kernel.lower()
    if "memcpyh2d" in kernel or "memcpyd2h" in kernel:
        return HOST
    return COLLECTIVES if "nccl" in kernel else share_of("", key.name)


def gpu_planes(planes: Iterable[XPlane]) -> Iterator[tuple[int, XPlane]]:
    """The planes of GPUs, with their numbers."""
    for plane in planes:
        match = GPU_PLANE.fullmatch(plane.name)
        if match is not None:
            yield int(match[1]), plane
