"""What a simulated process tells in files: its segment, as an agent in it would write it, and, of
the first one, the state of its machine.
"""

from __future__ import annotations

import json
import math
import platform
import time
from typing import Any

from tpusmi.agent.segment import doubles
from tpusmi.chips import by_name, peak_flops_per_device
from tpusmi.simulate import vm
from tpusmi.simulate.answers import HBM_BYTES
from tpusmi.simulate.memory import EXECUTABLES, Kept, kept, profile
from tpusmi.simulate.progress import progress
from tpusmi.simulate.running import Running
from tpusmi.wire import identity, places
from tpusmi.wire.layout import FACTS_JSON, PROFILE_PPROF, SLOTS, plan
from tpusmi.wire.writer import SegmentWriter

SAMPLE_S, PROFILE_S = 1.0, 2.0
PAST_MOST = 20_000
"""Rows of devices written of the time before anybody looked: 256 devices have a coarser past."""
RESERVED, LARGEST_FREE = 0.015, 0.7
"""Shares of the memory, and of what is free in it."""
VERSIONS = {"jax_version": "0.10.2", "jaxlib_version": "0.10.2", "libtpu_version": "0.0.42.1"}


class Told:
    """The files of one process, kept up to date."""

    def __init__(self, running: Running, process: int) -> None:
        self._running = running
        self._process = process
        self._agent: Agent | None = None
        self._next_s = -math.inf

    def update(self) -> None:
        """Write what is due."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + SAMPLE_S
        if self._process == 0 and self._running.description["freeze_s"] is None:
            vm.update(self._running.directory, self._running.job_time_s)
        if self._agent is None and self._running.has_agent:
            self._agent = Agent(self._running, self._process)
            self._agent.write_past(now_s)
        if self._agent is not None:
            self._agent.write(now_s)


class Agent:
    """The agent in one process of the job."""

    def __init__(self, running: Running, process: int) -> None:
        self._running = running
        told = running.description
        mine = told["processes"][process]["chips"]
        self._devices = [d for d in told["devices"] if d["chip"] in mine]
        self._number = process
        generation = by_name(told["generation"])
        assert generation is not None
        self._kind = generation.jax_kinds[0]
        rows = HBM_BYTES[generation.name]
        self._limit_bytes = rows // 2 if generation.name == "7x" else rows
        peak = peak_flops_per_device(generation)
        self._everywhere = told["hosts"] * len(told["devices"])
        """Devices of the whole job."""
        self._peak_flops_per_s = None if peak is None else peak * self._everywhere
        self._most_bytes = [0] * len(self._devices)
        self._profiled: list[list[Kept]] = []
        self._profile_at_s = -math.inf
        self._writer = self._open(told)

    def write_past(self, now_s: float) -> None:
        """What the segment would hold had somebody begun it with the job."""
        seconds = min(SLOTS - 1, int(self._running.job_time_s))
        stride = 1 + seconds * len(self._devices) // PAST_MOST
        for ago_s in range(seconds, 0, -stride):
            self._write(now_s - ago_s, self._running.job_time_s - ago_s)
        self._profile_at_s = -math.inf  # the first sample of now comes with a profile

    def write(self, now_s: float) -> None:
        """A sample of now, and a profile when one is due."""
        is_due = now_s - self._profile_at_s >= PROFILE_S
        self._write(now_s, self._running.job_time_s)
        if is_due:
            labels = (_label(d, self._number) for d in self._devices)
            data = profile(zip(labels, self._profiled, strict=True))
            self._writer.profile.write(PROFILE_PPROF, data, now_s)

    def _write(self, at_s: float, t_s: float) -> None:
        job = self._running.workload
        if at_s - self._profile_at_s >= PROFILE_S:
            self._profiled = [kept(job, t_s, d["id"], self._limit_bytes) for d in self._devices]
            self._profile_at_s = at_s
        process = {
            **progress(job, t_s, self._peak_flops_per_s),
            "interval_s": SAMPLE_S,
            "executables": EXECUTABLES,
            "profile_at_s": self._profile_at_s,
            "profile_period_s": PROFILE_S,
            "utilization_at_s": at_s,
            "utilization_period_s": SAMPLE_S,
        }
        rows = [self._device(i, t_s, process["steps"] or 0) for i in range(len(self._devices))]
        self._writer.append(doubles(at_s, process, rows))

    def _device(self, index: int, t_s: float, steps: float) -> tuple[float, ...]:
        """A device's fields, in the order of the layout."""
        job, number, limit = self._running.workload, self._devices[index]["id"], self._limit_bytes
        used = int(limit * job.memory(t_s, number))
        self._most_bytes[index] = max(self._most_bytes[index], used)
        live = self._profiled[index]
        return (
            *(used, limit, self._most_bytes[index], int(LARGEST_FREE * (limit - used))),
            *(int(RESERVED * limit), 2000 + 40 * steps),
            *(sum(k.bytes for k in live), sum(k.arrays for k in live)),
            100 * job.duty(t_s, number),
            job.idle_s(t_s, number),
            100 * job.bandwidth(t_s, number),
        )

    def _open(self, told: dict[str, Any]) -> SegmentWriter:
        who = identity.me()
        path = f"{told['segment_dir']}/{who.pid}-{who.start_ticks}{places.SUFFIX}"
        header = plan(who, len(self._devices), time.monotonic(), time.time())
        writer = SegmentWriter(path, header)
        facts = {
            "argv": ["python", "train.py", "--config=simulated"],
            "python_version": platform.python_version(),
            "platform": "tpu",
            "device_kind": self._kind,
            "process_index": told["worker"] * len(told["processes"]) + self._number,
            "process_count": told["hosts"] * len(told["processes"]),
            "device_count": self._everywhere,
            "devices": [
                {"id": d["id"], "kind": self._kind, "coords": d["coords"],
                 "core_on_chip": d["core"]}
                for d in self._devices
            ],
            "warnings": [],
            **VERSIONS,
        }  # fmt: skip
        writer.facts.write(FACTS_JSON, json.dumps(facts).encode(), time.monotonic())
        return writer


def _label(device: dict[str, Any], process: int) -> str:
    """As JAX names a TPU in a profile."""
    x, y, z = device["coords"]
    return f"TPU_{device['id']}(process={process},({x},{y},{z},{device['core']}))"
