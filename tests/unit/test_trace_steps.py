"""Which steps of a trace are whole, and what the lines of its host say about steps and memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.step_traces import step_trace
from support.traces import read_bytes

from tpusmi.simulate.trace_bytes import Reference, TracedPlane, TraceWriter, Unsigned
from tpusmi.trace import host_plane
from tpusmi.trace.core_trace import DeviceStep
from tpusmi.trace.step_times import overlaps, step_times, whole_steps
from tpusmi.trace.trace_notes import STEPS_AHEAD

MS = 1_000_000_000
"""In picoseconds."""
V5P_MS = (120.882, 120.116, 120.131, 120.116, 3.052)
"""Steps of a real v5p, the last one cut off: `tests/data/README.md`."""


def rows(times_ms: tuple[float, ...], operations: tuple[int | None, ...]) -> list[DeviceStep]:
    """Steps one after the other."""
    steps, at = [], 0
    for number, (took_ms, count) in enumerate(zip(times_ms, operations, strict=True)):
        end = at + round(took_ms * MS)
        steps.append(DeviceStep(str(number), at, end, count))
        at = end
    return steps


@pytest.mark.parametrize(
    ("times_ms", "operations", "whole"),
    [
        (V5P_MS, (500, 500, 500, 500, 12), "0123"),
        (V5P_MS, (None,) * 5, "0123"),
        ((60.0, 120.0, 120.0, 120.0), (210, 500, 500, 500), "123"),
        ((120.0, 120.0), (500, 500), "01"),
        ((120.0, 20.0), (500, 80), "0"),
        ((120.0,), (500,), ""),
        ((), (), ""),
        # An evaluation between the steps is longer, and none of the steps is cut off.
        ((120.0, 900.0, 120.0, 120.0), (500, 4000, 500, 500), "0123"),
        # A slow first step is not cut off: it has all of its operations.
        ((400.0, 120.0, 120.0), (500, 500, 500), "012"),
    ],
)
def test_only_the_outer_steps_can_be_cut_off(
    times_ms: tuple[float, ...], operations: tuple[int | None, ...], whole: str
) -> None:
    steps = rows(times_ms, operations)
    assert "".join(step.name for step in whole_steps(steps)) == whole


def test_the_summary_of_step_times() -> None:
    steps = step_times([t / 1e3 for t in V5P_MS[:4]], 1)
    assert steps is not None
    assert (steps.whole, steps.cut_off) == (4, 1)
    assert (steps.min_s, steps.max_s) == (0.120116, 0.120882)
    assert steps.p50_s == pytest.approx(0.1201235)
    assert steps.p95_s == pytest.approx(0.12076935)
    assert step_times([], 3) is None


def test_one_step_alone_is_not_whole(tmp_path: Path) -> None:
    profile = read_bytes(tmp_path, step_trace(steps=1, is_cut_off=True))
    assert (profile.steps, profile.cores[0].steps) == (None, None)
    assert "There is no whole step inside: capture longer." in profile.notes


def test_a_step_is_as_long_as_on_its_slowest_core(tmp_path: Path) -> None:
    profile = read_bytes(tmp_path, step_trace(cores=3, steps=6))
    assert profile.steps is not None
    assert (profile.steps.whole, profile.steps.cut_off) == (5, 1)
    slowest = profile.cores[2].steps
    assert slowest is not None
    assert profile.steps.p50_s == slowest.p50_s


def test_without_an_infeed_nothing_is_known_about_input(tmp_path: Path) -> None:
    profile = read_bytes(tmp_path, step_trace(infeed_us=0))
    assert profile.steps is not None
    assert profile.input_bound_percent is None
    assert profile.steps.input_least_percent is None
    assert profile.shares.infeed_percent == 0


def test_infeed_and_outfeed_are_off_duty_and_not_idle(tmp_path: Path) -> None:
    waiting, not_waiting = (read_bytes(tmp_path, step_trace(infeed_us=us)) for us in (900, 0))
    assert waiting.idle_percent == pytest.approx(not_waiting.idle_percent, abs=1)
    assert (waiting.duty_cycle_percent or 0) < (not_waiting.duty_cycle_percent or 0) - 30
    assert (waiting.input_bound_percent or 0) > 40


def marked_host(plane: TracedPlane, steps: int, wait_ms: int = 0) -> None:
    """Marks of steps on a thread that waits for its input between them; the device works later."""
    line = plane.line("python", timestamp_ns=1000)
    for step in range(steps):
        at = step * 100 * MS
        line.event(plane.kind("train"), at, 5 * MS, {"_r": 1, "step_num": step})
        if wait_ms:
            line.event(plane.kind("IteratorGetNext"), at + 10 * MS, wait_ms * MS)


def device(writer: TraceWriter) -> None:
    """A device of a TPU without a `Steps` line."""
    plane = writer.plane("/device:TPU:0")
    line = plane.line("XLA Ops")
    for at in range(10):
        line.event(plane.kind("%fusion.1 = f32[] fusion()"), at * MS, MS // 2)


def test_marks_of_the_host_are_steps_where_the_device_has_none(tmp_path: Path) -> None:
    """From mark to mark: the host has left a step long before the device has."""
    writer = TraceWriter()
    device(writer)
    marked_host(writer.plane("/host:CPU"), steps=6, wait_ms=25)
    profile = read_bytes(tmp_path, writer.message)
    assert profile.steps is not None
    assert (profile.steps.whole, profile.steps.cut_off) == (5, 1)
    assert profile.steps.p50_s == pytest.approx(0.1)
    assert profile.input_bound_percent == pytest.approx(25)
    assert profile.steps.input_most_percent == pytest.approx(25)


@pytest.mark.parametrize(("busy_ms", "is_ahead"), [(40, False), (240, True)])
def test_marks_of_a_host_that_runs_ahead_are_no_step_times(
    tmp_path: Path, busy_ms: int, is_ahead: bool
) -> None:
    """A host that does not wait for its device marks the next step long before this one is done.
    Its marks are 100 ms apart here; a run of the program is 40 or 240 ms.
    """
    writer = TraceWriter()
    plane = writer.plane("/host:CPU")
    marked_host(plane, steps=6, wait_ms=25)
    line = plane.line("tf_XLAPjRtCpuClient/1")
    stats = {"hlo_op": "dot.1", "hlo_module": "jit_f", "device_ordinal": 0}
    for run in range(5):
        line.event(plane.kind("dot.1"), run * busy_ms * MS, busy_ms * MS, stats)
    profile = read_bytes(tmp_path, writer.message)
    assert (profile.steps is None) is is_ahead
    assert (STEPS_AHEAD in profile.notes) is is_ahead
    assert (profile.input_bound_percent is None) is is_ahead


def test_one_mark_is_no_whole_step(tmp_path: Path) -> None:
    writer = TraceWriter()
    device(writer)
    marked_host(writer.plane("/host:CPU"), steps=1)
    assert (
        "There is no whole step inside: capture longer."
        in read_bytes(tmp_path, writer.message).notes
    )


def test_a_host_that_takes_too_long_has_no_peaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Peaks of a part of the capture would be too low, so there are none."""
    writer = TraceWriter()
    device(writer)
    plane = writer.plane("/host:CPU")
    sizes = {"index_on_host": 0, "bytes_reserved": 5, "bytes_allocated": 20, "bytes_available": 75}
    for thread in range(3):
        line = plane.line(f"thread {thread}")
        line.event(plane.kind("MemoryAllocation"), thread * MS, 0, sizes)
    whole = read_bytes(tmp_path, writer.message)
    assert [(peak.peak_bytes, peak.capacity_bytes) for peak in whole.memory] == [(25, 100)]
    monkeypatch.setattr(host_plane, "EVENTS_MOST", 1)
    part = read_bytes(tmp_path, writer.message)
    assert part.memory == ()
    assert "The host's lines take too long to read" in " ".join(part.notes)


def test_the_profiler_measures_the_mxu_itself_at_times(tmp_path: Path) -> None:
    """0.0 stands for "not measured"."""
    for given_percent, expected in ((48.8, 48.8), (0.0, 0.4)):
        writer = TraceWriter()
        plane = writer.plane("/device:TPU:0")
        plane.stats({"peak_teraflops_per_second": 100.0})
        kind = plane.new_kind("%fusion.1 = f32[] fusion()", {"flops": 400_000_000})
        plane.line("XLA Ops").event(kind, 0, MS)
        writer.plane("/host:CPU").stats({"matrix_unit_utilization_percent": given_percent})
        assert read_bytes(tmp_path, writer.message).mxu_percent == pytest.approx(expected)


def test_peaks_come_from_the_trace_and_else_from_the_table(tmp_path: Path) -> None:
    for stats, peak in (
        ({"device_type_string": "TPU v6 Lite", "peak_teraflops_per_second": 946.7}, 946.7e12),
        ({"device_type_string": "TPU v6 Lite"}, 918e12),
        ({"device_type_string": "TPU v99"}, None),
    ):
        writer = TraceWriter()
        plane = writer.plane("/device:TPU:0")
        plane.stats(stats)
        plane.line("XLA Ops").event(plane.kind("%copy.1 = f32[] copy()"), 0, MS)
        assert read_bytes(tmp_path, writer.message).peak_flops_per_s == peak


def test_devices_that_all_did_nothing_were_idle(tmp_path: Path) -> None:
    writer = TraceWriter()
    for number in range(2):
        writer.plane(f"/device:TPU:{number}").line("XLA Ops")
    times = {"profile_start_time": Unsigned(10**18), "profile_stop_time": Unsigned(10**18 + 10**9)}
    writer.plane("Task Environment").stats(times)
    profile = read_bytes(tmp_path, writer.message)
    assert (profile.idle_percent, profile.duty_cycle_percent) == (100, 0)
    assert [core.idle_s for core in profile.cores] == [1, 1]
    assert "No device ran any operation meanwhile." in profile.notes


def test_a_trace_without_devices_says_so(tmp_path: Path) -> None:
    writer = TraceWriter()
    writer.plane("/host:CPU").line("python").event(writer.plane("x").kind("y"), 0, 5)
    profile = read_bytes(tmp_path, writer.message)
    assert (profile.backend, profile.idle_percent, profile.cores) == (None, None, ())
    assert "The trace has no operations of any device" in profile.notes[0]


def test_what_the_profiler_complains_about_is_a_note(tmp_path: Path) -> None:
    writer = TraceWriter(["host-7"])
    device(writer)
    writer.problem("dropped 12 events\x1b[2J", is_error=True)
    for number in range(9):
        writer.problem(f"warning {number}")
    profile = read_bytes(tmp_path, writer.message)
    assert "The profiler reports: dropped 12 events [2J" in profile.notes
    assert "It reports 5 more of these." in profile.notes
    assert profile.capture.host == "host-7"


def test_a_kernel_of_a_gpu_belongs_to_its_operation(tmp_path: Path) -> None:
    """Streams overlap: a GPU is busy once, however many of them are."""
    writer = TraceWriter()
    plane = writer.plane("/device:GPU:0")
    plane.stats({"device_vendor": "Nvidia", "memory_bandwidth": Unsigned(3_350_000_000_000)})
    one, other = plane.line("Stream #14(Compute)"), plane.line("Stream #20(MemcpyH2D)")
    stats = {"hlo_op": Reference("dot.3"), "hlo_module": Reference("jit_f"), "program_id": 4}
    one.event(plane.kind("gemm_f16"), 0, 60 * MS, {"correlation_id": Unsigned(1), **stats})
    one.event(
        plane.kind("reduce_splitk"), 60 * MS, 20 * MS, {"correlation_id": Unsigned(2), **stats}
    )
    one.event(plane.kind("ncclDevKernel_AllReduce"), 90 * MS, 10 * MS)
    other.event(plane.kind("MemcpyH2D"), 50 * MS, 20 * MS)
    plane.line("XLA Ops").event(plane.kind("dot.3"), 0, 80 * MS)
    profile = read_bytes(tmp_path, writer.message)
    core = profile.cores[0]
    assert (core.captured_s, core.busy_s) == (pytest.approx(0.1), pytest.approx(0.09))
    times = {o.name: (o.runs, o.category, o.program) for o in profile.operations}
    assert times["dot.3"] == (2, "kernel", "jit_f")
    assert times["MemcpyH2D"] == (1, "copy", None)
    shares = profile.shares
    assert shares.host_percent == pytest.approx(100 * 20 / 110 * 0.9)
    assert shares.collectives_percent == pytest.approx(100 * 10 / 110 * 0.9)
    assert profile.peak_hbm_bytes_per_s == 3.35e12


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=8),
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=8),
)
def test_the_overlap_counts_each_moment_once(
    waits: list[tuple[int, int]], lengths: list[tuple[int, int]]
) -> None:
    steps, at = [], 0
    for gap, length in lengths:
        steps.append((at + gap, at + gap + length))
        at = steps[-1][1]
    others = sorted((start, start + length) for start, length in waits)
    covered = {moment for start, end in others for moment in range(start, end)}
    inside = [sum(m in covered for m in range(start, end)) for start, end in steps]
    assert overlaps(steps, others) == inside


def test_compilation_before_the_first_operation_is_a_share_of_all_that_was_recorded(
    tmp_path: Path,
) -> None:
    """A capture at the start of a job: 3 of its 4 seconds compile, and the rest is one program."""
    writer = TraceWriter()
    writer.plane("/device:TPU:0").line("XLA Ops").event("fusion.1", 3200 * MS, 800 * MS)
    line = writer.plane("/host:CPU").line("compiler/2", number=2)
    line.event("backend_compile", 100 * MS, 3000 * MS)
    began_ns = 10**18
    writer.plane("Task Environment").stats(
        {
            "profile_start_time": Unsigned(began_ns),
            "profile_stop_time": Unsigned(began_ns + 4 * 10**9),
        }
    )
    profile = read_bytes(tmp_path, writer.message)
    assert profile.captured_s == pytest.approx(0.8)
    assert profile.shares.compile_percent == pytest.approx(75.0)
