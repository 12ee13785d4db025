"""The slice in real jobs: what each host's viewer shows, and that the job never notices."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.clocks import Stopwatch
from support.fleet_samples import NOW_S, samples_of
from support.free_ports import free_port
from support.jobs import job
from support.slice_jobs import (
    DEADLINE_S,
    HELD_UP_S,
    PERIOD_S,
    STEP_S,
    Member,
    all_live,
    slice_job,
)
from support.waits import until

from tpusmi.fleet.fleet_figures import FleetSnapshot
from tpusmi.fleet.groups.fleet_groups import groups
from tpusmi.fleet.hosts.from_samples import hosts_from
from tpusmi.fleet.samples import SeriesSample
from tpusmi.model.slice_hosts import SILENT_PERIODS
from tpusmi.wire.reader import SegmentReader
from tpusmi.wire.slice_summary import REQUESTS_MOST_PER_S, unpacked


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Member]]:
    """A job of four processes, which the tests below end one by one. Another worker may begin at
    any of them, with a new job: each waits for what it needs.
    """
    with slice_job(tmp_path_factory.mktemp("slice"), 4) as started:
        yield started


def states(member: Member) -> dict[str, str]:
    """The state of each host that its viewer shows."""
    return {name: h.state for name, h in member.hosts().items()}


def requests_of(directory: Path) -> int:
    """How often the agents there have asked the coordinator: for each process what it has put, and
    for each reader what it has written.
    """
    total = 0
    for path in directory.glob("host-*/*.seg"):
        with closing(SegmentReader(str(path))) as reader:
            total += 2 * reader.slice_sequence()
    return total


def test_each_viewer_shows_every_host(members: list[Member]) -> None:
    for shown, member in zip(all_live(members), members, strict=True):
        assert (shown.process_count, shown.pid) == (4, member.job.pid)
        assert [h.name for h in shown.hosts] == ["host-0", "host-1", "host-2", "host-3"]
        for host in shown.hosts:
            assert host.age_s < SILENT_PERIODS * host.period_s
            assert STEP_S < (host.step_time_s or 0) < HELD_UP_S
            assert (host.phase, host.kind) == ("running", "cpu")
            assert [d.hbm_used_bytes for d in host.devices] == [None, None]
            assert len({d.id for d in host.devices}) == 2


def test_the_json_has_it_under_one_key(members: list[Member]) -> None:
    def printed() -> dict[str, Any] | None:
        """Once every host is live in it."""
        s = members[1].viewer.read_once()
        live = [h for h in (s.slice.hosts if s.slice else ()) if h.state == "live"]
        return s.to_dict() if len(live) == 4 else None

    whole = until(printed)
    assert whole["slice"]["process_count"] == 4
    assert whole["slice"]["hosts"][2]["name"] == "host-2"
    assert whole["slice"]["hosts"][2]["state"] == "live"
    assert whole["other_slices"] == []


def test_a_fleet_knows_that_the_exporters_of_its_hosts_have_one_job(members: list[Member]) -> None:
    def counted(samples: list[SeriesSample]) -> list[SeriesSample]:
        return [x for x in samples if x.name == "tpusmi_slice_processes" and x.value]

    def exported() -> list[SeriesSample]:
        """Once each host says of every host that it is live."""
        samples = [
            sample
            for n, m in enumerate(members)
            for sample in samples_of(m.viewer.read_once(), host=f"host-{n}", instance=f"h{n}:1")
        ]
        states = [(x.labels["state"], x.value) for x in counted(samples)]
        return samples if states == [("live", 4)] * 4 else []

    samples = until(exported)
    counts = counted(samples)
    assert len({x.labels["slice_job"] for x in counts}) == 1
    hosts = hosts_from(samples, NOW_S)
    assert sorted(h.name for h in hosts) == ["host-0", "host-1", "host-2", "host-3"]
    all_hosts = FleetSnapshot(at_s=NOW_S, source="", hosts=hosts, problems=(), took_s=0.0)
    (job_of_all,) = (g for g in groups(all_hosts, "job") if g.processes)
    assert (job_of_all.hosts, job_of_all.processes) == (4, 4)


def test_a_coordinator_gets_few_requests(members: list[Member]) -> None:
    all_live(members)
    path = next(members[0].directory.glob("*.seg"))
    job_directory = members[0].directory.parent
    before, began_s = requests_of(job_directory), time.monotonic()
    time.sleep(2 * PERIOD_S)
    until(lambda: requests_of(job_directory) > before, what="a request")
    per_s = (requests_of(job_directory) - before) / (time.monotonic() - began_s)
    assert 0 < per_s < REQUESTS_MOST_PER_S / 2, f"{per_s:.1f} requests per second"
    with closing(SegmentReader(str(path))) as reader:
        blob = reader.slice_blob()
    assert blob is not None
    content = unpacked(blob.payload)
    assert content is not None
    assert len([*content[1]]) == 4


def test_a_killed_host_has_stopped_reporting_within_three_periods(members: list[Member]) -> None:
    *others, victim = members
    all_live(members)
    period_s = max(h.period_s for h in others[1].hosts().values())
    with Stopwatch() as watch:
        victim.job.process.kill()
        until(lambda: all(states(m).get("host-3") == "stopped reporting" for m in others))
    took_s = watch.seconds()
    assert took_s < 3 * period_s + HELD_UP_S, f"{took_s:.1f} s, period {period_s} s"
    until(lambda: all(states(m).get("host-2") == "live" for m in others), what="host-2 is live")


def test_an_agent_that_stops_takes_its_host_back(members: list[Member]) -> None:
    before = until(lambda: whole(states(members[0])), what="a slice with host-2")
    assert time_to_stop_s(members[2]) < HELD_UP_S
    left = {name: state for name, state in before.items() if name != "host-2"}
    until(lambda: states(members[0]) == left, what="host-2 gone, and no other")


def whole(found: dict[str, str]) -> dict[str, str]:
    """It, if it has all four hosts, of which a test before has killed the last one at most."""
    live = [name for name, state in found.items() if state == "live"]
    return found if len(found) == 4 and live[:3] == ["host-0", "host-1", "host-2"] else {}


def test_a_coordinator_that_hangs_harms_no_step(members: list[Member]) -> None:
    coordinator, member = members[0], members[1]
    until(member.slice, what="the slice")
    member.slowest_step_s()
    os.kill(coordinator.job.pid, signal.SIGSTOP)
    try:
        text = until(lambda: slice_off(member), what="a warning")
        assert f"the coordinator has not answered for {DEADLINE_S:.0f} s" in text
        assert member.slice() is None
        assert member.slowest_step_s() < HELD_UP_S
        assert time_to_stop_s(member) < HELD_UP_S
    finally:
        os.kill(coordinator.job.pid, signal.SIGCONT)


def time_to_stop_s(member: Member) -> float:
    """How long its job waits in tpusmi.stop()."""
    with Stopwatch() as watch:
        member.job.tell("stop")
        assert member.job.hear() == "stopped"
    return watch.seconds()


def slice_off(member: Member) -> str:
    """What its viewer warns of the slice."""
    warnings = member.viewer.read_once().warnings
    return next((w.message for w in warnings if w.code == "slice_off"), "")


def test_several_processes_of_one_host_have_one_reader_fork_join_again_and_end_well(
    tmp_path: Path,
) -> None:
    with slice_job(tmp_path, 2, TPUSMI_DIR=str(tmp_path / "host-0")) as members:
        shown = until(lambda: both(members[0]), what="both processes")
        assert shown == [0, 1]
        paths = [*(tmp_path / "host-0").glob("*.seg")]
        assert len(paths) == 2

        def readers() -> int:
            kinds = []
            for path in paths:
                with closing(SegmentReader(str(path))) as reader:
                    blob = reader.slice_blob()
                    kinds.append(blob is not None and bool(blob.payload))
            return sum(kinds)

        until(lambda: readers() == 1, what="one reader")
        for member in members:
            member.job.tell("fork")
            assert member.job.hear() == "7"
        join_again(members)
        for member in members:
            member.job.tell("leave")
        for member in members:
            assert member.job.process.wait(60) == 0, member.job.stderr


def join_again(members: list[Member]) -> None:
    """Let them leave their coordination service and join another."""
    before = until(members[0].slice, what="the slice of the first service")
    address = f"127.0.0.1:{free_port()}"
    for member in members:
        member.job.tell(f"join {address}")
    for member in members:
        assert member.job.hear() == "joined 2"

    def is_another() -> bool:
        joined = members[0].slice()
        return joined is not None and joined.job != before.job

    until(is_another, what="the slice of the service that they have joined")
    assert until(lambda: both(members[0]), what="both processes again") == [0, 1]


def both(member: Member) -> list[int]:
    shown = member.slice()
    indexes = [] if shown is None else [h.process_index for h in shown.hosts]
    return indexes if len(indexes) == 2 else []


def test_a_job_may_do_without(tmp_path: Path) -> None:
    with slice_job(tmp_path, 2, is_on=False) as members:
        path = next((tmp_path / "host-0").glob("*.seg"))
        with closing(SegmentReader(str(path))) as reader:
            assert reader.header.slice_half == 0
        assert members[0].viewer.read_once().to_dict()["slice"] is None


def test_a_job_of_one_process_has_no_slice(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    with job(directory, "tpusmi.start(); import jax; jax.devices(); say('ready'); hear()") as alone:
        assert alone.hear() == "ready"
        path = until(lambda: next(directory.glob("*.seg"), None))
        with closing(SegmentReader(str(path))) as reader:
            assert reader.header.slice_half == 0
