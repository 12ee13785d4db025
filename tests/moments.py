"""One fixed moment of a host with everything a view must cope with, for goldens."""

from __future__ import annotations

from tpusmi.merge import merge
from tpusmi.model import (
    AGENT,
    DENIED,
    LIBTPU,
    OK,
    PROCESS_FACTS,
    Device,
    DeviceKey,
    HostFacts,
    MemoryProfile,
    Notice,
    Number,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    Site,
    Snapshot,
    Subject,
)

NOW = 5000.0
GIB = 1024**3
TRAIN, SERVE, DEAD = ProcessKey(4321, 11), ProcessKey(5000, 22), ProcessKey(999, 5)
HOST = HostFacts("tpu-vm-0", "2026-01-02T03:04:05.678Z", "0f" * 16, False, "0.0.42.1")

_FACTS: dict[str, object] = {
    **dict.fromkeys(PROCESS_FACTS),
    "platform": "tpu",
    "device_kind": "TPU v5 lite",
    "process_index": 0,
    "process_count": 1,
    "python_version": "3.11.7",
    "jax_version": "0.10.2",
    "jaxlib_version": "0.10.2",
    "libtpu_version": "0.0.42.1",
}

_SITES = (
    Site("init_params", "/home/ann/train.py", 41, "buffer", 3 * GIB, 96),
    Site("<lambda>", "/home/ann/a very, odd name.py", 7, "executable", None, 12),
)


def _device(owner: ProcessKey, i: int, platform: str = "tpu", error: str | None = None) -> Device:
    kind = "TPU v5 lite" if platform == "tpu" else "cpu"
    coords = (i, 0, 0) if platform == "tpu" else None
    return Device(DeviceKey(owner, i), i, 8 + i, platform, kind, coords, 0, None, error)


def _readings(subject: Subject, age_s: float, **values: Number) -> list[Reading]:
    return [
        Reading(name.replace("__", "."), subject, value, NOW - age_s, AGENT, 5.0)
        for name, value in values.items()
    ]


def everything() -> Snapshot:
    """A job on two TPU devices, one half silent; a CPU job; a dead one; a denied source."""
    train = Process(
        *(TRAIN, "ann", "python train.py --config=big, --token=***", "live", "running"),
        *(NOW - 0.4, 1.0, _FACTS, MemoryProfile(NOW - 2, _SITES)),
        (Notice("cpu_fallback", "JAX runs on the CPU although there is a TPU", 4321),),
    )
    serve = Process(
        *(SERVE, "bob", "python -m serve", "silent", "idle", NOW - 30, 1.0),
        {**_FACTS, "platform": "cpu", "device_kind": "cpu", "libtpu_version": None},
    )
    dead = Process(DEAD, "ann", "python crash.py", "dead", "ended", NOW - 60, 1.0, _FACTS)
    readings = [
        *_readings(
            DeviceKey(TRAIN, 0),
            0.4,
            hbm_used_bytes=12 * GIB,
            hbm_limit_bytes=16_909_332_480,
            hbm_peak_bytes=14 * GIB,
            hbm_largest_free_block_bytes=2 * GIB,
            hbm_reserved_bytes=0,
            allocations=1234,
            live_array_bytes=11 * GIB,
            live_arrays=321,
        ),
        *_readings(
            TRAIN,
            0.4,
            steps=12345,
            steps_per_s=3.21,
            step_time_s__min=0.30,
            step_time_s__mean=0.3115,
            step_time_s__p50=0.311,
            step_time_s__p95=0.34,
            step_time_s__max=0.9,
            since_last_step_s=0.05,
            compilations=17,
            compile_s=93.5,
            recent_compilations=9,
            executables=12,
            agent_cost_percent=0.031,
        ),
        *_readings(DeviceKey(SERVE, 0), 30, live_array_bytes=1536, live_arrays=0),
        *_readings(SERVE, 30, live_array_bytes=1536, live_arrays=0),
        *_readings(DeviceKey(DEAD, 0), 60, hbm_used_bytes=15 * GIB),
        *_readings(DEAD, 60, hbm_used_bytes=15 * GIB),
    ]
    agents = Outcome(
        AGENT,
        OK,
        "3 jobs with an agent",
        0.004,
        tuple(readings),
        devices=(
            _device(TRAIN, 0),
            _device(TRAIN, 1, error="device lost"),
            _device(SERVE, 0, "cpu"),
            _device(DEAD, 0),
        ),
        processes=(train, serve, dead),
        notes=("/dev/shm/tpusmi-7/1-1.seg is not a tpusmi segment",),
    )
    denied = Outcome(LIBTPU, DENIED, "port 8431 of pid 4321 cannot be seen, try sudo", 0.001)
    return merge([agents, denied], HOST, NOW, "9.9.9")


def nothing() -> Snapshot:
    """A host where no source found anything."""
    absent = Outcome(AGENT, "absent", "no job has called tpusmi.start() on this host", 0.001)
    return merge([absent], HOST, NOW, "9.9.9")
