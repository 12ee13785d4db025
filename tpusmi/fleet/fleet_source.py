"""Where the numbers of a fleet come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostHistory


class FleetError(Exception):
    """Nothing can be read at all. Its text is a sentence for the user, without credentials."""


class FleetSource(Protocol):
    """A Prometheus server, exporters, or a simulated fleet."""

    label: str
    """Who is asked, for titles: without credentials."""

    no_past: str
    """Why it cannot be asked about an earlier time, in a sentence; empty where it can."""

    def snapshot(self, at_s: float | None = None) -> FleetSnapshot:
        """All hosts at that Unix time; None is now. Called on one thread, and returns within its
        time limit. Raises FleetError when nothing can be read at all.
        """

    def details(self, host: FleetHost, at_s: float | None = None) -> FleetHost:
        """That host with every metric that is known of it, while a snapshot has only those of
        `SHOWN_METRICS`; as it was at that time, or is now. Raises FleetError.
        """

    def history(
        self,
        host: FleetHost,
        metrics: Sequence[str],
        span_s: float,
        points: int,
        at_s: float | None = None,
    ) -> Mapping[str, HostHistory]:
        """The past of these metrics of devices up to that time, or to now, as means over the
        host's devices, at most `points` values each. Metrics without values are left out. Raises
        FleetError.
        """

    def close(self) -> None:
        """Give back its threads and connections."""
