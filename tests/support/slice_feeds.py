"""Slices without a job: hosts of four devices each, all alike but for what a test changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.feeds import MomentFeed, two_jobs
from tpusmi.merge.notices import notices
from tpusmi.model import Phase, ProcessKey
from tpusmi.model.slice_hosts import Slice, SliceDevice, SliceProcess

GIB = 1024**3
Changes = Mapping[int, Mapping[str, Any]]


def host_of_slice(index: int, used: int = 8, **changes: Any) -> SliceProcess:
    """One of them: `used` GiB of 16 in use on each device; `changes` are other fields."""
    devices = tuple(
        SliceDevice(
            id=4 * index + i,
            coords=(2 * (index % 2) + i % 2, 2 * (index // 2) + i // 2, 0),
            core_on_chip=0,
            hbm_used_bytes=used * GIB + i * GIB // 8,
            hbm_limit_bytes=16 * GIB,
            tensorcore_utilization_percent=None,
            duty_cycle_percent=97.5 - index,
            idle_s=0.0,
        )
        for i in range(4)
    )
    host = SliceProcess(
        process_index=index,
        name=f"t1v-n-7b8e-w-{index}",
        kind="TPU v5e",
        age_s=0.6 + index / 10,
        period_s=2.0,
        phase=Phase.RUNNING,
        steps=120_400,
        step_time_s=0.24 + index / 1000,
        since_last_step_s=0.1,
        mfu_percent=41.5,
        sample_age_s=0.0,
        clock_difference_s=None if index == 1 else index / 100,
        warnings=(),
        devices=devices,
    )
    return host._replace(**changes)


def slice_of_hosts(
    count: int, process: ProcessKey, at_s: float, changes: Changes | None = None
) -> Slice:
    """A slice of that many hosts, read by that process just now, with the state of each."""
    hosts = (host_of_slice(i, **(changes or {}).get(i, {})) for i in range(count))
    return Slice(
        process=process,
        process_index=0,
        process_count=count,
        job=77,
        period_s=2.0,
        at_s=at_s,
        hosts=tuple(hosts),
    ).aged(at_s)


TROUBLED: Changes = {
    1: {"clock_difference_s": 75.0, "warnings": ("no_memory_profile",)},
    2: {"age_s": 14.0},
    3: {"step_time_s": 0.5},
}
"""One host has a wrong clock, one is not heard of, and one is slow."""


def feed_of_slice(*counts: int, changes: Changes | None = None) -> MomentFeed:
    """Two jobs on this machine, each of them with that many hosts if there is a count for it."""
    s = two_jobs().snapshot()
    slices = tuple(
        slice_of_hosts(count, p.key, s.at_s, changes)._replace(job=p.pid)
        for count, p in zip(counts, s.processes, strict=False)
    )
    s = s._replace(slices=slices)
    return MomentFeed(s._replace(warnings=notices(s)))
