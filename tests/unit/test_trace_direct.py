"""Traces read directly: the same numbers as xprof's for the same files."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.step_traces import (
    CUT_OFF_LOOPS,
    FUSION_FLOPS,
    FUSION_US,
    LOOPS,
    PEAK_TERAFLOPS,
    step_trace,
)
from support.xprof_figures import xprof_times

from tpusmi.simulate.trace_bytes import TraceWriter
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import FILE, TraceProfile
from tpusmi.trace.limits import TraceLimits
from tpusmi.trace.plain_objects import from_object, to_object

DATA = Path(__file__).parents[1] / "data" / "xplane"
V6E = DATA / "v6e-4_inference" / "tpu_inference.xplane.pb"
GPU = DATA / "gpu_mi300x" / "gemm.xplane.pb"
CPU = DATA / "cpu_2_devices" / "cpu.xplane.pb"


class Both(NamedTuple):
    """One trace, by us and by xprof."""

    ours: TraceProfile
    xprof: dict[str, Any]


def profile_of(path: Path) -> TraceProfile:
    """The profile of a file."""
    return read_trace(str(path), TraceLimits(until_s=time.monotonic() + 30))


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Both]:
    """Each trace in a directory of its own, because xprof writes files beside it."""
    pytest.importorskip("xprof")
    paths = {}
    for name, source in {"v6e": V6E, "gpu": GPU, "cpu": CPU}.items():
        paths[name] = tmp_path_factory.mktemp(name) / "copy.xplane.pb"
        shutil.copyfile(source, paths[name])
    paths["steps"] = tmp_path_factory.mktemp("steps") / "steps.xplane.pb"
    paths["steps"].write_bytes(step_trace())
    paths["chips"] = tmp_path_factory.mktemp("chips") / "steps.xplane.pb"
    paths["chips"].write_bytes(step_trace(cores_per_chip=2))
    figures = xprof_times([str(path) for path in paths.values()])
    return {
        name: Both(profile_of(path), of_xprof)
        for (name, path), of_xprof in zip(paths.items(), figures, strict=True)
    }


def captured_s(profile: TraceProfile) -> float:
    """Of all cores."""
    return sum(core.captured_s for core in profile.cores)


@pytest.mark.parametrize("name", ["v6e", "steps"])
def test_times_of_a_tpu_trace_are_those_of_xprof(traces: dict[str, Both], name: str) -> None:
    """All of them to the digit: captured and idle time, the duty cycle, each operation's self time,
    FLOPs and bytes.

    xprof's FLOP utilization is of its "normalized time", which leaves idle time out and counts
    operations twice that are in a loop, so it is higher than ours: the FLOPs are the same. What
    starts a copy has no rate of ours: it ends long before the bytes have moved, and xprof cuts off
    the 100000 % that come out.
    """
    ours, xprof = traces[name]
    assert captured_s(ours) == pytest.approx(xprof["all"]["rawTime"] / 1e12, rel=1e-12)
    idle_s = sum(core.idle_s for core in ours.cores)
    assert idle_s == pytest.approx(xprof["idle_s"], rel=1e-9)
    assert ours.idle_percent == pytest.approx(100 * idle_s / captured_s(ours), rel=1e-9)
    assert f"{ours.duty_cycle_percent:.1f}%" == xprof["duty"]
    flops = (ours.flops_per_s or 0) * captured_s(ours)
    assert flops == pytest.approx(xprof["all"]["rawFlops"], rel=1e-9)
    assert ours.hbm_bandwidth_percent == pytest.approx(
        100 * xprof["all"]["bandwidthUtils"][0], rel=1e-9
    )
    assert {o.name for o in ours.operations} - {"while.1"} == {*xprof["operations"]}
    for operation in ours.operations:
        if operation.name != "while.1":  # xprof's page leaves out what only runs others
            metrics = xprof["operations"][operation.name]
            assert operation.self_s == pytest.approx(metrics["rawTime"] / 1e12, rel=1e-9)
            assert operation.runs == metrics["occurrences"]
            if operation.hbm_bandwidth_percent is not None:
                assert operation.hbm_bandwidth_percent == pytest.approx(
                    100 * metrics["bandwidthUtils"][0], rel=1e-9
                )


def test_the_duty_cycle_is_that_of_cores_where_a_chip_has_two(traces: dict[str, Both]) -> None:
    """xprof calls a chip on duty while one of its cores is, here 87.3 %, and we do not: each core
    is a device of JAX. Busy and idle time of each core are the same.
    """
    ours, xprof = traces["chips"]
    assert ours.duty_cycle_percent == traces["steps"].ours.duty_cycle_percent
    assert float(xprof["duty"].rstrip("%")) == pytest.approx(87.3)
    assert sum(core.idle_s for core in ours.cores) == pytest.approx(xprof["idle_s"], rel=1e-9)


def test_the_v6e_trace_has_the_figures_that_its_readme_states(traces: dict[str, Both]) -> None:
    ours, xprof = traces["v6e"]
    assert (ours.backend, ours.device_type) == ("tpu", "TPU v6 Lite")
    assert ours.duty_cycle_percent == pytest.approx(86.5, abs=0.05)
    assert ours.idle_percent == pytest.approx(13.4, abs=0.05)
    assert sum(core.idle_s for core in ours.cores) == pytest.approx(48.6118, abs=1e-4)
    assert [(core.local_index, core.id) for core in ours.cores] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert {core.peak_flops_per_s for core in ours.cores} == {918e12}
    assert max(peak.peak_bytes for peak in ours.memory) == 21_492_671_104
    assert {peak.capacity_bytes for peak in ours.memory} == {33_550_237_696}
    of_busy = captured_s(ours) / sum(core.busy_s for core in ours.cores)
    assert (ours.mxu_percent or 0) / 100 * of_busy == pytest.approx(5.6233e-6, rel=1e-4)
    assert xprof["all"]["flops"] == pytest.approx(5.6233e-6, rel=1e-4)


def test_programs_of_the_v6e_trace(traces: dict[str, Both]) -> None:
    first, second, *_ = traces["v6e"].ours.programs
    assert (first.name, first.runs) == ("jit_f", 100)
    assert first.period_s == pytest.approx(first.mean_s, rel=1e-3)
    assert first.busy_percent == pytest.approx(86.23, abs=0.01)
    assert (second.name, second.runs) == ("jit__psum", 3)


def test_where_the_time_of_the_v6e_trace_went(traces: dict[str, Both]) -> None:
    """The job moves arrays to the memory of its host and back: nearly all time waits for that."""
    shares = traces["v6e"].ours.shares
    assert shares.host_percent == pytest.approx(83.59, abs=0.01)
    assert shares.collectives_percent == pytest.approx(0.40, abs=0.01)
    assert shares.compute_percent == pytest.approx(2.65, abs=0.01)
    compiled_s, recorded_s = 1.529, 98.645  # the profiler began 6 s before the first operation
    assert shares.compile_percent == pytest.approx(100 * compiled_s / recorded_s, abs=0.01)
    whole = {**shares._asdict(), "compile_percent": 0.0}
    assert sum(whole.values()) == pytest.approx(100)


def test_bytes_of_unknown_memories_are_not_0_bytes_of_hbm(traces: dict[str, Both]) -> None:
    """The copies to the host's memory move 5 GiB each, and the trace does not say where: xprof
    counts all of that as HBM. Their sum is the same in both: there it does not count them.
    """
    operations = {o.name: o for o in traces["v6e"].ours.operations}
    assert operations["copy-done.5"].hbm_bytes_per_s is None
    assert operations["copy-done.5"].hbm_bandwidth_percent is None
    assert operations["copy-done.4"].hbm_bandwidth_percent == pytest.approx(1.686, abs=0.01)


def test_an_operation_says_where_it_comes_from(traces: dict[str, Both]) -> None:
    operation = next(o for o in traces["v6e"].ours.operations if o.name == "broadcast_add_fusion.1")
    assert operation.category == "loop fusion"
    assert operation.program == "jit_f"
    assert operation.framework_name == "jit(f)/jit(main)/add"
    assert (operation.source or "").endswith("host_offload_stress_test.py:29")
    assert operation.flops_per_s == pytest.approx(164.578e9, rel=1e-5)
    assert operation.mxu_percent == pytest.approx(0.0179278, rel=1e-4)


def test_a_gpu_is_busy_while_any_stream_is(traces: dict[str, Both]) -> None:
    """xprof counts only kernels of compiled programs, and so says 63.9 % idle instead of 63.2:
    copies of the runtime take the rest, and a GPU that copies is not idle.
    """
    ours, xprof = traces["gpu"]
    assert ours.backend == "gpu"
    assert captured_s(ours) == pytest.approx(xprof["all"]["rawTime"] / 1e12, rel=1e-9)
    idle = 100 * xprof["idle_s"] / captured_s(ours)
    assert ours.idle_percent == pytest.approx(idle, abs=1.0)
    assert len(ours.cores) == 1
    assert "7 devices ran no operation, and are left out: 1-7." in ours.notes
    top = ours.operations[0]
    assert (top.name, top.program, top.runs) == ("custom-call.1", "jit_dot", 3)
    assert top.self_s == pytest.approx(0.001833003, rel=1e-9)
    assert top.framework_name == "jit(dot)/dot_general"
    assert ours.memory[0].peak_bytes == 482_345_216


def test_a_gpu_has_the_operations_of_xprof(traces: dict[str, Both]) -> None:
    ours, xprof = traces["gpu"]
    own: dict[str, float] = {}
    for operation in ours.operations:
        if operation.program is not None:
            own[operation.name] = max(own.get(operation.name, 0.0), operation.self_s)
    assert {*own} == {*xprof["operations"]}
    name = "gemm_fusion_dot_general.1"
    assert own[name] == pytest.approx(xprof["operations"][name]["rawTime"] / 1e12, rel=1e-9)


def test_devices_of_the_cpu_backend_are_told_apart(traces: dict[str, Both]) -> None:
    """xprof shows nothing of them but the steps."""
    ours, xprof = traces["cpu"]
    assert ours.backend == "cpu"
    assert [core.local_index for core in ours.cores] == [0, 1]
    for core in ours.cores:
        assert 0 < core.busy_s < core.captured_s
    assert {"all-reduce", "dot.1"} <= {operation.name for operation in ours.operations}
    assert {operation.program for operation in ours.operations} == {"jit_step"}
    assert [(p.name, p.runs) for p in ours.programs] == [("jit_step", 6)]
    assert xprof["operations"] == {}


def test_steps_of_a_cpu_run_from_mark_to_mark(traces: dict[str, Both]) -> None:
    """xprof's steps end where the annotation ends, ours where the next begins: what lies between,
    here a few microseconds, is part of each step of the loop. xprof also leaves out the first.
    """
    ours, xprof = traces["cpu"]
    rows = [row[-1] / 1e3 for row in xprof["steps"]]
    assert ours.steps is not None
    assert (ours.steps.whole, ours.steps.cut_off) == (5, 1)
    assert len(rows) == 4
    assert ours.steps.min_s == pytest.approx(min(rows), rel=0.1)
    assert min(rows) < ours.steps.p50_s < 1.1 * max(rows)


def test_steps_are_those_of_xprof_without_the_one_cut_off(traces: dict[str, Both]) -> None:
    """xprof takes the cut-off step into its mean, and averages the wait for input over the steps,
    as the shares of two cores; ours is the wait of all cores over their time.
    """
    ours, xprof = traces["steps"]
    rows_s = [sum(row[1:7]) / 1e3 for row in xprof["steps"]]
    assert ours.steps is not None
    assert (ours.steps.whole, ours.steps.cut_off) == (4, 1)
    assert ours.steps.p50_s == pytest.approx(0.00121, rel=1e-6)
    assert ours.steps.max_s == pytest.approx(max(rows_s), rel=0.03)
    assert [core.steps.max_s for core in ours.cores if core.steps] == pytest.approx(
        [0.0012, 0.00121]
    )
    waits = [row[-3] for row in xprof["steps"][:-1]]
    assert waits == pytest.approx([waits[0]] * 4)
    assert ours.input_bound_percent == pytest.approx(waits[0], abs=0.1)
    assert ours.steps.input_least_percent == pytest.approx(waits[0])
    assert ours.steps.input_most_percent == pytest.approx(waits[0])


def test_a_loop_takes_neither_time_nor_flops_of_what_it_runs(traces: dict[str, Both]) -> None:
    ours = traces["steps"].ours
    times = {operation.name: operation for operation in ours.operations}
    runs = 2 * (4 * LOOPS + CUT_OFF_LOOPS)
    assert times["fusion.1"].runs == runs
    assert times["fusion.1"].self_s == pytest.approx(runs * FUSION_US / 1e6)
    assert times["while.1"].self_s == pytest.approx((10 * runs - runs / 2) / 1e6)
    assert times["while.1"].flops_per_s is None
    rate = FUSION_FLOPS / (FUSION_US / 1e6)
    assert times["fusion.1"].mxu_percent == pytest.approx(100 * rate / (PEAK_TERAFLOPS * 1e12))


def test_custom_kernels_are_named_in_a_note(traces: dict[str, Both]) -> None:
    assert any("Custom kernels take 4% of the busy time" in n for n in traces["steps"].ours.notes)


@pytest.mark.parametrize("name", ["v6e", "gpu", "cpu", "steps"])
def test_a_profile_survives_json(traces: dict[str, Both], name: str) -> None:
    ours = traces[name].ours
    assert from_object(json.loads(json.dumps(to_object(ours), allow_nan=False))) == ours
    assert (ours.capture.how, ours.capture.target[-3:]) == (FILE, ".pb")
    assert ours.capture.trace_bytes
    assert set(ours.sources.values()) == {"trace"}
    unknown = [
        n for n, value in ours._asdict().items() if value in (None, ()) and n in ours.sources
    ]
    assert unknown == []


def test_figures_that_a_trace_does_not_have_are_unknown(traces: dict[str, Both]) -> None:
    """None of them is 0: a CPU has no peaks, a v6e trace without `Steps` has no step times."""
    cpu, v6e = traces["cpu"].ours, traces["v6e"].ours
    assert (cpu.mxu_percent, cpu.flops_per_s, cpu.peak_flops_per_s) == (None, None, None)
    assert (v6e.steps, v6e.input_bound_percent) == (None, None)
    assert "The trace has no step markers" in " ".join(v6e.notes)
    assert v6e.operations[0].bound_by is None


def test_operations_of_cpus_without_a_number_are_one_device(tmp_path: Path) -> None:
    trace = TraceWriter()
    thread = trace.plane("/host:CPU").line("tf_XLAPjRtCpuClient/1")
    for start in (0, 2_000):
        stats = {"hlo_op": "dot.3", "hlo_module": "jit_f", "program_id": 5}
        thread.event("dot.3", start * 1000, 1_000_000, stats)
    path = tmp_path / "old.xplane.pb"
    path.write_bytes(trace.message)
    profile = read_trace(str(path), TraceLimits(until_s=time.monotonic() + 10))
    (device,) = profile.cores
    assert (device.plane, device.local_index) == ("All CPU devices", None)
    assert profile.operations[0].runs == 2
    assert any("does not tell CPU devices apart" in note for note in profile.notes)
