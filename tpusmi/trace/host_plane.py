"""Reads the host's plane: memory, step markers, compilation, and the operations of CPU devices.

Most of its events are of no use here. Only those with a name or a stat that matters are decoded.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tpusmi.pprof import packed_varint
from tpusmi.text import clean, clean_or_none
from tpusmi.trace.busy_time import EventColumns, union
from tpusmi.trace.event_blocks import EventReader, stat_head, stat_messages
from tpusmi.trace.figures import MemoryPeak
from tpusmi.trace.operation_facts import OperationKey
from tpusmi.trace.troubles import too_many_operations
from tpusmi.trace.xspace import StatValue, XPlane

PLANE = "/host:CPU"
MEMORY = frozenset(("MemoryAllocation", "MemoryDeallocation"))
_GPU_ALLOCATOR = re.compile(r"GPU_(\d{1,4})_bfc")
MARKERS_MOST, EVENTS_MOST, DEVICES_MOST = 100_000, 1_000_000, 4096
OPERATION_STATS = ("hlo_op", "hlo_module", "program_id", "device_ordinal")
UNNUMBERED = -1
"""In place of an ordinal: the traces of a JAX before 0.9 do not tell CPU devices apart."""
MXU_STAT = "matrix_unit_utilization_percent"


class Marker(NamedTuple):
    """A step that the program marked, with `jax.profiler.StepTraceAnnotation`."""

    line: int
    name: str
    start: int
    duration: int


class HostTrace(NamedTuple):
    """What the host's plane shows."""

    memory: tuple[MemoryPeak, ...] = ()
    markers: tuple[Marker, ...] = ()
    compile_ps: int | None = None
    """Time in which the host compiled; None when it has no event of that."""
    waits: tuple[tuple[int, int, int], ...] = ()
    """Line, start and end of each wait for input that a line of the host names."""
    operations: Mapping[int, Mapping[int, EventColumns]] = MappingProxyType({})
    """Operations of the CPU backend: by the number of the device, and by line."""
    mxu_percent: float | None = None
    """As the profiler gives it; None for 0, which nearly always means that it was not measured."""
    is_whole: bool = True
    """False when it was left before its end, because it takes too long."""


class _IdOrStatFilter:
    """Events of these ids, or with one of these stats."""

    def __init__(self, ids: frozenset[bytes], stats: list[bytes]) -> None:
        self._ids = ids
        pattern = b"|".join(map(re.escape, stats)) or b"(?!)"
        self._search = re.compile(pattern).search

    def wants(self, id: bytes, rest: bytes) -> bool:
        """True when it may be one: the bytes of a stat's id can be part of something else."""
        return id in self._ids or self._search(rest) is not None


def _is_compilation(name: str) -> bool:
    """True for `backend_compile`, `PjRtClient::Compile`, `CompileInternal` and the like."""
    is_word = name.replace("::", "_", 1).isidentifier()
    prefixes = ("backend_compile", "XlaCompile")
    return is_word and (
        name.startswith(prefixes) or name.removesuffix("Internal").endswith("Compile")
    )


def _is_wait_for_input(name: str) -> bool:
    """True for the outer iterator of tf.data, for the loaders of PyTorch and for PyGrain."""
    if name.startswith("Iterator::"):
        return name.removeprefix("Iterator::").isidentifier()
    is_loader = name.endswith("__next__") and "DataLoader" in name
    return is_loader or name.startswith(("IteratorGetNext", "PyGrain"))


class HostPlane:
    """One host plane, as it is read."""

    def __init__(self, plane: XPlane, with_operations: bool, until_s: float) -> None:
        self._plane, self._until_s = plane, until_s
        self._peaks: dict[int, list[int]] = {}
        self._markers: list[Marker] = []
        self._compiles: list[tuple[int, int]] = []
        self._waits: list[tuple[int, int, int]] = []
        self._operations: dict[int, dict[int, EventColumns]] = {}
        self._operation_keys: dict[tuple[bytes, ...], tuple[int, OperationKey | None]] = {}
        heads = plane.stat_ids(*OPERATION_STATS) if with_operations else ()
        self._operation_heads = tuple(stat_head(id) for id in heads if id is not None)
        self._left = EVENTS_MOST
        self._kinds = self._kinds_of_use()

    def _kinds_of_use(self) -> dict[int, str]:
        """The ids of the events that matter by their name, and what they are."""
        kinds = {}
        for id, name in self._plane.kind_names():
            if name in MEMORY:
                kinds[id] = "memory"
            elif _is_compilation(name):
                kinds[id] = "compile"
            elif _is_wait_for_input(name):
                kinds[id] = "input"
        return kinds

    def read(self) -> HostTrace:
        """All that the plane shows. Lines without use are skipped, and so is the whole plane."""
        stats = self._plane.stat_ids("step_num", *(("hlo_op",) if self._operation_heads else ()))
        patterns = [stat_head(id) for id in stats if id is not None]
        is_whole = not (self._kinds or patterns) or self._read_lines(patterns)
        mxu = self._plane.stats().get(MXU_STAT)
        return HostTrace(
            memory=tuple(self._memory()) if is_whole else (),
            markers=tuple(self._markers),
            compile_ps=union(sorted(self._compiles)).busy if self._compiles and is_whole else None,
            waits=tuple(self._waits) if is_whole else (),
            operations=self._operations,
            mxu_percent=mxu if isinstance(mxu, float) and 0 < mxu <= 100 else None,
            is_whole=is_whole,
        )

    def _read_lines(self, patterns: list[bytes]) -> bool:
        reader = EventReader(self._plane)
        matching = _IdOrStatFilter(frozenset(packed_varint(id) for id in self._kinds), patterns)
        names: dict[int, str] = {}
        for number, line in enumerate(self._plane.lines()):
            for block in reader.blocks(line, matching):
                if time.monotonic() > self._until_s or self._left <= 0:
                    return False
                events = zip(block.ids, block.starts, block.durations, block.tails, strict=True)
                for id, start, duration, tail in events:
                    if id not in names:
                        names[id] = clean(self._plane.kind(id).name, 200)
                    self._add(Marker(number, names[id], start, duration), stat_messages(tail), id)
        return True

    def _add(self, event: Marker, messages: list[bytes], id: int) -> None:
        self._left -= 1
        if self._operation_heads and self._add_operation(event, messages):
            return
        stats = self._plane.named(messages)
        kind = self._kinds.get(id)
        end = event.start + event.duration
        if kind == "memory":
            self._add_memory(stats)
        elif kind == "compile":
            self._compiles.append((event.start, event.duration))
        elif kind == "input":
            self._waits.append((event.line, event.start, end))
        if "step_num" in stats and len(self._markers) < MARKERS_MOST:
            self._markers.append(event)

    def _add_memory(self, stats: dict[str, StatValue]) -> None:
        device = _device(stats)
        sizes = [stats.get(f"bytes_{what}") for what in ("reserved", "allocated", "available")]
        reserved, allocated, available = (s if isinstance(s, int) else None for s in sizes)
        if device is None or allocated is None or len(self._peaks) > DEVICES_MOST:
            return
        used = allocated + (reserved or 0)
        peak = self._peaks.setdefault(device, [0, 0])
        peak[0] = max(peak[0], used)
        peak[1] = max(peak[1], used + available if available else 0)

    def _memory(self) -> Iterator[MemoryPeak]:
        for device, (peak, capacity) in sorted(self._peaks.items()):
            if peak < 1 << 60:
                yield MemoryPeak(
                    local_index=device, peak_bytes=peak, capacity_bytes=capacity or None
                )

    def _add_operation(self, event: Marker, messages: list[bytes]) -> bool:
        """Adds the event if it is an operation of a device, which equal stats say again."""
        raw = tuple(one for one in messages if one.startswith(self._operation_heads))
        if raw not in self._operation_keys:
            if len(self._operation_keys) >= self._plane.file.limits.operations_most:
                raise too_many_operations(self._plane.file.name)
            self._operation_keys[raw] = _operation(self._plane.named([*raw]))
        device, key = self._operation_keys[raw]
        if key is None or device >= DEVICES_MOST:
            return False
        lines = self._operations.setdefault(device, {})
        lines.setdefault(event.line, EventColumns()).add(event.start, event.duration, key)
        return True


def _operation(stats: dict[str, StatValue]) -> tuple[int, OperationKey | None]:
    """The device and the key in the stats of an operation; None for any other event."""
    operation, device = stats.get("hlo_op"), stats.get("device_ordinal", UNNUMBERED)
    program, program_id = stats.get("hlo_module"), stats.get("program_id")
    if not isinstance(operation, str) or not isinstance(device, int) or device < UNNUMBERED:
        return UNNUMBERED, None
    key = OperationKey(
        program=clean_or_none(program, 200) or "",
        program_id=program_id if isinstance(program_id, int) else None,
        name=clean(operation, 200),
    )
    return device, key


def _device(stats: dict[str, StatValue]) -> int | None:
    """The local index of the device whose memory it is; None for memory of the host."""
    index, allocator = stats.get("index_on_host"), stats.get("allocator_name")
    if isinstance(index, int):
        return index if 0 <= index < DEVICES_MOST else None
    match = _GPU_ALLOCATOR.fullmatch(allocator) if isinstance(allocator, str) else None
    return int(match[1]) if match else None
