"""How many hosts of a group are in which state, in words. Pure."""

from __future__ import annotations

from tpusmi.fleet.fleet_figures import HostState
from tpusmi.fleet.groups.fleet_groups import FleetGroup

NOT_LIVE = (HostState.DOWN, HostState.OLD, HostState.PENDING)
"""The worst first."""


def state_text(g: FleetGroup) -> str:
    """`live`, or how many are not: `1 down, 2 old`. Of a single host its state."""
    if g.hosts == 1:
        return str(g.members[0].host.state)
    counts = ((g.in_state(state), state) for state in NOT_LIVE)
    return ", ".join(f"{count} {state}" for count, state in counts if count) or str(HostState.LIVE)
