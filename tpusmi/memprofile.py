"""JAX's device memory profile: bytes per device, and the lines of code that hold them.

Bytes are those of live arrays, not of memory in use.
"""

from __future__ import annotations

import json
import zlib
from typing import NamedTuple

from tpusmi.model import Site
from tpusmi.pprof import Profile, ProfileError, unpacked

BUFFER, EXECUTABLE = "buffer", "executable"


class Usage(NamedTuple):
    """Live buffers of one device."""

    bytes: int
    buffers: int


class Totals(NamedTuple):
    """What a profile adds up to.

    Devices are keyed by global id; None where a sample names no device.
    """

    devices: dict[int | None, Usage]
    executables: int


def totals(profile: bytes) -> Totals:
    """Live buffers per device and the number of executables. Raises ProfileError."""
    table = Profile(profile)
    counts: dict[bytes, list[int]] = {}
    for sample in table.samples():
        sums = counts.setdefault(sample.labels, [0, 0])
        sums[0] += sample.size
        sums[1] += sample.buffers
    devices: dict[int | None, Usage] = {}
    executables = 0
    for packed, (size, count) in counts.items():
        labels = table.labels(packed)
        if labels.get("kind") == EXECUTABLE:
            executables += count
            continue
        device = device_id(labels.get("device", "none"))
        before = devices.get(device, Usage(0, 0))
        devices[device] = Usage(before.bytes + size, before.buffers + count)
    return Totals(devices, executables)


def sites(profile: bytes, most: int = 200) -> tuple[Site, ...]:
    """The lines of code that hold memory, largest first. Raises ProfileError.

    A site is the innermost frame outside JAX and the usual libraries; when there is none, the
    innermost frame.
    """
    table = Profile(profile)
    sums: dict[tuple[bytes, bytes], list[int]] = {}
    for sample in table.samples():
        entry = sums.setdefault((sample.locations, sample.labels), [0, 0])
        entry[0] += sample.size
        entry[1] += sample.buffers
    found: dict[tuple[str, str, int, str], list[int]] = {}
    for (locations, packed), (size, count) in sums.items():
        kind = table.labels(packed).get("kind", BUFFER)
        entry = found.setdefault((*table.site(locations), kind), [0, 0])
        # An executable on a TPU counts as minus one byte: its size is unknown.
        entry[0] += max(0, size)
        entry[1] += count
    rows = (
        Site(function, file, line, kind, size if size or kind == BUFFER else None, count)
        for (function, file, line, kind), (size, count) in found.items()
    )
    return tuple(sorted(rows, key=lambda s: (-(s.bytes or 0), -s.count, s.file, s.line))[:most])


def packed_sites(profile: bytes, most: int = 200) -> bytes:
    """The sites of a profile that is too large for its place, as gzip'ed JSON.

    Raises ProfileError.
    """
    return _packed(json.dumps([tuple(s) for s in sites(profile, most)]).encode())


def unpacked_sites(packed: bytes) -> tuple[Site, ...]:
    """The sites that packed_sites() packed. Raises ProfileError."""
    try:
        rows = json.loads(unpacked(packed))
        return tuple(_checked_site(*row) for row in rows)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ProfileError(f"has sites that cannot be read: {error}") from None


def _checked_site(
    function: str, file: str, line: int, kind: str, size: int | None, count: int
) -> Site:
    numbers = [int(n) for n in (line, size or 0, count)]
    if max(map(abs, numbers)) >= 2**62:
        raise ValueError("a number beyond 2^62")
    known = None if size is None else numbers[1]
    return Site(str(function), str(file), numbers[0], str(kind), known, numbers[2])


def device_id(label: str) -> int | None:
    """The global device id a label names, in any spelling JAX has used; None when it names none."""
    # The id ends the label, or stands before the place: `TPU_4(process=1,(2,0,0,0))`, `cuda:0`,
    # `TFRT_CPU_0`, or a bare `0`.
    name = label.partition("(")[0]
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits[:18]) if digits else None


def _packed(data: bytes) -> bytes:
    """Gzip without the gzip module, whose import costs a reader more than the unpacking."""
    packer = zlib.compressobj(level=1, wbits=31)
    return packer.compress(data) + packer.flush()
