"""Sources on their own clocks: a hung or broken one freezes nothing and is said."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from support import segments
from support.waits import until, with_a_short_limit

import tpusmi
from tpusmi import collect, source_runner
from tpusmi.collect import Collector
from tpusmi.model import (
    AGENT,
    FAILED,
    OK,
    Device,
    DeviceKey,
    Host,
    Notice,
    Outcome,
    Process,
    ProcessKey,
    Reading,
)
from tpusmi.wire.identity import start_ticks

KEY = DeviceKey(ProcessKey(1, 2), 0)
LONG_S = 60.0
"""More than an answer takes on any machine."""


class Scripted:
    """A source that answers with what the test gives it."""

    def __init__(self, name: str, answer: object) -> None:
        self.name = name
        self.period_s = 0.01
        self.asked = threading.Semaphore(0)
        self._answer = answer

    def read(self, now_s: float) -> Outcome:
        self.asked.release()
        if isinstance(self._answer, threading.Event):
            self._answer.wait(30)
        if isinstance(self._answer, Exception):
            raise self._answer
        reading = Reading("hbm_used_bytes", KEY, 5, now_s, self.name, 5.0)
        return Outcome(self.name, OK, readings=(reading,))

    def hang(self) -> threading.Event:
        """Answer nothing any more, until the event is set."""
        self._answer = release = threading.Event()
        return release

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def hung() -> Iterator[Scripted]:
    release = threading.Event()
    yield Scripted("hung", release)
    release.set()


@with_a_short_limit
def test_a_source_that_hangs_is_failed_at_the_deadline_and_the_others_are_shown(
    hung: Scripted,
) -> None:
    collector = Collector(Host(), [hung, Scripted("good", None)])
    started = time.monotonic()
    snapshot = collector.read_once(deadline_s=0.3)
    assert time.monotonic() - started < 15
    assert [(o.source, o.status) for o in snapshot.sources] == [("hung", FAILED), ("good", OK)]
    assert "has not answered" in snapshot.sources[0].message
    assert snapshot.value("hbm_used_bytes", KEY) == 5


def test_a_viewer_that_stood_still_itself_does_not_blame_its_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after Ctrl-Z: an hour goes by whenever it looks at its clock."""

    class Slow(Scripted):
        def read(self, now_s: float) -> Outcome:
            threading.Event().wait(0.1)
            return super().read(now_s)

    hours = count(1000.0, 3600.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(hours))
    snapshot = Collector(Host(), [Slow("slow", None)]).read_once(LONG_S)
    assert [(o.source, o.status) for o in snapshot.sources] == [("slow", OK)]


def test_a_source_that_hangs_is_not_asked_again_by_every_tick(hung: Scripted) -> None:
    collector = Collector(Host(), [hung])
    for _ in range(3):
        collector.read_once(deadline_s=0.05)
    assert hung.asked.acquire(timeout=30)
    assert not hung.asked.acquire(timeout=0.05)


def test_a_source_that_breaks_its_promise_and_raises_is_failed_with_the_reason() -> None:
    broken = Scripted("broken", ZeroDivisionError("a typo"))
    (outcome,) = Collector(Host(), [broken]).read_once(LONG_S).sources
    assert (outcome.status, outcome.message) == (FAILED, "ZeroDivisionError: a typo")


def test_a_started_collector_reads_again_and_again_and_fills_the_history() -> None:
    source = Scripted("good", None)
    collector = Collector(Host(), [source])
    collector.start()
    try:
        for _ in range(4):
            assert source.asked.acquire(timeout=30)
    finally:
        collector.stop()
    assert collector.history.at("hbm_used_bytes", KEY, time.monotonic(), LONG_S) == 5
    assert collector.snapshot().sources[0].status == OK


class Counting:
    """A source whose readings are a second apart, each another number."""

    name, period_s = "agent", 0.001

    def __init__(self) -> None:
        self.began_s = int(time.monotonic()) - 300
        self.count = 0

    def read(self, now_s: float) -> Outcome:
        self.count += 1
        at_s, device = self.began_s + self.count + 0.5, Device(KEY, 0, 0, "cpu", None, None, None)
        reading = Reading("hbm_used_bytes", KEY, self.count, at_s, self.name, 500.0)
        return Outcome(self.name, OK, readings=(reading,), devices=(device,))

    def close(self) -> None:
        """Nothing is open."""


def test_every_answer_is_in_the_history_although_no_snapshot_is_taken() -> None:
    """As while the dashboard is paused, or is drawn once a minute."""
    source = Counting()
    collector = Collector(Host(), [source])
    collector.start()
    try:
        _wait_for(lambda: source.count > 20)
    finally:
        collector.stop()
    collector.snapshot()
    window = collector.history.window("hbm_used_bytes", KEY, source.began_s + 20, 20)
    assert list(window or ()) == list(range(1, 21))


def test_an_answer_that_a_snapshot_has_shown_is_not_recorded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, recorded = Counting(), []
    collector = Collector(Host(), [source])
    monkeypatch.setattr(collector.history, "record", lambda *what: recorded.append(what))
    for _ in range(5):
        collector.read_once(LONG_S)
    assert len(recorded) == source.count == 5


def test_a_source_that_stops_answering_shows_as_old(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Scripted("good", None)
    collector = Collector(Host(), [source])
    collector.start()
    try:
        assert source.asked.acquire(timeout=30)
        release = source.hang()
        _wait_for(lambda: collector.have_all_answered())
        monkeypatch.setattr(source_runner, "ONCE_DEADLINE_S", 0.05)
        _wait_for(lambda: collector.snapshot().sources[0].status == FAILED)
        assert collector.snapshot().value("hbm_used_bytes", KEY) == 5
    finally:
        release.set()
        collector.stop()


def _wait_for(is_so: Callable[[], bool]) -> None:
    until(is_so)


@with_a_short_limit
def test_one_that_answered_is_not_silent_because_another_was_slow(
    hung: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that took: it was asked once, and it answered."""
    monkeypatch.setattr(source_runner, "ONCE_DEADLINE_S", 0.01)
    collector = Collector(Host(), [hung, Scripted("holders", None)])
    snapshot = collector.read_once(deadline_s=0.5)
    assert [(o.source, o.status) for o in snapshot.sources] == [("hung", FAILED), ("holders", OK)]


def test_one_that_hangs_at_the_second_question_shows_as_old_with_what_it_found() -> None:
    source = Scripted("agent", None)
    collector = Collector(Host(), [source])
    assert collector.read_once(LONG_S).sources[0].status == OK
    release = source.hang()
    try:
        snapshot = collector.read_once(deadline_s=0.1)
    finally:
        release.set()
    assert snapshot.sources[0].status == FAILED
    assert [m.source for m in snapshot.missing] == ["agent"]
    assert snapshot.value("hbm_used_bytes", KEY) == 5


class Warner(Scripted):
    """The agent of a process that runs, which warns of two things."""

    def read(self, now_s: float) -> Outcome:
        found = super().read(now_s)
        ticks = start_ticks("/proc", os.getpid())
        assert ticks is not None
        warnings = tuple(Notice(code, "x", os.getpid()) for code in ("agent_off", "flops_ignored"))
        p = Process(ProcessKey(os.getpid(), ticks), "ann", "x", interval_s=1.0, warnings=warnings)
        return found._replace(processes=(p._replace(sampled_at_s=now_s),))


def test_a_warning_has_an_age_from_the_second_look_on() -> None:
    collector = Collector(Host(), [Warner(AGENT, None)])
    first, second = (collector.read_once(LONG_S) for _ in range(2))
    assert [(n.code, n.since_s) for n in first.warnings] == [
        ("agent_off", None),
        ("flops_ignored", None),
    ]
    assert all(0 < (n.since_s or 0) <= second.at_s - first.at_s for n in second.warnings)
    assert all(n.advice for n in second.warnings)
    assert [w["since_s"] for w in first.to_dict()["warnings"]] == [None, None]


def test_the_history_forgets_what_has_ended_long_ago() -> None:
    collector = Collector(Host(), [])
    history = collector.history
    history.add([Reading("hbm_used_bytes", KEY, 5, 100.0, "agent", 5.0)])
    history.forget(650.0)
    assert history.at("hbm_used_bytes", KEY, 100.0, 1.0) == 5
    history.forget(701.0)
    assert history.at("hbm_used_bytes", KEY, 100.0, 1.0) is None


def test_the_snapshot_of_python_is_the_one_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPUSMI_DIR", str(tmp_path))
    segments.my_segment(tmp_path)
    found = tpusmi.snapshot(LONG_S)
    assert found.tpusmi_version == tpusmi.__version__
    mine = [d for d in found.to_dict()["devices"] if d["pid"] == os.getpid()]
    assert mine[0]["hbm_used_bytes"] == segments.GIB
    assert found.host.boot_id


@pytest.mark.parametrize(
    ("mark", "comm", "expected"),
    [("/.dockerenv", "sh", True), (None, "systemd", False), (None, "sh", None)],
)
def test_a_container_is_known_by_its_mark_a_machine_by_its_init(
    tmp_path: Path, mark: str | None, comm: str, expected: bool | None
) -> None:
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/comm").write_text(comm + "\n")
    if mark:
        (tmp_path / mark.lstrip("/")).touch()
    assert collect.host_facts(Host(root=str(tmp_path))).container is expected


class Opening:
    """A source that opens something in each read, which lasts until it may end."""

    name, period_s = "opening", 60.0

    def __init__(self) -> None:
        self.is_open = False
        self.begun, self.may_end = threading.Event(), threading.Event()

    def read(self, now_s: float) -> Outcome:
        self.begun.set()
        assert self.may_end.wait(LONG_S)
        self.is_open = True
        return Outcome(self.name, OK)

    def close(self) -> None:
        self.is_open = False


def test_what_a_read_opens_that_outlives_the_end_is_closed() -> None:
    source = Opening()
    collector = Collector(Host(), [source])
    reading = threading.Thread(target=collector.read_once, args=(LONG_S,))
    reading.start()
    assert source.begun.wait(LONG_S)
    collector.stop()
    source.may_end.set()
    reading.join(LONG_S)
    assert not source.is_open
