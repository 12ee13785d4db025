"""A simulated host of each generation, as a fleet view reads it from the host's exporter: the same
numbers, in the units of the model.
"""

from __future__ import annotations

import pytest
from support.fleet_samples import check_same, host_of, samples_of
from support.waits import until

from tpusmi.collect import Collector, open_collector
from tpusmi.model import Snapshot
from tpusmi.simulate.host import HostPlan, start

LIMIT_S = 60.0


def measured(collector: Collector, *metrics: str) -> Snapshot | None:
    """The snapshot, once all of these metrics are in it."""
    s = collector.read_once()
    return s if {*metrics} <= {name for _, name in s.values} else None


@pytest.mark.parametrize("machine", ["v2-8", "v3-8", "v4-8", "v5e-8", "v5p-8", "v6e-8", "7x-8"])
def test_a_host_of_each_generation_has_the_same_numbers_in_a_fleet(machine: str) -> None:
    with start(HostPlan(machine, agent=True)) as simulated:
        collector = open_collector(simulated)
        try:
            s = until(lambda: measured(collector, "duty_cycle_percent", "steps"), LIMIT_S)
        finally:
            collector.stop()
    host = host_of(samples_of(s, instance="h:8781", slice="pod-7"))
    check_same(s, host)
    assert (host.slice, host.worker, host.held_chips) == ("pod-7", 0, len(s.chips))
    assert host.topology is not None


@pytest.mark.parametrize("machine", ["v2-8", "v5e-4"])
def test_a_host_without_an_agent_has_the_same_numbers_in_a_fleet(machine: str) -> None:
    with start(HostPlan(machine)) as simulated:
        collector = open_collector(simulated)
        try:
            s = until(lambda: measured(collector, "hbm_used_bytes"), LIMIT_S)
        finally:
            collector.stop()
    check_same(s, host_of(samples_of(s, instance="h:8781")))
