"""What libtpu's metrics server answers about the simulated job, as protobuf messages."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tpusmi.chips import GIB, Generation, by_name
from tpusmi.metricproto import messages
from tpusmi.simulate.distributions import EXECUTION, LATENCIES, Spread, fill
from tpusmi.simulate.running import Running
from tpusmi.sources.libtpu.names import NAMES

HBM_BYTES = {
    "v2": round(7.48 * GIB),
    "v3": 17_044_078_592,
    "v4": 34_088_157_184,
    "v5e": 16_909_332_480,
    "v5p": 102_803_439_616,
    "v6e": 33_550_237_696,
    "7x": round(189.5 * GIB),
}
"""Limit of one row as real servers report it: per device, but per chip on a 7x."""
UPTIME = "tpu.runtime.uptime.seconds.gauge"


class Row(NamedTuple):
    """One row of an answer: its id there, and the devices that it is about."""

    id: int
    devices: tuple[int, ...]
    """Global ids."""


class Answers:
    """The answers of one process of the host."""

    def __init__(self, running: Running, process: int) -> None:
        generation = by_name(running.description["generation"])
        assert generation is not None
        self._running = running
        self._generation: Generation = generation
        self._chips: list[int] = running.description["processes"][process]["chips"]
        self._makers = self._by_grpc_name()

    def metric(self, name: str) -> bytes | None:
        """The MetricResponse about that metric; None when the server does not know it."""
        self._running.refresh()
        if name not in self._makers or self._is_hidden(name):
            return None
        answer = messages()["MetricResponse"]()
        answer.metric.name = name
        if self._running.is_loaded:
            self._makers[name](answer.metric.metrics)
        for row in answer.metric.metrics:
            row.timestamp.seconds, row.timestamp.nanos = divmod(time.time_ns(), 10**9)
        return bytes(answer.SerializeToString())

    def names(self, pattern: str) -> bytes:
        """The ListSupportedMetricsResponse."""
        self._running.refresh()
        answer = messages()["ListSupportedMetricsResponse"]()
        for name in self._makers:
            if not self._is_hidden(name) and _matches(pattern, name):
                answer.supported_metric.add(metric_name=name)
        return bytes(answer.SerializeToString())

    def status(self, with_hlo: bool) -> bytes:
        """The GetTpuRuntimeStatusResponse: one entry for each TensorCore."""
        self._running.refresh()
        answer = messages()["GetTpuRuntimeStatusResponse"](host_name="simulated")
        for device in self._devices() if self._running.is_loaded else ():
            for core in range(self._generation.cores_per_device):
                self._add_core(answer, device, core, with_hlo)
        return bytes(answer.SerializeToString())

    def _is_hidden(self, name: str) -> bool:
        hidden = self._running.faults.get("not-found")
        return hidden is not None and hidden in (name, _OURS.get(name))

    def _by_grpc_name(self) -> dict[str, Callable[[Any], None]]:
        makers = {name.grpc: self._maker(name.metric) for name in NAMES if name.grpc is not None}
        return {name: maker for name, maker in makers.items() if maker} | {UPTIME: self._uptime}

    def _maker(self, metric: str) -> Callable[[Any], None] | None:
        if metric in _GAUGES:
            return lambda rows: self._gauges(rows, metric)
        if metric in LATENCIES:
            return lambda rows: self._latencies(rows, metric)
        by_device = {"hlo_queue_size": self._queue, "hlo_execution_time_us": self._execution}
        return by_device.get(metric)

    def _devices(self) -> list[dict[str, Any]]:
        """Devices of this process that no fault hides, with the ids this process gives them."""
        devices = [d for d in self._running.description["devices"] if d["chip"] in self._chips]
        if "own-ids" in self._running.faults:
            first = devices[0]["index"]
            devices = [{**d, "id": d["index"] - first} for d in devices]
        hidden = int(self._running.faults.get("missing-device", "0"))
        return devices[: max(0, len(devices) - hidden)]

    def _rows(self, metric: str) -> list[Row]:
        """One for each device, or for each chip where libtpu measures chips."""
        cores = self._generation.devices_per_chip
        devices = [d["id"] for d in self._devices()]
        per_chip = metric in self._generation.chip_metrics or (
            self._generation.name == "7x" and "core-rows" not in self._running.faults
        )
        if not per_chip:
            return [Row(i, (i,)) for i in devices]
        chips = dict.fromkeys(i // cores for i in devices)
        return [Row(c, tuple(c * cores + core for core in range(cores))) for c in chips]

    def _gauges(self, rows: Any, metric: str) -> None:
        for subject in self._rows(metric):
            row = rows.add()
            row.attribute.key = "device-id"
            if "string-ids" in self._running.faults:
                row.attribute.value.string_attr = str(subject.id)
            else:
                row.attribute.value.int_attr = subject.id
            value = _GAUGES[metric](self, subject)
            if isinstance(value, int):
                row.gauge.as_int = value
            else:
                row.gauge.as_double = value

    def limit_bytes(self, row: Row) -> int:
        """Size of the memory that a row is about."""
        of_row = HBM_BYTES[self._generation.name]
        is_half = self._generation.name == "7x" and len(row.devices) == 1
        return of_row // 2 if is_half else of_row

    def mean(self, row: Row, what: str) -> float:
        """Mean of a quantity of the workload over a row's devices."""
        t_s = self._running.job_time_s
        measure: Callable[[float, int], float] = getattr(self._running.workload, what)
        return sum(measure(t_s, device) for device in row.devices) / len(row.devices)

    def _ordinals(self, rows: Any) -> Iterator[tuple[int, Any]]:
        """A row for each device, by its ordinal: counted from 0 in each process."""
        as_text = "int-ordinals" not in self._running.faults
        for ordinal, device in enumerate(self._devices()):
            row = rows.add()
            number = str(ordinal) if as_text else ordinal
            _add_labels(row, {"core_type": "tensorcore", "device_ordinal": number})
            yield device["id"], row

    def _queue(self, rows: Any) -> None:
        for device, row in self._ordinals(rows):
            row.gauge.as_int = self._running.workload.queue(self._running.job_time_s, device)

    def _execution(self, rows: Any) -> None:
        usual = 1e6 * self._running.workload.program_s
        for device, row in self._ordinals(rows):
            slower = usual * (1 + 0.004 * (device % 16))
            self._fill(row.distribution, EXECUTION._replace(median=slower), slows=True)

    def _latencies(self, rows: Any, metric: str) -> None:
        """Add latencies of the network between hosts: none on a slice of one."""
        if self._running.description["hosts"] == 1:
            return
        slows = metric == "collective_e2e_latency_us"
        for labels, spread in LATENCIES[metric]:
            row = rows.add()
            _add_labels(row, labels)
            self._fill(row.distribution, spread, slows)

    def _fill(self, distribution: Any, spread: Spread, slows: bool) -> None:
        """The times of all steps so far, longer where the hardware was slow if it `slows` them."""
        paces = self._running.workload.paces(self._running.job_time_s)
        parts = [
            (spread._replace(median=spread.median / (speed if slows else 1)), round(steps))
            for speed, steps in paces
        ]
        fill(distribution, parts)

    def _uptime(self, rows: Any) -> None:
        row = rows.add()
        _add_labels(row, {"ml_framework_name": "JAX", "ml_framework_version": "simulated"})
        row.gauge.as_double = self._running.job_time_s

    def _add_core(self, answer: Any, device: dict[str, Any], core: int, with_hlo: bool) -> None:
        job, t_s = self._running.workload, self._running.job_time_s
        cores = self._generation.cores_per_device
        entry = answer.core_states.add(key=device["id"] * cores + core)
        state = entry.value
        state.core_id.global_core_id = entry.key
        state.core_id.chip_id = device["id"] // self._generation.devices_per_chip
        state.core_id.core_on_chip.type = 1
        state.core_id.core_on_chip.index = device["core"] * cores + core
        state.xdb_server_running = False
        program = job.program(t_s)
        sequencer = state.sequencer_info.add(sequencer_type=1, sequencer_index=0)
        if program is None:
            return
        state.program_fingerprint = program.encode().ljust(16, b"\xa7")
        state.launch_id = job.steps(t_s)
        sequencer.pc, sequencer.tag, sequencer.tracemark = job.instruction(t_s, entry.key), 0, 0
        sequencer.program_id, sequencer.run_id = 579, job.steps(t_s)
        if with_hlo:
            operation = job.instruction(t_s, entry.key)
            sequencer.hlo_location = f"HLO: fusion.{operation}; HLO computation: {program}"
        for ahead in range(job.queue(t_s, device["id"])):
            state.queued_program_info.add(
                run_id=sequencer.run_id + ahead + 1,
                launch_id=state.launch_id + ahead + 1,
                program_fingerprint=state.program_fingerprint,
            )


_OURS = {name.grpc: name.metric for name in NAMES}

_GAUGES: dict[str, Callable[[Answers, Row], float]] = {
    "hbm_limit_bytes": Answers.limit_bytes,
    "hbm_used_bytes": lambda a, row: int(a.limit_bytes(row) * a.mean(row, "memory")),
    "duty_cycle_percent": lambda a, row: 100 * a.mean(row, "duty"),
    "hbm_bandwidth_utilization_percent": lambda a, row: 100 * a.mean(row, "bandwidth"),
    "idle_s": lambda a, row: a.mean(row, "idle_s"),
}


def _add_labels(row: Any, labels: Mapping[str, str | int]) -> None:
    for name, value in labels.items():
        row.attribute.key = "attributes"
        label = row.attribute.value.kvlist_attr.attributes.add(key=name)
        if isinstance(value, int):
            label.value.int_attr = value
        else:
            label.value.string_attr = value


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False
