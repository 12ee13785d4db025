"""The demo with its real job and simulated host: what it shows, and that nothing of it is left,
however it ends."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from support.simulated_hosts import set_faults
from support.waits import until

from tpusmi import demo
from tpusmi.chips import by_kind, by_name
from tpusmi.collect import open_collector
from tpusmi.merge.roofline import roofline
from tpusmi.model import Host, Snapshot
from tpusmi.simulate import description
from tpusmi.wire import identity, places
from tpusmi.wire.reader import Sample, SegmentReader

LIMIT_S = 60.0
GONE_WITHIN_S = 30.0
MXU, DUTY = "tensorcore_utilization_percent", "duty_cycle_percent"
BANDWIDTH = "hbm_bandwidth_utilization_percent"
FLOPS = 6.0 * 32 * 256_000_000 * 4096
"""Of a step, as the job declares them."""

DEMO = """
import sys
from tpusmi import demo

def dashboard(host):
    print(host.root, flush=True)
    sys.stdin.read()
    return 0

sys.exit(demo.run(dashboard))
"""

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax")


class Running(NamedTuple):
    """What a demo has started: its directory, and each process by pid and start time."""

    directory: str
    keeper: tuple[int, int]
    trainer: tuple[int, int]
    simulation: tuple[tuple[int, int], ...]
    """The simulated host's keeper, and the process that serves metrics."""

    def is_gone(self) -> bool:
        processes = (self.keeper, self.trainer, *self.simulation)
        alive = any(identity.start_ticks("/proc", pid) == ticks for pid, ticks in processes)
        return not alive and not os.path.exists(self.directory)


@pytest.fixture
def demo_process() -> Iterator[subprocess.Popen[str]]:
    """A demo in a process group of its own, whose dashboard says the directory and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", DEMO],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        yield process
        process.kill()


def test_the_job_shows_its_steps_on_eight_devices_and_ends_with_the_dashboard() -> None:
    found: list[Running] = []

    def watch_two_steps(host: Host) -> int:
        found.append(running(host.root))
        sample = until(lambda: sample_after_steps(found[0].directory, 2))
        assert len(sample.devices) == 8
        assert all(device["live_array_bytes"] > 0 for device in sample.devices)
        return 7

    assert demo.run(watch_two_steps) == 7
    assert found[0].is_gone()


def test_the_job_holds_the_simulated_chips_and_libtpus_lock() -> None:
    def look(host: Host) -> int:
        trainer = running(host.root).trainer[0]
        opened = [
            os.readlink(f"/proc/{trainer}/fd/{fd}") for fd in os.listdir(f"/proc/{trainer}/fd")
        ]
        assert {f"{host.root}/dev/vfio/{group}" for group in range(1, 9)} <= set(opened)
        lock = os.stat(f"{host.root}/tmp/libtpu_lockfile").st_ino
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        assert [int(fields[4]) for fields in locks if fields[5].endswith(f":{lock}")] == [trainer]
        return 0

    assert demo.run(look) == 0


def test_every_chip_is_the_jobs_and_everything_is_labelled_simulated() -> None:
    started_s = time.monotonic()

    def look(host: Host) -> int:
        trainer = running(host.root).trainer[0]
        snapshot = seen(host, lambda s: len(s.devices) == 8)
        assert snapshot.simulated
        assert len(snapshot.chips) == len(snapshot.devices) == 8
        (process,) = snapshot.processes
        assert process.pid == trainer
        assert process.life is not None
        older_s = process.life.age_s - (time.monotonic() - started_s)
        assert abs(older_s) < 30, "its age is that of the real job"
        assert {owner.pid for device in snapshot.devices for owner in device.owners} == {trainer}
        snapshot = seen(host, lambda s: any(server.ids for server in s.servers))
        assert [server.process and server.process.pid for server in snapshot.servers] == [trainer]
        assert not any(source.notes for source in snapshot.sources)
        return 0

    assert demo.run(look) == 0


def test_no_two_numbers_on_the_demos_screens_contradict_each_other() -> None:
    """Memory, rates and FLOP/s of the job, and what the simulated hardware says of its chips."""

    def look(host: Host) -> int:
        until(lambda: sample_after_steps(host.root, 15))  # both rates count from other moments
        # On a busy machine steps vary, and the MXU follows them sooner than the MFU does.
        snapshot = seen(host, lambda s: 0.9 * mfu_of(s) < mxu_of(s) < 1.6 * mfu_of(s))
        (job,) = snapshot.processes
        devices, own = snapshot.devices, snapshot.value
        check_memory(snapshot)
        mfu = mfu_of(snapshot)
        assert 10 < mfu < 80
        rate, mean_s = own("steps_per_s", job.key), own("step_time_s.mean", job.key)
        assert rate * mean_s == pytest.approx(1, rel=0.35)  # it is a few seconds old
        flops = own("flops_per_s", job.key)
        assert flops == pytest.approx(mfu / 100 * 8 * 197e12, rel=1e-6)
        assert 0.65 < flops / (FLOPS * rate) < 1.5
        for device in devices:
            busy = [own(name, device.key) for name in (MXU, DUTY, BANDWIDTH)]
            assert busy[0] <= busy[1] <= 100
            assert own("hlo_execution_time_us.p50", device.key) / 1e6 < mean_s
            point = roofline(snapshot, device)
            assert point.peak_flops_per_s == 197e12
            assert 100 < point.intensity_flops_per_byte < 600
            assert 0.1 < point.roof_ratio < 1
        assert {device.kind for device in devices} == {"TPU v5e"}
        assert by_kind(str(job.facts["device_kind"])) is by_name("v5e")
        assert snapshot.warnings == ()
        return 0

    assert demo.run(look) == 0


def mfu_of(snapshot: Snapshot) -> float:
    """Of the job; 0 until it is known."""
    values = [snapshot.value("mfu_percent", p.key) for p in snapshot.processes]
    return float((*values, 0.0)[0] or 0.0)


def mxu_of(snapshot: Snapshot) -> float:
    """The mean over all devices; 0 until every device has one."""
    values = [snapshot.value(MXU, device.key) for device in snapshot.devices]
    return 0.0 if not values or None in values else sum(map(float, values)) / len(values)


def check_memory(snapshot: Snapshot) -> None:
    """Every device holds its arrays and little else, as much as a large model needs."""
    (job,) = snapshot.processes
    for device in snapshot.devices:
        used, live, limit = (
            snapshot.value(name, device.key)
            for name in ("hbm_used_bytes", "live_array_bytes", "hbm_limit_bytes")
        )
        assert 8 << 30 < live <= used < limit
        assert used - live < 1.5 * (1 << 30)
    assert job.profile is not None
    total = sum(snapshot.value("live_array_bytes", device.key) for device in snapshot.devices)
    assert sum(site.bytes or 0 for site in job.profile.sites) == pytest.approx(total, rel=0.05)
    assert job.profile.sites[0].function == "init_large_optimizer"


def test_faults_of_the_demos_host_reach_its_real_job() -> None:
    def look(host: Host) -> int:
        until(lambda: sample_after_steps(host.root, 2))
        before = live_bytes(host)
        set_faults(host.root, ("leak",))
        until(lambda: live_bytes(host) > before + (200 << 20))
        set_faults(host.root, ("hang",))
        snapshot = seen(host, lambda s: (s.value("since_last_step_s", s.processes[0].key) or 0) > 4)
        assert mxu_of(snapshot) == 0
        assert all((snapshot.value(DUTY, d.key) or 0) > 95 for d in snapshot.devices)
        return 0

    assert demo.run(look) == 0


def live_bytes(host: Host) -> float:
    """In arrays on all devices, in the job's newest sample."""
    sample = sample_after_steps(host.root, 1)
    return sum(d.get("live_array_bytes", 0.0) for d in sample.devices) if sample else 0.0


def test_large_arrays_cost_no_memory() -> None:
    def look(host: Host) -> int:
        until(lambda: sample_after_steps(host.root, 2))
        trainer = running(host.root).trainer[0]
        status = Path(f"/proc/{trainer}/status").read_text()
        resident_kib = int(status.partition("VmRSS:")[2].split()[0])
        assert live_bytes(host) > 64 << 30
        assert resident_kib < 2 << 20
        return 0

    assert demo.run(look) == 0


def test_nothing_is_left_when_the_dashboard_raises() -> None:
    found: list[Running] = []

    def crash(host: Host) -> int:
        found.append(running(host.root))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        demo.run(crash)
    assert found[0].is_gone()


@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_nothing_is_left_after_a(ending: str, demo_process: subprocess.Popen[str]) -> None:
    left = running(said_directory(demo_process))
    demo_process.send_signal(signal.Signals[ending])
    demo_process.wait(LIMIT_S)
    until(left.is_gone, GONE_WITHIN_S)


def test_nothing_is_left_when_the_whole_process_group_is_killed(
    demo_process: subprocess.Popen[str],
) -> None:
    left = running(said_directory(demo_process))
    os.killpg(demo_process.pid, signal.SIGKILL)
    demo_process.wait(LIMIT_S)
    until(left.is_gone, GONE_WITHIN_S)


def test_everything_dies_with_the_keeper_and_the_directory_is_cleared() -> None:
    found: list[Running] = []

    def kill_the_keeper(host: Host) -> int:
        found.append(running(host.root))
        os.kill(found[0].keeper[0], signal.SIGKILL)
        return 0

    assert demo.run(kill_the_keeper) == 0
    until(found[0].is_gone, GONE_WITHIN_S)


def test_a_job_that_dies_under_the_dashboard_is_told_when_it_quits(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def kill_the_trainer(host: Host) -> int:
        pid, _ = running(host.root).trainer
        os.kill(pid, signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{pid}"))  # reaped: the keeper knows
        assert os.path.isdir(host.root), "the dead job's segment can still be looked at"
        return 0

    assert demo.run(kill_the_trainer) == 0
    assert "The job ended by signal 9." in capfd.readouterr().err


def test_a_job_that_cannot_start_shows_its_last_words_and_no_dashboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jax.py").write_text("raise ImportError('this jax is broken')")
    monkeypatch.syspath_prepend(tmp_path)
    assert demo.run(never) == 1
    told = capfd.readouterr()
    assert "The job ended with status 1." in told.err
    assert "ImportError: this jax is broken" in told.err
    assert told.out == ""


def test_without_jax_the_demo_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    assert demo.run(never) == 1
    assert "pip install 'tpusmi[demo]'" in capfd.readouterr().err


def never(host: Host) -> int:
    raise AssertionError("no dashboard without a job")


def said_directory(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    directory = process.stdout.readline().strip()
    assert directory, "the demo ended before its dashboard opened"
    return directory


def segments(directory: str) -> list[places.SegmentFile]:
    try:
        return places.segments(f"{directory}/segments", None)[0]
    except FileNotFoundError:
        return []


def running(directory: str) -> Running:
    """The processes behind the one segment of the simulated host in that directory."""
    place = until(lambda: next(iter(segments(directory)), None))
    told = description.read(directory)
    pids = [told["keeper"][0], *(process["pid"] for process in told["processes"])]
    simulation = tuple(started(pid) for pid in pids)
    trainer = (place.pid, place.start_ticks)
    return Running(directory, started(parent(place.pid)), trainer, simulation)


def seen(host: Host, is_whole: Callable[[Snapshot], bool]) -> Snapshot:
    """What a viewer of that host sees, once it is whole."""
    collector = open_collector(host)
    try:
        return until(lambda: next(filter(is_whole, [collector.read_once()]), None), 20)
    finally:
        collector.stop()


def started(pid: int) -> tuple[int, int]:
    ticks = identity.start_ticks("/proc", pid)
    assert ticks is not None
    return pid, ticks


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def sample_after_steps(directory: str, steps: int) -> Sample | None:
    for place in segments(directory):
        reader = SegmentReader(place.path)
        try:
            sample = reader.newest()
        finally:
            reader.close()
        if sample is not None and sample.process.get("steps", 0) >= steps:
            return sample
    return None
