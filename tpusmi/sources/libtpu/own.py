"""libtpu's metrics of this very process, for the agent: no other process's port is ever asked."""

from __future__ import annotations

import math
import os
from collections.abc import Container, Mapping

from tpusmi.model import Reading
from tpusmi.sources.libtpu.plain import PlainChannel
from tpusmi.sources.libtpu.pool import Pool
from tpusmi.sources.libtpu.ports import PORTS_VARIABLE, Place, find_own

LOOK_EVERY_S = 5.0
UTILIZATION = ("duty_cycle_percent", "hbm_bandwidth_utilization_percent", "idle_s")


class OwnMetrics:
    """The metrics server inside this process, asked without grpc: its threads and fork handlers are
    nothing to bring into a job.
    """

    def __init__(
        self,
        metrics: Container[str] | None = UTILIZATION,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._pool = Pool(metrics, PlainChannel)
        self._environment = environment
        self._places: tuple[Place, ...] = ()
        self._looked_at_s = -math.inf

    def read(self, now_s: float) -> list[Reading]:
        """The rows of the own server, by its address and its ids; empty when there is none.

        Waits about a second at most, and does not raise.
        """
        if now_s - self._looked_at_s >= LOOK_EVERY_S:
            self._places = find_own(self._environment.get(PORTS_VARIABLE, ""))
            self._looked_at_s = now_s
        return [r for found in self._pool.ask(self._places, now_s) for r in found.told.readings]

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()
