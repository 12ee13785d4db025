"""The parts of the agent that need no JAX: steps, compilations, budget, activity, old segments."""

from __future__ import annotations

import json
import os
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from support import segments
from support.clocks import Clock, stopped

from tpusmi.agent import activity, jaxread, output, own_process, sampler, steps
from tpusmi.agent.activity import COMPILED, LOWERED, Activity, Compilations
from tpusmi.agent.slice_text import interval_of
from tpusmi.agent.steps import Steps
from tpusmi.agent.threads import PROFILE_SHARE, SAMPLE_SHARE, Pace
from tpusmi.model import Host
from tpusmi.sources.segments import Segments
from tpusmi.wire import identity, places
from tpusmi.wire.layout import Identity


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    names = ("tpusmi.agent.steps.monotonic", "tpusmi.agent.activity.monotonic")
    return stopped(monkeypatch, *names)


def take_steps(taken: Steps, clock: Clock, durations: list[float]) -> None:
    for duration in durations:
        clock.now_s += duration
        taken.step()


def test_step_times_are_those_between_calls(clock: Clock) -> None:
    taken = Steps()
    take_steps(taken, clock, [9.0, 0.1, 0.2, 0.3, 0.4])
    times = taken.times(clock.now_s)
    assert taken.count == 5
    assert times is not None
    assert times.per_s == pytest.approx(4.0)
    assert times.period == pytest.approx((0.1, 0.25, 0.25, 0.385, 0.4))


def test_the_first_step_alone_has_no_time(clock: Clock) -> None:
    taken = Steps()
    taken.step()
    assert taken.count == 1
    assert taken.times(clock.now_s) is None


def test_a_step_that_raises_is_not_counted(clock: Clock) -> None:
    taken = Steps()
    with pytest.raises(KeyError), taken.step():
        raise KeyError
    assert taken.count == 0
    assert taken.last_at_s is None


def test_a_loop_that_stalls_slows_down_instead_of_keeping_its_last_rate(clock: Clock) -> None:
    taken = Steps()
    take_steps(taken, clock, [0.1] * 11)
    clock.now_s += 9.0
    times = taken.times(clock.now_s)
    assert times is not None
    assert times.per_s == pytest.approx(1.0)


def test_steps_of_the_last_minute_count_and_of_slow_ones_the_last_twenty(clock: Clock) -> None:
    fast = Steps()
    take_steps(fast, clock, [1.0] * 10 + [0.1] * 650)
    times = fast.times(clock.now_s)
    assert times is not None
    assert times.period.max == pytest.approx(0.1)
    slow = Steps()
    take_steps(slow, clock, [100.0] * 40)
    times = slow.times(clock.now_s)
    assert times is not None
    assert times.per_s == pytest.approx(0.01)


def test_time_in_which_marks_were_lost_is_no_step(clock: Clock) -> None:
    taken = Steps()
    take_steps(taken, clock, [1.0] * 3)
    taken.times(clock.now_s)
    take_steps(taken, clock, [1.0] * (steps.MARKS_MOST + 50))
    times = taken.times(clock.now_s)
    assert times is not None
    assert times.period.max == 1.0


def test_a_million_steps_between_two_looks_keep_memory_bounded(clock: Clock) -> None:
    taken = Steps()
    for _ in range(10_000):
        taken.step()
    assert len(taken._marks) <= steps.MARKS_MOST


@pytest.fixture
def monitoring(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A jax.monitoring with the public functions the agent uses."""
    module = types.ModuleType("jax.monitoring")
    module.listeners = []  # type: ignore[attr-defined]
    module.register_event_duration_secs_listener = module.listeners.append  # type: ignore[attr-defined]
    module.unregister_event_duration_listener = module.listeners.remove  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jax.monitoring", module)
    return module


def compile_one(module: types.ModuleType, name: str, seconds: float = 0.5) -> None:
    for listener in module.listeners:
        listener(LOWERED, 0.01, fun_name=name)
        listener(COMPILED, seconds, fun_name=name)


def test_compilations_are_counted_with_their_seconds(
    monitoring: types.ModuleType, clock: Clock
) -> None:
    counted = Compilations()
    assert counted.listen()
    compile_one(monitoring, "f")
    compile_one(monitoring, "g", 1.5)
    assert (counted.count, counted.seconds) == (2, 2.0)


def test_compilations_of_the_first_minute_are_a_job_starting_up(
    monitoring: types.ModuleType, clock: Clock
) -> None:
    counted = Compilations()
    counted.listen()
    compile_one(monitoring, "init")
    clock.now_s += 59
    compile_one(monitoring, "eval")
    assert counted.recent(clock.now_s) == []
    clock.now_s += 2
    compile_one(monitoring, "train_step")
    assert counted.recent(clock.now_s) == ["train_step"]
    clock.now_s += 61
    assert counted.recent(clock.now_s) == []


def test_a_program_that_was_lowered_is_compiling_until_it_is_compiled(
    monitoring: types.ModuleType, clock: Clock
) -> None:
    counted = Compilations()
    counted.listen()
    (listener,) = monitoring.listeners
    listener(LOWERED, 0.1, fun_name="f")
    assert counted.is_compiling(clock.now_s + 100, None)
    assert counted.is_compiling(clock.now_s + 100, clock.now_s - 1)
    listener(COMPILED, 100.0, fun_name="f")
    assert not counted.is_compiling(clock.now_s + 100, None)


def test_a_program_that_was_only_lowered_is_not_compiling_once_a_step_has_ended(
    monitoring: types.ModuleType, clock: Clock
) -> None:
    counted = Compilations()
    counted.listen()
    (listener,) = monitoring.listeners
    listener(LOWERED, 0.1, fun_name="f")
    assert not counted.is_compiling(clock.now_s + 5, clock.now_s + 1)


def test_an_event_with_any_details_cannot_raise_into_the_job(
    monitoring: types.ModuleType, clock: Clock
) -> None:
    counted = Compilations()
    counted.listen()
    (listener,) = monitoring.listeners
    listener("/my/event", 1.0, self=1, event="x", duration_s=1)
    listener(COMPILED, 1.0, fun_name=object())
    assert counted.count == 1


def test_steps_that_were_forgotten_leave_nothing(clock: Clock) -> None:
    taken = Steps()
    take_steps(taken, clock, [1.0] * 5)
    taken.times(clock.now_s)
    taken.forget()
    assert (taken.count, taken.last_at_s, taken.times(clock.now_s)) == (0, None, None)
    take_steps(taken, clock, [900.0, 2.0])
    times = taken.times(clock.now_s)
    assert times is not None
    assert times.period.max == 2.0


def test_a_job_without_jax_is_not_given_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jax.monitoring", raising=False)
    assert not Compilations().listen()
    assert "jax.monitoring" not in sys.modules


def test_nothing_is_counted_after_the_end_even_where_jax_cannot_unregister(
    monitoring: types.ModuleType, clock: Clock
) -> None:
    del monitoring.unregister_event_duration_listener  # type: ignore[attr-defined]
    counted = Compilations()
    counted.listen()
    counted.close()
    compile_one(monitoring, "f")
    assert counted.count == 0


def test_a_dear_activity_is_done_less_often() -> None:
    budget = Pace(1.0, PROFILE_SHARE)
    assert budget.is_due(0.0)
    budget.spent(100.0, 0.023)
    assert budget.period_s == pytest.approx(0.023 / PROFILE_SHARE)
    assert not budget.is_due(100.0 + budget.period_s - 0.1)
    assert budget.is_due(100.0 + budget.period_s)


def test_a_cheap_activity_keeps_the_period_asked_for() -> None:
    budget = Pace(1.0, SAMPLE_SHARE)
    budget.spent(100.0, 0.0004)
    assert budget.period_s == 1.0


def test_all_that_the_agent_does_stays_under_its_share_of_wall_time() -> None:
    assert SAMPLE_SHARE + PROFILE_SHARE < 0.003


def test_one_dear_run_is_remembered_for_three() -> None:
    budget = Pace(1.0, 0.001)
    budget.spent(0.0, 0.01)
    for _ in range(2):
        budget.spent(0.0, 0.0)
    assert budget.period_s == pytest.approx(10.0)
    budget.spent(0.0, 0.0)
    assert budget.period_s == 1.0


def test_one_dear_run_is_paid_for_once() -> None:
    """As one in which garbage of the whole job was collected."""
    budget = Pace(1.0, 0.001)
    assert budget.spent(100.0, 0.01)
    assert (budget.is_due(109.9), budget.is_due(110.0)) == (False, True)
    assert not budget.spent(110.0, 0.0005)
    assert (budget.is_due(110.9), budget.is_due(111.0)) == (False, True)


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The CPU time of the job, as the test sets it."""
    used = {"s": 0.0}
    monkeypatch.setattr(
        activity.os, "times", lambda: os.times_result((used["s"], 0.0, 0.0, 0.0, 0.0))
    )
    return used


def test_a_job_that_steps_is_running_and_one_that_stopped_stepping_is_idle(
    clock: Clock, cpu: dict[str, float]
) -> None:
    taken = Steps()
    job = Activity(taken, Compilations())
    take_steps(taken, clock, [1.0] * 30)
    assert job.phase(clock.now_s, 0, taken.times(clock.now_s)) == "running"
    clock.now_s += 29
    assert job.phase(clock.now_s, 0, taken.times(clock.now_s)) == "running"
    clock.now_s += 2
    assert job.phase(clock.now_s, 0, taken.times(clock.now_s)) == "idle"


def test_a_job_of_long_steps_is_given_ten_of_them_before_it_is_idle(
    clock: Clock, cpu: dict[str, float]
) -> None:
    taken = Steps()
    job = Activity(taken, Compilations())
    take_steps(taken, clock, [60.0] * 5)
    clock.now_s += 500
    assert job.phase(clock.now_s, 0, taken.times(clock.now_s)) == "running"
    clock.now_s += 200
    assert job.phase(clock.now_s, 0, taken.times(clock.now_s)) == "idle"


def test_a_job_without_steps_is_judged_by_its_cpu_time_and_allocations(
    clock: Clock, cpu: dict[str, float]
) -> None:
    job = Activity(Steps(), Compilations())
    job.has_backend = True
    job.phase(0.0, 0, None)
    assert job.phase(31.0, 0, None) == "idle"
    cpu["s"] += 1.0
    assert job.phase(32.0, 0, None) == "running"
    assert job.phase(70.0, 0, None) == "idle"
    assert job.phase(71.0, 5, None) == "running"


def test_a_job_that_has_not_imported_jax_for_long_is_not_starting_for_ever(
    clock: Clock, cpu: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    monkeypatch.setattr(activity, "monotonic", clock)
    job = Activity(Steps(), Compilations())
    assert job.phase(clock.now_s + activity.STARTING_MOST_S - 1, 0, None) == "starting"
    later = clock.now_s + activity.STARTING_MOST_S
    cpu["s"] += 10.0
    assert job.phase(later, 0, None) == "running"
    assert job.phase(later + 1, 0, None) == "running"
    assert job.phase(later + activity.IDLE_AFTER_S + 2, 0, None) == "idle"


def test_a_job_that_has_imported_jax_is_starting_until_it_has_a_backend(
    clock: Clock, cpu: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    monkeypatch.setattr(activity, "monotonic", clock)
    job = Activity(Steps(), Compilations())
    assert job.phase(clock.now_s + 3600.0, 0, None) == "starting"
    job.has_backend = True
    assert job.phase(clock.now_s + 3601.0, 0, None) == "running"


def test_a_job_that_compiles_says_so(
    monitoring: types.ModuleType, clock: Clock, cpu: dict[str, float]
) -> None:
    counted = Compilations()
    counted.listen()
    job = Activity(Steps(), counted)
    job.has_backend = True
    job.phase(1.0, 0, None)
    compile_one(monitoring, "f", 0.9)
    assert job.phase(2.0, 0, None) == "compiling"
    assert job.phase(3.0, 0, None) == "running"


class Device:
    """A device as JAX has them, as far as the agent asks."""

    def __init__(self, id: int, stats: object) -> None:
        self.id = id
        self._stats = stats

    def memory_stats(self) -> object:
        if isinstance(self._stats, Exception):
            raise self._stats
        return self._stats


def test_one_device_that_fails_or_says_nothing_does_not_lose_the_others() -> None:
    stats = {"bytes_in_use": 5, "bytes_limit": 10, "num_allocs": 3, "something_new": 1}
    refusal = RuntimeError("MemoryStats is only supported for addressable PjRt devices")
    devices = [Device(8, stats), Device(9, refusal), Device(12, None)]
    backend = types.SimpleNamespace(local_devices=lambda: devices)
    good, bad, mute = map(jaxread.device_state, backend.local_devices())
    assert good.memory == (5, 10, None, None, None, 3)
    assert bad.error == str(refusal)
    assert bad.memory == mute.memory == (None,) * 6
    assert (good.error, mute.error) == (None, None)


def test_tpu_functions_are_told_from_other_cards_of_the_same_vendor(tmp_path: Path) -> None:
    for name, vendor, device in [
        ("0000:00:04.0", "0x1ae0", "0x0063"),
        ("0000:00:05.0", "0x1ae0", "0x0063"),
        ("0000:00:06.0", "0x1ae0", "0x0042"),  # a network card
        ("0000:00:07.0", "0x8086", "0x0063"),
    ]:
        function = tmp_path / "bus/pci/devices" / name
        function.mkdir(parents=True)
        (function / "vendor").write_text(vendor + "\n")
        (function / "device").write_text(device + "\n")
    (tmp_path / "bus/pci/devices/half-removed").mkdir()
    assert jaxread.tpu_functions(str(tmp_path)) == 2
    assert jaxread.tpu_functions(str(tmp_path / "nothing")) == 0


def test_a_job_that_runs_on_the_cpu_of_a_tpu_host_is_warned_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jaxread, "is_cpu_chosen", lambda: False)
    monkeypatch.setattr(jaxread, "tpu_functions", lambda: 1)
    (warning,) = own_process.fallback_warning("cpu")
    assert warning["message"].endswith("although 1 TPU function is on the PCI bus")
    monkeypatch.setattr(jaxread, "tpu_functions", lambda: 8)
    (warning,) = own_process.fallback_warning("cpu")
    assert warning["code"] == "cpu_fallback"
    assert "8 TPU functions are" in warning["message"]
    assert own_process.fallback_warning("tpu") == []
    monkeypatch.setattr(jaxread, "tpu_functions", lambda: 0)
    assert own_process.fallback_warning("cpu") == []


@pytest.mark.parametrize("word", ["\x01" * 5000, "é" * 5000, "x" * 5000, "--token=s3cret"])
def test_a_command_line_of_any_size_fits_into_the_facts(
    monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setattr(
        own_process, "open", lambda *a, **k: (_ for _ in ()).throw(OSError), raising=False
    )
    monkeypatch.setattr(sys, "argv", [word] * 200)
    found = own_process.command()
    assert len(json.dumps(found, ensure_ascii=False).encode()) < 4000
    assert "s3cret" not in json.dumps(found)


def aged(path: str, seconds: float) -> str:
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def left(directory: Path, who: Identity) -> str:
    """A segment that its process has let go of."""
    writer = segments.segment(directory, who)
    writer.close()
    return writer.path


def test_dead_segments_older_than_a_day_are_removed_by_their_owners_next_start(
    tmp_path: Path,
) -> None:
    me = identity.me()
    old = aged(left(tmp_path, segments.dead_identity()), 25 * 3600)
    young = aged(left(tmp_path, me._replace(start_ticks=2)), 3600)
    alive = aged(segments.segment(tmp_path, me).path, 25 * 3600)
    other = tmp_path / "notes.txt"
    other.touch()
    aged(str(other), 90 * 3600)
    output.remove_old(me, str(tmp_path))
    assert not os.path.exists(old)
    assert os.path.exists(young)
    assert os.path.exists(alive)
    assert other.exists()


def test_another_users_segments_are_never_removed(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to make another user's file")
    path = aged(left(tmp_path, segments.dead_identity()), 90 * 3600)
    os.chown(path, 65534, 65534)
    output.remove_old(identity.me(), str(tmp_path))
    assert os.path.exists(path)


def test_black_boxes_of_a_script_restarted_all_day_do_not_pile_up(tmp_path: Path) -> None:
    me = identity.me()
    made = [me._replace(start_ticks=2 + i) for i in range(20)]
    paths = [aged(left(tmp_path, who), 100.0 + i) for i, who in enumerate(made)]
    output.remove_old(me, str(tmp_path))
    kept = [p for p in paths if os.path.exists(p)]
    assert kept == paths[: output.KEEP_DEAD_MOST]


def bases(monkeypatch: pytest.MonkeyPatch, *parents: Path) -> str:
    """Agents make their directories there; the name of ours."""
    monkeypatch.setattr(places, "bases", lambda uid: [str(parent) for parent in parents])
    return places.directory_name(os.getuid())


def test_a_directory_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_to_all = tmp_path / bases(monkeypatch, tmp_path)
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    writer = output.create(identity.me(), 1, None)
    used = os.path.dirname(writer.path)
    assert used != str(open_to_all)
    assert places.is_private(used, os.getuid())
    assert os.listdir(open_to_all) == []


def a_link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to("elsewhere")


TAKEN: dict[str, Callable[[Path], None]] = {
    "directory": lambda path: path.mkdir(),
    "pipe": lambda path: os.mkfifo(path),
    "file": lambda path: path.touch(),
    "link": a_link,
    "dangling link": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to make files of another user")
@pytest.mark.parametrize("what", TAKEN)
def test_a_name_that_another_user_has_taken_is_got_round_and_viewers_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    shared = tmp_path / "dev/shm"
    shared.mkdir(parents=True)
    shared.chmod(0o1777)
    (tmp_path / "proc").symlink_to("/proc")
    taken = shared / bases(monkeypatch, shared)
    TAKEN[what](taken)
    for path in shared.iterdir():
        os.chown(path, 65534, 65534, follow_symlinks=False)
    me = identity.me()
    writers = [output.create(me._replace(start_ticks=me.start_ticks - n), 1, None) for n in (0, 1)]
    (used,) = {os.path.dirname(w.path) for w in writers}
    assert places.user_in_name(os.path.basename(used)) == os.getuid()
    assert places.is_private(used, os.getuid())
    assert not (shared / "nowhere").exists()
    assert not (shared / "elsewhere").exists() or not os.listdir(shared / "elsewhere")
    found = Segments(Host(root=str(tmp_path))).read(time.monotonic())
    assert (len(found.processes), found.missing) == (2, ())


def test_empty_directories_of_its_own_that_are_old_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = bases(monkeypatch, tmp_path)
    old, new, full = (tmp_path / f"{usual}.{n}" for n in ("a1", "b2", "c3"))
    for directory in (old, new, full):
        directory.mkdir()
    (full / "1-2.seg").touch()
    for directory in (old, full):
        os.utime(directory, (1.0, 1.0))
    output.remove_old(identity.me(), os.path.dirname(output.create(identity.me(), 1, None).path))
    assert (old.exists(), new.exists(), full.exists()) == (False, True, True)


def test_black_boxes_of_this_very_minute_are_removed_as_well(tmp_path: Path) -> None:
    me = identity.me()
    for ticks in range(2, 30):
        left(tmp_path, me._replace(start_ticks=ticks))
    elsewhere = segments.segment(tmp_path, me._replace(start_ticks=1, pid_namespace=7)).path
    half = tmp_path / "5-5.seg.new"
    half.touch()
    os.utime(half, (1.0, 1.0))
    output.remove_old(me, str(tmp_path))
    assert len(os.listdir(tmp_path)) == output.KEEP_DEAD_MOST + 1
    assert os.path.exists(elsewhere)
    assert not half.exists()


def test_a_segment_can_be_read_by_others_whatever_the_umask_and_by_nobody_if_asked(
    tmp_path: Path,
) -> None:
    before = os.umask(0o077)
    try:
        shared = output.create(identity.me(), 1, str(tmp_path / "shared"))
        private = output.create(identity.me(), 1, str(tmp_path / "private"), 0o600)
    finally:
        os.umask(before)
    assert os.stat(shared.path).st_mode & 0o777 == 0o644
    assert os.stat(private.path).st_mode & 0o777 == 0o600


def test_when_no_directory_takes_the_segment_every_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    name = bases(monkeypatch, blocked, Path("/proc/no"))
    with pytest.raises(OSError, match=rf"file/{name}: .*; /proc/no/{name}: "):
        output.create(identity.me(), 1, None)


def test_a_module_that_is_half_imported_is_no_sign_of_a_helper(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = types.ModuleType("multiprocessing.process")
    monkeypatch.setitem(sys.modules, "multiprocessing.process", half)
    assert not own_process.is_helper(["python", "train.py"])


def test_a_backend_that_comes_after_the_end_leaves_no_thread(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    device = types.SimpleNamespace(platform="tpu", device_kind="TPU v4", process_index=0, id=0)
    backend = types.SimpleNamespace(local_devices=lambda: [device], devices=lambda: [device])
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    late = sampler.Sampler(1.0, Steps(), str(tmp_path), 0o600, lambda: None)
    late.finish(keep=False)
    late._adopt_backend(backend)
    asking = late._utilization
    assert asking is not None
    asking.join(60.0)
    assert not asking.is_alive()
    late.finish(keep=False)


def test_a_sample_that_was_expensive_says_when_the_next_one_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Viewers and other hosts would take the agent for silent: garbage of the whole job may be
    collected in its thread.
    """
    device = types.SimpleNamespace(platform="cpu", device_kind="cpu", process_index=0, id=0)
    backend = types.SimpleNamespace(local_devices=lambda: [device], devices=lambda: [device])
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    monkeypatch.setattr(sampler.jaxread, "backend", lambda: backend)
    agent = sampler.Sampler(1.0, Steps(), str(tmp_path), 0o600, lambda: None)
    clock = iter([0.0, 0.0, *[0.5] * 50])
    agent._adopt_backend(backend)
    agent._profiling = False
    monkeypatch.setattr(sampler.time, "thread_time", lambda: next(clock))
    agent._tick()
    values = agent.segment.values
    assert values is not None
    assert interval_of(values) == agent._samples.period_s == 500.0
    monkeypatch.undo()
    agent.finish(keep=False)


def test_a_profile_is_taken_with_the_sample_that_has_its_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two, the lines of code would not add up to the live arrays beside them."""
    agent = sampler.Sampler(60.0, Steps(), str(tmp_path), 0o600, lambda: None)
    taken: list[str] = []
    monkeypatch.setattr(agent.segment, "keep", lambda now_s: True)
    monkeypatch.setattr(agent.segment, "wait_s", lambda now_s: 900.0)
    monkeypatch.setattr(sampler.jaxread, "backend", object)
    monkeypatch.setattr(agent, "_profile", lambda backend, now_s: taken.append("profile"))
    monkeypatch.setattr(agent, "_sample", lambda backend, now_s: taken.append("sample"))
    now_s = time.monotonic()
    agent._samples.spent(now_s, 0.0)
    agent._tick()
    assert taken == []
    assert 0 < agent._wait_s(time.monotonic()) <= 60.0, "it waits for the sample, and does not spin"
    agent._samples.spent(now_s - 120.0, 0.0)
    agent._tick()
    assert taken == ["profile", "sample"]
