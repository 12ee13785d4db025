"""What one host of a simulated fleet measures at a time, from the same functions as the simulated
host: nothing is remembered, so that the past can also be computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from tpusmi.chips import peak_flops_per_device
from tpusmi.model import PHASES
from tpusmi.simulate import fleet_spec
from tpusmi.simulate.accelerator import SimulatedDevice, SliceHost, parse
from tpusmi.simulate.distributions import EXECUTION
from tpusmi.simulate.fleet_spec import FleetSlice
from tpusmi.simulate.memory_profile import EXECUTABLES, kept
from tpusmi.simulate.metric_answers import HBM_BYTES
from tpusmi.simulate.running import COLLECTIVES, HEALTH_MOST, THROTTLE_MOST
from tpusmi.simulate.simulated_agent import LARGEST_FREE, RESERVED, progress
from tpusmi.simulate.simulated_slice import GOLDEN, UNEVEN
from tpusmi.simulate.workload import HUNG, IDLE, Workload

RUN_S, YOUNG_RUN_S = 6 * 3600.0, 300.0
"""A job is started again after that time."""
APART_S = 997.0
"""Between the starts of the jobs of two slices."""
TROUBLE_AFTER_S = 240.0
"""A job begins well."""
STRAGGLER_SLOWER = 1.35
THROTTLE_SCORE, LINK_HEALTH, PASSING_HEALTH = 3, 7, 3
DIED_S, OLD_S = 1234.0, 420.0
"""Before the present: when a host died, and of when the numbers of another one are."""
FIRST_PID, PIDS = 2000, 30_000
_FORCED = {fleet_spec.IDLE: IDLE, fleet_spec.HUNG: HUNG}
_SPREAD = {"p50": 0.0, "p90": 1.2816, "p95": 1.6449, "p999": 3.0902}
"""Deviations above the median of a normal distribution."""


class JobMoment(NamedTuple):
    """The job of a slice at one time: all of its hosts share it."""

    workload: Workload
    t_s: float
    """Since its start."""
    run: int
    """How often it was started before."""
    speed: float
    fields: Mapping[str, float | None]
    """As its agent would measure them on a host that is neither slow nor fast."""
    has_trouble: bool
    """False in the first minutes, and where the slice is in order."""


def job_at(s: FleetSlice, at_s: float) -> JobMoment | None:
    """The job of that slice at that Unix time; None for a slice that is free."""
    if s.trouble == fleet_spec.FREE:
        return None
    lasts_s = YOUNG_RUN_S if s.trouble == fleet_spec.YOUNG else RUN_S
    run, t_s = divmod(at_s + s.number * APART_S, lasts_s)
    has_trouble = bool(s.trouble) and t_s >= TROUBLE_AFTER_S
    speed = _speed(s.trouble) if has_trouble else 1.0
    forced = _FORCED.get(s.trouble)
    healthy = Workload(s.number)
    workload = Workload(
        s.number,
        None if forced is None else (forced, TROUBLE_AFTER_S),
        TROUBLE_AFTER_S if s.trouble == fleet_spec.LEAK else None,
        speed,
        (TROUBLE_AFTER_S, healthy) if has_trouble else None,
    )
    host = machine(s.accelerator_type, 0)
    peak = peak_flops_per_device(host.generation)
    devices = s.hosts * len(host.devices)
    fields = progress(workload, t_s, None if peak is None else peak * devices)
    return JobMoment(
        workload=workload,
        t_s=t_s,
        run=int(run),
        speed=speed,
        fields=fields,
        has_trouble=has_trouble,
    )


def _speed(trouble: str) -> float:
    """As a simulated host has it: all chips wait for the slowest chip and the slowest link."""
    if trouble == fleet_spec.THROTTLED:
        return 1 - THROTTLE_SCORE / THROTTLE_MOST
    if trouble == fleet_spec.BAD_LINK:
        return 1 / (1 + COLLECTIVES * (1 / (1 - LINK_HEALTH / (HEALTH_MOST + 1)) - 1))
    return 1.0


@lru_cache(maxsize=fleet_spec.HOSTS_MOST)
def machine(accelerator_type: str, worker: int) -> SliceHost:
    """That host of such a slice."""
    return parse(accelerator_type, worker)


def limit_bytes(host: SliceHost) -> int:
    """Memory of a device of the host."""
    of_row = HBM_BYTES[host.generation.name]
    return of_row // 2 if host.generation.name == "7x" else of_row


def pid_of(s: FleetSlice, worker: int, run: int) -> int:
    """The process of the job on that host."""
    return FIRST_PID + (s.number * 131 + worker * 17 + run * 7919) % PIDS


def is_straggler(s: FleetSlice, worker: int) -> bool:
    """Whether steps take longer on that host."""
    return s.trouble == fleet_spec.STRAGGLER and s.hosts > 2 and worker == s.hosts // 3


def is_the_one(s: FleetSlice, worker: int, job: JobMoment, trouble: str) -> bool:
    """Whether that host is the one of its slice with that trouble."""
    return job.has_trouble and s.trouble == trouble and worker == min(1, s.hosts - 1)


def throttle_percent(s: FleetSlice, worker: int, job: JobMoment, chip: int) -> float:
    """How far that chip slows itself down."""
    is_throttled = chip == 0 and is_the_one(s, worker, job, fleet_spec.THROTTLED)
    return 100.0 * THROTTLE_SCORE / THROTTLE_MOST if is_throttled else 0.0


def pace_of(s: FleetSlice, worker: int, job: JobMoment) -> float:
    """How long steps take on that host, compared with the others."""
    pace = 1 + UNEVEN * (worker * GOLDEN % 1.0 - 0.5)
    return pace * STRAGGLER_SLOWER if job.has_trouble and is_straggler(s, worker) else pace


def process_values(s: FleetSlice, worker: int, job: JobMoment) -> dict[str, float | None]:
    """The metrics of the process on that host, by their names in the model."""
    pace = pace_of(s, worker, job)
    paced = {
        name: value * pace
        for name, value in job.fields.items()
        if value is not None and name.startswith("step_time_s.")
    }
    rate = job.fields.get("steps_per_s")
    if rate is not None:
        paced["steps_per_s"] = rate / pace  # one over the mean time, but for pauses
    return {**job.fields, **paced, "executables": float(EXECUTABLES)}


def device_values(
    host: SliceHost, device: SimulatedDevice, job: JobMoment, shown_only: bool
) -> dict[str, float | None]:
    """The metrics of a device, by their names in the model; without those that only the page of a
    host shows, if so asked.
    """
    w, t_s, limit = job.workload, job.t_s, limit_bytes(host)
    used = int(limit * w.memory(t_s, device.id))
    duty = w.duty(t_s, device.id)
    mxu = min(
        w.mxu(t_s, device.id), duty
    )  # which is a mean of seconds: no matrix without a program
    values: dict[str, float | None] = {
        "hbm_used_bytes": used,
        "hbm_limit_bytes": limit,
        "tensorcore_utilization_percent": round(100 * mxu, 2),
        "duty_cycle_percent": 100 * duty,
        "hbm_bandwidth_utilization_percent": 100 * w.bandwidth(t_s, device.id),
        "idle_s": w.idle_s(t_s, device.id),
    }
    return values if shown_only else values | _further(device, job, used, limit)


def _further(
    device: SimulatedDevice, job: JobMoment, used: int, limit: int
) -> dict[str, float | None]:
    lines = kept(job.workload, job.t_s, device.id, limit)
    median_us = 1e6 * Workload.program_s * (1 + 0.004 * (device.id % 16)) / job.speed
    times = {
        f"hlo_execution_time_us.{part}": median_us * math.exp(EXECUTION.width * deviations)
        for part, deviations in _SPREAD.items()
    }
    return {
        "hbm_peak_bytes": max(used, int(0.86 * limit)),
        "hbm_largest_free_block_bytes": int(LARGEST_FREE * (limit - used)),
        "hbm_reserved_bytes": int(RESERVED * limit),
        "allocations": 2000 + 40 * int(job.fields["steps"] or 0),
        "live_array_bytes": sum(k.bytes for k in lines),
        "live_arrays": sum(k.arrays for k in lines),
        "hlo_queue_size": job.workload.queue(job.t_s, device.id),
        "hlo_execution_time_us.mean": median_us * math.exp(EXECUTION.width**2 / 2),
        **times,
    }


def phase(job: JobMoment) -> str:
    """What the job is doing, as its agent says."""
    return PHASES[int(job.fields["phase"] or 0)]
