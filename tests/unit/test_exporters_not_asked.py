"""A process without files, memory or threads for another question: its exporters are not down."""

from __future__ import annotations

import errno
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from support.commands import TPUSMI, environment
from support.exporter_servers import answer, exposition, hangs, listening, says, wait_for
from support.waits import with_a_short_limit

from tpusmi.fleet.exporters import exporter_record, exporters_asking, exporters_fleet
from tpusmi.fleet.exporters.exporters_fleet import ExporterFleet
from tpusmi.fleet.fleet_figures import HostState
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.fleet.http import http_reading, name_lookup

FILES = "too many files are open in this process: see ulimit -n"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporters_fleet, "EVERY_S", 0.0)
    monkeypatch.setattr(exporters_fleet, "FIRST_LOOK_S", 0.5)
    monkeypatch.setattr(exporter_record, "POSTPONED_S", 0.02)


@pytest.fixture
def one() -> Iterator[ExporterFleet]:
    text = exposition("worker-0", hbm_used_bytes=1.0)
    with listening(says(lambda: answer(text))) as a, closing(ExporterFleet(str(a), None)) as source:
        yield source


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EMFILE, "Too many open files"), FILES),
        (OSError(errno.ENFILE, "Too many"), "too many files are open on this machine"),
        (MemoryError(), "no memory is left here"),
        (ImportError("no memory for a module"), "no memory is left here"),
    ],
)
def test_an_exporter_that_could_not_be_asked_is_pending_until_it_is(
    one: ExporterFleet, error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    with monkeypatch.context() as without:
        without.setattr(http_reading, "_connected", fails)
        wait_for(lambda: one.snapshot().hosts[0].reason == reason, "it cannot be asked")
        assert one.snapshot().hosts[0].state is HostState.PENDING
    wait_for(lambda: one.snapshot().hosts[0].state is HostState.LIVE, "it is asked again")
    with monkeypatch.context() as without:
        without.setattr(http_reading, "_connected", fails)
        without.setattr(exporter_record, "GRACE_S", 3600.0)
        for _ in range(3):
            (host,) = one.snapshot().hosts
            assert (host.state, host.reason) == (HostState.LIVE, "")
        without.setattr(exporter_record, "GRACE_S", 0.0)
        wait_for(lambda: one.snapshot().hosts[0].reason == reason, "its numbers are old")
        assert one.snapshot().hosts[0].state is HostState.OLD


def test_as_many_are_asked_at_once_as_there_are_files_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exporters take their time, so that all threads have one at once."""
    for name in ("FIRST_LOOK_S", "FIRST_ANSWER_S", "PATIENCE_S"):
        monkeypatch.setattr(exporters_fleet, name, 40.0)
    lock, files = threading.Lock(), [3]
    real_enter, real_exit = http_reading._Exchange.__enter__, http_reading._Exchange.__exit__

    def enter(exchange: http_reading._Exchange) -> http_reading._Exchange:
        with lock:
            if not files[0]:
                raise OSError(errno.EMFILE, "Too many open files")
            files[0] -= 1
        return real_enter(exchange)

    def leave(exchange: http_reading._Exchange, *error: object) -> None:
        real_exit(exchange, *error)
        with lock:
            files[0] += 1

    def slow(connected: socket.socket, asked: bytes) -> None:
        time.sleep(0.02)
        says(lambda: answer(exposition("w", boot="")))(connected, asked)

    monkeypatch.setattr(http_reading._Exchange, "__enter__", enter)
    monkeypatch.setattr(http_reading._Exchange, "__exit__", leave)
    with ExitStack() as stack:
        servers = [str(stack.enter_context(listening(slow))) for _ in range(12)]
        source = stack.enter_context(closing(ExporterFleet(",".join(servers), None)))
        hosts = source.snapshot().hosts
    assert [h.state for h in hosts] == [HostState.LIVE] * 12


def test_a_name_is_pending_while_no_thread_can_look_it_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class NoThread:
        def __init__(self, **_: object) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(name_lookup.threading, "Thread", NoThread)
    with pytest.raises(name_lookup.LookupStartError, match="ulimit -u"):
        name_lookup.NameLookup().places("name.test", time.monotonic() + 1)
    assert http_reading._is_without_room(name_lookup.LookupStartError())


def test_no_addresses_at_all_is_an_error_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with (
        closing(ExporterFleet("@pods.test", None)) as source,
        pytest.raises(FleetError, match=r"the name pods\.test cannot be looked up"),
    ):
        source.snapshot()


@with_a_short_limit
def test_a_command_with_few_files_asks_all_exporters(tmp_path: Path) -> None:
    """Real limits: some exporters hang, and hold a file each."""
    with ExitStack() as stack:
        good = [
            stack.enter_context(listening(says(lambda: answer(exposition("w", boot="")))))
            for _ in range(4)
        ]
        bad = stack.enter_context(socket.create_server(("0.0.0.0", 0), backlog=64))
        port = bad.getsockname()[1]
        names = ",".join([f"127.0.0.[10-29]:{port}", *map(str, good)])
        words = ("fleet", "--hosts", names, "--once", "--group", "host", "--no-color")
        done = subprocess.run(
            ["sh", "-c", 'ulimit -n 16; exec "$@"', "sh", *TPUSMI, *words],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert "4 live" in done.stdout, done.stdout + done.stderr
    assert "too many files" not in done.stdout


@with_a_short_limit
def test_exporters_behind_more_that_hang_than_there_are_threads_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table is printed once, so that its first look waits for their turn."""
    monkeypatch.setattr(exporters_asking, "THREADS_MOST", 3)
    monkeypatch.setattr(exporters_fleet, "FIRST_ANSWER_S", 0.4)
    with ExitStack() as stack:
        bad = [stack.enter_context(listening(hangs)) for _ in range(7)]
        good = [stack.enter_context(listening(says(answer(exposition(f"w{n}"))))) for n in range(2)]
        names = ",".join(map(str, (*bad, *good)))
        source = stack.enter_context(closing(ExporterFleet(names, None)))
        began_s = time.monotonic()
        s = source.snapshot()
        assert time.monotonic() - began_s < exporters_fleet.PATIENCE_S
    assert [str(h.state) for h in s.hosts] == ["down"] * 7 + ["live"] * 2
    assert s.problems == ()


def test_a_first_look_without_a_free_file_does_not_wait_for_long(
    one: ExporterFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(http_reading, "_connected", fails)
    began_s = time.monotonic()
    assert one.snapshot().hosts[0].state is HostState.PENDING
    assert time.monotonic() - began_s < exporters_fleet.PATIENCE_S
