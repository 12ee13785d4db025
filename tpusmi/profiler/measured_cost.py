"""What a capture costs the job, measured while the trace is analyzed."""

from __future__ import annotations

import threading

from tpusmi.model import Host
from tpusmi.trace.figures import CaptureCost

MARGIN_S = 5.0


class MeasuredCost:
    """The job's steps around one capture. The rate before it is read at once."""

    def __init__(self, host: Host, pid: int) -> None:
        from tpusmi.profiler.cost import CostMeter

        self._meter = CostMeter(host, pid)
        self._meter.before()
        self._cost = CaptureCost()
        self._thread: threading.Thread | None = None
        self._wait_s = 0.0

    def watch(self, wait_s: float) -> None:
        """The capture has ended: watch the job for that long, on a thread."""
        self._meter.during()
        self._wait_s = wait_s
        self._thread = threading.Thread(target=self._watch, name="tpusmi-cost", daemon=True)
        self._thread.start()

    def result(self) -> CaptureCost:
        """The cost, once the time is over. Without it where the agent does not answer."""
        if self._thread is not None:
            self._thread.join(self._wait_s + MARGIN_S)
        return self._cost

    def _watch(self) -> None:
        self._cost = self._meter.after(self._wait_s)
