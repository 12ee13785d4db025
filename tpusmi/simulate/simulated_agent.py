"""The agent in a process of the simulated job: the segment that it would write, and how far the job
has come, as it would measure that.
"""

from __future__ import annotations

import json
import math
import platform
import sys
import time
from itertools import groupby
from typing import Any

from tpusmi.agent.activity import IDLE_AFTER_S, IDLE_AFTER_STEPS
from tpusmi.agent.segment import doubles
from tpusmi.chips import by_name, peak_flops_per_device
from tpusmi.model import PHASES, Phase
from tpusmi.simulate.memory_profile import EXECUTABLES, Kept, kept, profile
from tpusmi.simulate.metric_answers import HBM_BYTES
from tpusmi.simulate.running import Running
from tpusmi.simulate.simulated_captures import SimulatedCaptures, published
from tpusmi.simulate.simulated_slice import SimulatedSlice
from tpusmi.simulate.workload import (
    COMPILE_S,
    COMPILING,
    LOAD_S,
    LOADING,
    MODEL_SHARE,
    Workload,
)
from tpusmi.wire import identity, places
from tpusmi.wire.layout import DEVICE_FIELDS, FACTS_JSON, PROFILE_PPROF, SLOTS, plan
from tpusmi.wire.writer import SegmentWriter

SAMPLE_S, PROFILE_S = 1.0, 2.0
PAST_MOST = 20_000
"""Rows of devices in the past that is written at the start: 256 devices have a coarser past."""
RESERVED, LARGEST_FREE = 0.015, 0.7
"""Shares of the memory, and of what is free in it."""
VERSIONS = {"jax_version": "0.10.2", "jaxlib_version": "0.10.2", "libtpu_version": "0.0.42.1"}


class SimulatedAgent:
    """The agent in one process of the job."""

    def __init__(self, running: Running, process: int) -> None:
        self._running = running
        described = running.description
        mine = described["processes"][process]["chips"]
        self._devices = [d for d in described["devices"] if d["chip"] in mine]
        self._number = process
        generation = by_name(described["generation"])
        assert generation is not None
        self._kind = generation.jax_kinds[0]
        rows = HBM_BYTES[generation.name]
        self._limit_bytes = rows // 2 if generation.name == "7x" else rows
        peak = peak_flops_per_device(generation)
        self._job_devices = running.job_devices
        self._peak_flops_per_s = None if peak is None else peak * self._job_devices
        self._most_bytes = [0] * len(self._devices)
        self._profiled: list[list[Kept]] = []
        self._profile_at_s = -math.inf
        self._written_captures: int | None = None
        self._slice = SimulatedSlice(running, self._limit_bytes, self._kind)
        self._writer = self._open(described)
        self._write_facts()
        self._captures = SimulatedCaptures(running, self._devices, self._limit_bytes)

    def look(self) -> None:
        """Answer a request for a capture. Never waits."""
        self._captures.look(self._writer.path, self._who)

    def write_past(self, now_s: float) -> None:
        """Write what the segment would hold if it had begun with the job."""
        seconds = min(SLOTS - 1, int(self._running.job_time_s))
        stride = 1 + seconds * len(self._devices) // PAST_MOST
        for ago_s in range(seconds, 0, -stride):
            self._write(now_s - ago_s, self._running.job_time_s - ago_s)
        self._profile_at_s = -math.inf  # so that the first current sample comes with a profile

    def write(self, now_s: float) -> None:
        """Write a current sample, and a profile when one is due."""
        self._write_facts()
        is_due = now_s - self._profile_at_s >= PROFILE_S
        process = self._write(now_s, self._running.job_time_s)
        if self._number == 0:
            self._slice.write(self._writer, process, now_s)
        if is_due:
            labels = (_label(d, self._number) for d in self._devices)
            data = profile(zip(labels, self._profiled, strict=True))
            self._writer.profile.write(PROFILE_PPROF, data, now_s)

    def _write(self, at_s: float, t_s: float) -> dict[str, float | None]:
        """Write a sample; returns the fields of the process."""
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
        return process

    def _device(self, index: int, t_s: float, steps: float) -> tuple[float, ...]:
        """A device's fields, in the order of the layout."""
        job, number, limit = self._running.workload, self._devices[index]["id"], self._limit_bytes
        used = int(limit * job.memory(t_s, number))
        self._most_bytes[index] = max(self._most_bytes[index], used)
        live = self._profiled[index]
        fields = {
            "hbm_used_bytes": used,
            "hbm_limit_bytes": limit,
            "hbm_peak_bytes": self._most_bytes[index],
            "hbm_largest_free_block_bytes": int(LARGEST_FREE * (limit - used)),
            "hbm_reserved_bytes": int(RESERVED * limit),
            "allocations": 2000 + 40 * steps,
            "live_array_bytes": sum(k.bytes for k in live),
            "live_arrays": sum(k.arrays for k in live),
            "duty_cycle_percent": 100 * job.duty(t_s, number),
            "idle_s": job.idle_s(t_s, number),
            "hbm_bandwidth_utilization_percent": 100 * job.bandwidth(t_s, number),
        }
        return tuple(fields[name] for name in DEVICE_FIELDS)

    def _open(self, described: dict[str, Any]) -> SegmentWriter:
        who = self._who = identity.me()
        path = f"{described['segment_dir']}/{who.pid}-{who.start_ticks}{places.SUFFIX}"
        header = plan(who, len(self._devices), time.monotonic(), time.time(), self._slice.processes)
        return SegmentWriter(path, header)

    def _write_facts(self) -> None:
        """Write them again when a fault has changed them."""
        captures = published(self._running)
        if captures == self._written_captures:
            return
        self._written_captures = captures
        described = self._running.description
        facts = {
            "captures": captures,
            "argv": ["python", *sys.argv],
            "python_version": platform.python_version(),
            "platform": "tpu",
            "device_kind": self._kind,
            "process_index": described["worker"] * len(described["processes"]) + self._number,
            "process_count": described["hosts"] * len(described["processes"]),
            "device_count": self._job_devices,
            "devices": [
                {"id": d["id"], "kind": self._kind, "coords": d["coords"],
                 "core_on_chip": d["core"]}
                for d in self._devices
            ],
            "warnings": [],
            **VERSIONS,
        }  # fmt: skip
        self._writer.facts.write(FACTS_JSON, json.dumps(facts).encode(), time.monotonic())


def _label(device: dict[str, Any], process: int) -> str:
    """As JAX names a TPU in a profile."""
    x, y, z = device["coords"]
    return f"TPU_{device['id']}(process={process},({x},{y},{z},{device['core']}))"


WINDOW_S, WINDOW_LEAST = 60, 20
"""The agent's rates are those of the last minute, and of at least so many steps."""
WALK_MOST = 600
"""Seconds that are looked at for as many steps."""
PROGRAMS, MORE_PROGRAMS, MORE_EVERY_S = 6, 4, 75.0
"""Compiled before the first step, and one by one later on."""
COMPILE_EACH_S = COMPILE_S / PROGRAMS
UNEVEN = 0.07
"""How much the time of a step varies."""
_PHASES = {LOADING: Phase.STARTING, COMPILING: Phase.COMPILING}


def progress(job: Workload, t_s: float, peak_flops_per_s: float | None) -> dict[str, float | None]:
    """The fields of the process in a sample; a field that is not known yet is None or missing.

    `peak_flops_per_s` is that of all the job's devices.
    """
    compiled = _compiled(t_s)
    steps = job.steps(t_s)
    fields: dict[str, float | None] = {
        "phase": PHASES.index(_PHASES.get(job.activity(t_s), Phase.RUNNING)),
        "steps": steps or None,
        "compilations": compiled,
        "compile_s": compiled * COMPILE_EACH_S,
        "recent_compilations": compiled - _compiled(max(t_s - WINDOW_S, min(t_s, WINDOW_S))),
        "agent_cost_percent": 0.04,
        "agent_sample_s": 0.0004,
        "profile_cost_s": 0.003,
    }
    if steps:
        fields |= _work(job, t_s, peak_flops_per_s)
    return fields


def _work(job: Workload, t_s: float, peak_flops_per_s: float | None) -> dict[str, float | None]:
    """Rates and times of the last steps, the FLOPs in them, and whether the job still makes any."""
    seconds = _window(job, t_s)
    since_step_s = job.since_step_s(t_s)
    fields: dict[str, float | None] = {"since_last_step_s": since_step_s}
    rates = sorted((r for r in map(job.steps_per_s, seconds) if r > 0), reverse=True)
    patience_s = IDLE_AFTER_S
    if rates:
        # A loop that stalls gets slower: the time since its last step counts as well.
        elapsed_s = t_s - seconds[-1] + 1.0 if since_step_s > 1 / rates[-1] else len(seconds)
        fields |= _steps(rates, sum(rates) / elapsed_s, _pauses(job, seconds))
        patience_s = max(patience_s, IDLE_AFTER_STEPS * (fields["step_time_s.p95"] or 0.0))
        if peak_flops_per_s is not None:
            mfu = MODEL_SHARE * sum(map(job.mxu_mean, seconds)) / elapsed_s
            fields["flops_per_s"], fields["mfu_percent"] = mfu * peak_flops_per_s, 100 * mfu
    if since_step_s >= patience_s and job.activity(t_s) not in _PHASES:
        fields["phase"] = PHASES.index(Phase.IDLE)
    return fields


def _steps(rates: list[float], per_s: float, pauses: list[float]) -> dict[str, float | None]:
    """The rate of the steps, and their times; `rates` are those of single seconds, falling. Each of
    the `pauses`, in seconds, is a part of the step that ended after it.
    """
    uneven = [1 + UNEVEN * (2 * i / len(rates) - 1) for i in range(len(rates))]
    times = [spread / rate for spread, rate in zip(uneven, rates, strict=True)]
    total_s = sum(t * r for t, r in zip(times, rates, strict=True)) + sum(pauses)
    paused = [(pause + times[0], 1.0) for pause in pauses]
    spread_out = sorted([*zip(times, rates, strict=True), *paused])
    return {
        "steps_per_s": per_s,
        "step_time_s.min": times[0],
        "step_time_s.mean": total_s / sum(rates),
        "step_time_s.p50": _quantile(spread_out, 0.5),
        "step_time_s.p95": _quantile(spread_out, 0.95),
        "step_time_s.max": spread_out[-1][0],
    }


def _pauses(job: Workload, seconds: list[float]) -> list[float]:
    """The pauses in these seconds, newest first, after which a step has ended; in seconds."""
    idle = [job.steps_per_s(at_s) == 0 for at_s in seconds]
    runs = [(paused, len(list(run))) for paused, run in groupby(idle)]
    return [float(length) for n, (paused, length) in enumerate(runs) if paused and n > 0]


def _window(job: Workload, t_s: float) -> list[float]:
    """The seconds that the agent's rates are of, the newest first: none is before the training."""
    seconds: list[float] = []
    done, at_s = 0.0, t_s
    if job.steps_per_s(t_s) == 0 and job.since_step_s(t_s) > WINDOW_S:
        at_s -= job.since_step_s(t_s)  # nothing runs: the window ends with its last step
    while at_s >= LOAD_S + COMPILE_S and len(seconds) < WALK_MOST:
        if t_s - at_s >= WINDOW_S and done >= WINDOW_LEAST:
            break
        seconds.append(at_s)
        done += job.steps_per_s(at_s)
        at_s -= 1.0
    return seconds


def _quantile(times: list[tuple[float, float]], share: float) -> float:
    """The quantile of times in order, each with its weight."""
    left = share * sum(weight for _, weight in times)
    for time_s, weight in times:
        left -= weight
        if left <= 0:
            return time_s
    return times[-1][0]


def _compiled(t_s: float) -> int:
    """Programs compiled until then."""
    into_s = t_s - LOAD_S
    if into_s < COMPILE_S:
        return max(0, int(into_s / COMPILE_EACH_S))
    return PROGRAMS + min(MORE_PROGRAMS, int((into_s - COMPILE_S) / MORE_EVERY_S))
