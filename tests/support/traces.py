"""Traces that nobody should have to read: cut off, of other kinds, absurd, or very large."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tpusmi.pprof import packed_varint
from tpusmi.simulate.trace_bytes import (
    Reference,
    TracedLine,
    TracedPlane,
    TraceWriter,
    Unsigned,
    field,
)
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.limits import TraceLimits

DATA = Path(__file__).parent.parent / "data"
MANGLED = DATA / "xplane/corrupt_utf8_mangled/tpu_inference.xplane.pb"
REAL = DATA / "xplane/v6e-4_inference/tpu_inference.xplane.pb"
MIB = 1024 * 1024
US, MS = 10**6, 10**9
"""Picoseconds."""
MANY = 1_000_000
MOST = 2**63 - 1
HOSTILE: dict[str, Callable[[], bytes]] = {}
"""Every hostile trace by its name; each is made when it is needed."""


def hostile(make: Callable[[], bytes]) -> Callable[[], bytes]:
    """Names it after the function."""
    HOSTILE[make.__name__] = make
    return make


def read_bytes(directory: Path, data: bytes) -> TraceProfile:
    """The profile of these bytes, by our own reader."""
    path = directory / "some.xplane.pb"
    path.write_bytes(data)
    return read_trace(str(path), TraceLimits(until_s=time.monotonic() + 30))


def device(trace: TraceWriter, number: int = 0, **stats: Any) -> TracedPlane:
    """A plane of a TPU core."""
    plane = trace.plane(f"/device:TPU:{number}")
    usual = {
        "device_type_string": "TPU v6 Lite",
        "peak_teraflops_per_second": 918.0,
        "peak_hbm_bw_gigabytes_per_second": 1638.0,
    }
    plane.stats({**usual, **stats})
    return plane


def operation(plane: TracedPlane, name: str = "fusion.1", **stats: Any) -> int:
    """Event metadata of an operation."""
    usual = {
        "hlo_category": Reference("convolution fusion"),
        "program_id": Unsigned(7),
        "flops": 10**9,
        "bytes_accessed": 10**6,
        "tf_op": "jit(step)/jit(main)/dot_general:",
    }
    text = f"%{name} = bf16[8] fusion(%p)"
    return plane.new_kind(text, {**usual, **stats}, display_name=name)


def ordinary(steps: int = 4) -> bytes:
    """A small sound trace: steps of one core, their programs and operations, and the host."""
    trace = TraceWriter(hostnames=["host"])
    plane = device(trace)
    kind = operation(plane)
    lines = [plane.line(name) for name in ("Steps", "XLA Modules", "XLA Ops")]
    for n in range(steps):
        lines[0].event(str(n), n * 10 * MS, 10 * MS)
        lines[1].event("jit_step(7)", n * 10 * MS, 9 * MS, {"run_id": Unsigned(n + 1)})
        lines[2].event(kind, n * 10 * MS + US, 4 * MS)
        lines[2].event(kind, n * 10 * MS + 5 * MS, 3 * MS)
    host = trace.plane("/host:CPU")
    main = host.line("main/1", timestamp_ns=10, number=1)
    for n in range(steps):
        main.event("train", n * 10 * MS, 9 * MS, {"step_num": n, "_r": 1})
    trace.plane("Task Environment").stats({"profile_start_time": Unsigned(1_790_000_000 * 10**9)})
    return trace.message


def operations(line_of: Callable[[TracedLine, int], None], **stats: Any) -> bytes:
    """A trace of one core whose line of operations that function writes."""
    trace = TraceWriter()
    plane = device(trace)
    kind = operation(plane, **stats)
    line_of(plane.line("XLA Ops"), kind)
    return trace.message


def cuts(data: bytes) -> Iterator[int]:
    """Where a trace can be cut off: the borders of all fields of all messages, and beside them."""
    for border in sorted(set(_borders(data, 0, len(data), 0))):
        yield from {at for at in (border - 1, border, border + 1) if 0 < at < len(data)}


def _borders(data: bytes, at: int, end: int, depth: int) -> Iterator[int]:
    while at < end:
        yield at
        tag, at = _varint(data, at)
        if tag & 7 == 2:
            size, at = _varint(data, at)
            yield at
            if depth < 4 and size:
                try:
                    yield from [*_borders(data, at, at + size, depth + 1)]
                except (IndexError, ValueError):
                    pass  # it is text
            at += size
        elif tag & 7 == 0:
            _, at = _varint(data, at)
        elif tag & 7 == 1:
            at += 8
        else:
            raise ValueError("not a message")
        if at > end:
            raise ValueError("not a message")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


# Files of other kinds


@hostile
def empty() -> bytes:
    return b""


@hostile
def one_byte() -> bytes:
    return b"\n"


@hostile
def half_of_a_real_one() -> bytes:
    data = REAL.read_bytes()
    return data[: len(data) // 2]


@hostile
def mangled_utf8() -> bytes:
    return MANGLED.read_bytes()


@hostile
def gzipped() -> bytes:
    return gzip.compress(ordinary())


@hostile
def trace_of_the_viewer() -> bytes:
    return gzip.compress(json.dumps({"displayTimeUnit": "ns", "traceEvents": []}).encode())


@hostile
def json_text() -> bytes:
    return b'{"schema": 99, "cores": []}\n'


@hostile
def deep_json() -> bytes:
    return b"[" * 500_000


@hostile
def memory_profile() -> bytes:
    return (DATA / "microjax.prof").read_bytes()


@hostile
def unpacked_memory_profile() -> bytes:
    return gzip.decompress(memory_profile())


@hostile
def program() -> bytes:
    with open(sys.executable, "rb") as file:
        return file.read(256 * 1024)


@hostile
def noise() -> bytes:
    return random.Random(1).randbytes(100_000)


@hostile
def zeros() -> bytes:
    return bytes(100_000)


@hostile
def text() -> bytes:
    return b"This is a note about a trace.\n" * 1000


# Bytes that are no message


@hostile
def endless_varint() -> bytes:
    return ordinary() + b"\x08" + b"\xff" * 1000


@hostile
def length_beyond_the_file() -> bytes:
    return ordinary() + b"\n" + packed_varint(10**9)


@hostile
def length_of_64_bits() -> bytes:
    return ordinary() + b"\n" + packed_varint(2**63)


@hostile
def length_beyond_its_plane() -> bytes:
    return field(1, field(2, b"/device:TPU:0") + b"\x1a" + packed_varint(MOST)) + ordinary()


@hostile
def groups() -> bytes:
    return field(1, b"\x0b" * 50_000)


@hostile
def nested_lengths() -> bytes:
    data = b""
    for _ in range(3000):
        data = field(3, data)
    return field(1, data)


@hostile
def texts_of_invalid_utf8() -> bytes:
    broken = b"\xff\xfe/device:TPU:0\xed\xa0\x80"
    plane = field(2, broken) + field(3, field(2, broken))
    return field(1, plane) + field(4, broken) + ordinary()


# Sound messages with absurd content


@hostile
def no_planes() -> bytes:
    return TraceWriter(hostnames=["host"]).message


@hostile
def no_events() -> bytes:
    return operations(lambda line, kind: None)


@hostile
def durations_of_64_bits() -> bytes:
    def write(line: TracedLine, kind: int) -> None:
        for offset in (0, MOST, 2**63, 2**64 - 1):
            line.event(kind, offset, 2**63)
            line.event(kind, offset, MOST)

    return operations(write)


@hostile
def negative_times() -> bytes:
    def write(line: TracedLine, kind: int) -> None:
        for n in range(100):
            line.event(kind, -n * MS, -n * US)
            line.event(kind, n * MS, -US)

    return operations(write)


@hostile
def events_out_of_order() -> bytes:
    def write(line: TracedLine, kind: int) -> None:
        for n in reversed(range(5000)):
            line.event(kind, n * MS, US)

    return operations(write)


@hostile
def overlapping_events() -> bytes:
    def write(line: TracedLine, kind: int) -> None:
        for n in range(5000):
            line.event(kind, n * US, 3 * US + n)

    return operations(write)


@hostile
def deeply_nested_events() -> bytes:
    def write(line: TracedLine, kind: int) -> None:
        for n in range(20_000):
            line.event(kind, n * US, (40_000 - 2 * n) * US)

    return operations(write)


@hostile
def events_without_length() -> bytes:
    def write(line: TracedLine, kind: int) -> None:
        for _ in range(20_000):
            line.event(kind, 5 * MS, 0)

    return operations(write)


@hostile
def absent_metadata() -> bytes:
    def write(line: TracedLine, kind: int) -> None:
        for n in range(1000):
            line.event(kind + 1 + n * 2**40, n * MS, US)
            line.event(0, n * MS, US)

    return operations(write)


@hostile
def metadata_that_names_itself() -> bytes:
    trace = TraceWriter()
    plane = device(trace, unknown=Reference("unknown"))
    first = plane.new_kind("%while.1", {"hlo_category": Reference("while")}, children=(2, 1))
    plane.new_kind("%while.2", {"hlo_category": Reference("hlo_category")}, children=(1, 2))
    plane.line("XLA Ops").event(first, 0, MS)
    # A reference to a text that is not there.
    dangling = field(6, field(1, plane.name("device_type_string")) + field(7, 2**62))
    return trace.message + field(1, field(2, b"/device:TPU:1") + dangling)


@hostile
def peaks_that_are_not_numbers() -> bytes:
    trace = TraceWriter()
    odd = (float("nan"), float("inf"), -1.0, 0.0, 1e308, 5e-324)
    for number, peak in enumerate(odd):
        plane = device(
            trace,
            number,
            peak_teraflops_per_second=peak,
            peak_hbm_bw_gigabytes_per_second=peak,
        )
        plane.line("XLA Ops").event(operation(plane), 0, MS)
    host = trace.plane("/host:CPU")
    host.stats({"matrix_unit_utilization_percent": float("nan")})
    return trace.message


@hostile
def flops_of_64_bits() -> bytes:
    def write(line: TracedLine, kind: int) -> None:
        for n in range(100):
            line.event(kind, n, 1)

    return operations(write, flops=MOST, bytes_accessed=Unsigned(2**64 - 1), program_id=-1)


@hostile
def negative_flops() -> bytes:
    return operations(lambda line, kind: line.event(kind, 0, MS), flops=-5, bytes_accessed=-5)


@hostile
def stats_of_wrong_kinds() -> bytes:
    return operations(
        lambda line, kind: line.event(kind, 0, MS, {"device_offset_ps": "soon", "run_id": 1.5}),
        flops="many",
        hlo_category=7,
        program_id=b"\xff",
        source=3.5,
        memory_access_breakdown=b"\xff\xff\xff",
    )


@hostile
def names_of_ten_megabytes() -> bytes:
    long = "x" * (10 * MIB)
    trace = TraceWriter(hostnames=[long])
    plane = device(trace, device_type_string=long)
    plane.line("XLA Ops").event(operation(plane, long, source=long), 0, MS)
    plane.line(long).event(long, 0, MS)
    trace.problem(long)
    return trace.message


@hostile
def control_characters() -> bytes:
    evil = "\x1b[2J\x1b]0;owned\x07\r\nfusion\x00\x9b31m\u202etxt.\u2028"
    trace = TraceWriter(hostnames=[evil])
    plane = device(trace, device_type_string=evil)
    kind = operation(plane, evil, source=evil, tf_op=evil, hlo_category=evil)
    plane.line("XLA Modules").event(f"{evil}(7)", 0, MS)
    plane.line("XLA Ops").event(kind, 0, MS)
    plane.line("Steps").event(evil, 0, MS)
    trace.problem(evil)
    trace.problem(evil, is_error=True)
    return trace.message


@hostile
def a_million_kinds() -> bytes:
    kinds = b"".join(
        field(4, field(1, n) + field(2, field(1, n) + field(2, b"%%f.%d" % n)))
        for n in range(1, MANY // 10)
    )
    # Ten copies of each: the last one counts.
    line = field(3, field(2, b"XLA Ops") + field(4, field(1, 77) + field(3, MS)))
    return field(1, field(2, b"/device:TPU:0") + line + kinds * 10)


@hostile
def too_many_operations() -> bytes:
    event, kind = [], []
    for n in range(1, TraceLimits(0.0).operations_most + 100):
        event.append(field(4, field(1, n) + field(2, n * 1000) + field(3, 900)))
        kind.append(field(4, field(1, n) + field(2, field(1, n) + field(2, b"%%f.%d" % n))))
    line = field(3, field(2, b"XLA Ops") + b"".join(event))
    return field(1, field(2, b"/device:TPU:0") + line + b"".join(kind))


@hostile
def a_million_planes() -> bytes:
    return field(1, field(2, b"/device:TPU:0")) * MANY


@hostile
def a_million_lines() -> bytes:
    return field(1, field(2, b"/device:TPU:0") + field(3, field(2, b"XLA Ops")) * MANY)


@hostile
def a_million_texts() -> bytes:
    return ordinary() + field(3, b"the profiler complains") * (MANY // 4) + field(4, b"h") * MANY


@hostile
def devices_with_absurd_numbers() -> bytes:
    trace = TraceWriter()
    for name in ("/device:TPU:99999999999999999999", "/device:TPU:0", "/device:TPU:0", "/device:"):
        plane = trace.plane(name)
        plane.stats({"core_details": b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\x7f"})
        plane.line("XLA Ops", timestamp_ns=MOST).event(operation(plane), MOST, MS)
    return trace.message


@hostile
def times_beyond_any_calendar() -> bytes:
    trace = TraceWriter()
    plane = device(trace)
    plane.line("XLA Ops").event(operation(plane), 0, MS)
    environment = trace.plane("Task Environment")
    environment.stats({"profile_start_time": Unsigned(2**64 - 1), "profile_stop_time": -1})
    return trace.message


@hostile
def steps_of_one_name() -> bytes:
    trace = TraceWriter()
    plane = device(trace)
    line = plane.line("Steps")
    for n in range(1000):
        line.event("7", (n % 3) * MS, (n % 5) * MS)
    plane.line("XLA Ops").event(operation(plane), 0, MS)
    return trace.message


# Very large ones


DEVICES = 8
EVENT_BYTES = 16


def write_large(path: Path, kind: str, mib: int = 300) -> None:
    """Write a sound trace of that size: mostly events of the `host`, mostly of `devices`, or one
    `name`, of which the file has no blocks on disk.
    """
    if kind == "name":
        size = mib * MIB
        head = b"\n" + packed_varint(size)
        name = b"\x12" + packed_varint(size - 1 - len(packed_varint(size)))
        with open(path, "wb") as file:
            file.write(head + name)
            file.truncate(len(head) + size)
        return
    with open(path, "wb") as file:
        if kind == "host":
            kinds, lines = b"MemoryAllocation", [(b"main/%d" % n, MIB) for n in range(mib)]
            _write_plane(file, b"/host:CPU", kinds, lines)
        for number in range(DEVICES if kind == "devices" else 0):
            lines = [(b"XLA Ops", mib * MIB // DEVICES)]
            _write_plane(file, b"/device:TPU:%d" % number, b"%fusion.1", lines)


def _write_plane(file: BinaryIO, name: bytes, kind: bytes, lines: list[tuple[bytes, int]]) -> None:
    """Write a plane with one kind of event, and lines of these names and sizes."""
    most = max(size for _, size in lines) // EVENT_BYTES
    events = _events(most)
    parts = [field(1, 1) + field(2, line) for line, _ in lines]
    heads = [b"\x1a" + packed_varint(len(part) + len(events)) + part for part in parts]
    rest = field(2, name) + field(4, field(1, 1) + field(2, field(1, 1) + field(2, kind)))
    file.write(b"\n" + packed_varint(len(rest) + sum(len(h) + len(events) for h in heads)) + rest)
    for head in heads:
        file.write(head)
        file.write(events)


def _events(count: int) -> bytes:
    """So many events, one after the other, all encoded in as many bytes."""
    import numpy as np

    offsets = np.arange(count, dtype=np.uint64) * US + 2**42
    events = np.empty((count, EVENT_BYTES), dtype=np.uint8)
    one = field(4, field(1, 1) + field(2, 2**42) + field(3, 900_000))
    assert len(one) == EVENT_BYTES
    events[:] = np.frombuffer(one, dtype=np.uint8)
    for place in range(7):
        more = 0x80 if place < 6 else 0
        events[:, 5 + place] = (offsets >> np.uint64(7 * place)).astype(np.uint8) & 0x7F | more
    return events.tobytes()


def leftovers(*directories: Path) -> list[str]:
    """All files below these directories."""
    return sorted(
        os.path.relpath(os.path.join(place, name), directory)
        for directory in directories
        for place, folders, files in os.walk(directory)
        for name in (*folders, *files)
    )
