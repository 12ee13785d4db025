"""gRPC over a plain socket: the same answers as through grpc, the same words when there is none."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from metric_server import of_devices, saying_port, server_process, serving, silent_port

from tpusmi.model import ABSENT, FAILED, OK
from tpusmi.sources.libtpu.client import Client
from tpusmi.sources.libtpu.plain import PlainChannel


def test_a_plain_socket_brings_the_same_rows_as_grpc() -> None:
    with serving(of_devices(range(256))) as server:
        now_s = time.monotonic()
        plain = Client(server.port, None, PlainChannel).read(now_s)
        usual = Client(server.port).read(now_s)
    assert plain.status == OK
    assert {(r.metric, r.subject, r.value) for r in plain.readings} == {
        (r.metric, r.subject, r.value) for r in usual.readings
    }
    assert len(plain.ids) == 256


def test_a_connection_serves_for_many_reads() -> None:
    with serving(of_devices(range(64))) as server:
        client = Client(server.port, None, PlainChannel)
        for tick in range(200):
            assert len(client.read(100.0 * tick).ids) == 64
        client.close()


def test_a_silent_port_is_left_at_the_deadline() -> None:
    with silent_port() as port:
        started_s = time.monotonic()
        told = Client(port, None, PlainChannel).read(started_s)
        assert time.monotonic() - started_s < 2
    assert told.status == FAILED
    assert "does not answer" in told.message


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
        told = Client(other.port, None, PlainChannel).read(time.monotonic())
    assert told.status == FAILED
    assert reason in told.message


def test_a_server_that_has_ended_is_absent_at_the_next_read() -> None:
    with server_process() as server:
        client = Client(server.port, None, PlainChannel)
        assert client.read(0.0).status == OK
        server.end()
        assert client.read(100.0).status == ABSENT


def test_asking_brings_neither_grpc_nor_a_thread_nor_a_word_at_a_fork() -> None:
    code = (
        "import os, sys, threading, time\n"
        "from tpusmi.sources.libtpu.client import Client\n"
        "from tpusmi.sources.libtpu.plain import PlainChannel\n"
        "client = Client(int(sys.argv[1]), None, PlainChannel)\n"
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
