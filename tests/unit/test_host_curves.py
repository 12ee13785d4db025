"""The graphs of a host of a fleet."""

from __future__ import annotations

import pytest
from support.fleet_hosts import device, host

from tpusmi.fleet.fleet_figures import HostHistory, HostState
from tpusmi.tui.draw.look import Look
from tpusmi.tui.fleet.host_curves import lines

MXU = "tensorcore_utilization_percent"
PAST = {MXU: HostHistory(first_s=0.0, step_s=60.0, values=(50.0, 50.0, 1.0))}


def title(state: HostState) -> str:
    devices = tuple(device(n, tensorcore_utilization_percent=40.0 + 20 * n) for n in range(2))
    drawn = lines(Look(), host("a", state=state, devices=devices), PAST, (120.0, 900), (60, 8))
    return "".join(text for text, *_ in drawn[0])


@pytest.mark.parametrize(("state", "shown"), [(HostState.LIVE, "50 %"), (HostState.DOWN, "1.0 %")])
def test_a_graph_is_titled_with_the_present_of_its_host(state: HostState, shown: str) -> None:
    assert title(state).split()[:3] == ["MXU", *shown.split()]
