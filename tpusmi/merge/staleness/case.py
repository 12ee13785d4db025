"""One holder before its verdict, and for how long a holder may do nothing. Pure."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.merge.owned import fresh
from tpusmi.merge.staleness.limits import Limits
from tpusmi.model import OK, Device, History, Life, Process, Server, Snapshot, State

WORKED_LATELY_S = 60.0
BUSY = (
    "duty_cycle_percent",
    "tensorcore_utilization_percent",
    "hbm_bandwidth_utilization_percent",
)
"""Metrics that say whether a device works."""


class Case(NamedTuple):
    """A holder, and everything that is known at that moment."""

    snapshot: Snapshot
    process: Process
    life: Life
    devices: Sequence[Device]
    limits: Limits
    history: History | None

    @property
    def servers(self) -> list[Server]:
        """Its own metrics servers, those that are silent as well."""
        return [server for server in self.snapshot.servers if server.process == self.process.key]

    @property
    def has_server(self) -> bool:
        """Whether one of them answers."""
        return any(server.status == OK for server in self.servers)

    @property
    def has_agent(self) -> bool:
        """Whether its agent writes."""
        return self.process.interval_s is not None and self.process.state == State.LIVE

    def is_measured(self, *names: str) -> bool:
        """Whether somebody measures one of those of its devices."""
        return any(
            fresh(self.snapshot, name, d) is not None for name in names for d in self.devices
        )

    def agent_value(self, name: str) -> float | None:
        """A value of its agent's own; None when unknown or old."""
        found = self.snapshot.values.get((self.process.key, name))
        return None if found is None or found.stale else found.value


def minutes(seconds: float) -> str:
    """`12 min`, `2.5 h`."""
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
