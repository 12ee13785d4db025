"""A simulated fleet has the series and labels of real exporters, and is the same each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pytest
from support.waits import until

from tpusmi.collect import open_collector
from tpusmi.exporter.catalog import KINDS
from tpusmi.exporter.families import Families
from tpusmi.exporter.of_snapshot import add_snapshot
from tpusmi.fleet.fleet_figures import FleetHost, HostState
from tpusmi.fleet.fleet_series import FLEET_SERIES, SHOWN_METRICS, SHOWN_SERIES
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.fleet.samples import SeriesSample
from tpusmi.fleet.simulated.simulated_fleet import SILENT, SimulatedFleet
from tpusmi.fleet.simulated.simulated_samples import host_samples, samples
from tpusmi.model import OK, Snapshot
from tpusmi.simulate.fleet_job import (
    DIED_S,
    OLD_S,
    device_values,
    job_at,
    process_values,
)
from tpusmi.simulate.fleet_job import (
    machine as machine_of,
)
from tpusmi.simulate.fleet_members import FleetMember, members
from tpusmi.simulate.fleet_spec import HOSTS_MOST, slices_of
from tpusmi.simulate.host import HostPlan, start

NOW_S = 1_800_000_000.0
NOT_OF_A_FLEET = (
    *("tpusmi_network_", "tpusmi_source_", "tpusmi_host_", "tpusmi_left_out", "tpusmi_slice_"),
)
"""Series that describe the machine and the exporter itself, and what a job's agents know of each
other: the fleet view reads none of them.
"""

Shapes = dict[str, set[tuple[str, ...]]]


def fleet(spec: str, at_s: float = NOW_S) -> SimulatedFleet:
    return SimulatedFleet(spec, lambda: at_s)


def shapes(all_samples: Iterable[tuple[str, Iterable[str]]]) -> Shapes:
    """The sets of labels of each series."""
    found: Shapes = {}
    for name, labels in all_samples:
        found.setdefault(name, set()).add(tuple(sorted(labels)))
    return found


def real_shapes(machine: str, worker: int) -> Shapes:
    """Those of what `tpusmi serve` has of such a simulated host."""
    with start(HostPlan(machine, worker=worker, agent=True, age_s=500.0)) as host:
        collector = open_collector(host)

        def look() -> Snapshot | None:
            s = collector.read_once(60.0)
            return s if {o.status for o in s.sources} == {OK} else None

        try:
            s = until(look, what="every source")
        finally:
            collector.stop()
    f = Families({"host": "a", "simulated": "true", "slice": "b"})
    f.add_info("build", version="1", python_version="3")
    add_snapshot(f, s, with_processes=True)
    f.add("snapshot_timestamp_seconds", 1.0)
    return shapes(
        (family.kind.name, [label for label, _ in labels])
        for family in f.in_order()
        for labels in family.samples
    )


@pytest.mark.parametrize("machine", ["v5e-16", "v3-32"])
def test_its_series_and_labels_are_those_of_a_real_exporter(machine: str) -> None:
    (one,) = slices_of(machine)
    member = FleetMember(one, 1)
    began_s = 100.0  # long enough ago for all to be known, and before any trouble
    simulated = shapes(
        (x.name, x.labels) for x in host_samples(member, began_s, job_at(one, began_s))
    )
    real = real_shapes(machine, 1)
    of_fleet = {
        name: labels for name, labels in real.items() if name in FLEET_SERIES or name in simulated
    }
    assert simulated == of_fleet
    left = [name for name in real.keys() - of_fleet.keys() if not name.startswith(NOT_OF_A_FLEET)]
    assert sorted(left) == [
        "tpusmi_metrics_server_up",
        "tpusmi_not_inspected_processes",
        "tpusmi_tpu_status",
    ]


def test_the_labels_of_all_samples_are_in_the_catalog() -> None:
    everywhere = {"host", "slice", "simulated", "instance", "job"}
    for x in samples(slices_of("16,v2-8,v4-8,7x-8"), NOW_S, KINDS):
        assert x.labels.keys() - everywhere <= {*KINDS[x.name].labels}
        assert all(x.labels.values()), x


def test_no_sample_is_twice_and_only_those_asked_for_are_there() -> None:
    found = [*samples(slices_of("16"), NOW_S)]
    assert {x.name for x in found} <= {*SHOWN_SERIES}
    assert Counter(map(_identity, found)).most_common(1)[0][1] == 1


def _identity(x: SeriesSample) -> tuple[str, tuple[tuple[str, str], ...]]:
    return x.name, tuple(sorted(x.labels.items()))


@pytest.mark.parametrize(
    ("spec", "hosts", "slices"),
    [
        ("1", 1, 1),
        ("16", 16, 7),
        ("1000", 1000, 28),
        ("v5e-256", 64, 1),
        ("v5e-256,v5p-128*2,v6e-8*100", 196, 103),
        (" 4 , v4-8 ", 5, 5),
        ("2*3", 6, 6),
    ],
)
def test_a_specification_is_hosts_or_slices(spec: str, hosts: int, slices: int) -> None:
    made = slices_of(spec)
    assert (len(members(made)), len(made)) == (hosts, slices)
    assert len({m.name for m in members(made)}) == hosts


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("", "number of hosts"),
        ("0", "1 to 10,000"),
        ("v5e-7", "unknown accelerator type"),
        ("x", "unknown accelerator type"),
        ("16*0", "number of hosts"),
        ("16;3", "number of hosts"),
        ("v5e-8*99999999", "at most 10,000"),
        ("99999999", "1 to 10,000"),
        ("1," * 600, "characters"),
        ("٣", "number of hosts"),
    ],
)
def test_a_wrong_specification_gets_a_sentence(spec: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        slices_of(spec)


def test_the_largest_fleet_is_that_of_the_limit() -> None:
    assert len(members(slices_of(str(HOSTS_MOST)))) == HOSTS_MOST


def test_at_the_same_time_it_is_the_same_and_a_second_later_it_is_not() -> None:
    one, same, later = (fleet("16", NOW_S + s).snapshot().hosts for s in (0, 0, 1))
    assert one == same != later


def host_with(spec: str, code: str) -> list[FleetHost]:
    hosts = fleet(spec).snapshot().hosts
    return [h for h in hosts if code in {n.code for n in h.notices}]


def test_some_hosts_are_down_old_idle_free_and_slow() -> None:
    s = fleet("v5e-256,v5p-128*2,v6e-8*30").snapshot()
    assert len(s.hosts) == 64 + 32 + 30
    states = Counter(h.state for h in s.hosts)
    assert states[HostState.DOWN] == 2
    assert states[HostState.OLD] == 1
    assert all(bool(h.reason) == (h.state != HostState.LIVE) for h in s.hosts)
    assert any(h.held_chips == 0 and not h.processes for h in s.hosts)
    assert all(h.simulated for h in s.hosts)
    phases = {p.phase for h in s.hosts for p in h.processes}
    assert {"running", "idle"} <= phases
    codes = {n.code for h in s.hosts for n in h.notices}
    assert codes == {"ici_link", "slice_silent", "slice_straggler", "throttled", "unused"}
    times = [h.processes[0].values["step_time_s.mean"] for h in s.hosts[:64]]
    assert sum(t > 1.2 * min(times) for t in times) == 1
    assert any(
        d.values["throttle_percent"] == 30 for h in s.hosts for d in h.devices if h.processes
    )
    assert {link.health for h in s.hosts for link in h.links} == {0, 3, 7}


def test_details_have_every_metric_and_a_snapshot_those_that_are_shown() -> None:
    f = fleet("v5e-16")
    host = f.snapshot().hosts[2]
    shown = {*host.devices[0].values} | {*host.processes[0].values}
    assert shown <= {*SHOWN_METRICS}
    whole = f.details(host)
    assert whole.devices[0].values["hbm_peak_bytes"] >= whole.devices[0].values["hbm_used_bytes"]
    assert whole.processes[0].values["step_time_s.p95"] > 0
    assert host.devices[0].values.items() <= whole.devices[0].values.items()


def test_its_history_ends_with_the_present() -> None:
    f = fleet("v5e-16")
    host = f.snapshot().hosts[0]
    past = f.history(host, ("hbm_used_bytes", "throttle_percent", "steps"), 600.0, 11)
    assert {*past} == {"hbm_used_bytes", "throttle_percent"}
    used = past["hbm_used_bytes"]
    assert (used.first_s, used.step_s, len(used.values)) == (NOW_S - 600.0, 60.0, 11)
    mean = sum(d.values["hbm_used_bytes"] for d in host.devices) / len(host.devices)
    assert used.values[-1] == pytest.approx(mean)


def test_the_history_of_a_host_with_old_numbers_ends_with_these() -> None:
    f = fleet("16")
    (old,) = [h for h in f.snapshot().hosts if h.state == HostState.OLD]
    used = f.history(old, ("hbm_used_bytes",), 2 * OLD_S, 5)["hbm_used_bytes"].values
    assert [value is None for value in used] == [False, False, False, True, True]


def test_a_wrong_specification_is_the_error_of_a_fleet() -> None:
    with pytest.raises(FleetError):
        SimulatedFleet("v99-3")


@pytest.mark.parametrize("trouble_s", range(0, 1200, 37))
def test_the_numbers_of_a_host_do_not_contradict_each_other(trouble_s: int) -> None:
    for s in slices_of("v5e-256,v5p-128,v6e-8*4,v2-8"):
        job = job_at(s, NOW_S + trouble_s)
        if job is None:
            continue
        for worker in {0, s.hosts // 3}:
            check_steps(process_values(s, worker, job))
            host = machine_of(s.accelerator_type, worker)
            check_device(device_values(host, host.devices[0], job, False))


def check_steps(values: Mapping[str, float | None]) -> None:
    """The times of steps, and how many there are in a second."""
    low, p50, p95, high, mean = (
        values.get(f"step_time_s.{part}") for part in ("min", "p50", "p95", "max", "mean")
    )
    if low is not None and p50 and p95 and high and mean:
        assert low <= p50 <= p95 <= high
        assert low <= mean <= high
        assert (values["steps_per_s"] or 0) * mean < 1.1


def check_device(values: Mapping[str, float | None]) -> None:
    """Memory, and how busy it is."""
    v = {name: value or 0.0 for name, value in values.items()}
    assert v["hbm_used_bytes"] <= v["hbm_peak_bytes"] <= v["hbm_limit_bytes"]
    assert v["live_array_bytes"] <= v["hbm_used_bytes"]
    if v["idle_s"] > 4.0:  # as long as the mean of the duty cycle
        assert v["duty_cycle_percent"] == 0.0
    assert v["tensorcore_utilization_percent"] <= v["duty_cycle_percent"] + 0.01


def test_a_host_that_is_down_gets_older_and_keeps_its_last_numbers() -> None:
    now_s = [1_790_000_000.0]
    fleet = SimulatedFleet("v5e-64", lambda: now_s[0])
    (dead,) = (h for h in fleet.snapshot().hosts if h.state is HostState.DOWN)
    now_s[0] += 100.0
    (later,) = (h for h in fleet.snapshot().hosts if h.state is HostState.DOWN)
    assert (dead.age_s, later.age_s) == (DIED_S, DIED_S + 100.0)
    assert dead.devices
    assert [d.values for d in later.devices] == [d.values for d in dead.devices]


def test_it_goes_back_in_time_to_when_a_host_was_live() -> None:
    now_s = 1_790_000_000.0
    fleet = SimulatedFleet("v5e-64", lambda: now_s)
    (dead,) = (h for h in fleet.snapshot().hosts if h.state is HostState.DOWN)
    before_s, after_s = now_s - DIED_S - 60, now_s - DIED_S + 60
    before, after = (
        next(h for h in fleet.snapshot(at_s).hosts if h.key == dead.key)
        for at_s in (before_s, after_s)
    )
    assert (before.state, before.age_s) == (HostState.LIVE, 0.0)
    assert (after.state, after.age_s) == (HostState.DOWN, 60.0)
    silent = [
        {n.age_s for h in fleet.snapshot(at_s).hosts for n in h.notices if n.code == SILENT}
        for at_s in (before_s, after_s)
    ]
    assert silent == [set(), {60.0}]
    assert fleet.details(before, before_s).state is HostState.LIVE
    past = fleet.history(before, ["hbm_used_bytes"], 600, 11, after_s)["hbm_used_bytes"]
    assert past.first_s == after_s - 600
    assert past.values[-1] is None
    assert past.values[-2] is not None
    assert fleet.snapshot(before_s)._replace(took_s=0) == SimulatedFleet(
        "v5e-64", lambda: before_s + DIED_S + 60
    ).snapshot(before_s)._replace(took_s=0)
