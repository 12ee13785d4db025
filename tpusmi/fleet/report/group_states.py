"""How many hosts of a group are in which state, in words. Pure."""

from __future__ import annotations

from tpusmi.fleet.fleet_figures import HostState
from tpusmi.fleet.groups.fleet_groups import FleetGroup

NOT_LIVE = (HostState.DOWN, HostState.OLD, HostState.PENDING)
"""The worst first."""


def state_text(g: FleetGroup) -> str:
    """`live`, or how many are not: `1 down, 2 old`. Of a single host its state. Hosts of a job
    without an exporter follow: `live, 1 unreported`.
    """
    unreported = [f"{g.unreported_hosts} unreported"] if g.unreported_hosts else []
    return ", ".join((_of_hosts(g), *unreported))


def hosts_text(g: FleetGroup) -> str:
    """`62/64`: live of all, with those that no exporter reports."""
    return f"{g.in_state(HostState.LIVE)}/{g.hosts + (g.unreported_hosts or 0)}"


def _of_hosts(g: FleetGroup) -> str:
    if g.host is not None:
        return str(g.host.state)
    counts = ((g.in_state(state), state) for state in NOT_LIVE)
    return ", ".join(f"{count} {state}" for count, state in counts if count) or str(HostState.LIVE)
