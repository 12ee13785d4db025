"""What a metrics server lacks is asked of libtpu's SDK, and nothing else that servers tell."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from support import hosts
from support.free_ports import free_port
from support.metric_servers import DUTY, HBM_USED, QUEUE, TRANSFER
from support.private_machine import worker

from tpusmi.model import LIBTPU, LIBTPU_SDK, Snapshot

SDK = """
import json, sys
DATA = {
    "tensorcore_util": ["12.00", "13.50"],
    "hlo_queue_size": ["tensorcore_0: 3", "tensorcore_1: 4"],
    "hlo_execution_timing": ["tensorcore_0, 5.0, 1.0, 2.0, 3.0, 4.0"],
    "buffer_transfer_latency": ["8MB+, 70.00, 60.00, 80.00, 90.00, 95.00"],
    "host_compute_latency": ["64.00, 60.00, 80.00, 90.00, 95.00"],
    "hbm_capacity_usage": ["1", "2"],
    "duty_cycle_pct": ["1.00", "2.00"],
}
for line in sys.stdin:
    wanted = json.loads(line)
    open(sys.argv[1], "a").write(line)
    metrics = {n: {"description": n, "data": DATA[n]} for n in wanted if n in DATA}
    said = {"version": "1", "supported": [*DATA], "metrics": metrics, "errors": {}, "took_s": 0.1}
    print(json.dumps(said), flush=True)
"""


def looked(tmp_path: Path, rows: dict[str, dict[int, float]]) -> tuple[Snapshot, set[str]]:
    """One look at a machine of two chips whose holder serves those rows, and what the SDK was asked
    then.
    """
    tmp_path.mkdir(exist_ok=True)
    asked = tmp_path / "asked"
    host = hosts.host(tmp_path / "host", "/dev/vfio/0", "/dev/vfio/1")
    hosts.add_chips(tmp_path / "host", 2)
    port = free_port()
    command = (sys.executable, "-S", "-c", SDK, str(asked))
    host = host._replace(sdk_command=command, metrics_ports=(port,))
    with worker(port, rows, *(host.path(f"/dev/vfio/{n}") for n in range(2))):
        found = hosts.seen(host)
    return found, {name for line in asked.read_text().splitlines() for name in json.loads(line)}


USUAL = {HBM_USED: {0: 1.0, 1: 2.0}, DUTY: {0: 50.0, 1: 60.0}}
SECOND = {"hlo_queue_size", "buffer_transfer_latency", "hlo_execution_timing"}


def test_one_look_shows_what_only_the_sdk_has_beside_what_a_server_tells(tmp_path: Path) -> None:
    s, asked = looked(tmp_path, USUAL)
    told = {x.name: (x.source, x.percentiles.mean) for x in s.latencies}
    assert told == {
        "buffer_transfer_latency_us": (LIBTPU_SDK, 70.0),
        "host_compute_latency_us": (LIBTPU_SDK, 64.0),
    }
    queue = [s.values[d.key, "hlo_queue_size"] for d in s.devices]
    assert [(v.value, v.source) for v in queue] == [(3, LIBTPU_SDK), (4, LIBTPU_SDK)]
    assert s.value("hlo_execution_time_us.p50", s.devices[0].key) == 1.0
    assert asked & SECOND == SECOND
    assert not asked & {"hbm_capacity_usage", "duty_cycle_pct"}


def test_the_sdk_is_not_asked_for_what_a_server_tells(tmp_path: Path) -> None:
    s, asked = looked(tmp_path, {**USUAL, QUEUE: {0: 1, 1: 2}, TRANSFER: {5: 7.0}})
    (latency,) = [x for x in s.latencies if x.name == "buffer_transfer_latency_us"]
    assert (latency.source, latency.percentiles.mean) == (LIBTPU, 7.0)
    assert [s.value("hlo_queue_size", d.key) for d in s.devices] == [1, 2]
    assert asked & SECOND == {"hlo_execution_timing"}


def test_where_no_server_tells_anything_the_sdk_is_asked_for_its_own_alone(tmp_path: Path) -> None:
    """It would have asked those servers."""
    for rows in ({}, {HBM_USED: {}, DUTY: {}}):
        s, asked = looked(tmp_path / f"{len(rows)}", rows)
        assert "tensorcore_util" in asked
        assert not asked & SECOND
        assert s.latencies == ()
