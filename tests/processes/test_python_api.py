"""The Python API on a simulated host: snapshots and their objects, a watch, wrong arguments."""

from __future__ import annotations

import copy
import gc
import importlib.util
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import snapshots
from support.jobs import job
from support.simulated_hosts import set_faults
from support.waits import until

import tpusmi
from tpusmi.model import Host
from tpusmi.simulate import host as simulated


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with simulated.opened_host("v5e-8", agent=True) as found:
        yield found


@pytest.fixture(scope="module")
def s(host: Host) -> tpusmi.Snapshot:
    return tpusmi.snapshot(simulate=host.root)


def test_the_names_of_the_json_are_attributes(s: tpusmi.Snapshot) -> None:
    plain = s.to_dict()
    process, device = s.processes[0], s.devices[0]
    assert s.simulated is True
    assert device.hbm_used_bytes == plain["devices"][0]["hbm_used_bytes"] > 0
    assert process.step_time_s.p95 == plain["processes"][0]["step_time_s"]["p95"] > 0
    assert process.to_dict() == plain["processes"][0]
    assert device.provenance["hbm_used_bytes"].source == "agent"
    assert s.host.name == plain["host"]["name"]


def test_processes_and_devices_lead_to_each_other(s: tpusmi.Snapshot) -> None:
    process = s.processes[0]
    assert [d.index for d in process.devices] == s.to_dict()["processes"][0]["devices"]
    assert process.devices == s.devices
    assert all(d.process is process and d.processes == (process,) for d in s.devices)
    assert [c.devices for c in s.chips] == [(d,) for d in s.devices]
    assert s.process(process.pid) is process
    assert s.devices_of(process.pid) == s.devices_of(process) == s.devices


def test_a_process_of_an_earlier_snapshot_is_found_in_a_later_one(
    s: tpusmi.Snapshot, host: Host
) -> None:
    later = tpusmi.snapshot(simulate=host.root)
    assert later.devices_of(s.processes[0]) == later.devices


def test_a_total_is_the_sum_and_a_mean_the_mean(s: tpusmi.Snapshot) -> None:
    used = [d["hbm_used_bytes"] for d in s.to_dict()["devices"]]
    assert s.total("hbm_used_bytes") == sum(used)
    assert s.total("hbm_used_bytes", s.devices[:2]) == sum(used[:2])
    assert s.total("hbm_used_bytes", (d for d in s.devices[2:3])) == used[2]
    assert s.mean("hbm_used_bytes") == sum(used) / 8


def test_a_sum_with_an_unknown_part_is_unknown(host: Host) -> None:
    set_faults(host.root, ["no-server"])
    try:
        s = until(lambda: unknown_queue(host))
    finally:
        set_faults(host.root, [])
    assert s.total("hlo_queue_size") is None
    assert s.total("hbm_used_bytes", ()) is None, "of no device, nothing is known"
    assert s.total("hbm_used_bytes") is not None


def unknown_queue(host: Host) -> tpusmi.Snapshot | None:
    s = tpusmi.snapshot(simulate=host.root)
    return s if any(d.hlo_queue_size is None for d in s.devices) else None


WRONG: list[tuple[Callable[[tpusmi.Snapshot], Any], type[Exception], str]] = [
    (lambda s: s.devices[0].hbm_used, AttributeError, "did you mean 'hbm_used_bytes'"),
    (lambda s: s.devices[0].mxu, AttributeError, "did you mean 'tensorcore_utilization_percent'"),
    (lambda s: s.processes[0].steps_per_sec, AttributeError, "did you mean 'steps_per_s'"),
    (lambda s: s.processes[0].step_time_s.p99, AttributeError, "did you mean 'p95'"),
    (lambda s: s.devices[0].memory_used, AttributeError, "did you mean 'hbm_used_bytes'"),
    (lambda s: s.devices[0].memory_total, AttributeError, "did you mean 'hbm_limit_bytes'"),
    (lambda s: s.devices[0].utilization_gpu, AttributeError, "mean 'duty_cycle_percent'"),
    (lambda s: s.devices[0].user, AttributeError, "did you mean 'process.user'"),
    (lambda s: s.devices[0].steps_per_s, AttributeError, "did you mean 'process.steps_per_s'"),
    (lambda s: s.processes[0].memory, AttributeError, "did you mean 'hbm_used_bytes'"),
    (lambda s: s.processes[0].cmd, AttributeError, "did you mean 'command'"),
    (lambda s: s.processes[0].p95, AttributeError, "did you mean 'step_time_s.p95'"),
    (lambda s: s.processes[0].create_time, AttributeError, "did you mean 'age_s'"),
    (lambda s: s.gpus, AttributeError, "did you mean 'devices'"),
    (lambda s: s.devices[0].memry, AttributeError, "did you mean 'hbm_used_bytes'"),
    (lambda s: s.devices[0].hbm_total, AttributeError, "did you mean 'hbm_limit_bytes'"),
    (lambda s: s.devices[0].owner, AttributeError, "did you mean 'process'"),
    (lambda s: s.devices[0].uuid, AttributeError, "no attribute 'uuid'; dir() lists them"),
    (lambda s: s.processes[0].name, AttributeError, "did you mean 'command'"),
    (lambda s: s.to_json, AttributeError, "did you mean 'to_dict'"),
    (lambda s: s.proceses, AttributeError, "did you mean 'processes'"),
    (lambda s: s.devices_of(s.devices[0]), TypeError, "a pid or a process, not <Device tpu:0"),
    (lambda s: s.devices_of("1"), TypeError, "a pid or a process, not str '1'"),
    (lambda s: s.devices_of(True), TypeError, "not bool True"),
    (lambda s: s.devices_of(1), LookupError, "no process 1 in this snapshot; its processes: "),
    (lambda s: s.process(s.processes[0]), TypeError, "process() takes a pid, not <Process"),
    (lambda s: s.value(s.devices[0], "hbm_used_bytes"), TypeError, "a name, then a device"),
    (lambda s: s.value("hbm_used", s.devices[0]), AttributeError, "mean 'hbm_used_bytes'"),
    (lambda s: s.value("to_dict", s.devices[0]), AttributeError, "Device has no attribute"),
    (lambda s: s.value("_plain", s.devices[0]), AttributeError, "Device has no attribute '_plain'"),
    (lambda s: s.value("memory_profile.x", s.processes[0]), AttributeError, "MemoryProfile has no"),
    (lambda s: s.value("devices.0", s.processes[0]), AttributeError, "a part of a tuple"),
    (lambda s: s.value("name.x", s.devices[0]), AttributeError, "a part of a str"),
    (lambda s: s.total("hbm_used"), ValueError, "did you mean 'hbm_used_bytes'"),
    (lambda s: s.total("duty_cycle_percent"), ValueError, "use mean('duty_cycle_percent')"),
    (lambda s: s.total(3), TypeError, "takes a name, not int 3"),
    (lambda s: s.total("hbm_used_bytes", s.processes), TypeError, "such as process.devices"),
    (lambda s: s.total("hbm_used_bytes", s.devices[0].pid), TypeError, "takes device objects"),
    (lambda s: s.to_pandas(["devices"]), TypeError, "takes the name of the rows, not ['devices']"),
    (lambda s: s.to_pandas(None), TypeError, "takes the name of the rows, not None"),
    (lambda s: s.to_pandas("device"), ValueError, "did you mean 'devices'"),
    (lambda s: tpusmi.snapshot("v5e-8"), TypeError, "snapshot(simulate='v5e-8')"),
    (lambda s: tpusmi.snapshot(-1.0), ValueError, "from 0 to 3600 seconds"),
    (lambda s: tpusmi.snapshot(simulate=8), TypeError, 'simulate="v5e-8"'),
    (lambda s: tpusmi.snapshot(simulate="v99-8"), ValueError, "unknown accelerator type"),
    (lambda s: tpusmi.watch("1"), TypeError, "interval_s must be a number"),
    (lambda s: tpusmi.watch(0), ValueError, "from 0.1 to 86400 seconds, not 0"),
    (lambda s: tpusmi.watch(float("nan")), ValueError, "from 0.1 to 86400 seconds, not nan"),
    (lambda s: tpusmi.watch(count=1.5), TypeError, "count must be a whole number"),
    (lambda s: tpusmi.watch(count=-1), ValueError, "must not be negative"),
    (lambda s: tpusmi.show("v5e-8"), TypeError, "a simulated host is show(simulate='v5e-8')"),
    (lambda s: tpusmi.show(None), TypeError, "interval_s must be a number of seconds, not None"),
    (lambda s: tpusmi.show(1, "9"), TypeError, "duration_s must be a number of seconds, not '9'"),
    (lambda s: tpusmi.show(simulate=3), TypeError, 'as in simulate="v5e-8", or a directory, not 3'),
    (lambda s: tpusmi.holders("5"), TypeError, "deadline_s must be a number"),
    (lambda s: tpusmi.free("123"), TypeError, "pids must be a list of whole numbers"),
    (lambda s: tpusmi.free(123), TypeError, "pids must be a list of whole numbers, not 123"),
    (lambda s: tpusmi.free(chips=[0.5]), TypeError, "chips must be a list of whole numbers"),
]


@pytest.mark.parametrize(("use", "kind", "words"), WRONG)
def test_a_wrong_name_or_argument_says_what_was_expected(
    use: Callable[[tpusmi.Snapshot], Any],
    kind: type[Exception],
    words: str,
    s: tpusmi.Snapshot,
) -> None:
    with pytest.raises(kind) as error:
        use(s)
    assert words in str(error.value)


def test_the_suggestion_is_made_once(s: tpusmi.Snapshot) -> None:
    """Python prints one of its own after the message of an AttributeError that knows its object."""
    with pytest.raises(AttributeError) as error:
        s.devices[0].hbm_used  # type: ignore[attr-defined]  # noqa: B018
    assert "".join(traceback.format_exception(error.value)).count("id you mean") == 1


def test_a_wrong_name_of_the_package_gets_a_suggestion_from_python() -> None:
    code = [sys.executable, "-c", "import tpusmi; tpusmi.snaphot"]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60)
    assert "no attribute 'snaphot'. Did you mean: 'snapshot'?" in done.stderr


def test_a_part_of_what_is_unknown_is_unknown(s: tpusmi.Snapshot) -> None:
    process = s.processes[0].to_dict() | {"memory_profile": None}
    device = tpusmi.Device(s.devices[0].to_dict())
    device._values["process"] = None
    assert s.value("memory_profile.age_s", tpusmi.Process(process)) is None
    assert s.value("process.pid", device) is None
    assert s.value("process.pid", s.devices[0]) == s.processes[0].pid
    with pytest.raises(AttributeError, match="MemoryProfile has no attribute 'ages'; did you mean"):
        s.value("memory_profile.ages", tpusmi.Process(process))


def test_an_object_of_which_nothing_is_known_says_so(s: tpusmi.Snapshot) -> None:
    assert s.processes[0].step_body_s.p95 is None
    assert repr(s.processes[0].step_body_s) == "<StepBody unknown>"


def test_an_object_cannot_be_changed(s: tpusmi.Snapshot) -> None:
    for name in ("hbm_used_bytes", "note"):
        with pytest.raises(AttributeError):
            setattr(s.devices[0], name, 1)
    s.devices[0].to_dict()["hbm_used_bytes"] = 1
    s.to_dict()["devices"].clear()
    assert s.devices[0].to_dict()["hbm_used_bytes"] != 1
    assert len(s.to_dict()["devices"]) == 8


def test_a_snapshot_can_be_sent_to_another_process(s: tpusmi.Snapshot) -> None:
    for other in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert other.to_dict() == s.to_dict()
        assert other.devices[0].process is other.processes[0]


def test_a_notebook_shows_a_snapshot_as_a_panel(s: tpusmi.Snapshot) -> None:
    assert "SIMULATED" in s._repr_html_()


@pytest.fixture
def roots(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The directories of the simulated hosts that a test starts."""
    started: list[str] = []
    start = simulated.start

    @contextmanager
    def noted(plan: simulated.HostPlan) -> Iterator[Host]:
        with start(plan) as found:
            started.append(found.root)
            yield found

    monkeypatch.setattr(simulated, "start", noted)
    return started


def test_a_snapshot_of_a_type_leaves_nothing(roots: list[str]) -> None:
    s = tpusmi.snapshot(simulate="v2-8")
    assert (len(s.devices), len(s.chips)) == (8, 4)
    assert s.total("hbm_used_bytes") is not None
    assert s.processes[0].step_time_s.p95 is not None
    assert [os.path.exists(root) for root in roots] == [False]
    assert not os.path.exists(f"/proc/{s.processes[0].pid}")


def test_a_watch_takes_one_snapshot_per_interval_and_ends_after_its_count(host: Host) -> None:
    began = time.monotonic()
    times = [x.host.time for x in tpusmi.watch(0.2, count=3, simulate=host.root)]
    assert len({*times}) == 3
    assert 0.35 < time.monotonic() - began < 60


@pytest.mark.parametrize("how", ["close", "with", "break", "forgotten"])
def test_a_watch_closes_what_it_opened(how: str, roots: list[str]) -> None:
    threads = threading.active_count()
    snapshots = tpusmi.watch(0.1, simulate="v5e-1")
    assert next(snapshots).devices[0].hbm_used_bytes
    assert [os.path.exists(root) for root in roots] == [True]
    if how == "close":
        snapshots.close()
        assert next(snapshots, None) is None
        assert repr(snapshots) == "<tpusmi.watch closed, 1 snapshot so far>"
    elif how == "with":
        with snapshots:
            pass
    elif how == "break":
        for _ in snapshots:
            break
        del snapshots
    else:
        cycle: list[Any] = [snapshots]
        cycle.append(cycle)
        del snapshots, cycle
        gc.collect()
    until(lambda: not os.path.exists(roots[0]) and threading.active_count() <= threads)


@pytest.mark.parametrize("how", ["forgotten", "closed", "at the end"])
def test_a_forked_child_leaves_a_watch_and_its_simulated_host_to_its_parent(
    how: str, tmp_path: Path
) -> None:
    with job(tmp_path, FORKS.format(how=how)) as running:
        assert running.hear() == "child 0 True"
        assert running.hear() == "parent True"


FORKS = """
import os, sys, time, tpusmi
snapshots = tpusmi.watch(0.1, simulate="v5e-1")
steps = next(snapshots).processes[0].steps
child = os.fork()
if not child:
    if "{how}" == "closed":
        snapshots.close()
    if "{how}" == "forgotten":
        del snapshots
    sys.exit(0)
began = time.monotonic()
print("child", os.waitpid(child, 0)[1], time.monotonic() - began < 30, flush=True)
print("parent", next(snapshots).processes[0].steps >= steps, flush=True)
snapshots.close()
"""


def test_a_watch_can_be_closed_while_another_thread_waits_for_it(host: Host) -> None:
    snapshots = tpusmi.watch(3600, simulate=host.root)
    next(snapshots)
    waiting = threading.Thread(target=lambda: next(snapshots, None), daemon=True)
    waiting.start()
    snapshots.close()
    waiting.join(60)
    assert not waiting.is_alive()


def test_a_table_of_pandas_has_a_row_for_each_thing(s: tpusmi.Snapshot) -> None:
    devices = s.to_pandas()
    assert devices["hbm_used_bytes"].sum() == s.total("hbm_used_bytes")
    assert devices["name"].tolist() == [d.name for d in s.devices]
    assert str(devices["time"].dt.tz) == "UTC"
    processes = s.to_pandas("processes")
    assert processes["step_time_s.p95"].tolist() == [p.step_time_s.p95 for p in s.processes]
    assert processes["step_body_s.p95"].isna().all(), "unknown is missing"
    sites = s.to_pandas("sites")
    profile = s.processes[0].memory_profile
    assert profile is not None
    assert len(sites) == len(profile.sites)
    assert sites["pid"].unique().tolist() == [s.processes[0].pid]
    assert s.process(processes["pid"].iloc[0]) is s.processes[0], "an integer of NumPy is a pid"
    assert len(s.to_pandas("warnings")) == len(s.warnings)
    assert [len(s.to_pandas(rows)) for rows in ("chips", "sources")] == [8, len(s.sources)]


def test_without_pandas_it_says_what_to_install(
    s: tpusmi.Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        s.to_pandas()


def test_a_host_without_a_tpu_has_a_snapshot_with_nothing_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpusmi.api.reading.this_host", lambda: Host(root=str(tmp_path)))
    s = tpusmi.snapshot()
    assert (s.devices, s.chips, s.total("hbm_used_bytes")) == ((), (), None)
    assert tpusmi.holders() == ()
    assert len(s.to_pandas()) == 0
    with pytest.raises(LookupError, match="its processes: none"):
        s.process(os.getpid())


def test_pandas_is_there() -> None:
    assert importlib.util.find_spec("pandas"), "pip install -e '.[test]' brings it"


def test_a_device_of_an_ended_process_is_reached_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpusmi.api.reading.open_collector", lambda _: _Recorded())
    s = tpusmi.snapshot()
    plain = s.to_dict()
    dead = [p for p in s.processes if p.state == "dead"]
    assert dead
    for process, of in zip(s.processes, plain["processes"], strict=True):
        assert [d.index for d in process.devices] == of["devices"]
        assert [d.to_dict() for d in process.last_devices] == of["last_devices"]
        assert all(d in process.devices for d in process.last_devices)


class _Recorded:
    """In place of a collector: one snapshot with everything in it."""

    def read_once(self, deadline_s: float) -> Any:
        return snapshots.everything()

    def stop(self) -> None:
        pass


AGENT = """
import tpusmi.agent
print(tpusmi.agent.Agent())
agent = tpusmi.start(0.1)
print(agent)
import jax, time
jax.devices()
until_s = time.monotonic() + 30
while "2 devices" not in repr(agent) and time.monotonic() < until_s:
    time.sleep(0.05)
print(agent)
tpusmi.step(); print(tpusmi.step())
tpusmi.stop()
print(agent)
os.environ["TPUSMI_DISABLE"] = "1"
print(tpusmi.start())
"""


def test_the_agent_and_a_step_say_what_they_are(tmp_path: Path) -> None:
    with job(tmp_path, AGENT) as running:
        before, waits, publishes, step, after, disabled = [running.hear() for _ in range(6)]
    assert before == after == "<tpusmi agent: stopped>"
    assert "waits for JAX" in waits
    assert re.fullmatch(rf"<tpusmi agent: publishing to {tmp_path}/\S+, 2 devices>", publishes)
    assert step == "<tpusmi.step: 2 steps have ended>"
    assert disabled == "<tpusmi agent: off: TPUSMI_DISABLE is set>"
