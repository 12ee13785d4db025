"""JAX's device memory profile: bytes per device, and the lines of code that hold them.

The bytes are those of live arrays, not of all memory in use.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from tpusmi.model import Allocation, Site
from tpusmi.pprof import MOST_STRING_BYTES, Profile, ProfileError, members

BUFFER, EXECUTABLE = "buffer", "executable"
SITES_MOST, ALLOCATIONS_MOST = 1000, 2000
MOST_JSON_BYTES = 1024 * 1024
"""Most bytes of packed sites, unpacked."""

SiteKey = tuple[str, str, int, str]
"""Function, file, line, kind."""
Rows = dict[SiteKey, list[int]]
"""Bytes and buffers of each site."""


class LiveBuffers(NamedTuple):
    """Live buffers of one device."""

    bytes: int
    buffers: int


class Totals(NamedTuple):
    """What a profile adds up to.

    Devices are keyed by global id; None where a sample names no device.
    """

    devices: dict[int | None, LiveBuffers]
    executables: int


class HeldMemory(NamedTuple):
    """The memory that a profile lists, by what holds it: as MemoryProfile has it."""

    sites: tuple[Site, ...]
    allocations: tuple[Allocation, ...] = ()
    left_out_bytes: int | None = 0
    left_out_count: int | None = 0


def totals(profile: bytes) -> Totals:
    """Live buffers per device and the number of executables. Raises ProfileError."""
    table = Profile(profile)
    counts: dict[bytes, list[int]] = {}
    for sample in table.samples():
        sums = counts.setdefault(sample.labels, [0, 0])
        sums[0] += sample.size
        sums[1] += sample.buffers
    devices: dict[int | None, LiveBuffers] = {}
    executables = 0
    for packed, (size, count) in counts.items():
        kind, device = _labels(table, packed)
        if kind == EXECUTABLE:
            executables += count
            continue
        before = devices.get(device, LiveBuffers(0, 0))
        devices[device] = LiveBuffers(before.bytes + size, before.buffers + count)
    return Totals(devices, executables)


def held_memory(profile: bytes, by_device: bool = False) -> HeldMemory:
    """The memory in a profile, by what holds it. Raises ProfileError.

    A site is the innermost frame outside JAX and the usual libraries; when there is none, the
    innermost frame.
    """
    table = Profile(profile)
    sums: dict[tuple[bytes, bytes], list[int]] = {}
    for sample in table.samples():
        entry = sums.setdefault((sample.locations, sample.labels), [0, 0])
        entry[0] += sample.size
        entry[1] += sample.buffers
    rows: Rows = {}
    devices: dict[int | None, Rows] = {}
    labelled = {packed: _labels(table, packed) for _, packed in sums}
    for (locations, packed), (size, count) in sums.items():
        kind, device = labelled[packed]
        site = (*table.site(locations), kind)
        _add(rows, site, size, count)
        if by_device:
            _add(devices.setdefault(device, {}), site, size, count)
    sites = sorted((Site(*_row(*row)) for row in rows.items()), key=_largest_first)
    memory = HeldMemory(tuple(sites))
    return _with_largest(memory, devices) if by_device else memory


def _labels(table: Profile, packed: bytes) -> tuple[str, int | None]:
    """Kind and device of a sample."""
    labels = table.labels(packed)
    return labels.get("kind", BUFFER), device_id(labels.get("device", "none"))


def _add(rows: Rows, site: SiteKey, size: int, count: int) -> None:
    entry = rows.setdefault(site, [0, 0])
    # An executable on a TPU counts as minus one byte: its size is unknown.
    entry[0] += max(0, size)
    entry[1] += count


def _row(site: SiteKey, sums: Sequence[int]) -> tuple[str, str, int, str, int | None, int]:
    size, count = sums
    return (*site, size if size or site[3] == BUFFER else None, count)


def _with_largest(memory: HeldMemory, devices: Mapping[int | None, Rows]) -> HeldMemory:
    """With the largest allocations, and bytes and buffers of the others."""
    rows = [
        (sums, site, device) for device, sites in devices.items() for site, sums in sites.items()
    ]
    rows.sort(key=itemgetter(0), reverse=True)  # there may be 50,000, of which few are kept
    largest = []
    for sums, site, device in rows[:ALLOCATIONS_MOST]:
        *place, size, count = _row(site, sums)
        largest.append(Allocation._make((*place, device, size, count)))
    rest = [sums for sums, _, _ in rows[ALLOCATIONS_MOST:]]
    return memory._replace(
        allocations=tuple(sorted(largest, key=_largest_first)),
        left_out_bytes=sum(size for size, _ in rest),
        left_out_count=sum(count for _, count in rest),
    )


def _largest_first(row: Site | Allocation) -> tuple[int, int, str, int]:
    return (-(row.bytes or 0), -row.count, row.file, row.line)


def packed_sites(profile: bytes, most: int = 200) -> bytes:
    """The sites of a profile that is too large for its place, as gzip'ed JSON, and in a second
    gzip member what each device has of them. Raises ProfileError.

    Readers of format 1.1 unpack the first member, and do not look for another.
    """
    memory = held_memory(profile, by_device=True)
    rows = [site[:6] for site in memory.sites[:most]]  # what readers of format 1.1 unpack
    places = {site[:4]: i for i, site in enumerate(rows)}
    left_out = [memory.left_out_bytes or 0, memory.left_out_count or 0]
    by_site = []
    for a in memory.allocations:
        if a[:4] in places:
            by_site.append((places[a[:4]], a.device, a.bytes, a.count))
        else:
            left_out[0] += a.bytes or 0
            left_out[1] += a.count
    return b"".join(_packed(json.dumps(part).encode()) for part in (rows, [left_out, by_site]))


def unpacked_sites(packed: bytes, by_device: bool = False) -> HeldMemory:
    """The sites that packed_sites() packed. Raises ProfileError."""
    try:
        first, more = members(packed, MOST_JSON_BYTES)
        sites = tuple(_checked_site(*row) for row in _short_list(json.loads(first), SITES_MOST))
        if not by_device:
            return HeldMemory(sites)
        if not more:  # format 1.1 says neither which device nor what was left out
            unnamed = tuple(Allocation._make((*s[:4], None, s.bytes, s.count)) for s in sites)
            return HeldMemory(sites, unnamed, left_out_bytes=None, left_out_count=None)
        (size, count), rows = json.loads(members(more, MOST_JSON_BYTES)[0])
        allocations = tuple(
            _checked_allocation(sites, *row) for row in _short_list(rows, ALLOCATIONS_MOST)
        )
        size, count = _sane(size, count)
        return HeldMemory(sites, allocations, left_out_bytes=size, left_out_count=count)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise ProfileError(f"has sites that cannot be read: {error}") from None


def _short_list(rows: Any, most: int) -> list[Any]:
    if not isinstance(rows, list) or len(rows) > most:
        raise ValueError(f"not a list of at most {most}")
    return rows


def _checked_site(
    function: str, file: str, line: int, kind: str, size: int | None, count: int
) -> Site:
    number, sane_size, buffers = _sane(line, size or 0, count)
    return Site(
        function=_text(function),
        file=_text(file),
        line=number,
        kind=_text(kind),
        bytes=None if size is None else sane_size,
        count=buffers,
    )


def _checked_allocation(
    sites: Sequence[Site], index: int, device: int | None, size: int | None, count: int
) -> Allocation:
    place, number, sane_size, buffers = _sane(index, device or 0, size or 0, count)
    device = None if device is None else number
    size = None if size is None else sane_size
    return Allocation._make((*sites[place][:4], device, size, buffers))


def _text(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError("a name that is not text")
    return text[:MOST_STRING_BYTES]


def _sane(*numbers: int) -> list[int]:
    if not all(isinstance(n, (int, float)) and 0 <= n < 2**62 for n in numbers):
        raise ValueError("a number that cannot be true")
    return [int(n) for n in numbers]


def device_id(label: str) -> int | None:
    """The global device id in a label, in any spelling JAX has used; None when it has none."""
    # The id ends the label, or stands before the place: `TPU_4(process=1,(2,0,0,0))`, `cuda:0`,
    # `TFRT_CPU_0`, or a bare `0`.
    name = label.partition("(")[0]
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits[:18]) if digits else None


def _packed(data: bytes) -> bytes:
    """Gzip without the gzip module, whose import costs a reader more than the unpacking."""
    packer = zlib.compressobj(level=1, wbits=31)
    return packer.compress(data) + packer.flush()
