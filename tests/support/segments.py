"""Segments made by the real writer, for tests that need one without a JAX job."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from tpusmi.memprofile import packed_sites
from tpusmi.simulate.memory_profile import kept, profile
from tpusmi.simulate.workload import Workload
from tpusmi.wire import identity
from tpusmi.wire.layout import (
    BLOB_HEAD,
    DEVICE_FIELDS,
    FACTS_JSON,
    HEADER_BYTES,
    PROCESS_FIELDS,
    PROFILE_PPROF,
    PROFILE_SITES,
    SLICE_JSON,
    Identity,
    plan,
)
from tpusmi.wire.slice_summary import REST, VERSION, packed
from tpusmi.wire.writer import SegmentWriter, packed_header

NAN = float("nan")
GIB = 1024**3

KNOWN = Identity(4321, 1000, 987654, bytes(range(16)), 4026531836)
"""A process that is nowhere, for segments whose text is compared."""


def facts(devices: int = 2, **more: Any) -> dict[str, Any]:
    """What a job with that many v5e devices says of itself."""
    return {
        "argv": ["python", "train.py", "--config=big"],
        "python_version": "3.11.7",
        "platform": "tpu",
        "device_kind": "TPU v5 lite",
        "jax_version": "0.10.2",
        "jaxlib_version": "0.10.2",
        "libtpu_version": "0.0.42.1",
        "process_index": 0,
        "process_count": 1,
        "devices": [
            {"id": 8 + i, "kind": "TPU v5 lite", "coords": [i, 0, 0], "core_on_chip": 0}
            for i in range(devices)
        ],
        "warnings": [],
        **more,
    }


def slot(
    at_s: float,
    process: dict[str, float] | None = None,
    devices: list[dict[str, float]] | None = None,
    wall_s: float = 1_700_000_000.0,
) -> list[float]:
    """The doubles of one slot; what is not named is unknown."""
    values = [at_s, wall_s]
    values += [(process or {}).get(name, NAN) for name in PROCESS_FIELDS]
    for device in devices or []:
        values += [device.get(name, NAN) for name in DEVICE_FIELDS]
    return values


def device(number: int = 0) -> dict[str, float]:
    """Every field of a device, each different."""
    memory = {name: float((number + 1) * GIB + i) for i, name in enumerate(DEVICE_FIELDS)}
    return {
        **memory,
        "duty_cycle_percent": 90.5 + number,
        "idle_s": 0.25 + number,
        "hbm_bandwidth_utilization_percent": 30.5 + number,
    }


RUNNING = {
    "phase": 2.0,
    "interval_s": 1.0,
    "steps": 1200.0,
    "steps_per_s": 4.0,
    "step_time_s.min": 0.2,
    "step_time_s.mean": 0.25,
    "step_time_s.p50": 0.24,
    "step_time_s.p95": 0.31,
    "step_time_s.max": 0.5,
    "since_last_step_s": 0.1,
    "compilations": 7.0,
    "compile_s": 12.5,
    "recent_compilations": 0.0,
    "executables": 5.0,
    "agent_cost_percent": 0.04,
    "agent_sample_s": 0.0004,
    "profile_at_s": 99.0,
    "profile_period_s": 2.0,
    "profile_cost_s": 0.003,
    "flops_per_s": 6.4e14,
    "mfu_percent": 40.5,
    "utilization_at_s": 99.5,
    "utilization_period_s": 1.0,
    "step_body_s.mean": 0.02,
    "step_body_s.p50": 0.01,
    "step_body_s.p95": 0.03,
}


def segment(
    directory: Path | str,
    who: Identity,
    devices: int = 2,
    said: dict[str, Any] | None = None,
    name: str | None = None,
    processes: int = 1,
) -> SegmentWriter:
    """An open segment with facts and no sample yet."""
    path = f"{directory}/{name or f'{who.pid}-{who.start_ticks}.seg'}"
    writer = SegmentWriter(path, plan(who, devices, 100.0, 1_700_000_000.0, processes))
    text = json.dumps(facts(devices) if said is None else said, sort_keys=True)
    writer.facts.write(FACTS_JSON, text.encode(), 100.0)
    return writer


def without_lock(writer: SegmentWriter) -> None:
    """Close it as an agent would leave it that could take no lock, or knew none: nothing follows
    from a lock that is free.
    """
    writer.close()
    with open(writer.path, "r+b") as file:
        file.write(packed_header(writer.header._replace(locked=0)))


def my_segment(directory: Path | str, devices: int = 2, **said: Any) -> SegmentWriter:
    """A segment of this very process, with one fresh sample."""
    writer = segment(directory, identity.me(), devices, facts(devices, **said))
    now = time.monotonic()
    process = {**RUNNING, "profile_at_s": now, "utilization_at_s": now}
    writer.append(slot(now, process, [device(i) for i in range(devices)], time.time()))
    return writer


def golden(directory: Path | str) -> str:
    """The path of a segment whose every byte is fixed: what tests/segments/ keeps."""
    writer = segment(directory, KNOWN, processes=4)
    writer.profile.write(PROFILE_PPROF, profile_bytes(), 99.0)
    writer.profile.write(PROFILE_SITES, packed_sites(profile_of_two()), 99.5)
    writer.slice.write(SLICE_JSON, slice_bytes(4), 101.5)
    for i in range(3):
        writer.append(slot(100.0 + i, {**RUNNING, "steps": 1200.0 + i}, [device(0), device(1)]))
    writer.append(slot(103.0, {"phase": 4.0}, [{}, device(1)]))
    writer.close()
    return writer.path


def slice_line(index: int, age_s: float = 0.5, devices: int = 2, **said: Any) -> list[Any]:
    """What a blob says of one process of a job. `said` are fields of `REST`."""
    head = [VERSION, 17, 1_700_000_000.5, 2.0, 1000 + index]
    values = {
        "name": f"host-{index}",
        "kind": "TPU v5 lite",
        "phase": 2,
        "steps": 1200 + index,
        "step_time_s": 0.25,
        "since_last_step_s": 0.1,
        "mfu_percent": 40.5,
        "sample_age_s": 0.25,
        "warnings": [],
        "hbm_limit_bytes": 16 * GIB,
        **said,
    }
    rows = [
        [8 * GIB + i, None, 97.5, 0.25, 2 * index + i, [i, index, 0], 0] for i in range(devices)
    ]
    clock = 0.0 if index == 0 else 0.25
    return [index, age_s, clock, [*head, *(values[name] for name in REST), rows]]


def slice_bytes(processes: int, *lines: list[Any]) -> bytes:
    """A blob with those lines, by default one for each process."""
    blob = (VERSION, processes, 0, 77, 2.0)
    return packed(blob, lines or [slice_line(i) for i in range(processes)])


def profile_bytes() -> bytes:
    """A real memory profile: of a training run on a CPU."""
    return (Path(__file__).parents[1] / "data" / "ajax.prof").read_bytes()


def profile_of_two() -> bytes:
    """The memory profile of a simulated job that leaks, on its devices 8 and 9."""
    job = Workload(leaking_s=20.0)
    devices = {f"TPU_{i}(process=0,({i},0,0,0))": kept(job, 60.0, i, 16 * GIB) for i in (8, 9)}
    return profile(devices.items())


@functools.cache
def dead_identity() -> Identity:
    """The identity of a process of this boot that has ended."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        ticks = identity.start_ticks("/proc", child.pid)
    assert ticks is not None
    return identity.me()._replace(pid=child.pid, start_ticks=ticks)


def inode(path: str) -> int:
    """The inode of a file."""
    return os.stat(path).st_ino


def small_segment(directory: Path | str, who: Identity, devices: int) -> SegmentWriter:
    """A segment of many devices that is a small file: room for one sample and next to no facts."""
    roomy = plan(who, devices, 100.0, 1_700_000_000.0)
    facts_half = profile_half = BLOB_HEAD.size + 8
    facts_offset = HEADER_BYTES
    profile_offset = facts_offset + 2 * facts_half
    newest_offset = profile_offset + 2 * profile_half
    header = roomy._replace(
        facts_offset=facts_offset,
        facts_half=facts_half,
        profile_offset=profile_offset,
        profile_half=profile_half,
        newest_offset=newest_offset,
        slots_offset=newest_offset + 8,
        slots=1,
    )
    writer = SegmentWriter(f"{directory}/{who.pid}-{who.start_ticks}.seg", header)
    now = time.monotonic()
    writer.append(slot(now, RUNNING, [device(i) for i in range(devices)], time.time()))
    return writer
