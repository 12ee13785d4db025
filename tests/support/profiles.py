"""Profiles for the views, made by hand: what real traces show, and what they may do to a page."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from tpusmi.trace.figures import (
    FILE,
    GRPC,
    IN_PROCESS,
    TRACE,
    XPROF,
    Capture,
    CaptureCost,
    CoreFigures,
    MemoryPeak,
    Operation,
    ProgramRuns,
    TimeShares,
    TracedSteps,
    TraceProfile,
)

GIB = 1 << 30
PAGES = Path(__file__).parents[1] / "data" / "xprof_pages"
AT_S = 1_772_000_000.0
"""2026-02-25 06:13:20 UTC."""


def step_times(*times_s: float, cut_off: int = 0) -> TracedSteps:
    """Whole steps of these times."""
    sorted_s = sorted(times_s)
    return TracedSteps(
        whole=len(times_s),
        cut_off=cut_off,
        min_s=sorted_s[0],
        mean_s=sum(times_s) / len(times_s),
        p50_s=sorted_s[(len(times_s) - 1) // 2],
        p95_s=sorted_s[min(len(times_s) - 1, round(0.95 * len(times_s)))],
        max_s=sorted_s[-1],
    )


def operation(name: str, self_percent: float, captured_s: float, **more: Any) -> Operation:
    """An operation about which nothing else is known than `more` says."""
    fields: dict[str, Any] = dict.fromkeys(Operation._fields)
    fields |= {"runs": 100, "self_s": captured_s * self_percent / 100}
    return Operation(**fields | more | {"name": name, "self_percent": self_percent})


def core(index: int, busy_s: float, captured_s: float = 1.0, **more: Any) -> CoreFigures:
    """A core about which nothing else is known than `more` says."""
    fields: dict[str, Any] = dict.fromkeys(CoreFigures._fields)
    fields |= {
        "plane": f"/device:TPU:{index}",
        "local_index": index,
        "id": index,
        "captured_s": captured_s,
        "busy_s": busy_s,
        "idle_s": captured_s - busy_s,
        "duty_cycle_percent": 100 * busy_s / captured_s,
    }
    return CoreFigures(**fields | more)


def unknown() -> TraceProfile:
    """A trace without a single device."""
    return TraceProfile(
        capture=Capture(how=FILE, target="empty.xplane.pb"),
        backend=None,
        device_type=None,
        captured_s=None,
        duty_cycle_percent=None,
        idle_percent=None,
        mxu_percent=None,
        hbm_bandwidth_percent=None,
        flops_per_s=None,
        peak_flops_per_s=None,
        peak_hbm_bytes_per_s=None,
        steps=None,
        input_bound_percent=None,
        shares=TimeShares(),
        cores=(),
        operations=(),
        programs=(),
        memory=(),
        sources={},
        notes=("The trace has no device that ran an operation.",),
    )


def _rows(page: Path, columns: slice = slice(None)) -> list[dict[str, Any]]:
    table = json.loads(gzip.decompress(page.read_bytes()))
    table = table if isinstance(table, dict) else table[0]
    ids = [column["id"] for column in table["cols"]]
    values = ([cell.get("v") for cell in row["c"]] for row in table["rows"][columns])
    return [dict(zip(ids, row, strict=True)) for row in values]


def v5p_training() -> TraceProfile:
    """A real training run on a v5p host, by xprof's pages of it."""
    captured_s, peak_flops, peak_bytes = 0.488449, 233.4e12, 1287.45 * GIB
    operations = tuple(
        Operation(
            name=row["hlo_op_name"],
            category=row["category"],
            program="jit_train_step",
            framework_name=row["tf_op_name"].rstrip(":") or None,
            source=row["source_info"] or None,
            runs=int(row["occurrences"]),
            self_s=row["total_self_time"] / 1e6,
            self_percent=row["total_self_time_percent"],
            flops_per_s=(flops := row["normalized_flop_rate"] * 1e9) or None,
            mxu_percent=100 * flops / peak_flops if flops else None,
            hbm_bytes_per_s=row["hbm_bw"] * GIB,
            hbm_bandwidth_percent=100 * row["hbm_bw"] * GIB / peak_bytes,
            bound_by=row["bound_by"],
        )
        for row in _rows(PAGES / "v5p_training" / "hlo_stats.json.gz", slice(60))
    )
    busy_s = (0.48721, 0.48719, 0.48716, 0.48722, 0.48720, 0.48718, 0.48721, 0.48719)
    measured = {"mxu_percent": 15.7, "hbm_bandwidth_percent": 36.7, "flops_per_s": 139.32e12}
    peaks = {"peak_flops_per_s": peak_flops, "peak_hbm_bytes_per_s": peak_bytes}
    steps = step_times(0.120882, 0.120116, 0.120131, 0.120116, cut_off=1)
    return unknown()._replace(
        capture=Capture(how=FILE, target="v5p_training", host="t1v-n-5p", analyzed_s=0.21),
        backend="tpu",
        device_type="TPU v5",
        captured_s=captured_s,
        duty_cycle_percent=99.75,
        idle_percent=0.25,
        **measured,
        **peaks,
        steps=steps,
        input_bound_percent=0.0,
        shares=TimeShares(
            compute_percent=74.6,
            collectives_percent=25.1,
            infeed_percent=0.0,
            outfeed_percent=0.0,
            host_percent=0.05,
            idle_percent=0.25,
        ),
        cores=tuple(
            core(
                n,
                busy,
                captured_s,
                steps=steps,
                collectives_s=0.1226 - 0.0001 * n,
                **measured,
                **peaks,
            )
            for n, busy in enumerate(busy_s)
        ),
        operations=operations,
        programs=(
            ProgramRuns(
                name="jit_train_step",
                runs=5,
                mean_s=0.12010,
                period_s=0.120131,
                busy_percent=99.7,
            ),
        ),
        memory=tuple(MemoryPeak(n, 5_307_538_688, 102_803_439_616) for n in range(4)),
        sources=dict.fromkeys((*measured, "steps", "input_bound_percent", "operations"), XPROF)
        | dict.fromkeys(("duty_cycle_percent", "idle_percent", "shares", "cores"), TRACE),
        notes=("xprof's overview page gives no duty cycle: it is tpusmi's own reading.",),
    )


def healthy() -> TraceProfile:
    """A training run with little to find, captured by its agent."""
    captured_s = 1.0471
    table = (
        ("conv_fusion.41", 21.3, "convolution fusion", "Block_0/conv1", 71.2, 28.4, "Compute"),
        ("conv_fusion.57", 18.8, "convolution fusion", "Block_1/conv2", 68.0, 31.0, "Compute"),
        ("conv_fusion.12", 14.9, "convolution fusion", "Block_2/conv1", 66.4, 33.7, "Compute"),
        ("fusion.220", 9.1, "loop fusion", "BatchNorm_3/mul", 0.4, 81.0, "HBM"),
        ("all-reduce.3", 5.7, "all-reduce", "psum", None, 11.2, "HBM"),
        ("fusion.198", 4.4, "loop fusion", "BatchNorm_1/sub", 0.3, 79.5, "HBM"),
        ("select-and-scatter.9", 2.6, "select-and-scatter", "max_pool", 0.1, 44.0, "VMEM Read"),
    )  # fmt: skip
    operations = tuple(
        operation(
            name,
            percent,
            4 * captured_s,
            category=category,
            program="jit_train_step",
            framework_name=f"jit(train_step)/jvp(ResNet)/{path}",
            source=f"resnet.py:{40 + n}",
            flops_per_s=None if mxu is None else 918e10 * mxu,
            mxu_percent=mxu,
            hbm_bytes_per_s=1638e7 * bandwidth,
            hbm_bandwidth_percent=bandwidth,
            bound_by=bound_by,
        )
        for n, (name, percent, category, path, mxu, bandwidth, bound_by) in enumerate(table)
    )
    steps = step_times(*(0.1249, 0.1251, 0.1247, 0.1252, 0.1250, 0.1258, 0.1249), cut_off=2)
    figures = {
        "mxu_percent": 48.8,
        "hbm_bandwidth_percent": 41.6,
        "flops_per_s": 448e12,
        "peak_flops_per_s": 918e12,
        "peak_hbm_bytes_per_s": 1638e9,
    }
    busy_s = (1.0208, 1.0203, 1.0211, 1.0196)
    return unknown()._replace(
        capture=Capture(
            how=IN_PROCESS,
            target="4711",
            host="tpu-a-0",
            pid=4711,
            command="python train.py --config resnet50",
            captured_at_s=AT_S,
            asked_s=1.0,
            took_s=1.34,
            analyzed_s=0.42,
            trace_bytes=14_302_113,
            cost=CaptureCost(
                steps_per_s_before=8.31,
                steps_per_s_during=7.94,
                steps_per_s_after=8.3,
                paused_s=0.05,
            ),
        ),
        backend="tpu",
        device_type="TPU v6 Lite",
        captured_s=captured_s,
        duty_cycle_percent=97.5,
        idle_percent=2.5,
        **figures,
        steps=steps,
        input_bound_percent=1.1,
        shares=TimeShares(
            compute_percent=90.4,
            collectives_percent=5.9,
            infeed_percent=1.0,
            outfeed_percent=0.0,
            host_percent=0.2,
            compile_percent=0.0,
            idle_percent=2.5,
        ),
        cores=tuple(
            core(n, busy, captured_s, steps=steps, **figures) for n, busy in enumerate(busy_s)
        ),
        operations=operations,
        programs=(
            ProgramRuns(
                name="jit_train_step",
                runs=9,
                mean_s=0.1219,
                period_s=0.125,
                busy_percent=97.3,
            ),
            ProgramRuns(name="jit__mean", runs=1, mean_s=0.0002, period_s=None, busy_percent=0.02),
        ),
        memory=tuple(MemoryPeak(n, 18 * GIB + n * 1_000_000, 33_550_237_696) for n in range(4)),
        sources=dict.fromkeys(("mxu_percent", "hbm_bandwidth_percent", "operations"), XPROF)
        | dict.fromkeys(("duty_cycle_percent", "idle_percent", "steps", "shares"), TRACE),
        notes=(),
    )


def input_bound() -> TraceProfile:
    """The same job, starved by its input pipeline, compiling, and disturbed by the capture."""
    well = healthy()
    steps = step_times(0.21, 0.24, 0.55, 0.22, 0.23, 0.61, 0.25, cut_off=1)
    return well._replace(
        capture=well.capture._replace(
            cost=CaptureCost(
                steps_per_s_before=3.2,
                steps_per_s_during=1.9,
                steps_per_s_after=3.1,
                paused_s=2.4,
            ),
        ),
        duty_cycle_percent=43.0,
        idle_percent=57.0,
        mxu_percent=19.2,
        hbm_bandwidth_percent=16.1,
        flops_per_s=176e12,
        steps=steps,
        input_bound_percent=54.2,
        shares=TimeShares(
            compute_percent=38.4,
            collectives_percent=3.0,
            infeed_percent=1.5,
            outfeed_percent=0.0,
            host_percent=0.1,
            compile_percent=12.0,
            idle_percent=57.0,
        ),
        cores=tuple(
            c._replace(busy_s=0.45 - 0.001 * n, idle_s=0.5971 + 0.001 * n, duty_cycle_percent=43.0)
            for n, c in enumerate(well.cores)
        ),
        operations=tuple(
            o._replace(self_s=o.self_s * 0.44, self_percent=o.self_percent * 0.44)
            for o in well.operations
        ),
    )


def v6e_inference() -> TraceProfile:
    """The numbers of the real v6e trace: four devices that wait for the host's memory."""
    captured_s = 90.932425
    table = (
        ("copy-done.4", "copy-done", 21.382146, 400, None, None, 25.7158),
        ("copy-done.2", "copy-done", 21.346284, 400, None, None, 25.7590),
        ("copy-done", "copy-done", 20.804196, 400, None, None, 26.4302),
        ("copy-done.5", "copy-done", 20.055053, 400, None, None, 27.4175),
        ("broadcast_add_fusion.1", "loop fusion", 0.896849, 400, 164.578e9, 29, 1226.20),
        ("broadcast_add_fusion", "loop fusion", 0.877185, 400, 168.267e9, 29, 1253.69),
        ("broadcast_add_fusion.2", "loop fusion", 0.870758, 400, 169.509e9, 29, 1262.94),
        ("all-reduce", "all-reduce", 0.401492, 12, 11.029e9, 38, 82.1723),
        ("broadcast.2", "broadcast", 0.001222, 1, None, 37, 1125.17),
    )
    operations = tuple(
        operation(
            name,
            percent,
            4 * captured_s,
            category=category,
            program="jit__psum" if name == "all-reduce" else "jit_f",
            framework_name="jit(f)/jit(main)/add" if "add" in name else None,
            source=f"host_offload_stress_test.py:{line}" if line else None,
            runs=runs,
            flops_per_s=flops,
            mxu_percent=flops and flops / 918e10,
            hbm_bytes_per_s=bandwidth * GIB,
            hbm_bandwidth_percent=100 * bandwidth / 1525.5,
            bound_by="HBM",
        )
        for name, category, percent, runs, flops, line, bandwidth in table
    )
    idle_s = (12.2684, 12.2711, 12.2702, 12.2679)
    return unknown()._replace(
        capture=Capture(
            how=FILE,
            target="tpu_inference.xplane.pb",
            host="t1v-n-6e",
            captured_at_s=AT_S,
            analyzed_s=0.31,
            trace_bytes=46_100_480,
        ),
        backend="tpu",
        device_type="TPU v6 Lite",
        captured_s=captured_s,
        duty_cycle_percent=86.5,
        idle_percent=13.5,
        mxu_percent=0.0004872,
        hbm_bandwidth_percent=4.3479,
        flops_per_s=4.472e9,
        peak_flops_per_s=918e12,
        peak_hbm_bytes_per_s=1525.5 * GIB,
        shares=TimeShares(
            compute_percent=2.51,
            collectives_percent=0.4,
            infeed_percent=0.0,
            outfeed_percent=0.0,
            host_percent=83.59,
            idle_percent=13.5,
        ),
        cores=tuple(
            core(n, captured_s - idle, captured_s, id=n + 4, mxu_percent=0.00049,
                 hbm_bandwidth_percent=4.35, peak_flops_per_s=918e12)
            for n, idle in enumerate(idle_s)
        ),
        operations=operations,
        programs=(
            ProgramRuns(name="jit_f", runs=100, mean_s=0.7858, period_s=0.9092, busy_percent=86.1),
            ProgramRuns(name="jit__psum", runs=3, mean_s=0.1217, period_s=30.1, busy_percent=0.4),
        ),
        memory=tuple(MemoryPeak(n, 21_492_671_104, 33_550_237_696) for n in range(4)),
        sources=dict.fromkeys(("mxu_percent", "hbm_bandwidth_percent", "operations"), XPROF)
        | dict.fromkeys(("duty_cycle_percent", "idle_percent", "shares", "cores"), TRACE),
        notes=("The trace has no step markers: there are no step times.",),
    )  # fmt: skip


def cpu_laptop() -> TraceProfile:
    """A JAX program on a CPU: operations and steps, and no figure of a TPU."""
    table = (("dot.4", 61.0), ("tanh.2", 11.5), ("transpose.1", 4.2), ("reduce.7", 0.9))
    return unknown()._replace(
        capture=Capture(
            how=GRPC,
            target="localhost:9012",
            captured_at_s=AT_S,
            asked_s=0.5,
            took_s=0.71,
            analyzed_s=0.09,
            trace_bytes=812_004,
        ),
        backend="cpu",
        device_type="CPU",
        captured_s=0.497,
        duty_cycle_percent=77.9,
        idle_percent=22.1,
        steps=step_times(*(0.0031, 0.0030, 0.0033, 0.0029, 0.0046) * 8),
        shares=TimeShares(compute_percent=77.9, idle_percent=22.1),
        cores=(core(0, 0.387, 0.497, plane="/host:CPU"),),
        operations=tuple(
            operation(name, percent, 0.497, program="jit_step", runs=160) for name, percent in table
        ),
        programs=(
            ProgramRuns(
                name="jit_step", runs=160, mean_s=0.0024, period_s=0.0031, busy_percent=77.9
            ),
        ),
        sources=dict.fromkeys(("steps", "shares", "operations"), TRACE),
        notes=(
            "A CPU has no peak here: there is no MXU utilization and no memory bandwidth.",
            "xprof is not installed: pip install 'tpusmi[profile]' adds its figures.",
        ),
    )


def many_cores(count: int = 256) -> TraceProfile:
    """A host with more cores than a screen has lines; one of them is slower than the others."""
    well = healthy()
    slow = step_times(0.151, 0.152, 0.153, 0.152, 0.151, cut_off=1)
    cores = [
        core(n, 0.93 + 0.0001 * (n * 37 % 100), 1.0471, steps=well.steps, mxu_percent=44.0 + n % 3)
        for n in range(count)
    ]
    cores[count // 2] = cores[count // 2]._replace(
        busy_s=1.04, idle_s=0.0071, duty_cycle_percent=99.3, mxu_percent=37.5, steps=slow
    )
    return well._replace(
        cores=tuple(cores),
        steps=slow,
        memory=tuple(MemoryPeak(n, 30 * GIB + n, 33_550_237_696) for n in range(count)),
    )


HOSTILE = "a\x1b[31m\r\n\x00\u202eevil\t" + "漢字" * 40 + "e\u0301" + "x" * 3000


def hostile() -> TraceProfile:
    """Every text of the trace is written by somebody who wants to break the terminal."""
    well = healthy()
    evil = {"name": HOSTILE, "category": HOSTILE, "framework_name": HOSTILE, "source": HOSTILE}
    return well._replace(
        capture=well.capture._replace(target=HOSTILE, host=HOSTILE, command=HOSTILE),
        backend="tpu",
        device_type=HOSTILE,
        cores=tuple(c._replace(plane=HOSTILE, local_index=None, id=None) for c in well.cores),
        operations=tuple(
            o._replace(**evil, program=HOSTILE, bound_by=HOSTILE) for o in well.operations
        ),
        programs=tuple(p._replace(name=HOSTILE) for p in well.programs),
        sources={HOSTILE: HOSTILE, "mxu_percent": HOSTILE},
        notes=(HOSTILE, ""),
    )


ALL = {
    "healthy": healthy,
    "input_bound": input_bound,
    "v5p_training": v5p_training,
    "v6e_inference": v6e_inference,
    "cpu_laptop": cpu_laptop,
    "many_cores": many_cores,
    "hostile": hostile,
    "unknown": unknown,
}
"""By name, each a function that makes one."""
