"""Stands in for the child that runs libtpu's SDK: the numbers that only hardware gives.

It speaks that child's protocol: a line with a JSON list of names, or null for all of them, is
answered by a line with a JSON object. Every viewer starts one and waits for it: importing json
would double that wait.
"""

from __future__ import annotations

import os
import sys
import time

from tpusmi.simulate import description
from tpusmi.simulate.running import TRAY, Running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VERSION = "simulated"
SUPPORTED = (
    "tensorcore_util", "ici_link_health", "tpu_throttle_score", "duty_cycle_pct",
    "buffer_transfer_latency", "inbound_buffer_transfer_latency", "collective_e2e_latency",
    "hbm_capacity_total", "hbm_capacity_usage", "hlo_execution_timing", "hlo_queue_size",
    "tcp_min_rtt", "tcp_delivery_rate", "host_to_device_transfer_latency",
    "device_to_host_transfer_latency", "host_compute_latency", "runtime_hbm_utilization",
    "idle_duration",
)  # fmt: skip
"""By libtpu 0.0.42.1. All but the first three it reads from port 8431, where a simulated host
seldom is: those have no data here. On a host that is there the real SDK reads all of them.
"""


def main(directory: str) -> None:
    """Answer every line until stdin ends, or the host does. Nothing else is waited for."""
    try:
        running = Running(directory)
    except ValueError as error:
        sys.exit(str(error))
    for line in sys.stdin:
        started_s = time.monotonic()
        if not description.is_kept(running.description):
            sys.exit("the simulated host has ended")
        running.refresh()
        _fail_by_fault(running)
        names = SUPPORTED if line.strip() == "null" else line.split('"')[1::2]
        metrics = {
            name: {"description": f"Simulated {name}.", "data": data(running, name)}
            for name in names
            if name in SUPPORTED
        }
        answer = {
            "version": VERSION,
            "supported": SUPPORTED,
            "metrics": metrics,
            "errors": {},
            "took_s": time.monotonic() - started_s,
        }
        sys.stdout.write(_json(answer) + "\n")
        sys.stdout.flush()


def data(running: Running, name: str) -> Sequence[str]:
    """What the SDK's `data()` returns."""
    return _DATA[name](running) if name in _DATA else ()


def _json(value: object) -> str:
    """As JSON; texts here have nothing to escape."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {_json(item)}' for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_json, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _fail_by_fault(running: Running) -> None:
    if "sdk-crash" in running.faults:
        import resource
        import signal

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), signal.SIGSEGV)
    if "sdk-hang" in running.faults:
        sys.stdin.read()  # to its end: the process that waited has gone
        sys.exit()


_DATA: dict[str, Callable[[Running], list[str]]] = {
    "tensorcore_util": lambda r: [f"{percent:.2f}" for percent in r.mxu_percents()],
    "ici_link_health": lambda r: [f"{name}: {health}" for _, name, health in r.links()],
    # Not as its description says: libtpu 0.0.42.1 prints tray, chip and score.
    "tpu_throttle_score": lambda r: [
        f"{TRAY}-{chip}: {score}" for chip, score in enumerate(r.throttle_scores())
    ],
}
