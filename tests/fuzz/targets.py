"""The readers of what strangers write, each with what it is tried with.

A target takes bytes and raises when something comes out of a reader that must not.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import re
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import forge
from metric_server import DUTY, EXECUTION, HBM_TOTAL, TRANSFER, gauge, labelled

from tpusmi.memprofile import held, packed_sites, totals, unpacked_sites
from tpusmi.metricproto import GET_METRIC, messages
from tpusmi.model import Host, ProcessKey
from tpusmi.pprof import ProfileError
from tpusmi.sources.holders import procfs
from tpusmi.sources.libtpu.answers import Asked, answer
from tpusmi.sources.libtpu.formats import parse
from tpusmi.sources.libtpu.names import NAMES
from tpusmi.sources.libtpu.plain import PlainChannel
from tpusmi.sources.libtpu.programs import cores
from tpusmi.sources.machine import host_facts
from tpusmi.sources.segments import Segments
from tpusmi.sources.segments.facts import parsed
from tpusmi.text import clean, command_line, without_secrets
from tpusmi.wire.layout import (
    BLOB_HEAD,
    CRC,
    FACTS_JSON,
    HEADER,
    HEADER_BYTES,
    PREAMBLE,
    PROFILE_PPROF,
    PROFILE_SITES,
    Header,
    plan,
)
from tpusmi.wire.reader import MOST_BYTES
from tpusmi.wire.writer import SegmentWriter

DATA = Path(__file__).parent.parent / "data"


class Target(NamedTuple):
    run: Callable[[bytes], None]
    inputs: Sequence[bytes]
    words: Sequence[bytes] = ()


TARGETS: dict[str, Callable[[Path], contextlib.AbstractContextManager[Target]]] = {}


def target(
    make: Callable[[Path], Iterator[Target]],
) -> Callable[[Path], contextlib.AbstractContextManager[Target]]:
    """Names it after the function."""
    TARGETS[make.__name__] = contextlib.contextmanager(make)
    return TARGETS[make.__name__]


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
                # What nobody expected is caught there, so that it costs no other segment.
                odd = [n for n in found.notes if re.search(r"\w(Error|Exception|Exit)\b", n)]
                assert not odd, odd
                json.dumps([found.readings, found.past, found.devices], allow_nan=False)
        finally:
            source.close()
            path.unlink()

    yield Target(run, inputs, [b'"argv": [', b'"devices": [', b"{}", b"[[", *map(_double, DOUBLES)])


DOUBLES = (0.0, -0.0, 1e308, -1.0, 2.0**62, float("nan"), float("inf"), 1e-308)


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


def _segment(directory: Path, devices: int) -> bytes:
    """A segment without spare room, so that a change is likely to meet something."""
    who = forge.KNOWN._replace(uid=os.getuid())
    usual = plan(who, devices, 100.0, 1_700_000_000.0)
    facts_half, profile_half = 2048, 6 * 1024
    profile_offset = usual.facts_offset + 2 * facts_half
    newest_offset = profile_offset + 2 * profile_half
    header = usual._replace(
        facts_half=facts_half,
        profile_offset=profile_offset,
        profile_half=profile_half,
        newest_offset=newest_offset,
        slots_offset=newest_offset + 8,
        slots=5,
    )
    path = directory / "made"
    writer = SegmentWriter(str(path), header)
    for n in range(4):
        rows = [forge.device(i) for i in range(devices)]
        writer.append(forge.slot(96.0 + n, forge.RUNNING, rows))
    assert writer.facts.write(FACTS_JSON, json.dumps(forge.facts(devices)).encode(), 99.0)
    profile = (DATA / "microjax.prof").read_bytes() if devices < 8 else None
    sites = packed_sites(forge.profile_of_two())
    for kind, payload in ((PROFILE_SITES, sites), (PROFILE_PPROF, profile)):
        assert payload is None or writer.profile.write(kind, payload, 99.5)
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
    for start, half in ((h.facts_offset, h.facts_half), (h.profile_offset, h.profile_half)):
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
    inputs.append(gzip.decompress(forge.profile_of_two()))

    def run(data: bytes) -> None:
        packed = gzip.compress(data, 1)
        for decode in (totals, held, lambda p: held(p, by_device=True), packed_sites):
            try:
                decode(packed)
            except ProfileError:
                pass

    words = [b"\x12\x00", b"\x22\x04\x08\x01\x10\x01", b"\x0a\x02\x01\x02", b"\x12\x02\x01\x01"]
    yield Target(run, inputs, words)


@target
def sites(directory: Path) -> Iterator[Target]:
    """The sites of a profile that was too large, and the facts of a job: JSON."""
    packed = packed_sites((DATA / "ledgetter.prof").read_bytes())
    unpacker = zlib.decompressobj(wbits=31)
    first = unpacker.decompress(packed)
    second = gzip.decompress(unpacker.unused_data)
    facts = json.dumps(forge.facts(4, warnings=[{"code": "x", "message": "y"}])).encode()

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
            parsed(said, ProcessKey(1, 1), 4)

    words = [b"[", b"{", b"null", b"1e400", b"-1", b'"\\ud800"', b"NaN", b"9" * 30, b'"argv": ']
    yield Target(run, [first, second, facts], words)


@target
def frames(directory: Path) -> Iterator[Target]:
    """What a metrics server sends, byte by byte."""
    body = gauge(DUTY, {0: 1.5, 1: 2.5}).SerializeToString()
    whole = struct.pack(">BI", 0, len(body)) + body
    status = b"\x00\x0bgrpc-status\x010\x00\x0cgrpc-message\x04nope"
    good = [
        (4, 0, 0, b""),
        (1, 4, 1, b"\x88\x5f\x10application/grpc"),
        (0, 0, 1, whole),
        (1, 5, 1, status),
    ]
    streams = [b"".join(_frame(*frame) for frame in part) for part in (good, good[:3], good[:1])]
    request = messages()["MetricRequest"](metric_name=DUTY)
    said = [b""]

    def run(data: bytes) -> None:
        said[0] = data
        channel = PlainChannel(f"ipv4:127.0.0.1:{port}")
        calls = [channel.call(GET_METRIC, request, 0.5) for _ in range(2)]
        for call in calls:
            if call.code().name == "OK":
                call.result()
            call.details().encode()
        channel.close()

    words = [_frame(kind, flags, 1, b"\x82") for kind in range(10) for flags in (0, 5)]
    with _saying(said) as port:
        yield Target(run, streams, words)


@contextlib.contextmanager
def _saying(said: Sequence[bytes]) -> Iterator[int]:
    """A port that says the first of them to whoever comes, and hangs up."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                client.settimeout(1)
                client.recv(65536)
                client.sendall(said[0])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(5)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">BHBBI", 0, len(payload), kind, flags, stream) + payload


@target
def answers(directory: Path) -> Iterator[Target]:
    """Messages of a metrics server, as every metric, as a status and as a list."""
    from google.protobuf.message import DecodeError

    inputs = [
        gauge(HBM_TOTAL, {i: 1 << 34 for i in range(8)}),
        gauge(DUTY, {"x-1": 1.5, None: 2.0}),
    ]
    for name in (EXECUTION, TRANSFER):
        made = gauge(name, {})
        for size in ("8MB+", "1KB"):
            row = labelled(made.metric.metrics.add(), buffer_size=size, device_ordinal=3)
            row.distribution.count = 10
            row.distribution.mean = 3.5
            row.distribution.bucket_options.exponential_buckets.num_finite_buckets = 5
            row.distribution.bucket_options.exponential_buckets.growth_factor = 2
            row.distribution.bucket_options.exponential_buckets.scale = 1
            row.distribution.bucket_counts.extend([1, 2, 3, 4, 0, 0, 0])
            row.timestamp.seconds = 1_800_000_000
        inputs.append(made)
    asked = Asked("localhost:8431", None, 1000.0, 1_800_000_000.0)

    def run(data: bytes) -> None:
        with contextlib.suppress(DecodeError):
            response = messages()["MetricResponse"].FromString(data)
            for name in NAMES:
                if name.grpc:
                    response.metric.name = name.grpc
                    found = answer(name, response, asked)
                    json.dumps([found.readings, found.latencies], allow_nan=False)
        with contextlib.suppress(DecodeError):
            cores(messages()["GetTpuRuntimeStatusResponse"].FromString(data), "localhost:1")

    yield Target(
        run, [made.SerializeToString() for made in inputs], [b"\x1a\x00", b"\x0a\x02\x12\x00"]
    )


@target
def strings(directory: Path) -> Iterator[Target]:
    """What libtpu's SDK prints, and words of a command line."""
    inputs = [
        b"12.5%\n33550229504\n0\n",
        b"tensorcore_0: 10\n8-tensorcore: 3\nsparsecore_1: 2\n",
        b"tensorcore_0, 1, 2, 3, 4, 5\n8MB+-grpc, 1.5, 2, 3, 4, 5\n",
        b"tray1.chip3.ici0.int: 0\nchip1: 10\n1-5: 3\n0-0\n",
        b"python\ntrain.py\n--hf-token\nx\n--api_key=y\nhttps://a:b@c/\neyJabcdefgh.x.y\n",
    ]

    def run(data: bytes) -> None:
        words = data.decode("utf-8", "replace").split("\n")
        for name in NAMES:
            found = parse(name, words, 1.0)
            json.dumps([found.readings, found.latencies, found.links], allow_nan=False)
        assert clean(command_line(words)) == command_line(words)
        without_secrets(words)

    words = [
        b'"',
        b"'",
        b"\\",
        b"=",
        b"token",
        b"://",
        b"hf_",
        b"eyJ",
        b"-",
        b": ",
        b", ",
        b"9" * 40,
    ]
    yield Target(run, inputs, words)


@target
def proc_texts(directory: Path) -> Iterator[Target]:
    """The files of a process and of the machine: all are one."""
    process = directory / "proc" / "7"
    (process / "fd").mkdir(parents=True)
    names = ("stat", "status", "environ", "cmdline", "comm", "mountinfo", "wchan", "cgroup", "maps")
    machine = ("loadavg", "meminfo", "uptime", "sys/kernel/osrelease", "sys/kernel/random/boot_id")
    (directory / "proc/sys/kernel/random").mkdir(parents=True)
    (directory / "sys/devices/system/cpu").mkdir(parents=True)
    files = [process / name for name in names] + [directory / "proc" / name for name in machine]
    files.append(directory / "sys/devices/system/cpu/online")
    files[0].touch()
    for path in files[1:]:
        path.hardlink_to(files[0])
    own = [Path("/proc/self") / name for name in names] + [Path("/proc") / name for name in machine]
    inputs = [path.read_bytes()[:8192] for path in own]
    there = Host(root=str(directory))

    def run(data: bytes) -> None:
        files[0].write_bytes(data)
        at = str(process)
        for look in (procfs.read_stat, procfs.read_status, procfs.environment, procfs.command):
            look(at)
        command_line(procfs.arguments(at))
        procfs.uptime_s(str(directory / "proc"))
        procfs.mount_type(at, "42")
        procfs.where_it_sleeps(at)
        json.dumps(host_facts(there)._asdict(), allow_nan=False)

    words = [b"\0", b" - ", b")", b"Uid:\t", b"TPU_WORKER_ID=", b"-1", b"9" * 50, b"\n", b" kB"]
    yield Target(run, inputs, words)
