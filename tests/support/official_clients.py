"""What Google's own clients read from a simulated host on port 8431: printed as one JSON object.

`python official_clients.py TYPE WORKER SECONDS`, in a network of its own. The time of the host
stands still, so that all read the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from tpusmi.model import Host, Snapshot
from tpusmi.simulate.host import HostPlan, start
from tpusmi.sources.libtpu import child

PORT = 8431
LIMIT_S = 60

SDK = """
import json
from libtpu.sdk import tpumonitoring as sdk
found = {name: list(sdk.get_metric(name).data()) for name in sdk.list_supported_metrics()}
print(json.dumps(found))
"""

TPU_INFO = """
import json, sys
from tpu_info import device, metrics
chip = next(c for c in device.TpuChip if c.value.name == sys.argv[1])
usage = metrics.get_chip_usage_new if sys.argv[1] == "7x" else metrics.get_chip_usage
latencies = [name for name in metrics.LIBTPU_METRIC_MAP if "latency" in name or "tcp" in name]
print(json.dumps({
    "usage": usage(chip),
    "bandwidth": metrics.get_runtime_hbm_utilization(),
    "idle": metrics.get_tensorcore_idle_duration(),
    "queue": metrics.get_hlo_queue_size(chip),
    "execution": metrics.get_hlo_exec_timing(chip),
    "latencies": {name: metrics.get_transfer_latency(name) for name in latencies},
    "cores": [
        [c.global_core_id, c.chip_id, c.core_on_chip_index, c.core_type, c.program_fingerprint,
         [s.hlo_location for s in c.sequencer_states], len(c.queued_programs)]
        for c in metrics.get_tpuz_info(include_hlo_info=True)
    ],
}, default=lambda found: found._asdict()))
"""


def said(code: str, *arguments: str) -> Any:
    """What a client in a process of its own prints."""
    found = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "TPU_SKIP_MDS_QUERY": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def answered() -> dict[str, str]:
    """Every answer of the server by metric, and its status, as hexadecimal bytes."""
    import grpc

    from tpusmi import metricproto

    new = metricproto.messages()
    with grpc.insecure_channel(f"127.0.0.1:{PORT}") as channel:
        listed = channel.unary_unary(metricproto.LIST_METRICS)(b"", timeout=LIMIT_S)
        ask = channel.unary_unary(metricproto.GET_METRIC)
        found = {}
        for metric in new["ListSupportedMetricsResponse"].FromString(listed).supported_metric:
            request = new["MetricRequest"](metric_name=metric.metric_name).SerializeToString()
            found[metric.metric_name] = ask(request, timeout=LIMIT_S).hex()
        request = new["GetTpuRuntimeStatusRequest"](include_hlo_info=True).SerializeToString()
        status = channel.unary_unary(metricproto.GET_STATUS)
        found["status"] = status(request, timeout=LIMIT_S).hex()
    return found


def ours(host: Host) -> Any:
    """What tpusmi shows of the host with its own child, which loads the real SDK."""
    from tpusmi.collect import open_collector

    collector = open_collector(host._replace(sdk_command=(sys.executable, child.__file__)))
    until_s = time.monotonic() + LIMIT_S
    try:
        found = collector.read_once(LIMIT_S)
        while _is_starting(found) and time.monotonic() < until_s:
            found = collector.read_once(LIMIT_S)
        return found.to_dict()
    finally:
        collector.stop()


def _is_starting(found: Snapshot) -> bool:
    """Whether the child has yet to load the SDK, which takes seconds on a busy machine."""
    return any(outcome.message.endswith("is starting") for outcome in found.sources)


def main(machine: str, worker: str, seconds: str) -> None:
    ill = ("bad-link:7", "throttle:3")
    plan = HostPlan(machine, worker=int(worker), port=PORT, faults=ill, freeze_s=float(seconds))
    with start(plan) as host:
        with open(f"{host.root}/simulated.json", encoding="utf-8") as file:
            told = json.load(file)
        found = {
            "told": told,
            "answers": answered(),
            "sdk": said(SDK),
            "tpu_info": said(TPU_INFO, told["generation"]),
            "ours": ours(host),
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
