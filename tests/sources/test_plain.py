"""gRPC over a plain socket: the same answers as through grpc, the same words when there is none."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.flooding_servers import KINDS, flooding
from support.metric_servers import (
    DUTY,
    gauge,
    of_devices,
    saying_port,
    server_process,
    serving,
    silent_port,
)
from support.waits import with_a_short_limit

from tpusmi.metricproto import GET_METRIC, messages
from tpusmi.model import ABSENT, FAILED, OK
from tpusmi.sources.libtpu.client import Client
from tpusmi.sources.libtpu.grpc_status import status_in
from tpusmi.sources.libtpu.plain import PlainChannel


def test_every_status_of_grpc_arrives_by_its_name() -> None:
    for refused in grpc.StatusCode:
        if refused in (grpc.StatusCode.OK, grpc.StatusCode.CANCELLED):
            continue
        with serving({DUTY: refused}) as server:
            channel = PlainChannel(f"ipv4:127.0.0.1:{server.port}")
            for _ in range(3):  # a server may say it in short the second time
                request = messages()["MetricRequest"](metric_name=DUTY)
                call = channel.call(GET_METRIC, request, 5.0)
                assert (call.code().name, call.details()) == (
                    refused.name,
                    f"Metric not found: {DUTY}",
                )
            channel.close()


def test_the_answers_of_grpcs_own_server_arrive_whole() -> None:
    with serving(of_devices(range(256))) as server:
        found = Client(server.port).read(time.monotonic())
        channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
        request = messages()["MetricRequest"](metric_name=DUTY).SerializeToString()
        usual = messages()["MetricResponse"].FromString(channel.unary_unary(GET_METRIC)(request))
        channel.close()
    assert found.status == OK
    assert {r.subject.id: r.value for r in found.readings if r.metric == "duty_cycle_percent"} == {
        row.attribute.value.int_attr: min(100.0, row.gauge.as_double)
        for row in usual.metric.metrics
        if row.gauge.as_double <= 100.5
    }
    assert len(found.ids) == 256


@pytest.mark.parametrize("kind", KINDS)
@with_a_short_limit
def test_a_server_that_sends_without_end_costs_next_to_nothing(kind: str) -> None:
    with flooding(kind) as port:
        client = Client(port)
        client.read(0.0)  # protobuf is loaded
        cpu_s, started_s = time.process_time(), time.monotonic()
        found = [client.read(1000.0 * n) for n in range(1, 4)]
        cpu_s, took_s = time.process_time() - cpu_s, time.monotonic() - started_s
        client.close()
    assert {told.status for told in found} == {FAILED}
    assert cpu_s < 0.5  # 0.02 s; it was 2.5 s
    assert took_s < 20


def test_a_large_message_is_refused_before_it_is_there() -> None:
    answers = {DUTY: gauge(DUTY, dict.fromkeys(range(100_000), 1.0))}
    with serving(answers) as server:
        found = Client(server.port).read(time.monotonic())
    assert "sends a response that is too large" in found.message


@given(st.binary(max_size=60))
def test_headers_of_any_kind_are_read_without_an_error(block: bytes) -> None:
    status, message = status_in(block)
    assert status is None or 0 <= status < 100
    assert len(message) <= 200


def test_a_connection_serves_for_many_reads() -> None:
    with serving(of_devices(range(64))) as server:
        client = Client(server.port)
        for tick in range(200):
            assert len(client.read(100.0 * tick).ids) == 64
        client.close()


def test_a_request_does_not_wait_for_the_acknowledgement_of_the_one_before() -> None:
    """Together with the server's delayed acknowledgement that took 40 ms of every look."""
    with silent_port() as port:
        channel = PlainChannel(f"ipv4:127.0.0.1:{port}")
        assert channel._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        channel.close()


@with_a_short_limit
def test_a_silent_port_is_left_at_the_deadline() -> None:
    with silent_port() as port:
        started_s = time.monotonic()
        told = Client(port).read(started_s)
        assert time.monotonic() - started_s < 15
    assert told.status == FAILED
    assert "does not respond" in told.message


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "gRPC"),  # unless it hangs up first, with its name
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak gRPC"),
        (b"\x00\x00\x00\xff\x00" * 4, "port"),
        (b"\xff" * 70000, "does not speak gRPC"),
    ],
    ids=["http", "ssh", "frames of no kind", "noise"],
)
def test_whatever_else_is_on_the_port_ends_in_words(words: bytes, reason: str) -> None:
    with saying_port(words) as other:
        told = Client(other.port).read(time.monotonic())
    assert told.status == FAILED
    assert reason in told.message


def test_a_server_that_has_ended_is_absent_at_the_next_read() -> None:
    with server_process() as server:
        client = Client(server.port)
        assert client.read(0.0).status == OK
        server.end()
        assert client.read(100.0).status == ABSENT


def test_asking_brings_neither_grpc_nor_a_thread_nor_a_word_at_a_fork() -> None:
    code = (
        "import os, sys, threading, time\n"
        "from tpusmi.sources.libtpu.client import Client\n"
        "client = Client(int(sys.argv[1]))\n"
        "for tick in range(20):\n"
        "    assert client.read(100.0 * tick).ids\n"
        "    pid = os.fork()\n"
        "    if pid == 0: os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "print('grpc' in sys.modules, threading.active_count())"
    )
    with server_process() as server:
        done = subprocess.run(
            [sys.executable, "-c", code, str(server.port)],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (done.stdout, done.stderr) == ("False 1\n", "")


def test_the_ids_that_a_server_reports_again_and_again_are_kept_before_those_it_named_once() -> (
    None
):
    with serving(of_devices(range(4))) as server:
        client = Client(server.port)
        for n in range(5):
            server.answers = of_devices([0, 1, 2, 3, *range(1000 * (n + 1), 1000 * (n + 1) + 600)])
            ids = client.read(1000.0 * n).ids
        client.close()
    assert len(ids) <= 1024
    assert {0, 1, 2, 3, *range(5000, 5600)} <= set(ids)
