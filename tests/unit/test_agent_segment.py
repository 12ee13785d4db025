"""The agent's segment: when it is made again, with what, and what it costs where it cannot be."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import segments
from support.clocks import Clock

from tpusmi.agent import sampler, segment
from tpusmi.agent.segment import CHECK_S, RETRY_MOST_S, RETRY_S, Segment
from tpusmi.agent.steps import Steps
from tpusmi.wire import identity, places, writer
from tpusmi.wire.layout import PROFILE_PPROF
from tpusmi.wire.reader import SegmentReader


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(segment, "time", types.SimpleNamespace(monotonic=clock))
    return clock


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the job is told on stderr."""
    lines: list[str] = []
    monkeypatch.setattr(segment.own_process, "say", lines.append)
    return lines


_opened: list[Segment] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Nothing stays open behind a test, and least of all on mounts that are gone."""
    yield
    while _opened:
        _opened.pop().end(keep=False)


def opened(directory: Path) -> Segment:
    made = Segment(str(directory), 0o644)
    _opened.append(made)
    made.facts = {"argv": ["train.py"]}
    made.open(1)
    made.append(segments.slot(7.0, {"steps": 5.0}, [{}]))
    made.write_profile(PROFILE_PPROF, b"profile", 6.0)
    return made


def only(directory: Path) -> SegmentReader:
    (name,) = os.listdir(directory)
    return SegmentReader(f"{directory}/{name}")


def test_what_was_written_last_is_in_the_new_file_from_the_start(
    tmp_path: Path, clock: Clock
) -> None:
    made = opened(tmp_path)
    (tmp_path / os.listdir(tmp_path)[0]).unlink()
    assert made.keep(clock.now_s + CHECK_S - 0.1)
    assert os.listdir(tmp_path) == []  # it is looked at now and then
    clock.now_s += CHECK_S
    assert made.keep(clock.now_s)
    reader = only(tmp_path)
    sample, profile = reader.newest(), reader.profile()
    assert reader.is_locked()
    assert reader.facts()[1] == {"argv": ["train.py"]}
    assert sample is not None
    assert sample.process == {"steps": 5.0}
    assert profile is not None
    assert (profile.payload, profile.at_s) == (b"profile", 6.0)
    made.end(keep=False)
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_still_there_is_let_be(tmp_path: Path, clock: Clock) -> None:
    made = opened(tmp_path)
    before = only(tmp_path).stat.st_ino
    for _ in range(5):
        clock.now_s += CHECK_S
        assert made.keep(clock.now_s)
    assert only(tmp_path).stat.st_ino == before
    made.end(keep=False)


@pytest.mark.parametrize("moved", [{"pid": 7}, {"start_ticks": 3}])
def test_a_process_that_was_restored_under_another_number_or_start_has_another_segment(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, moved: dict[str, int]
) -> None:
    made = opened(tmp_path)
    me = identity.me()._replace(**moved)
    monkeypatch.setattr(os, "getpid", lambda: me.pid)
    monkeypatch.setattr(identity, "start_ticks", lambda proc, pid: me.start_ticks)
    clock.now_s -= 500  # its clock is another machine's
    assert made.keep(clock.now_s)
    reader = only(tmp_path)
    assert reader.header[:3] == me[:3]
    assert os.listdir(tmp_path) == [places.segment_name(me.pid, me.start_ticks)]
    made.end(keep=False)


def test_a_process_that_cannot_be_asked_for_is_the_one_it_was(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that has no descriptor left cannot read /proc."""
    made = opened(tmp_path)
    before = only(tmp_path).stat.st_ino
    monkeypatch.setattr(identity, "start_ticks", lambda proc, pid: None)
    clock.now_s += CHECK_S
    assert made.keep(clock.now_s)
    assert only(tmp_path).stat.st_ino == before
    made.end(keep=False)


def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """No file system has room, until the answer is called."""
    real = os.fstatvfs
    monkeypatch.setattr(
        writer.os, "fstatvfs", lambda fd: types.SimpleNamespace(f_blocks=9, f_bfree=0, f_frsize=1)
    )
    return lambda: monkeypatch.setattr(writer.os, "fstatvfs", real)


def test_where_there_is_no_room_it_tries_again_ever_more_seldom_and_says_so_once(
    tmp_path: Path, clock: Clock, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_room = full(monkeypatch)
    made = opened(tmp_path)
    pauses = []
    for _ in range(7):
        began_s = clock.now_s
        tried = made._looked_at_s
        while made._looked_at_s == tried:
            clock.now_s += 1.0
            assert not made.keep(clock.now_s)
        pauses.append(clock.now_s - began_s)
    assert pauses == [RETRY_S, 20.0, 40.0, 80.0, RETRY_MOST_S, RETRY_MOST_S, RETRY_MOST_S]
    (line,) = said
    assert "No space left on device" in line
    assert os.listdir(tmp_path) == []
    make_room()
    assert not made.keep(clock.now_s + 1.0)
    made.hurry()
    assert made.keep(clock.now_s + 1.0)
    assert only(tmp_path).facts()[1] == {"argv": ["train.py"]}
    made.end(keep=False)
    assert len(said) == 1


def test_a_file_that_takes_nothing_any_more_stays_locked_and_as_it_is(
    tmp_path: Path, clock: Clock, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = opened(tmp_path)
    monkeypatch.setattr(writer, "check_limit", lambda size: (_ for _ in ()).throw(OSError("over")))
    made.append(segments.slot(8.0, {"steps": 6.0}, [{}]))
    assert not made.keep(clock.now_s)
    reader = only(tmp_path)
    sample = reader.newest()
    assert sample is not None
    assert (reader.is_locked(), sample.process) == (True, {"steps": 5.0})
    assert len(said) == 1
    monkeypatch.undo()
    made.end(keep=False)
    assert os.listdir(tmp_path) == []


def test_a_cut_file_that_cannot_be_made_again_is_not_left_with_a_lock(
    tmp_path: Path, clock: Clock, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = opened(tmp_path)
    os.truncate(tmp_path / os.listdir(tmp_path)[0], 0)
    full(monkeypatch)
    clock.now_s += CHECK_S
    assert not made.keep(clock.now_s)
    assert os.listdir(tmp_path) == []
    assert len(said) == 1


def test_a_file_of_others_in_its_place_is_neither_written_nor_removed(
    tmp_path: Path, clock: Clock, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = opened(tmp_path)
    path = tmp_path / os.listdir(tmp_path)[0]
    path.unlink()
    path.write_bytes(b"precious")
    made.append(segments.slot(8.0, {}, [{}]))
    made.end(keep=False)
    assert path.read_bytes() == b"precious"


def test_the_facts_are_written_before_the_devices_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = types.SimpleNamespace(platform="cpu", device_kind="cpu", process_index=1, id=4)
    backend = types.SimpleNamespace(local_devices=lambda: [device], devices=lambda: [device])
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    shown = []
    rename = os.rename

    def look(source: str, target: str) -> None:
        shown.append(SegmentReader(source).facts()[1])
        rename(source, target)

    monkeypatch.setattr(os, "rename", look)
    late = sampler.Sampler(1.0, Steps(), str(tmp_path), 0o600, lambda: None)
    late._adopt_backend(backend)
    (facts,) = shown
    assert (facts["process_index"], facts["process_count"]) == (1, 1)
    assert [d["id"] for d in facts["devices"]] == [4]
    late.finish(keep=False)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ["", ".new"])
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make another user's file")
def test_a_name_that_another_user_has_taken_is_got_round(
    tmp_path: Path, clock: Clock, said: list[str], ending: str
) -> None:
    """In a TPUSMI_DIR that users share, as /tmp is, it can neither be removed nor replaced."""
    who = identity.me()
    taken = tmp_path / f"{places.segment_name(who.pid, who.start_ticks)}{ending}"
    taken.write_bytes(b"precious")
    os.chown(taken, 1001, 1001)
    made = opened(tmp_path)
    assert made.keep(clock.now_s)
    assert said == []
    assert taken.read_bytes() == b"precious"
    (segment_file,) = tmp_path.glob("*.*.seg")
    assert SegmentReader(str(segment_file)).is_locked()


def test_nobody_else_can_open_a_file_before_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read lock of another user would keep the agent from its own."""
    modes: list[int] = []
    monkeypatch.setattr(
        writer.lock, "hold", lambda fd: bool(modes.append(os.fstat(fd).st_mode & 0o777) or True)
    )
    opened(tmp_path)
    assert modes == [0o600]
    (made,) = tmp_path.iterdir()
    assert made.stat().st_mode & 0o777 == 0o644


def test_names_of_what_is_compiled_are_counted_without_a_module_that_may_be_gone(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = opened(tmp_path)
    monkeypatch.setitem(sys.modules, "heapq", None)  # as after a chroot(): it cannot be imported
    monkeypatch.setattr(segment, "FACTS_LEAST_S", -1.0)
    made.note_changes([], ["one", "often", "often"], {})
    assert made.facts["recompiled"] == ["often"]
    made.end(keep=False)
