"""What metrics servers and profiler services send, as bytes and as messages."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.metric_servers import DUTY, EXECUTION, HBM_TOTAL, TRANSFER, gauge, labelled

from fuzz.target import Target, target
from tpusmi.metricproto import GET_METRIC, messages
from tpusmi.profiler.remote_addresses import Address
from tpusmi.profiler.remote_connection import StreamError, connect
from tpusmi.profiler.remote_messages import PROFILE, AnswerError, TraceCutter
from tpusmi.profiler.remote_stream import CallStream
from tpusmi.sources.libtpu.decode import Origin, cores, metric_values
from tpusmi.sources.libtpu.names import NAMES
from tpusmi.sources.libtpu.plain import PlainChannel


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


@target
def profiler_services(directory: Path) -> Iterator[Target]:
    """What a profiler service sends, byte by byte."""
    body = b"\x38\x00\x42\x05trace\x32\x04\x0a\x02ab"
    whole = struct.pack(">BI", 0, len(body)) + body
    status = b"\x00\x0bgrpc-status\x010\x00\x0cgrpc-message\x04nope"
    good = [(4, 0, 0, b""), (1, 4, 1, b"\x88"), (0, 0, 1, whole), (1, 5, 1, status)]
    streams = [b"".join(_frame(*frame) for frame in part) for part in (good, good[:3])]
    said = [b""]

    def run(data: bytes) -> None:
        said[0] = data
        cutter = TraceCutter(lambda size: None, lambda part: None)
        address = Address("127.0.0.1", port)
        with connect(address, time.monotonic() + 60.0) as connection:
            until_s = time.monotonic() + 0.5
            stream = CallStream(connection, address)
            with contextlib.suppress(StreamError, AnswerError):
                end = stream.call(PROFILE, b"", until_s, cutter.take)
                end.details.encode()
                cutter.finish()

    words = [_frame(kind, flags, 1, b"\x42") for kind in range(10) for flags in (0, 1, 8)]
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
    origin = Origin("localhost:8431", None, 1000.0, 1_800_000_000.0)

    def run(data: bytes) -> None:
        with contextlib.suppress(DecodeError):
            response = messages()["MetricResponse"].FromString(data)
            for name in NAMES:
                if name.grpc:
                    response.metric.name = name.grpc
                    found = metric_values(name, response, origin)
                    json.dumps([found.readings, found.latencies], allow_nan=False)
        with contextlib.suppress(DecodeError):
            cores(messages()["GetTpuRuntimeStatusResponse"].FromString(data), "localhost:1")

    yield Target(
        run, [made.SerializeToString() for made in inputs], [b"\x1a\x00", b"\x0a\x02\x12\x00"]
    )
