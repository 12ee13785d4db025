"""What the processes of a multi-host job tell each other about themselves, through the key-value
store of JAX's coordination service: one short text per process, and all of them in a segment.

A summary is a JSON list of HEAD, then of REST, then of devices, each a list of DEVICE, then of MORE
as far as that is known. A later version only appends to MORE and DEVICE; null is unknown. A
segment's blob is zlib-compressed lines of JSON: a list of BLOB, then a list of LINE for each
process.

    [1, 17, 1700000000.5, 2.0, 3735928559, "host-3", "TPU v5e", 2, 1200, 0.241, 0.1, 40.5,
     0.6, [], 17179869184, [[8589934592, null, 97.5, 0.0, 12, [0, 1, 0], 0], …]]
"""

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

VERSION = 1
PREFIX = "tpusmi/slice/"
"""Keys of the store: this and the number of the process."""
SUMMARY_MOST, LISTS_MOST = 4096, 256
"""The longest summary that is read, in characters, and the most lists in it: each list may be in
another one, and what is nested too deep can be read and not be written.
"""
NAME_MOST, KIND_MOST, WARNINGS_MOST, CODE_MOST = 48, 24, 3, 24
DEVICES_MOST = 32
"""Devices in a summary: the first ones of more."""
PERIOD_LEAST_S = 5.0
REQUESTS_MOST_PER_S = 20.0
"""Requests that the coordinator gets, of all processes together."""
UNPACKED_MOST = 2 << 20
"""Bytes of the largest blob, unpacked: 3,000 processes of eight devices."""
PROCESSES_MOST = 4096

BLOB = ("version", "process_count", "process_index", "job", "period_s")
"""The first line of a blob."""
LINE = ("process_index", "age_s", "clock_difference_s", "summary")
"""Each of the others."""
_LINE_MOST = SUMMARY_MOST + 128


def period_s(processes: int) -> float:
    """Seconds between two summaries of a process, and two looks at all of them: two requests."""
    return max(PERIOD_LEAST_S, 2.0 * processes / REQUESTS_MOST_PER_S)


class Head(NamedTuple):
    """What the agents themselves read in the summaries of others."""

    version: int
    sequence: int
    wall_s: float
    period_s: float
    place: int
    """The same for processes whose segments one viewer finds in one directory."""


REST = (
    "name",
    "kind",
    "phase",  # number in tpusmi.model.PHASES
    "steps",
    "step_time_s",
    "since_last_step_s",
    "mfu_percent",
    "sample_age_s",
    "warnings",
    "hbm_limit_bytes",  # of each device, or a list
)
"""What follows the head, before the devices."""
MORE = ("slice_index", "device_count")
"""What follows the devices: which slice of a multislice job the process is in, and how many devices
it has where not all of them are there.
"""
DEVICE = (
    "hbm_used_bytes",
    # Only libtpu's SDK has it, which no agent loads into a job: null until one finds another way.
    "tensorcore_utilization_percent",
    "duty_cycle_percent",
    "idle_s",
    "id",
    "coords",
    "core_on_chip",
)


def short(value: float | None) -> float | int | None:
    """The number in few characters: whole, or with four significant digits. None if unknown."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e9 else rounded


def whole(value: float | None) -> int | None:
    """The number as a whole one; None where it is unknown."""
    return None if value is None or not math.isfinite(value) else int(value)


def summary(
    head: Head, rest: Sequence[Any], devices: Sequence[Sequence[Any]], more: Sequence[Any] = ()
) -> str:
    """The text that goes into the store: ASCII, under 600 bytes for eight devices."""
    return json.dumps([*head, *rest, [*devices], *more], separators=(",", ":"))


def head_of(row: list[Any] | None) -> Head | None:
    """The head of a summary, checked; None for one that cannot be believed."""
    if row is None or len(row) < len(Head._fields):
        return None
    head = Head._make(row[: len(Head._fields)])
    integers = (head.version, head.sequence, head.place)
    if not all(type(number) is int and 0 <= number < 2**62 for number in integers):
        return None
    if not all(type(x) in (int, float) and 0 <= x < 1e11 for x in (head.wall_s, head.period_s)):
        return None
    return head._replace(wall_s=float(head.wall_s), period_s=float(head.period_s))


def row_of(text: Any) -> list[Any] | None:
    """A summary as a list; None for text that is not one."""
    if not isinstance(text, str) or len(text) > SUMMARY_MOST:
        return None
    return _list_in(text) if text.count("[") + text.count("{") <= LISTS_MOST else None


def packed(blob: Sequence[Any], lines: Iterable[Sequence[Any]]) -> bytes:
    """The bytes of a segment's blob, from BLOB and a LINE for each process. Raises OverflowError
    for more than is read.
    """
    text = "\n".join(json.dumps(row, separators=(",", ":")) for row in (blob, *lines))
    if len(text) > UNPACKED_MOST:
        raise OverflowError(f"{len(text)} bytes")
    return zlib.compress(text.encode("ascii"), 1)


def unpacked(payload: bytes) -> tuple[list[Any], Iterator[list[Any]]] | None:
    """The first line, and the lines of processes that can be read; None for bytes that are not a
    blob, or that are too large when unpacked. Nothing is made of a line before it is due.
    """
    inflate = zlib.decompressobj()
    try:
        plain = inflate.decompress(payload, UNPACKED_MOST)
    except zlib.error:
        return None
    first, *others = plain.split(b"\n", PROCESSES_MOST)
    blob = _list_in(first) if inflate.eof else None
    if blob is None or len(blob) < len(BLOB):
        return None
    rows = map(_list_in, others[:PROCESSES_MOST])
    return blob, (row for row in rows if row is not None and len(row) >= len(LINE))


def _list_in(text: str | bytes) -> list[Any] | None:
    try:
        value = json.loads(text) if len(text) <= _LINE_MOST else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None
