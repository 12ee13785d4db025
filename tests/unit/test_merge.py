"""Readings become values: trust before age, fresh before stale, nothing averaged."""

from __future__ import annotations

import pytest
from support.snapshots import merge

from tpusmi.merge.join import DROP_AFTER_S
from tpusmi.model import (
    AGENT,
    LIBTPU,
    OK,
    PHASE,
    Chip,
    Device,
    DeviceKey,
    HostFacts,
    Notice,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    Snapshot,
)
from tpusmi.model.several import total

NOW = 1000.0
HOST = HostFacts("host", "2026-01-01T00:00:00.000Z", None, None)
JOB = ProcessKey(10, 77)
DEVICE = DeviceKey(JOB, 0)


def process(key: ProcessKey = JOB, state: str = "live", **more: object) -> Process:
    return Process(key, "me", "train.py", state, "running", NOW, 1.0, {}, **more)  # type: ignore[arg-type]


def device(key: DeviceKey = DEVICE) -> Device:
    return Device(key, key.index, key.index, "tpu", "TPU v4", None, None)


def reading(
    source: str, value: float, age_s: float, name: str = "hbm_used_bytes", fresh_s: float = 5.0
) -> Reading:
    subject = DEVICE if name.startswith("hbm") else JOB
    return Reading(name, subject, value, NOW - age_s, source, fresh_s)


def merged(*readings: Reading, processes: tuple[Process, ...] = (process(),)) -> Snapshot:
    outcomes = [Outcome(AGENT, OK, readings=readings, devices=(device(),), processes=processes)]
    return merge(outcomes, HOST, NOW, "0.0.0")


def test_the_phase_is_for_the_history_alone() -> None:
    snapshot = merged(reading(AGENT, 2, 0, PHASE), reading(AGENT, 7, 0))
    assert list(snapshot.values) == [(DEVICE, "hbm_used_bytes")]
    (told,) = snapshot.to_dict()["processes"]
    assert told["phase"] == "running"


def test_the_driver_of_the_chips_is_that_of_the_host() -> None:
    chips = tuple(
        Chip(i, "v4", "TPU v4", (), (), 1, driver=driver, driver_version=version)
        for i, (driver, version) in enumerate([(None, None), ("google-tpu", "1.2")])
    )
    host = merge([Outcome("sysfs", OK, chips=chips)], HOST, NOW, "0.0.0").host
    assert (host.tpu_driver, host.tpu_driver_version) == ("google-tpu", "1.2")
    assert merge([], HOST, NOW, "0.0.0").host.tpu_driver is None


@pytest.mark.parametrize(
    ("readings", "value", "source", "stale"),
    [
        pytest.param(
            [reading(AGENT, 1, 1), reading(LIBTPU, 2, 0)], 1, AGENT, False,
            id="the more trusted source wins although the other is newer",
        ),
        pytest.param(
            [reading(AGENT, 1, 9), reading(LIBTPU, 2, 1)], 2, LIBTPU, False,
            id="a fresh reading beats a stale one of a more trusted source",
        ),
        pytest.param(
            [reading(AGENT, 1, 9), reading(LIBTPU, 2, 8)], 1, AGENT, True,
            id="of stale readings the more trusted is shown and said to be stale",
        ),
        pytest.param(
            [reading(AGENT, 1, 3), reading(AGENT, 2, 1)], 2, AGENT, False,
            id="of one source the newer reading wins",
        ),
        pytest.param(
            [reading(AGENT, 0, 1)], 0, AGENT, False, id="zero is a measurement"
        ),
        pytest.param(
            [reading(AGENT, 1, 20, fresh_s=30.0)], 1, AGENT, False,
            id="a value may be believed for as long as its source says",
        ),
    ],
)  # fmt: skip
def test_of_all_readings_one_is_shown(
    readings: list[Reading], value: float, source: str, stale: bool
) -> None:
    found = merged(*readings).values[DEVICE, "hbm_used_bytes"]
    assert (found.value, found.source, found.stale) == (value, source, stale)


def test_a_value_that_is_too_old_is_dropped_and_becomes_unknown() -> None:
    snapshot = merged(reading(AGENT, 1, 5 + DROP_AFTER_S + 1))
    assert snapshot.value("hbm_used_bytes", DEVICE) is None


def test_the_last_values_of_a_dead_process_stay_and_are_stale() -> None:
    snapshot = merged(reading(AGENT, 1, 9999), processes=(process(state="dead"),))
    found = snapshot.values[DEVICE, "hbm_used_bytes"]
    assert (found.value, found.stale, found.age_s) == (1, True, 9999)


def test_the_age_of_a_value_is_never_negative() -> None:
    assert merged(reading(AGENT, 1, -0.5)).values[DEVICE, "hbm_used_bytes"].age_s == 0


def test_devices_of_dead_processes_are_kept_apart_from_those_of_the_living() -> None:
    snapshot = merged(processes=(process(state="dead"),))
    assert snapshot.devices == ()
    assert snapshot.dead_devices == (device()._replace(owners=(JOB,)),)
    assert snapshot.devices_of(JOB) == snapshot.dead_devices


def test_living_processes_come_first_by_start_and_the_newest_of_the_dead_next() -> None:
    jobs = [
        process(ProcessKey(1, 5), "dead")._replace(sampled_at_s=NOW - 50),
        process(ProcessKey(2, 9)),
        process(ProcessKey(3, 1), "dead")._replace(sampled_at_s=NOW - 5),
        process(ProcessKey(4, 2)),
    ]
    assert [p.pid for p in merged(processes=tuple(jobs)).processes] == [4, 2, 3, 1]


def test_a_total_is_unknown_unless_every_device_has_the_value() -> None:
    other = device(DeviceKey(JOB, 1))
    snapshot = merged(reading(AGENT, 7, 1))
    found = total(snapshot, "hbm_used_bytes", [device()])
    assert found is not None
    assert found.value == 7
    assert total(snapshot, "hbm_used_bytes", [device(), other]) is None
    assert total(snapshot, "hbm_used_bytes", []) is None


def test_a_job_that_compiles_again_and_again_is_warned_about_by_function() -> None:
    job = process()._replace(facts={"recompiled": "train_step"})
    snapshot = merged(reading(AGENT, 12, 1, "recent_compilations"), processes=(job,))
    (notice,) = snapshot.warnings
    assert (notice.code, notice.pid) == ("recompiling", JOB.pid)
    assert "12 compilations in the last minute (train_step)" in notice.message


@pytest.mark.parametrize(("count", "age_s"), [(0, 1), (1, 1), (12, 20)])
def test_a_job_that_does_not_recompile_now_is_left_in_peace(count: int, age_s: float) -> None:
    assert merged(reading(AGENT, count, age_s, "recent_compilations")).warnings == ()


def test_what_a_job_warns_of_itself_is_shown_while_it_lives() -> None:
    warning = Notice("cpu_fallback", "JAX runs on the CPU", JOB.pid)
    (shown,) = merged(processes=(process(warnings=(warning,)),)).warnings
    assert shown._replace(advice="") == warning
    assert "JAX_PLATFORMS" in shown.advice
    assert merged(processes=(process(state="dead", warnings=(warning,)),)).warnings == ()


def test_a_silent_agent_is_said() -> None:
    (notice,) = merged(processes=(process(state="silent"),)).warnings
    assert notice.code == "silent_agent"
