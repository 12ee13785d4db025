"""Segments become readings: living, silent and dead ones, honest and hostile ones."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import segments
from support.clocks import takes_at_most
from support.users import ROOT, as_another_user

from tpusmi.collect import open_collector
from tpusmi.memprofile import packed_sites, totals
from tpusmi.model import (
    ABSENT,
    DENIED,
    PHASE,
    PHASES,
    DeviceKey,
    Host,
    MemoryProfile,
    Outcome,
    ProcessKey,
)
from tpusmi.sources.segments import Segments, contents, evidence, job_segment
from tpusmi.wire import identity, places
from tpusmi.wire.layout import FACTS_JSON, PROFILE_PPROF, PROFILE_SITES
from tpusmi.wire.reader import SegmentReader
from tpusmi.wire.writer import SegmentWriter


def read(directory: Path, with_past: bool = False) -> Outcome:
    source = Segments(Host(segment_dir=str(directory)), with_past)
    return source.read(time.monotonic())


def value(found: Outcome, name: str, subject: object) -> float:
    (reading,) = [r for r in found.readings if r.metric == name and r.subject == subject]
    return reading.value


def test_an_agent_from_before_the_lock_is_named_as_such(tmp_path: Path) -> None:
    golden = Path(__file__).parent.parent / "segments" / "v1.2.seg"
    reader = SegmentReader(str(golden))
    pid, start_ticks = reader.header.pid, reader.header.start_ticks
    reader.close()
    shutil.copy(golden, tmp_path / places.segment_name(pid, start_ticks))
    source = Segments(Host(segment_dir=str(tmp_path)))
    source._kernel.pid_namespace += 1  # as in a container: numbers tell nothing
    found = source.read(time.monotonic())
    assert [p.state for p in found.processes] == ["dead"]  # of another boot
    assert "its agent is of an older tpusmi" in " ".join(found.notes)


def test_a_mistake_of_ours_is_not_taken_for_a_bad_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: object) -> None:
        raise TypeError("ours")

    segments.my_segment(tmp_path)
    source = Segments(Host(segment_dir=str(tmp_path)))
    monkeypatch.setattr(contents, "checked_facts", mistaken)
    with pytest.raises(TypeError, match="ours"):
        source.read(time.monotonic())
    monkeypatch.undo()
    assert len(source.read(time.monotonic()).processes) == 1
    source.close()


def test_a_living_job_is_shown_with_its_facts_and_values(tmp_path: Path) -> None:
    segments.my_segment(tmp_path)
    found = read(tmp_path)
    (process,) = found.processes
    me = identity.me()
    assert process.key == ProcessKey(me.pid, me.start_ticks)
    assert (process.uid, process.is_verified) == (os.getuid(), True)
    assert (process.state, process.phase) == ("live", "running")
    assert process.command == "python train.py --config=big"
    assert process.facts["jax_version"] == "0.10.2"
    assert [d.id for d in found.devices] == [8, 9]
    assert found.devices[1].coords == (1, 0, 0)
    assert found.devices[1].name == "tpu:9"
    second = DeviceKey(ProcessKey(*process.key), 1)
    assert value(found, "hbm_used_bytes", second) == 2 * segments.GIB
    assert value(found, "steps_per_s", process.key) == 4.0
    assert value(found, "hbm_used_bytes", process.key) == 3 * segments.GIB


def test_bytes_and_counts_are_whole_numbers(tmp_path: Path) -> None:
    segments.my_segment(tmp_path)
    whole = [r for r in read(tmp_path).readings if r.metric in ("hbm_used_bytes", "compilations")]
    assert whole
    assert all(isinstance(r.value, int) for r in whole)


def test_what_the_job_does_not_know_is_missing_and_not_zero(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, identity.me(), devices=1)
    writer.append(segments.slot(time.monotonic(), {"phase": 2.0}, [{}], time.time()))
    assert [r.metric for r in read(tmp_path).readings] == [PHASE]


def test_a_value_that_cannot_be_true_is_missing(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, identity.me(), devices=1)
    fields = {"steps": -1.0, "compilations": 2.0**80}
    writer.append(segments.slot(time.monotonic(), fields, [{"hbm_used_bytes": -5.0}], time.time()))
    assert read(tmp_path).readings == ()


def test_a_percentage_that_cannot_be_true_is_missing(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, identity.me(), devices=2)
    share = "hbm_bandwidth_utilization_percent"
    devices = [{"duty_cycle_percent": 100.1, share: 1e6}, {"duty_cycle_percent": 100.0, share: 0.0}]
    process = {"mfu_percent": 1e9, "flops_per_s": 1e30}
    writer.append(segments.slot(time.monotonic(), process, devices, time.time()))
    found = [(r.metric, r.value) for r in read(tmp_path).readings]
    assert found == [("duty_cycle_percent", 100.0), (share, 0.0)]


def test_what_the_agent_asked_of_libtpu_is_as_old_as_the_answer(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, identity.me(), devices=1)
    now = time.monotonic()
    process = {"utilization_at_s": now - 30, "utilization_period_s": 4.0, "interval_s": 1.0}
    writer.append(segments.slot(now, process, [segments.device()], time.time()))
    readings = {r.metric: r for r in read(tmp_path).readings}
    for name in ("duty_cycle_percent", "idle_s", "hbm_bandwidth_utilization_percent"):
        assert (readings[name].at_s, readings[name].fresh_s) == (now - 30, 12.0)
    assert readings["hbm_peak_bytes"].at_s == now


def test_a_segment_whose_process_has_ended_is_dead_and_keeps_its_last_word(tmp_path: Path) -> None:
    who = segments.dead_identity()
    writer = segments.segment(tmp_path, who, devices=1)
    now = time.monotonic()
    writer.append(
        segments.slot(now - 500, segments.RUNNING, [segments.device()], time.time() - 500)
    )
    found = read(tmp_path)
    (process,) = found.processes
    assert (process.state, process.phase) == ("dead", "ended")
    assert value(found, "hbm_used_bytes", DeviceKey(process.key, 0)) == segments.GIB


def test_a_segment_of_an_earlier_boot_is_dead(tmp_path: Path) -> None:
    writer = segments.segment(
        tmp_path, segments.dead_identity()._replace(boot_id=b"x" * 16), devices=1
    )
    writer.append(segments.slot(9e9, segments.RUNNING, [segments.device()], time.time() - 100))
    (process,) = read(tmp_path).processes
    assert process.is_dead
    assert process.sampled_at_s == pytest.approx(time.monotonic() - 100, abs=2)


@pytest.mark.parametrize("boot_id", [bytes(16), b"x" * 16], ids=["not told", "a container's own"])
def test_a_process_that_is_there_lives_whatever_boot_it_tells(
    tmp_path: Path, boot_id: bytes
) -> None:
    writer = segments.segment(tmp_path, identity.me()._replace(boot_id=boot_id), devices=1)
    writer.append(
        segments.slot(time.monotonic(), segments.RUNNING, [segments.device()], time.time())
    )
    found = read(tmp_path)
    assert [(p.state, p.is_verified) for p in found.processes] == [("live", True)]
    assert len(found.devices) == 1


def test_a_job_whose_agent_stopped_writing_is_silent(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, identity.me(), devices=1)
    writer.append(segments.slot(time.monotonic() - 60, segments.RUNNING, [{}], time.time() - 60))
    (process,) = read(tmp_path).processes
    assert process.state == "silent"


@pytest.mark.parametrize(("age_s", "state"), [(0.5, "live"), (60.0, "unknown")])
def test_a_job_in_another_pid_namespace_without_a_lock_is_known_to_live_while_it_writes(
    tmp_path: Path, age_s: float, state: str
) -> None:
    segments.without_lock(elsewhere(tmp_path, age_s))
    found = read(tmp_path)
    (process,) = found.processes
    assert (process.state, process.is_living) == (state, state == "live")
    assert process.phase == ("running" if state == "live" else None)
    assert "has no lock" in found.notes[0]


@pytest.mark.parametrize(("age_s", "state"), [(0.5, "live"), (60.0, "silent")])
def test_a_job_in_another_pid_namespace_lives_as_long_as_its_agent_has_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_s: float, state: str
) -> None:
    monkeypatch.setattr(evidence, "FIRST_PID_NAMESPACE", 1)  # we may see all there are
    writer = elsewhere(tmp_path, age_s)
    found = read(tmp_path)
    assert [(p.state, p.phase, p.elsewhere) for p in found.processes] == [
        (state, "running", "in another pid namespace")
    ]
    assert found.notes == ()
    writer.close()
    found = read(tmp_path)
    assert [(p.state, p.phase, p.elsewhere) for p in found.processes] == [("dead", "ended", "")]
    assert found.notes == ()


def elsewhere(directory: Path, age_s: float) -> SegmentWriter:
    """The segment of a job of another pid namespace, with a sample of that age."""
    writer = segments.segment(
        directory, segments.dead_identity()._replace(pid_namespace=1), devices=1
    )
    at = time.monotonic() - age_s
    writer.append(segments.slot(at, segments.RUNNING, [{}], time.time() - age_s))
    return writer


def test_a_job_that_has_just_started_is_live_without_a_sample(tmp_path: Path) -> None:
    segments.segment(tmp_path, identity.me(), devices=0, said={"argv": ["x"]})
    (process,) = read(tmp_path).processes
    assert (process.state, process.phase, process.sampled_at_s) == ("live", None, None)


def test_a_sample_from_the_future_is_refused(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, identity.me(), devices=1)
    writer.append(
        segments.slot(time.monotonic() + 1000, segments.RUNNING, [{}], time.time() + 1000)
    )
    found = read(tmp_path)
    assert found.processes == ()
    assert "future" in found.message


def test_a_replaced_segment_is_read_anew(tmp_path: Path) -> None:
    source = Segments(Host(segment_dir=str(tmp_path)))
    segments.my_segment(tmp_path, devices=0)
    assert len(source.read(time.monotonic()).devices) == 0
    segments.my_segment(tmp_path, devices=2)
    assert len(source.read(time.monotonic()).devices) == 2
    writer = segments.my_segment(tmp_path)
    assert len(source.read(time.monotonic()).processes) == 1
    os.unlink(writer.path)
    assert len(source.read(time.monotonic()).processes) == 1  # its agent makes another one soon
    writer.close()
    assert source.read(time.monotonic()).processes == ()


def test_new_facts_are_noticed(tmp_path: Path) -> None:
    source = Segments(Host(segment_dir=str(tmp_path)))
    writer = segments.my_segment(tmp_path, devices=1)
    source.read(time.monotonic())
    said = segments.facts(1, errors=["device lost"])
    writer.facts.write(FACTS_JSON, json.dumps(said).encode(), 1.0)
    (device,) = source.read(time.monotonic()).devices
    assert device.error == "device lost"


def test_the_memory_profile_is_decoded_here_and_again_only_when_it_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = segments.my_segment(tmp_path)
    source = Segments(Host(segment_dir=str(tmp_path)))
    writer.profile.write(PROFILE_PPROF, segments.profile_bytes(), time.monotonic())
    (process,) = source.read(time.monotonic()).processes
    assert process.profile is not None
    assert process.profile.sites[0].function == "set_key_and_train"
    before = process.profile
    (process,) = source.read(time.monotonic()).processes
    assert process.profile is before
    writer.profile.write(PROFILE_PPROF, segments.profile_bytes(), time.monotonic())
    (process,) = source.read(time.monotonic()).processes
    assert process.profile is not before


@pytest.mark.parametrize(
    ("kind", "payload", "reason"),
    [
        (PROFILE_PPROF, b"junk", "not a gzip"),
        (PROFILE_SITES, b"junk", "not a gzip"),
        (9, b"", "upgrade"),
    ],
)
def test_a_profile_that_cannot_be_read_gives_a_sentence_and_the_job_is_shown(
    tmp_path: Path, kind: int, payload: bytes, reason: str
) -> None:
    segments.my_segment(tmp_path).profile.write(kind, payload, time.monotonic())
    source = Segments(Host(segment_dir=str(tmp_path)))
    for _ in range(2):
        found = source.read(time.monotonic())
        assert len(found.processes) == 1
        assert reason in found.notes[0]


INFINITE_LINE = b'[["f", "x.py", Infinity, "buffer", 1, 1]]'
HUGE_SIZE = b'[["f", "x.py", 1, "buffer", 1' + b"0" * 400 + b", 1]]"


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        (PROFILE_SITES, INFINITE_LINE),
        (PROFILE_SITES, HUGE_SIZE),
        (PROFILE_PPROF, b"\x12\x00" * 3_000_000),
        (PROFILE_PPROF, b"\x12\x80\x80\xc0\x02" + b"\x0a\x01\x01" * 1_747_626),
    ],
    ids=["infinite line", "huge size", "many samples", "one long sample"],
)
def test_a_hostile_profile_costs_little_and_nobody_elses_job(
    tmp_path: Path, kind: int, plain: bytes
) -> None:
    segments.my_segment(tmp_path)
    hostile = segments.segment(tmp_path, segments.dead_identity(), devices=1)
    hostile.profile.write(kind, gzip.compress(plain, 9), 1.0)
    with takes_at_most(20.0):
        found = read(tmp_path)
    assert len(found.processes) == 2
    assert "memory profile" in found.notes[0]


def test_a_ring_whose_hint_is_wrong_still_gives_its_newest_sample(tmp_path: Path) -> None:
    writer = segments.my_segment(tmp_path)
    with open(writer.path, "r+b") as file:
        file.seek(writer.header.newest_offset)
        file.write(b"\xff" * 8)
    (process,) = read(tmp_path).processes
    assert process.phase == "running"


@pytest.mark.parametrize(
    ("at_s", "wall_s", "profile_at_s"),
    [(-1e308, 1.0, 1.0), (1.7e308, 1.0, 1.0), (5.0, float("-inf"), 1.0), (5.0, 1.0, -1e308)],
)
def test_times_that_no_clock_shows_never_reach_the_json(
    tmp_path: Path, at_s: float, wall_s: float, profile_at_s: float
) -> None:
    who = identity.me()._replace(boot_id=b"x" * 16)
    writer = segments.segment(tmp_path, who, devices=1)
    process = {**segments.RUNNING, "profile_at_s": profile_at_s}
    writer.append(segments.slot(at_s, process, [segments.device()], wall_s))
    collector = open_collector(Host(segment_dir=str(tmp_path), metrics_ports=()))
    json.dumps(collector.read_once().to_dict(), allow_nan=False)


def test_coordinates_that_are_none_are_dropped() -> None:
    rows = [{"id": 1, "coords": [10**4000, True]}, {"id": True, "coords": [1, 2]}]
    said = contents.checked_facts({"devices": rows}, ProcessKey(1, 2), 2)
    assert [d.coords for d in said.devices] == [None, (1, 2)]


def test_one_users_files_do_not_hide_anothers_job(tmp_path: Path) -> None:
    (tmp_path / "proc").symlink_to("/proc")
    mine, full = (tmp_path / f"{where}/tpusmi-{os.getuid()}" for where in ("tmp", "dev/shm"))
    for directory in (mine, full):
        directory.mkdir(parents=True)
    for i in range(600):
        (full / f"{i}-1.seg").touch()
    segments.my_segment(mine)
    found = Segments(Host(root=str(tmp_path))).read(time.monotonic())
    assert len(found.processes) == 1
    assert any("not read: more than" in note for note in found.notes)


def test_a_job_elsewhere_that_said_it_ended_is_dead(tmp_path: Path) -> None:
    writer = elsewhere(tmp_path, 0.5)
    now = time.monotonic()
    writer.append(segments.slot(now, {**segments.RUNNING, "phase": 4.0}, [{}], time.time()))
    (process,) = read(tmp_path).processes
    assert (process.state, process.phase) == ("dead", "ended")


def test_without_proc_a_job_lives_as_long_as_it_writes(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    directory = tmp_path / f"dev/shm/tpusmi-{os.getuid()}"
    directory.mkdir(parents=True)
    segments.my_segment(directory)
    found = Segments(Host(root=str(tmp_path))).read(time.monotonic())
    assert [p.state for p in found.processes] == ["live"]


def test_a_limit_of_zero_is_no_limit(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, identity.me(), devices=1)
    fields = {"hbm_used_bytes": 5.0, "hbm_limit_bytes": 0.0}
    writer.append(segments.slot(time.monotonic(), segments.RUNNING, [fields], time.time()))
    found = read(tmp_path)
    assert not [r for r in found.readings if r.metric == "hbm_limit_bytes"]


def test_the_past_ten_minutes_come_with_the_first_read_only(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, identity.me(), devices=1)
    now = time.monotonic()
    for ago in range(300, -1, -1):
        writer.append(
            segments.slot(now - ago, segments.RUNNING, [segments.device()], time.time() - ago)
        )
    source = Segments(Host(segment_dir=str(tmp_path)), with_past=True)
    past = source.read(now).past
    used = [r for r in past if r.metric == "hbm_used_bytes" and isinstance(r.subject, DeviceKey)]
    assert len(used) == 301
    assert used[0].at_s == pytest.approx(now - 300)
    assert source.read(now).past == ()


GRAPHED = {
    *("hbm_used_bytes", "live_array_bytes", "duty_cycle_percent"),
    *("hbm_bandwidth_utilization_percent", "steps_per_s", "step_time_s.mean", "step_time_s.p50"),
    *("step_time_s.p95", "mfu_percent", "compilations", PHASE),
}


def test_the_past_has_everything_that_a_graph_can_show_and_no_more(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, identity.me(), devices=2)
    now = time.monotonic()
    for ago in (3, 2, 1):
        said = {"phase": 4.0 - ago, "profile_at_s": now - ago, "utilization_at_s": now - ago}
        process, devices = {**segments.RUNNING, **said}, [segments.device(), segments.device(1)]
        writer.append(segments.slot(now - ago, process, devices, time.time() - ago))
    past = read(tmp_path, with_past=True).past
    key = ProcessKey(identity.me().pid, identity.me().start_ticks)
    assert {r.metric for r in past} == GRAPHED
    assert {r.subject for r in past} == {key, DeviceKey(key, 0), DeviceKey(key, 1)}
    phases = [r.value for r in past if r.metric == PHASE]
    assert [PHASES[int(number)] for number in phases] == ["compiling", "running", "idle"]
    for metric in ("duty_cycle_percent", "live_array_bytes"):
        second = [r.at_s for r in past if (r.metric, r.subject) == (metric, DeviceKey(key, 1))]
        assert second == [now - 3, now - 2, now - 1]


def test_the_past_of_many_devices_is_coarser_and_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_segment, "PAST_MOST", 5000)
    writer = segments.segment(tmp_path, identity.me(), devices=16)
    now = time.monotonic()
    for ago in range(599, -1, -1):
        rows = [segments.device(i) for i in range(16)]
        writer.append(segments.slot(now - ago, segments.RUNNING, rows, time.time() - ago))
    past = read(tmp_path, with_past=True).past
    assert 2500 < len(past) <= 5000
    used = [r.at_s for r in past if r.metric == PHASE]
    assert used[0] == pytest.approx(now - 599)
    assert used[-1] == pytest.approx(now, abs=20)


def test_a_phase_that_is_none_is_not_told(tmp_path: Path) -> None:
    writer = segments.segment(tmp_path, identity.me(), devices=0)
    for number in (-1.0, 5.0, float("nan")):
        writer.append(segments.slot(time.monotonic(), {"phase": number}, [], time.time()))
        found = read(tmp_path)
        assert (found.readings, found.processes[0].phase) == ((), None)


@pytest.mark.parametrize(
    ("kind", "pack"),
    [(PROFILE_PPROF, lambda data: data), (PROFILE_SITES, packed_sites)],
    ids=["whole", "reduced"],
)
def test_what_each_device_holds_is_told_to_who_asks_for_it(
    tmp_path: Path, kind: int, pack: Callable[[bytes], bytes]
) -> None:
    data = segments.profile_of_two()
    segments.my_segment(tmp_path).profile.write(kind, pack(data), time.monotonic())
    assert profile_of(Segments(Host(segment_dir=str(tmp_path)))).allocations == ()
    found = profile_of(Segments(Host(segment_dir=str(tmp_path)), by_device=True))
    for device, usage in totals(data).devices.items():
        own = [a for a in found.allocations if a.device == device and a.kind == "buffer"]
        assert (sum(a.bytes or 0 for a in own), sum(a.count for a in own)) == usage
    assert found.allocations_left_out_bytes == 0


def profile_of(source: Segments) -> MemoryProfile:
    (process,) = source.read(time.monotonic()).processes
    assert process.profile is not None
    return process.profile


@pytest.mark.parametrize("change", [{"pid": 1}, {"start_ticks": 1}], ids=["pid", "start"])
def test_a_segment_that_claims_to_be_another_process_is_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    me = identity.me()
    segments.segment(tmp_path, me._replace(**change), name=f"{me.pid}-{me.start_ticks}.seg")
    found = read(tmp_path)
    assert found.processes == ()
    assert "has a name that does not match its header" in found.message


@ROOT
def test_a_file_that_another_user_put_into_my_directory_is_no_segment(tmp_path: Path) -> None:
    (tmp_path / "proc").symlink_to("/proc")
    directory = tmp_path / "dev/shm/tpusmi-0"
    directory.mkdir(parents=True)
    foreign = identity.me()._replace(uid=65534)
    writer = segments.segment(directory, foreign)
    os.chown(writer.path, 65534, 65534)
    assert Segments(Host(root=str(tmp_path))).read(time.monotonic()).processes == ()


def test_a_directory_full_of_garbage_does_not_fill_the_screen(tmp_path: Path) -> None:
    for i in range(30):
        (tmp_path / f"{i}-1.seg").write_bytes(b"garbage" * 9)
    segments.my_segment(tmp_path)
    notes = read(tmp_path).notes
    assert len(notes) == 9
    assert notes[-1] == "and 22 more of that kind"


def test_directories_of_every_user_are_searched_and_new_ones_found_in_time(tmp_path: Path) -> None:
    (tmp_path / "proc").symlink_to("/proc")
    source = Segments(Host(root=str(tmp_path)))
    now = time.monotonic()
    assert source.read(now).processes == ()
    uid = os.getuid()
    for parent in (f"dev/shm/tpusmi-{uid}", f"run/user/7/tpusmi-{uid}", f"tmp/tpusmi-{uid}"):
        directory = tmp_path / parent
        directory.mkdir(parents=True)
        segments.my_segment(directory)
    (tmp_path / "tmp/tpusmi-screenshots").mkdir()
    assert len(source.read(now + 6).processes) == 3


@ROOT
def test_a_directory_that_may_not_be_read_is_denied(tmp_path: Path) -> None:
    directory = tmp_path / "secret"
    directory.mkdir(mode=0o700)
    with as_another_user(tmp_path):
        found = read(directory)
    assert found.status == DENIED


@ROOT
def test_segments_that_another_user_may_not_read_are_denied(tmp_path: Path) -> None:
    os.chmod(segments.my_segment(tmp_path).path, 0o600)
    with as_another_user(tmp_path):
        found = read(tmp_path)
    assert (found.status, found.message) == (
        DENIED,
        "1 segment of other users cannot be read",
    )


FACT_NAMES = (
    *("argv", "devices", "errors", "warnings", "platform", "recompiled", "process_index"),
    *("id", "coords", "code", "message", "kind"),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FACT_NAMES), inner, max_size=6)
    ),
)


@given(st.dictionaries(st.sampled_from(FACT_NAMES), ANYTHING))
@settings(max_examples=200, deadline=None)
def test_facts_of_any_shape_become_a_job(said: dict[str, Any]) -> None:
    found = contents.checked_facts(said, ProcessKey(1, 2), 3)
    assert len(found.devices) == 3
    assert all(d.name.isprintable() for d in found.devices)
    json.dumps(found.by_name)


def test_facts_that_are_text_with_terminal_codes_are_cleaned(tmp_path: Path) -> None:
    segments.my_segment(tmp_path, argv=["a\x1b[2Jb", "--token=s3cret"], platform="t\x07pu")
    (process,) = read(tmp_path).processes
    assert process.command == "a [2Jb --token=***"
    assert process.facts["platform"] == "t pu"


def test_old_garbage_of_our_own_is_noted_and_keeps_no_verdict_open(tmp_path: Path) -> None:
    path = tmp_path / "99999999-1.seg"
    path.write_bytes(b"garbage")
    os.utime(path, (1.7e9, 1.7e9))
    found = Segments(Host(segment_dir=str(tmp_path))).read(time.monotonic())
    assert (found.status, found.missing) == (ABSENT, ())
    assert [note for note in found.notes if str(path) in note]
