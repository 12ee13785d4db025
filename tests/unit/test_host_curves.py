"""The graphs of a host of a fleet."""

from __future__ import annotations

import pytest
from support.fleet_hosts import device, host

from tpusmi.fleet.fleet_figures import FleetDevice, HostHistory, HostState
from tpusmi.tui.draw.look import Look
from tpusmi.tui.fleet.host_curves import lines

MXU = "tensorcore_utilization_percent"
PAST = {MXU: HostHistory(first_s=0.0, step_s=60.0, values=(50.0, 50.0, 1.0))}


def title(state: HostState, *devices: FleetDevice, metric: str = MXU) -> str:
    past = {metric: PAST[MXU]}
    drawn = lines(Look(), host("a", state=state, devices=devices), past, (120.0, 900), (60, 8))
    return "".join(text for text, *_ in drawn[0]).rstrip()


@pytest.mark.parametrize(
    ("state", "shown"),
    [(HostState.LIVE, "50 %"), (HostState.OLD, "(1.0 %)"), (HostState.DOWN, "(1.0 %)")],
)
def test_a_graph_is_titled_with_the_present_of_its_host_and_an_old_value_is_marked(
    state: HostState, shown: str
) -> None:
    devices = (device(n, tensorcore_utilization_percent=40.0 + 20 * n) for n in range(2))
    assert title(state, *devices) == f"MXU {shown}"


def test_what_a_live_host_no_longer_measures_is_unknown_and_not_as_it_was() -> None:
    assert title(HostState.LIVE, device(0)) == "MXU –"


def test_memory_that_devices_of_a_chip_share_is_in_the_title() -> None:
    shared = {"hbm_used_bytes": float(3 << 30), "hbm_limit_bytes": float(16 << 30)}
    cores = (device(n, of_chip=shared) for n in range(2))
    drawn = title(HostState.LIVE, *cores, metric="hbm_used_bytes")
    assert drawn == "HBM of a device 3.0 GiB"
