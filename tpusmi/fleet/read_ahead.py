"""A source whose first snapshot is read while the dashboard is still being loaded."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostHistory
from tpusmi.fleet.fleet_source import FleetSource


class ReadAhead:
    """A FleetSource: another one, which is asked at once for its first snapshot."""

    def __init__(self, source: FleetSource, at_s: float | None = None) -> None:
        """`at_s`: the time of which the first snapshot is."""
        self.label, self.no_past = source.label, source.no_past
        self._at_s = at_s
        self._source = source
        self._first: list[FleetSnapshot | Exception] = []
        thread = threading.Thread(target=self._read, name="tpusmi-ahead", daemon=True)
        self._thread: threading.Thread | None = thread
        try:
            thread.start()
        except RuntimeError:  # no more threads: it is read when it is asked for
            self._thread = None

    def snapshot(self, at_s: float | None = None) -> FleetSnapshot:
        """All hosts: the first time as they were when this was made. Raises FleetError."""
        thread, self._thread = self._thread, None
        if thread is None or at_s != self._at_s:
            return self._source.snapshot(at_s)
        thread.join()  # a snapshot has a time limit of its own
        first = self._first.pop()
        if isinstance(first, Exception):
            raise first
        return first

    def details(self, host: FleetHost, at_s: float | None = None) -> FleetHost:
        """As the source has them."""
        return self._source.details(host, at_s)

    def history(
        self,
        host: FleetHost,
        metrics: Sequence[str],
        span_s: float,
        points: int,
        at_s: float | None = None,
    ) -> Mapping[str, HostHistory]:
        """As the source has it."""
        return self._source.history(host, metrics, span_s, points, at_s)

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    def _read(self) -> None:
        try:
            self._first.append(self._source.snapshot(self._at_s))
        except Exception as error:  # noqa: BLE001  # raised where the snapshot is asked for
            self._first.append(error)
