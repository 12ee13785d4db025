"""The files of agents, and what is in them."""

from __future__ import annotations

import functools
import gzip
import json
import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from support import segments as made

from fuzz.target import DATA, Target, target
from tpusmi.memprofile import held_memory, packed_sites, totals, unpacked_sites
from tpusmi.model import Host, ProcessKey
from tpusmi.pprof import MOST_UNPACKED_BYTES, ProfileError
from tpusmi.sources.segments import Segments
from tpusmi.sources.segments.contents import checked_facts
from tpusmi.sources.segments.slice_report import slice_of
from tpusmi.wire.layout import (
    BLOB_HEAD,
    CRC,
    FACTS_JSON,
    HEADER,
    HEADER_BYTES,
    PREAMBLE,
    PROFILE_PPROF,
    PROFILE_SITES,
    SLICE_JSON,
    Header,
    plan,
)
from tpusmi.wire.reader import MOST_BYTES, BlobContent
from tpusmi.wire.writer import SegmentWriter


@target
def segments(directory: Path) -> Iterator[Target]:
    """Files of agents, in their directory; most with checksums that are right, as anybody can make
    them.
    """
    inputs = [*map(functools.partial(_segment, directory), (1, 2, 8))]

    def run(data: bytes) -> None:
        data = _summed(data) if len(data) % 8 else data
        pid, _, ticks = HEADER.unpack_from(data.ljust(HEADER_BYTES, b"\0"), PREAMBLE.size)[:3]
        path = directory / f"{pid}-{ticks}.seg"
        path.write_bytes(data)
        source = Segments(Host(segment_dir=str(directory)), with_past=True, by_device=True)
        try:
            for _ in range(2):
                found = source.read(time.monotonic())
                # Only SegmentError is caught there: any other error of a reader comes out here.
                shown = [found.readings, found.past, found.devices, found.slices]
                json.dumps(shown, allow_nan=False)
        finally:
            source.close()
            path.unlink()

    yield Target(run, inputs, [b'"argv": [', b'"devices": [', b"{}", b"[[", *map(_double, DOUBLES)])


DOUBLES = (0.0, -0.0, 1e308, -1.0, 2.0**62, float("nan"), float("inf"), 1e-308)


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


def _segment(directory: Path, devices: int) -> bytes:
    """A segment without spare room, so that a change is likely to meet something."""
    who = made.KNOWN._replace(uid=os.getuid())
    usual = plan(who, devices, 100.0, 1_700_000_000.0)
    facts_half, profile_half = 2048, 6 * 1024
    profile_offset = usual.facts_offset + 2 * facts_half
    slice_offset, slice_half = profile_offset + 2 * profile_half, 1024
    newest_offset = slice_offset + 2 * slice_half
    header = usual._replace(
        facts_half=facts_half,
        profile_offset=profile_offset,
        profile_half=profile_half,
        newest_offset=newest_offset,
        slots_offset=newest_offset + 8,
        slots=5,
        slice_offset=slice_offset,
        slice_half=slice_half,
    )
    path = directory / "made"
    writer = SegmentWriter(str(path), header)
    for n in range(4):
        rows = [made.device(i) for i in range(devices)]
        writer.append(made.slot(96.0 + n, made.RUNNING, rows))
    assert writer.facts.write(FACTS_JSON, json.dumps(made.facts(devices)).encode(), 99.0)
    profile = (DATA / "microjax.prof").read_bytes() if devices < 8 else None
    sites = packed_sites(made.profile_of_two())
    for kind, payload in ((PROFILE_SITES, sites), (PROFILE_PPROF, profile)):
        assert payload is None or writer.profile.write(kind, payload, 99.5)
    assert writer.slice.write(SLICE_JSON, made.slice_bytes(4), 99.5)
    writer.close()
    data = path.read_bytes()
    path.unlink()
    return data


def _summed(data: bytes) -> bytes:
    """With the checksums that its header, blobs and slots should have."""
    if len(data) < HEADER_BYTES:
        return data
    made = bytearray(data)
    _sum(made, 0, HEADER_BYTES - CRC.size)
    h = Header(*HEADER.unpack_from(made, PREAMBLE.size))
    if h.size < MOST_BYTES:
        made = made[: h.size].ljust(h.size, b"\0")
    facts, profile = (h.facts_offset, h.facts_half), (h.profile_offset, h.profile_half)
    for start, half in (facts, profile, (h.slice_offset, h.slice_half)):
        for at in (start, start + half):
            if at + BLOB_HEAD.size > len(made):
                continue
            length = BLOB_HEAD.unpack_from(made, at)[2]
            body = made[at + BLOB_HEAD.size : at + BLOB_HEAD.size + length]
            head = made[at : at + BLOB_HEAD.size - CRC.size]
            CRC.pack_into(made, at + len(head), zlib.crc32(body, zlib.crc32(head)))
    for slot in range(min(h.slots, 8)):
        at = h.slots_offset + slot * h.slot_bytes
        if h.slot_bytes > CRC.size and at + h.slot_bytes <= len(made):
            _sum(made, at, at + h.slot_bytes - CRC.size)
    return bytes(made)


def _sum(made: bytearray, start: int, end: int) -> None:
    CRC.pack_into(made, end, zlib.crc32(made[start:end]))


@target
def profiles(directory: Path) -> Iterator[Target]:
    """Memory profiles, unpacked and packed again."""
    inputs = [gzip.decompress(path.read_bytes()) for path in sorted(DATA.glob("*.prof"))]
    inputs.append(gzip.decompress(made.profile_of_two()))

    def run(data: bytes) -> None:
        packed = gzip.compress(data, 1)
        for decode in (totals, held_memory, lambda p: held_memory(p, by_device=True), packed_sites):
            try:
                decode(packed)
            except ProfileError:
                pass

    words = [b"\x12\x00", b"\x22\x04\x08\x01\x10\x01", b"\x0a\x02\x01\x02", b"\x12\x02\x01\x01"]
    yield Target(run, inputs, words)


@target
def made_profiles(directory: Path) -> Iterator[Target]:
    """Profiles that are well formed and of any size: each three bytes are a message and how much is
    in it.
    """

    def run(data: bytes) -> None:
        out = bytearray()
        for i in range(0, min(len(data), 600) - 2, 3):
            if (
                len(out) < MOST_UNPACKED_BYTES
            ):  # the most that is unpacked: more would be our own memory
                out += _message(*data[i : i + 3])
        for decode in (totals, lambda p: held_memory(p, by_device=True)):
            try:
                decode(gzip.compress(out[:MOST_UNPACKED_BYTES], 1))
            except ProfileError:
                pass

    yield Target(run, [bytes(range(200)), bytes([0, 255, 1, 1, 250, 40, 2, 9, 9, 3, 255, 255] * 9)])


def field(number: int, value: int | bytes) -> bytes:
    """A field of a protobuf message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    low = b""
    while value > 0x7F:
        low += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return low + bytes((value,))


def _message(kind: int, size: int, more: int) -> bytes:
    few, many = 1 + more % 8, size * (1 + more)
    if kind % 5 == 0:
        label = field(3, field(1, 2) + field(2, few) + field(9, more)) * (size % 7)
        stack = bytes((few,)) * (many % 3000) + bytes((more % 128,))
        return field(2, field(1, stack) + field(2, b"\1\1") + label) * few
    if kind % 5 == 1:
        line = field(4, field(1, few) + field(2, size))
        return field(4, field(1, few) + line * (many % 70 if more % 3 else many))
    if kind % 5 == 2:
        return field(
            5, field(1, few) + field(7, 1) * (many if more % 5 == 0 else 1) + field(4, few)
        )
    if kind % 5 == 3:
        return field(6, b"/jax/" + b"x/" * (many * (50 if more % 7 == 0 else 1)))
    return field(15, 0) * many + field(4, b"") * few


@target
def sites(directory: Path) -> Iterator[Target]:
    """The sites of a profile that was too large, and the facts of a job: JSON."""
    packed = packed_sites((DATA / "ledgetter.prof").read_bytes())
    unpacker = zlib.decompressobj(wbits=31)
    first = unpacker.decompress(packed)
    second = gzip.decompress(unpacker.unused_data)
    facts = json.dumps(made.facts(4, warnings=[{"code": "x", "message": "y"}])).encode()

    def run(data: bytes) -> None:
        for whole in (gzip.compress(data, 1), gzip.compress(first, 1) + gzip.compress(data, 1)):
            try:
                unpacked_sites(whole, by_device=True)
            except ProfileError:
                pass
        try:
            said = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(said, dict):
            checked_facts(said, ProcessKey(1, 1), 4)

    words = [b"[", b"{", b"null", b"1e400", b"-1", b'"\\ud800"', b"NaN", b"9" * 30, b'"argv": ']
    yield Target(run, [first, second, facts], words)


@target
def slices(directory: Path) -> Iterator[Target]:
    """What a segment says of the other hosts of its job: lines of JSON."""
    inputs = [zlib.decompress(made.slice_bytes(n)) for n in (2, 16)]

    def run(data: bytes) -> None:
        blob = BlobContent(1, SLICE_JSON, 99.5, zlib.compress(data, 1))
        found = slice_of(blob, ProcessKey(1, 1), 0.0, 100.0)
        json.dumps(None if found is None else [found, found.aged(1000.0)], allow_nan=False)

    words = [b"[", b"]", b"\n", b"null", b"1e400", b"-1", b'"\\ud800"', b"NaN", b"9" * 30, b"[[[[["]
    yield Target(run, inputs, words)
