"""What a capture shows joins the devices as the witness "profile", with its age, and is evidence of
work and never of rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from support import profiles
from support.waits import until
from unit.test_join import JOB, OTHER, agent, chips, column, holder, joined, libtpu

from tpusmi.collect import Collector
from tpusmi.merge.roofline import roofline
from tpusmi.model import (
    ABSENT,
    LIBTPU,
    OK,
    PROFILE,
    TRACED,
    DeviceKey,
    History,
    Host,
    Outcome,
    ProcessKey,
    Reading,
    Snapshot,
    TracedKey,
    Value,
)
from tpusmi.sources.profiles import FRESH_S, KEPT_S, Profiles
from tpusmi.trace.figures import TraceProfile
from tpusmi.tui.device.chip_limits import in_words

NOW = 1000.0
MXU, DUTY = "tensorcore_utilization_percent", "duty_cycle_percent"
BANDWIDTH = "hbm_bandwidth_utilization_percent"
NODES = tuple(f"/dev/vfio/{i}" for i in range(4))


def trace(count: int = 4, backend: str = "tpu", ids: Any = None, **fields: Any) -> TraceProfile:
    """A trace of so many cores: the MXU of each is its number and 50 %."""
    figures: dict[str, Any] = {
        "duty_cycle_percent": 90.0,
        "hbm_bandwidth_percent": 25.0,
        "flops_per_s": 40e12,
        "peak_flops_per_s": 200e12,
        "peak_hbm_bytes_per_s": 800e9,
        **fields,
    }
    cores = tuple(
        profiles.core(i, 0.9)._replace(
            **{"mxu_percent": 50.0 + i, "id": None if ids is None else ids[i], **figures}
        )
        for i in range(count)
    )
    return profiles.healthy()._replace(backend=backend, cores=cores)


def outcome(profile: TraceProfile, process: ProcessKey = JOB, age_s: float = 1.0) -> Outcome:
    source = Profiles()
    source.take(process, profile, NOW - age_s)
    return source.read(NOW)


def test_the_cores_of_a_trace_are_the_devices_that_the_agent_numbers() -> None:
    s = joined(agent(JOB, [4, 5, 6, 7]), outcome(trace()))
    assert column(s, MXU) == [50.0, 51.0, 52.0, 53.0]
    assert column(s, DUTY) == [90.0] * 4
    value = s.values[DeviceKey(JOB, 2), BANDWIDTH]
    assert (value.value, value.source, value.age_s, value.stale) == (25.0, PROFILE, 1.0, False)


def test_without_an_agent_they_are_the_devices_that_the_process_holds() -> None:
    s = joined(chips("v5e", 8), holder(JOB, *NODES), outcome(trace()))
    assert column(s, MXU) == [50.0, 51.0, 52.0, 53.0, None, None, None, None]


def test_the_agents_devices_lie_over_those_of_the_machine() -> None:
    found = (chips("v5e", 8), holder(JOB, *NODES), agent(JOB, [0, 1, 2, 3]), outcome(trace()))
    assert column(joined(*found), MXU) == [50.0, 51.0, 52.0, 53.0, None, None, None, None]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param((agent(JOB, [0, 1]), outcome(trace(2, ids=(7, 8)))), id="of other ids"),
        pytest.param(
            (chips("v5e", 8), holder(JOB, *NODES), outcome(trace(3))), id="of fewer than it holds"
        ),
        pytest.param((chips("v5e", 8), outcome(trace(8))), id="of a process that holds nothing"),
        pytest.param((agent(OTHER, [0, 1]), outcome(trace(2))), id="of a process that is gone"),
        pytest.param((agent(JOB, [0, 1]), outcome(trace(2, backend="cpu"))), id="of a CPU"),
        pytest.param(
            (chips("v5e", 4), holder(JOB, *NODES), outcome(trace(4, backend="cpu"))),
            id="of a CPU, beside chips",
        ),
    ],
)
def test_a_core_whose_device_is_not_certain_shows_nowhere(found: tuple[Outcome, ...]) -> None:
    s = joined(*found)
    assert not [key for key, v in s.values.items() if v.source == PROFILE]


def test_a_job_on_the_cpu_has_its_devices_in_a_trace_of_the_cpu() -> None:
    s = joined(agent(JOB, [0, 1], platform="cpu"), outcome(trace(2, backend="cpu")))
    assert column(s, DUTY) == [90.0, 90.0]


def test_a_note_counts_the_devices_that_could_not_be_placed() -> None:
    s = joined(agent(JOB, [0, 1]), outcome(trace(2, ids=(7, 8))))
    (source,) = (o for o in s.sources if o.source == PROFILE)
    assert source.notes == ("pid 10: 2 devices of its trace match no device here",)


def test_what_is_measured_again_and_again_is_trusted_more() -> None:
    rows = {DUTY: dict.fromkeys(range(4), 70.0)}
    s = joined(agent(JOB, range(4)), libtpu(rows, process=JOB), outcome(trace()))
    assert column(s, DUTY) == [70.0] * 4
    assert column(s, MXU) == [50.0, 51.0, 52.0, 53.0]


def test_a_fresh_capture_is_shown_in_place_of_an_old_value_of_another_source() -> None:
    old = libtpu({DUTY: dict.fromkeys(range(4), 70.0)}, process=JOB)
    old = old._replace(readings=tuple(r._replace(at_s=NOW - 30) for r in old.readings))
    assert column(joined(agent(JOB, range(4)), old, outcome(trace())), DUTY) == [90.0] * 4


@pytest.mark.parametrize(
    ("age_s", "stale"), [(FRESH_S - 1, False), (FRESH_S + 1, True), (KEPT_S - 1, True)]
)
def test_a_capture_is_soon_old_and_shown_with_its_age(age_s: float, stale: bool) -> None:
    value = joined(agent(JOB, range(4)), outcome(trace(), age_s=age_s)).values
    assert value[DeviceKey(JOB, 0), MXU].age_s == age_s
    assert value[DeviceKey(JOB, 0), MXU].stale is stale


def test_after_a_while_it_is_dropped() -> None:
    found = outcome(trace(), age_s=KEPT_S + 1)
    assert (found.status, found.readings) == (ABSENT, ())


def test_a_newer_capture_of_a_process_replaces_the_one_before() -> None:
    source = Profiles()
    source.take(JOB, trace(4), NOW - 5)
    source.take(JOB, trace(2), NOW - 1)
    readings = source.read(NOW).readings
    assert {r.at_s for r in readings} == {NOW - 1}
    assert {r.subject for r in readings} == {TracedKey(JOB, i, None, 2, "tpu") for i in range(2)}


@pytest.mark.parametrize("percent", [-1.0, 101.5, float("nan"), float("inf"), 400.0, None])
def test_a_share_that_makes_no_sense_is_unknown(percent: float | None) -> None:
    s = joined(agent(JOB, range(4)), outcome(trace(mxu_percent=percent)))
    assert column(s, MXU) == [None] * 4


def test_a_rounded_share_is_no_more_than_all() -> None:
    s = joined(agent(JOB, range(4)), outcome(trace(mxu_percent=100.4)))
    assert column(s, MXU) == [100.0] * 4


def test_json_has_the_witness_and_no_more_names() -> None:
    s = joined(agent(JOB, range(4)), outcome(trace(), age_s=20))
    plain = s.to_dict()
    device = plain["devices"][0]
    assert device[MXU] == 50.0
    assert device["provenance"][MXU] == {"source": "profile", "age_s": 20.0, "stale": True}
    assert [o["name"] for o in plain["sources"]] == ["agent", "profile"]
    assert not [name for name in TRACED if name in str(plain)]


# -- the roofline


def roof(s: Snapshot) -> Any:
    return roofline(s, s.devices[0])


def test_a_capture_is_a_point_under_the_roof_with_its_own_peaks_and_age() -> None:
    # 25 % of 800 GB/s are 200 GB/s; 40e12 / 200e9 = 200 FLOP/byte; the ridge is at 250.
    found = roof(joined(agent(JOB, range(4)), outcome(trace(), age_s=40)))
    assert found.hbm_bytes_per_s == pytest.approx(200e9)
    assert found.ridge_flops_per_byte == pytest.approx(250)
    assert found.intensity_flops_per_byte == pytest.approx(200)
    assert (found.bound, found.roof_ratio) == ("memory", pytest.approx(0.25))
    assert in_words(found) == (
        "memory-bound: 200 FLOP/byte (ridge: 250), 25 % of the roof; witness: profile, 40s old"
    )


def test_it_is_taken_before_what_the_job_counts_and_libtpu_measures() -> None:
    busy = libtpu({BANDWIDTH: dict.fromkeys(range(4), 80.0)}, process=JOB)
    own = agent(JOB, range(4))
    counted = (Reading("flops_per_s", JOB, 1e12, NOW, "agent", 5.0),)
    process = own.processes[0]._replace(facts={"device_count": 4})
    own = own._replace(readings=(*own.readings, *counted), processes=(process,))
    assert roof(joined(own, busy)).witness == ""
    assert roof(joined(own, busy, outcome(trace()))).witness == PROFILE
    assert roof(joined(own, busy, outcome(trace(), age_s=FRESH_S + 1))).witness == ""
    assert roof(joined(own, outcome(trace(), age_s=FRESH_S + 1))).witness == PROFILE


def test_peaks_that_the_trace_lacks_are_those_of_the_chip_table() -> None:
    found = roof(joined(agent(JOB, range(4)), outcome(trace(peak_flops_per_s=None))))
    assert found.peak_flops_per_s == 197e12
    assert found.peak_hbm_bytes_per_s == 800e9


@pytest.mark.parametrize("unknown", ["flops_per_s", "hbm_bandwidth_percent"])
def test_without_both_numbers_a_capture_is_no_point(unknown: str) -> None:
    found = roof(joined(agent(JOB, range(4)), outcome(trace(**{unknown: None}))))
    assert (found.witness, found.intensity_flops_per_byte) == ("", None)


# -- the history


def reading(value: float, source: str, at_s: float) -> Reading:
    return Reading(DUTY, DeviceKey(JOB, 0), value, at_s, source, FRESH_S)


def test_a_capture_without_work_does_not_begin_a_rest() -> None:
    history = History()
    history.add([reading(0.0, PROFILE, NOW)])
    assert history.nothing_since_s(DeviceKey(JOB, 0)) is None


def test_a_capture_with_work_ends_one() -> None:
    history = History()
    history.add([reading(0.0, LIBTPU, NOW)])
    assert history.nothing_since_s(DeviceKey(JOB, 0)) == NOW
    history.add([reading(30.0, PROFILE, NOW + 1)])
    assert history.nothing_since_s(DeviceKey(JOB, 0)) is None


# -- the collector


class _Agent:
    name, period_s = "agent", 60.0

    def read(self, now_s: float) -> Outcome:
        found = agent(JOB, range(4))
        return found._replace(readings=())

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector(Host(), [_Agent()])
    made.start()
    yield made
    made.stop()


def test_a_capture_is_a_source_of_the_collector_from_the_first_one_on(
    collector: Collector,
) -> None:
    assert PROFILE not in {o.source for o in collector.snapshot().sources}
    for count in (4, 2):
        collector.keep_profile(JOB, trace(count), time.monotonic() - 3)

        def shown(count: int = count) -> list[Value]:
            values = collector.snapshot().values.items()
            found = [value for (_, name), value in values if name == MXU]
            return found if len(found) == count else []

        assert (until(shown, what="the capture")[0].age_s or 0) >= 3
    s = collector.snapshot()
    assert [(o.source, o.status) for o in s.sources if o.source == PROFILE] == [(PROFILE, OK)]
