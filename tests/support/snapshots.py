"""One fixed moment of a host with everything a view must cope with, for goldens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tpusmi.merge import snapshot_of
from tpusmi.merge.join import Join
from tpusmi.merge.staleness import judged
from tpusmi.model import (
    AGENT,
    DENIED,
    LIBTPU,
    LIBTPU_SDK,
    OK,
    PROCESS_FACTS,
    Chip,
    ChipKey,
    Core,
    Device,
    DeviceKey,
    HostFacts,
    Latency,
    Life,
    Link,
    LockFile,
    MemoryProfile,
    Notice,
    Number,
    Outcome,
    Percentiles,
    Process,
    ProcessKey,
    Reading,
    RowKey,
    Server,
    Sign,
    Site,
    Snapshot,
    Subject,
    Visibility,
)


def merge(
    outcomes: Sequence[Outcome],
    host: HostFacts,
    now_s: float,
    version: str,
    simulated: bool = False,
    judge: Callable[[Snapshot], Snapshot] = judged,
) -> Snapshot:
    """The snapshot of these answers of sources."""
    return snapshot_of(Join(outcomes, now_s, simulated), host, version, judge)


NOW = 5000.0
GIB = 1024**3
TRAIN, SERVE, DEAD = ProcessKey(4321, 11), ProcessKey(5000, 22), ProcessKey(999, 5)
MONITOR = ProcessKey(5100, 33)
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
            step_body_s__mean=0.0042,
            step_body_s__p50=0.004,
            step_body_s__p95=0.0061,
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


def machine() -> Snapshot:
    """A v3 host of four chips: a job with an agent on the first two, on the third one without,
    a fourth chip without a node.
    """
    return merge(_machine_outcomes(), HOST, NOW, "9.9.9", simulated=True)


def _machine_outcomes() -> list[Outcome]:
    chips = tuple(
        Chip(
            *(i, "v3", "TPU v3", (f"0000:00:0{4 + i}.0",)),
            *((f"/dev/accel{i}",) if i < 3 else (), 2, 0, "8.0 GT/s x16", 32 * GIB),
            () if i < 3 else ("has no device node",),
        )
        for i in range(4)
    )
    nodes = ("/dev/accel0", "/dev/accel1")
    train = Process(TRAIN, "ann", "python train.py", "live", "running", NOW - 0.4, 1.0, _FACTS)
    holders = (
        Process(
            *(TRAIN, "ann", "python train.py", "live", None, None, None, {}),
            holds=nodes,
            life=_life_of_train(),
        ),
        Process(
            *(SERVE, "bob", "VLLM::EngineCore", "live", None, None, None, {}),
            holds=("/dev/accel2",),
            environment={"TPU_PROCESS_ADDRESSES": "local"},
            life=_life_of_serve(),
        ),
        Process(
            *(MONITOR, "bob", "tpu-info --streaming", "live", None, None, None, {}),
            loaded_only=True,
            life=Life("S", 1, 70, 70, 60.0, 1),
        ),
    )
    left = "left by bob, not locked, and in the way: ann cannot open it"
    lock_files = (LockFile("/tmp/libtpu_lockfile", "blocking", "bob", (), left),)
    kinds = tuple(
        _device(TRAIN, i)._replace(kind="TPU v3", id=i, core_on_chip=i % 2) for i in range(4)
    )
    readings = [
        *(r for i in range(4) for r in _readings(DeviceKey(TRAIN, i), 0.4, hbm_used_bytes=9 * GIB)),
        *_readings(TRAIN, 0.4, steps=12, steps_per_s=0.5, mfu_percent=41.5, flops_per_s=2.04e14),
    ]
    return [
        Outcome(AGENT, OK, "1 job with an agent", 0.004, tuple(readings), (), kinds, (train,)),
        Outcome("sysfs", OK, "4 × TPU v3", 0.001, chips=chips),
        Outcome(
            *("holders", OK, "2 holders (3 processes of other users not inspected, try sudo)"),
            0.01,
            processes=holders,
            lock_files=lock_files,
            visibility=Visibility(
                nodes=(*nodes, "/dev/accel2"),
                not_inspected=3,
                reason="3 processes of other users not inspected, try sudo",
            ),
        ),
        _served(),
        _said_by_the_sdk(),
    ]


def _life_of_train() -> Life:
    """Started from a shell on a terminal."""
    return Life(
        *("S", 4300, 4321, 4000, 7260.0, 212),
        ancestors=((4300, "/usr/bin/python launch.py"), (4000, "-bash"), (900, "sshd: ann")),
        ports=(8431, 8476),
        terminal="pts/3",
        cpu_percent=187.5,
        rss_bytes=12 * GIB,
        cwd="/home/ann",
    )


def _life_of_serve() -> Life:
    """Left behind in a container by the process that started it."""
    return Life(
        *("S", 1, 4990, 4990, 90_000.0, 40),
        container="ab12" * 16,
        inner_pid=17,
        signs=(Sign("orphaned", "its launcher, process 4990, has ended"),),
        role="spawned worker",
        recent_cpu_percent=0.0,
        recent_s=1.0,
    )


def _rows(server: str, source: str, **columns: list[Number]) -> tuple[Reading, ...]:
    return tuple(
        Reading(name.replace("__", "."), RowKey(server, i), value, NOW - 0.2, source, 5.0)
        for name, column in columns.items()
        for i, value in enumerate(column)
    )


def _served() -> Outcome:
    address = "127.0.0.1:8431"
    readings = _rows(
        address,
        LIBTPU,
        hbm_used_bytes=[10 * GIB] * 4,
        hbm_limit_bytes=[17_044_078_592] * 4,
        duty_cycle_percent=[97.5, 40.0],
        idle_s=[0.0, 0.25],
        hbm_bandwidth_utilization_percent=[61.0, 60.0, 59.0, 0.01],
        hlo_queue_size=[3, 2, 0, 1],
        hlo_execution_time_us__p50=[812.5] * 4,
    )
    latencies = (
        Latency(
            *("buffer_transfer_latency_us", "8MB+"),
            Percentiles(1000, 110_000.5, 108_978.82, 164_849.81, 177_366.42, 212_419.07),
            *(NOW - 0.2, LIBTPU, TRAIN),
        ),
        Latency(
            *("tcp_delivery_rate_mbps", ""),
            Percentiles(0, None, None, None, None, None),
            *(NOW - 0.2, LIBTPU, TRAIN),
        ),
    )
    core = Core(
        *(address, 0, 0, "TENSOR_CORE", 0),
        *("HLO: fusion.1; HLO computation: main.5", "00ff", 2, None),
    )
    return Outcome(
        *(LIBTPU, OK, "1 server, 4 devices", 0.02, readings),
        servers=(Server(address, TRAIN, (0, 1, 2, 3)),),
        latencies=latencies,
        cores=(core,),
    )


def _said_by_the_sdk() -> Outcome:
    percent = [55.0, 54.0, 20.5, 0.0, 0.0, 0.0, 1.0, 1.0]
    mxu = _rows("sdk", LIBTPU_SDK, tensorcore_utilization_percent=percent)
    throttle = Reading("throttle_percent", ChipKey(1), 30.0, NOW - 1, LIBTPU_SDK, 5.0)
    links = (Link(0, "ici0.int", 0), Link(1, "ici2.int", 7))
    return Outcome(LIBTPU_SDK, OK, "libtpu 0.0.42.1", 0.3, (*mxu, throttle), links=links)


def many(count: int, **values: Number | None) -> Snapshot:
    """A v5e host of that many devices, all of one job: measured alike, but for `values`, where None
    is unknown; the second device was heard of half a minute ago.
    """
    measured = {
        "hbm_used_bytes": 12 * GIB,
        "hbm_limit_bytes": 16 * GIB,
        "hbm_peak_bytes": 14 * GIB,
        "tensorcore_utilization_percent": 55.0,
        "duty_cycle_percent": 97.0,
        "hbm_bandwidth_utilization_percent": 61.0,
        "idle_s": 0.0,
        **values,
    }
    known = {name: value for name, value in measured.items() if value is not None}
    nodes = tuple(f"/dev/vfio/{i}" for i in range(count))
    chips = tuple(
        Chip(i, "v5e", "TPU v5e", (f"0000:00:{i:02x}.0",), (node,), 1)
        for i, node in enumerate(nodes)
    )
    train = Process(TRAIN, "ann", "python train.py", "live", "running", NOW - 0.4, 1.0, _FACTS)
    readings = [
        *(
            r
            for i in range(count)
            for r in _readings(DeviceKey(TRAIN, i), 0.4 + 30 * (i == 1), **known)
        ),
        *_readings(TRAIN, 0.4, steps_per_s=3.21, step_time_s__p95=0.34),
    ]
    devices = tuple(_device(TRAIN, i)._replace(id=i) for i in range(count))
    agent = Outcome(AGENT, OK, "", 0.004, tuple(readings), devices=devices, processes=(train,))
    holder = train._replace(phase=None, sampled_at_s=None, interval_s=None, holds=nodes)
    holders = Outcome("holders", OK, processes=(holder,), visibility=Visibility(nodes=nodes))
    return merge([agent, Outcome("sysfs", OK, chips=chips), holders], HOST, NOW, "9.9.9")


def nothing() -> Snapshot:
    """A host where no source found anything."""
    absent = Outcome(AGENT, "absent", "no job has called tpusmi.start() on this host", 0.001)
    return merge([absent], HOST, NOW, "9.9.9")
