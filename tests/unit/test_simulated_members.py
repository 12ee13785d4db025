"""The other hosts of a simulated slice: what faults do to them, and what is said about that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from support.simulated_hosts import set_faults
from support.waits import until

from tpusmi.collect import Collector
from tpusmi.model import Host, SliceState, Snapshot
from tpusmi.model.slice_hosts import SliceProcess
from tpusmi.report.torus.snapshot_tori import of_snapshot
from tpusmi.simulate.host import HostPlan, start
from tpusmi.sources.segments import Segments

AGE_S = 90.0
WITHIN_S = 30.0
NAMED = {
    "slice_silent": "simulated-w-2",
    "slice_straggler": "simulated-w-3",
    "slice_memory": "simulated-w-4",
    "slice_clock": "simulated-w-5",
}
FAULTS = ("silent-host:2", "slow-host:3", "full-host:4", "clock-host:5")


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with start(HostPlan("v5e-32", age_s=AGE_S, agent=True, faults=FAULTS)) as host:
        yield host


def snapshot_with_slice(host: Host) -> Snapshot:
    """One on which the others have been heard of."""
    with closing(Segments(host)) as source:
        collector = Collector(host, [source])

        def look() -> Snapshot | None:
            s = collector.read_once(WITHIN_S)
            return s if s.slices else None

        return until(look)


def snapshot_with_faults(host: Host) -> Snapshot:
    """One on which each fault is seen."""

    def look() -> Snapshot | None:
        s = snapshot_with_slice(host)
        return s if {*NAMED} <= {n.code for n in s.warnings} else None

    return until(look)


def test_faults_of_other_hosts_are_seen_and_named(host: Host) -> None:
    s = snapshot_with_faults(host)
    (x,) = s.slices
    assert [h.process_index for h in x.hosts if h.state == SliceState.STOPPED] == [2]
    texts = {n.code: n.message for n in s.warnings if n.code.startswith("slice_")}
    assert texts.keys() == NAMED.keys()
    assert all(name in texts[code] for code, name in NAMED.items())


def test_faults_of_other_hosts_mark_their_chips(host: Host) -> None:
    (torus,) = of_snapshot(snapshot_with_faults(host), "hbm_used_bytes")
    marks = {chip.host: chip.mark for chip in torus.chips}
    assert marks["simulated-w-2"] == "x"
    assert marks["simulated-w-3"] == "*"
    assert marks["simulated-w-6"] == ""


def test_a_silent_host_says_nothing_new_and_comes_back_when_the_fault_ends(host: Host) -> None:
    before = snapshot_with_faults(host).slices[0].hosts[2]
    assert before.age_s > 44.0
    set_faults(host.root, ())

    def live() -> SliceProcess | None:
        after = snapshot_with_slice(host).slices[0].hosts[2]
        return after if after.state == SliceState.LIVE else None

    assert (until(live).steps or 0) > (before.steps or 0)
