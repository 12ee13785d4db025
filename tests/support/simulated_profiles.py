"""The profile of a simulated host at a certain moment: the same at every run."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from support.simulated_hosts import running_host
from tpusmi.simulate.trace_capture import SimulatedCapture
from tpusmi.simulate.trace_of_workload import trace
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.limits import TraceLimits

STARTED_NS = 1_764_320_400_000_000_000
HBM_BYTES = 32 * 1024**3


def simulated_profile(
    name: str, *faults: str, at_s: float = 60.0, seconds: float = 2.0, processes: int = 1
) -> TraceProfile:
    """What tpusmi itself reads in a trace of the host's first process."""
    with tempfile.TemporaryDirectory() as directory:
        running = running_host(directory, name, *faults, processes=processes)
        devices = running.description["devices"]
        own = devices[: len(devices) // processes]
        path = Path(directory) / "simulated.xplane.pb"
        capture = SimulatedCapture(running, own, at_s, at_s + seconds, STARTED_NS)
        path.write_bytes(trace(capture, HBM_BYTES))
        return read_trace(str(path), TraceLimits(until_s=time.monotonic() + 30))
