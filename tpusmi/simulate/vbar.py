"""VBARControl, the service on a TPU host that libtpu's SDK asks for what only hardware tells.

As libtpu 0.0.42.1 asks it: GetHostMetrics, on port 8353.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tpusmi import metricproto
from tpusmi.simulate import hardware
from tpusmi.simulate.running import Running

METRICS_PORT, PORT = 8431, 8353
"""The only ports on which the SDK looks: for the runtime's metrics, and for those of the host."""
TENSORCORE = 1
"""UtilizationMetricType."""


class HostMetrics:
    """The service, as gRPC calls it."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def method(self, path: str) -> Callable[[bytes, Any], bytes] | None:
        """What answers calls of that path."""
        return self._host_metrics if path == metricproto.GET_HOST_METRICS else None

    def _host_metrics(self, request: bytes, context: Any) -> bytes:
        running = self._running
        running.refresh()
        response = metricproto.messages()["GetHostMetricsResponse"]()
        for device, percent in enumerate(hardware.mxu_percent(running)):
            row = response.metrics_data.add(chip_identifier=str(device))
            row.timestamp.seconds = int(time.time())
            row.metrics.add(metric_type=TENSORCORE, utilization=percent)
        self._add_health(response)
        return bytes(response.SerializeToString())

    def _add_health(self, response: Any) -> None:
        """Health is a chip's: it stands with the first device of each."""
        first = {d["chip"]: d["index"] for d in reversed(self._running.description["devices"])}
        rows = [response.metrics_data[index].health for _, index in sorted(first.items())]
        for chip, score in enumerate(hardware.throttle_scores(self._running)[: len(rows)]):
            throttling = rows[chip].chip_throttling_metric
            throttling.tray_id, throttling.chip_id = hardware.TRAY, chip
            throttling.throttling_score = score
        for chip, name, health in hardware.links(self._running):
            if chip < len(rows):
                rows[chip].ici_link_metrics.add(port_id=name, link_health=health)
