"""Addresses of profiler services, what is asked of them, and the trace in an answer that comes in
pieces, whatever the pieces are.
"""

from __future__ import annotations

import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.profiler_servers import field, fields

from tpusmi.profiler.remote_addresses import Address, parse
from tpusmi.profiler.remote_messages import (
    FIELDS_MOST,
    MALFORMED,
    AnswerError,
    TraceCutter,
    profile_request,
)
from tpusmi.profiler.requests import CaptureRequest

# -- addresses


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("worker-0.local:9012", "worker-0.local", 9012),
        ("10.0.0.2:8466", "10.0.0.2", 8466),
        (":9012", "localhost", 9012),
        ("worker-0", "worker-0", 9012),
        ("9012", "localhost", 9012),
        (" localhost:1 ", "localhost", 1),
        ("[::1]:65535", "::1", 65535),
        ("[fe80::1%eth0]:9012", "fe80::1%eth0", 9012),
        ("grpc://10.240.1.2:8466/", "10.240.1.2", 8466),
        ("GRPC://host_1:80", "host_1", 80),
        ("dns:///host:9012", "host", 9012),
        ("ipv6:[::1]:9012", "::1", 9012),
    ],
)
def test_an_address_is_read_as_people_write_it(text: str, host: str, port: int) -> None:
    address = parse(text)
    assert address == Address(host, port)
    assert parse(str(address)) == address


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("::1", "brackets"),
        ("fe80::1:9012", "brackets"),
        ("http://host:80", "without http://"),
        ("host:0", "0 is not a port"),
        ("host:65536", "65536 is not a port"),
        ("host:９０１２", "an address such as localhost:9012"),
        ("host:-1", "an address such as localhost:9012"),
        ("host:9012:x", "an address such as localhost:9012"),
        ("a b:9012", "an address such as localhost:9012"),
        ("host\n:9012", "an address such as localhost:9012"),
        ("", "an address such as localhost:9012"),
        ("0", "0 is not a port"),
        ("99999", "99999 is not a port"),
        pytest.param("h" * 5000 + ":9012", "an address such as localhost:9012", id="long"),
    ],
)
def test_what_is_not_an_address_is_refused_with_advice(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        parse(text)
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


# -- the request


def test_the_request_asks_for_the_trace_in_the_answer_and_for_little_of_the_host() -> None:
    request = CaptureRequest(duration_ms=1500)
    message = fields(profile_request(request, "session", "/nowhere", host_tracer_level=1))
    assert (message[1], message[5], message[6], message[9]) == (1500, b"/nowhere", b"session", 1)
    options = fields(message[4])
    # device events, host events, no Python calls; with the programs
    assert (options[3], options[2], options[4], options[7]) == (1, 1, 0, 1)
    assert (options[5], options[9]) == (1, 1500)


def test_a_malformed_request_is_malformed_for_protobuf() -> None:
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.message import DecodeError

    with pytest.raises(DecodeError):
        Empty().ParseFromString(MALFORMED)


# -- the answer


def cut(answer: bytes, sizes: list[int] | None = None) -> tuple[bytes, bool]:
    """The trace in an answer that comes in pieces of these sizes, and whether it is empty."""
    trace = bytearray()
    cutter = TraceCutter(lambda size: None, trace.extend)
    at = 0
    for size in [*(sizes or []), len(answer)]:
        cutter.take(answer[at : at + size])
        at += size
    cutter.finish()
    assert cutter.trace_bytes == len(trace)
    return bytes(trace), cutter.is_empty


def message(*parts: bytes, compressed: int = 0, size: int | None = None) -> bytes:
    body = b"".join(parts)
    return struct.pack(">BI", compressed, len(body) if size is None else size) + body


@given(
    trace=st.binary(max_size=400),
    extra=st.binary(max_size=20),
    is_empty=st.booleans(),
    sizes=st.lists(st.integers(1, 50), max_size=40),
)
def test_the_trace_is_cut_out_of_any_pieces(
    trace: bytes, extra: bytes, is_empty: bool, sizes: list[int]
) -> None:
    tool = field(6, field(1, b"overview_page") + field(2, extra))
    fixed = b"\xa1\x06" + bytes(8) + b"\xa5\x06" + bytes(4)
    answer = message(tool, field(7, is_empty), fixed, field(8, trace), field(300, 1))
    assert cut(answer, sizes) == (trace, is_empty)


def test_a_trace_in_two_parts_is_their_sum_as_in_protobuf() -> None:
    assert cut(message(field(8, b"abc"), field(7, 1), field(8, b"def"))) == (b"abcdef", True)


def test_an_answer_without_a_trace_has_none() -> None:
    assert cut(message()) == (b"", False)
    assert cut(message(field(7, 1))) == (b"", True)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "in the middle"),
        (b"\0\0\0", "in the middle"),
        (message(field(8, b"abc"), size=20), "in the middle"),
        (message(field(8, b"abc"), size=4), "makes no sense"),
        (message(field(7, 1), b"\x08\x01", size=2), "more than it announces"),
        (message(b"\x42\xff\x01", size=3), "makes no sense"),
        (message(b"\x43"), "makes no sense"),
        (message(b"\x00\x01"), "makes no sense"),
        (message(b"\xff" * 64), "makes no sense"),
        (message(b"\x40" + b"\xff" * 64), "makes no sense"),
        (message(field(8, b"abc"), compressed=1), "compressed"),
        (message(b"\x38\x01" * (FIELDS_MOST + 1)), "too many fields"),
    ],
)
def test_an_answer_that_is_not_one_is_refused(answer: bytes, words: str) -> None:
    with pytest.raises(AnswerError, match=words):
        cut(answer)


@given(st.binary(max_size=100))
def test_any_bytes_are_an_answer_or_refused(data: bytes) -> None:
    try:
        cut(message(data))
    except AnswerError:
        pass


def test_nothing_is_written_of_an_answer_that_is_too_large() -> None:
    def refuse(size: int) -> None:
        raise MemoryError(size)

    written: list[bytes] = []
    cutter = TraceCutter(refuse, lambda part: written.append(bytes(part)))
    with pytest.raises(MemoryError, match="4294967295"):
        cutter.take(message(field(8, b"abc"), size=0xFFFFFFFF))
    assert written == []
