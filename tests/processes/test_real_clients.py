"""Google's own clients read a simulated host: its numbers, in their processes, by their code.

What the SDK and tpu-info understand is libtpu's protocol. Neither is ours, so neither shares our
mistakes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
from support import networks, official_clients

from tpusmi.metricproto import messages
from tpusmi.simulate.workload import Workload
from tpusmi.sources.libtpu.names import NAMES
from tpusmi.sources.libtpu.percentiles import percentiles

LIMIT_S = 90
SAME = 1e-4
"""0.01 %: as near as percentiles have to be."""
ROUNDED = 0.006
"""The SDK prints two decimals."""
SPEED = (1 - 3 / 10) / (1 + 0.15 * (11 / 4 - 1))
"""How fast a job works whose first chip is throttled by 30 % and that has a link of health 7."""
SDK_OF_ITS_OWN = {"tensorcore_util", "ici_link_health", "tpu_throttle_score"}
"""Those it asks of VBARControl; the libtpu for Python 3.10 asks somebody else."""
OLD_LIBTPU = sys.version_info < (3, 11)

BY_GRPC = {name.grpc: name for name in NAMES if name.grpc is not None}
BY_SDK = {sdk: name for name in NAMES for sdk in name.sdk}

MACHINES = {
    "v5e-8": (0, [0, 1, 2, 3, 4, 5, 6, 7]),
    "v5e-16": (1, [2, 3, 6, 7]),
    "v6e-16": (2, [8, 9, 12, 13]),
    "v3-32": (1, [4, 5, 6, 7, 12, 13, 14, 15]),
    "7x-16": (1, [8, 9, 10, 11, 12, 13, 14, 15]),
}
"""One host of each: its worker, and the ids of its devices."""


class Seen(NamedTuple):
    """What everybody read of one simulated host whose time stood still."""

    told: dict[str, Any]
    answers: dict[str, Any]
    """The server's messages, by the metric's name with us."""
    status: Any
    sdk: dict[str, list[str]]
    tpu_info: dict[str, Any]
    ours: dict[str, Any]
    """tpusmi's own JSON, its SDK child with the real libtpu included."""

    def rows(self, metric: str) -> list[Any]:
        """In the order of their ids, as both clients sort gauges."""
        found = list(self.answers[metric].metric.metrics)
        return sorted(found, key=lambda row: row.attribute.value.int_attr)

    def values(self, metric: str) -> list[float]:
        gauges = [row.gauge for row in self.rows(metric)]
        return [getattr(gauge, gauge.WhichOneof("value")) for gauge in gauges]

    def ids(self, metric: str) -> list[int]:
        return [row.attribute.value.int_attr for row in self.rows(metric)]


@pytest.fixture(scope="module", params=MACHINES)
def seen(request: pytest.FixtureRequest) -> Seen:
    machine: str = request.param
    worker = str(MACHINES[machine][0])
    found = subprocess.run(
        networks.alone(sys.executable, official_clients.__file__, machine, worker, "101.5"),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert found.returncode == 0, found.stderr
    said = json.loads(found.stdout)
    raw = {name: bytes.fromhex(text) for name, text in said["answers"].items()}
    status = messages()["GetTpuRuntimeStatusResponse"].FromString(raw.pop("status"))
    answers = {
        BY_GRPC[name].metric: messages()["MetricResponse"].FromString(answer)
        for name, answer in raw.items()
        if name in BY_GRPC
    }
    return Seen(said["told"], answers, status, said["sdk"], said["tpu_info"], said["ours"])


def test_the_devices_have_the_ids_of_that_host(seen: Seen) -> None:
    ids = [device["id"] for device in seen.told["devices"]]
    machine = next(name for name, (_, expected) in MACHINES.items() if expected == ids)
    assert machine.partition("-")[0] == seen.told["generation"]


def test_the_sdk_prints_every_metric_that_it_reads_over_grpc(seen: Seen) -> None:
    empty = {name for name, data in seen.sdk.items() if not data}
    single = {n.sdk[0] for n in NAMES if n.shape == "latency" and n.sdk}
    unasked = SDK_OF_ITS_OWN if OLD_LIBTPU else set()
    assert empty - unasked <= (single if seen.told["hosts"] == 1 else set())
    assert set(seen.sdk) <= set(BY_SDK)
    if not OLD_LIBTPU:
        newest = {name.sdk[0] for name in NAMES if name.sdk}
        assert set(seen.sdk) == newest


def test_the_sdk_prints_the_simulators_gauges_in_the_order_of_ids(seen: Seen) -> None:
    compared = 0
    for sdk_name, data in seen.sdk.items():
        name = BY_SDK[sdk_name]
        if name.shape != "gauge" or name.grpc is None:
            continue
        compared += 1
        values = seen.values(name.metric)
        assert len(data) == len(values) > 0
        printed = [float(text) for text in data]
        assert printed == pytest.approx(values, abs=0 if "bytes" in name.metric else ROUNDED)
    assert compared >= 3


def test_the_sdk_prints_the_queue_of_every_device(seen: Seen) -> None:
    queued = [row.gauge.as_int for row in seen.answers["hlo_queue_size"].metric.metrics]
    assert seen.sdk["hlo_queue_size"] == [f"tensorcore-{i}: {n}" for i, n in enumerate(queued)]
    assert len(queued) == len(seen.told["devices"])


def test_the_sdks_percentiles_are_ours(seen: Seen) -> None:
    compared = 0
    for sdk_name, data in seen.sdk.items():
        name = BY_SDK[sdk_name]
        if name.shape not in ("execution", "latency"):
            continue
        rows = seen.answers[name.metric].metric.metrics
        assert len(data) == len(rows)
        for text, row in zip(data, rows, strict=True):
            ours = percentiles(row.distribution)
            printed = [float(number) for number in text.split(", ")[-5:]]
            assert printed == pytest.approx(list(ours[1:]), rel=SAME, abs=ROUNDED)
            compared += 1
    assert compared >= len(seen.told["devices"])


def test_the_sdks_labels_are_the_simulators(seen: Seen) -> None:
    if seen.told["hosts"] == 1:
        assert seen.sdk["buffer_transfer_latency"] == []
        return
    collectives = [text.partition(",")[0] for text in seen.sdk["collective_e2e_latency"]]
    assert collectives == ["2MB+-ALL_REDUCE", "8MB+-ALL_GATHER"]
    transfers = [text.partition(",")[0] for text in seen.sdk["buffer_transfer_latency"]]
    assert transfers == ["8MB+", "4MB+"]


def mxu_of(seen: Seen) -> list[float]:
    """By the simulator's workload, in local order."""
    told = seen.told
    workload = Workload(told["seed"], speed=SPEED)
    return [100 * workload.mxu(told["freeze_s"], device["id"]) for device in told["devices"]]


@pytest.mark.skipif(OLD_LIBTPU, reason="libtpu 0.0.21 does not ask VBARControl")
def test_the_sdk_prints_what_only_hardware_tells(seen: Seen) -> None:
    printed = [float(text) for text in seen.sdk["tensorcore_util"]]
    assert printed == pytest.approx(mxu_of(seen), abs=ROUNDED)
    chips = len(seen.told["chips"])
    links = 6 if seen.told["cubic"] else 4
    names = {text.partition(":")[0] for text in seen.sdk["ici_link_health"]}
    assert names == {f"tray1.chip{c}.ici{n}.int" for c in range(chips) for n in range(links)}
    assert f"tray1.chip{chips - 1}.ici0.int: 7" in seen.sdk["ici_link_health"]
    assert seen.sdk["tpu_throttle_score"] == [f"1-{c}: {0 if c else 3}" for c in range(chips)]


@pytest.mark.skipif(OLD_LIBTPU, reason="libtpu 0.0.21 does not ask VBARControl")
def test_tpusmi_shows_what_its_child_reads_with_the_real_sdk(seen: Seen) -> None:
    devices, chips = seen.ours["devices"], seen.ours["chips"]
    ids = [d["id"] for d in seen.told["devices"]]
    if seen.told["generation"] == "7x":  # every row of its server is about a whole chip
        ids = [None] * len(ids)
    assert [d["id"] for d in devices] == ids
    shown = [d["tensorcore_utilization_percent"] for d in devices]
    assert shown == pytest.approx(mxu_of(seen), abs=ROUNDED)
    assert {d["provenance"]["tensorcore_utilization_percent"]["source"] for d in devices} == {
        "libtpu_sdk"
    }
    assert [c["throttle_percent"] for c in chips] == [30.0, *[0.0] * (len(chips) - 1)]
    last = len(chips) - 1
    both_ends = f"tray1.chip{last - 1}.ici1.int", f"tray1.chip{last}.ici0.int"
    links = [(c["index"], link["name"], link["health"]) for c in chips for link in c["ici_links"]]
    assert [link for link in links if link[2]] == [
        *zip((last - 1, last), both_ends, (7, 7), strict=True)
    ]
    assert {"throttled", "ici_link"} <= {warning["code"] for warning in seen.ours["warnings"]}


def test_tpu_info_reads_the_usage_of_every_device(seen: Seen) -> None:
    usage = seen.tpu_info["usage"]
    assert [row[0] for row in usage] == seen.ids("hbm_used_bytes")
    assert [row[1] for row in usage] == seen.values("hbm_used_bytes")
    assert [row[2] for row in usage] == seen.values("hbm_limit_bytes")
    duty = seen.values("duty_cycle_percent")
    shared = len(usage) // len(duty)  # by the cores of a chip
    assert shared == (2 if seen.told["generation"] == "v3" else 1)
    assert [row[3] for row in usage] == [value for value in duty for _ in range(shared)]


@pytest.mark.parametrize(
    ("theirs", "ours"), [("bandwidth", "hbm_bandwidth_utilization_percent"), ("idle", "idle_s")]
)
def test_tpu_info_reads_bandwidth_and_idle_time(seen: Seen, theirs: str, ours: str) -> None:
    expected = zip(seen.ids(ours), seen.values(ours), strict=True)
    assert seen.tpu_info[theirs] == [list(row) for row in expected]


def test_tpu_info_reads_queues_and_execution_times(seen: Seen) -> None:
    queued = [row.gauge.as_int for row in seen.answers["hlo_queue_size"].metric.metrics]
    assert seen.tpu_info["queue"] == [[i, n] for i, n in enumerate(queued)]
    executions = seen.answers["hlo_execution_time_us"].metric.metrics
    assert len(seen.tpu_info["execution"]) == len(executions) == len(seen.told["devices"])
    for row, read in zip(executions, seen.tpu_info["execution"], strict=True):
        assert read[1:] == pytest.approx(list(percentiles(row.distribution)[1:]), rel=SAME)


def test_tpu_info_reads_every_latency_of_the_network(seen: Seen) -> None:
    for theirs, read in seen.tpu_info["latencies"].items():
        name = BY_SDK[theirs.removeprefix("grpc_")]
        rows = seen.answers[name.metric].metric.metrics
        assert len(read) == len(rows)
        assert bool(rows) is (seen.told["hosts"] > 1)
        for row, (_, *numbers) in zip(rows, read, strict=True):
            assert numbers == pytest.approx(list(percentiles(row.distribution)[2:]), rel=SAME)


def test_tpu_info_reads_what_every_core_is_running(seen: Seen) -> None:
    cores = {entry.key: entry.value for entry in seen.status.core_states}
    assert len(cores) == len(seen.tpu_info["cores"]) == len(seen.told["devices"])
    for core_id, chip, index, kind, fingerprint, locations, queued in seen.tpu_info["cores"]:
        state = cores[core_id]
        assert (chip, index) == (state.core_id.chip_id, state.core_id.core_on_chip.index)
        assert kind == "TPU_CORE_TYPE_TENSOR_CORE"
        assert fingerprint == state.program_fingerprint.hex()
        assert locations == [state.sequencer_info[0].hlo_location]
        assert locations[0].startswith("HLO: fusion.")
        assert queued == len(state.queued_program_info)
