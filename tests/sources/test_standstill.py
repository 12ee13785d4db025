"""A machine that stood still, as in a live migration, does not say that others were silent."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from support import clocks
from support.clocks import Clock, Pauses, Stopwatch
from support.metric_servers import of_devices, serving, silent_port

from tpusmi import source_runner
from tpusmi.collect import Collector
from tpusmi.model import FAILED, OK, Host, Life, Outcome, ProcessKey, Sign
from tpusmi.sources import child_process
from tpusmi.sources.child_process import ChildProcess
from tpusmi.sources.holders import suspects
from tpusmi.sources.holders.suspects import Suspects
from tpusmi.sources.libtpu import client as client_module
from tpusmi.sources.libtpu import plain
from tpusmi.sources.libtpu.client import Client
from tpusmi.wire import identity

PAUSE_S = 300.0


def standing_still(*looks: int) -> SimpleNamespace:
    """A clock before each of these looks at which the machine has stood still."""
    count = itertools.count(1)

    def monotonic() -> float:
        own = next(count)
        return time.monotonic() + PAUSE_S * sum(look <= own for look in looks)

    return SimpleNamespace(monotonic=monotonic)


class Slow:
    """A source that answers in a tenth of a second, or once it is let go."""

    name, period_s = "slow", 1.0

    def __init__(self, wait: Callable[[float], object]) -> None:
        self._wait = wait

    def read(self, now_s: float) -> Outcome:
        self._wait(0.1)
        return Outcome(self.name, OK, "here")

    def close(self) -> None:
        """Nothing is open."""


def test_a_one_shot_run_that_stood_still_waits_for_its_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_runner, "time", standing_still(*range(1, 100, 2)))
    (found,) = Collector(Host(), [Slow(time.sleep)]).read_once(20.0).sources
    assert (found.status, found.message) == (OK, "here")


def test_a_source_that_hangs_has_failed_however_often_the_machine_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    monkeypatch.setattr(source_runner, "time", standing_still(*range(1, 100, 2)))
    (found,) = Collector(Host(), [Slow(lambda _: release.wait(20))]).read_once(0.4).sources
    release.set()
    assert found.status == FAILED


def test_a_server_is_asked_once_more_by_who_came_too_late_to_its_own_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(of_devices([0, 1])) as server, contextlib.closing(Client(server.port)) as client:
        monkeypatch.setattr(plain, "time", standing_still(2))  # after the first request
        found = client.read(time.monotonic())
        assert (found.status, found.ids, found.silent_s) == (OK, (0, 1), None)
        assert client.read(time.monotonic()).status == OK


def test_a_server_that_is_silent_is_not_asked_a_third_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connected: list[str] = []
    real = plain.PlainChannel.__init__

    def connect(self: plain.PlainChannel, target: str) -> None:
        connected.append(target)
        real(self, target)

    monkeypatch.setattr(client_module, "DEADLINE_S", 1.0)
    monkeypatch.setattr(client_module, "ANSWER_LEAST_S", 0.6)
    monkeypatch.setattr(plain.PlainChannel, "__init__", connect)
    monkeypatch.setattr(plain, "time", standing_still(*range(2, 100)))
    with silent_port() as port, contextlib.closing(Client(port)) as client:
        found = client.read(1000.0)
        assert "does not respond" in found.message
        assert len(connected) == 2
        assert client.read(1000.5).message == found.message
        assert len(connected) == 2, "it is let alone for a second"


def test_a_child_is_waited_for_by_who_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, time; sys.stdin.readline(); time.sleep(0.3); print('here', flush=True)"
    child = ChildProcess((sys.executable, "-S", "-c", code))
    try:
        child.ask(b"\n")
        monkeypatch.setattr(child_process, "time", standing_still(2, 4))
        assert child.listen(time.monotonic() + 20.0) == b"here"
    finally:
        monkeypatch.undo()
        child.close()


def test_a_look_at_a_suspect_that_took_longer_than_the_moment_is_no_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(suspects, "time", SimpleNamespace(monotonic=clock))
    ticks = identity.start_ticks("/proc", os.getpid())
    assert ticks is not None
    key = ProcessKey(os.getpid(), ticks)
    orphan = Life("S", 1, 7, 7, 3600.0, 1, signs=(Sign("orphaned", "its launcher has ended"),))
    found = Suspects("/proc")
    found.look({key: orphan})
    assert found.wait_s == suspects.MOMENT_S
    clock.now_s += 5.0
    assert found.wait_s == 0.0
    assert found.with_evidence(key, orphan).recent_s is None
    found.look({key: orphan})
    assert found.wait_s is None
    assert found.with_evidence(key, orphan).recent_s == 5.0


def test_the_stopwatch_of_tests_counts_a_hang_and_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stopwatch() as hang:
        time.sleep(0.4)
    assert hang.seconds() > 0.2
    monkeypatch.setattr(clocks, "time", standing_still(2, 3))
    with Stopwatch() as paused, Pauses() as pauses:
        time.sleep(0.4)
        assert pauses.longest_s() > PAUSE_S / 2
    assert paused.seconds() < PAUSE_S / 2
