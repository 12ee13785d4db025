"""Figures of one profile do not contradict each other, whatever a trace claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.profiles import step_times, unknown
from support.traces import (
    MS,
    TraceWriter,
    device,
    operation,
    operations,
    overlapping_events,
    read_bytes,
)

from tpusmi.profiler.xprof import joined
from tpusmi.report.profile.figure_lines import figure_lines
from tpusmi.report.profile.findings import findings
from tpusmi.simulate.trace_bytes import TracedLine
from tpusmi.trace.figures import TimeShares


def streams() -> bytes:
    """A GPU whose three streams run two programs side by side."""
    writer = TraceWriter()
    plane = writer.plane("/device:GPU:0")
    for number in range(3):
        line = plane.line(f"Stream #{number}(Compute)")
        for n in range(4):
            stats = {"hlo_op": f"dot.{number}", "hlo_module": f"jit_{number % 2}"}
            line.event(plane.kind(f"gemm_{number}"), 20 * n * MS, 10 * MS, stats)
    return writer.message


@pytest.mark.parametrize("make", [streams, overlapping_events])
def test_shares_of_operations_that_overlap_add_up_to_the_busy_share(
    make: object, tmp_path: Path
) -> None:
    profile = read_bytes(tmp_path, make())  # type: ignore[operator]
    assert profile.idle_percent is not None
    busy = 100 - profile.idle_percent
    assert sum(o.self_percent for o in profile.operations) == pytest.approx(busy)
    assert sum(p.busy_percent for p in profile.programs) <= 100.000001
    shares = profile.shares
    assert shares.compute_percent == pytest.approx(busy)


def test_an_operation_has_no_negative_time_of_its_own(tmp_path: Path) -> None:
    trace = TraceWriter()
    plane = device(trace)
    outer, inner = operation(plane, "while.1"), operation(plane, "fusion.2")
    line = plane.line("XLA Ops")
    line.event(outer, 0, 10 * MS)
    line.event(inner, 1 * MS, 6 * MS)
    line.event(inner, 2 * MS, 7 * MS)
    profile = read_bytes(tmp_path, trace.message)
    assert min(o.self_s for o in profile.operations) == 0


def test_what_no_device_can_do_is_no_figure(tmp_path: Path) -> None:
    def write(line: TracedLine, kind: int) -> None:
        line.event(kind, 0, 10 * MS)

    profile = read_bytes(tmp_path, operations(write, flops=10**17, bytes_accessed=10**15))
    (core,), (one,) = profile.cores, profile.operations
    for figures in (profile, core, one):
        assert figures.mxu_percent is None
        assert figures.hbm_bandwidth_percent is None
    assert profile.flops_per_s is None
    assert core.flops_per_s is None
    assert sum("more FLOPs than a core can do" in note for note in profile.notes) == 1
    assert sum("more bytes than the devices can move" in note for note in profile.notes) == 1
    assert "overclaimed" in [finding.code for finding in findings(profile)]


def test_waits_for_the_host_are_neither_duty_nor_idle_and_a_note_says_so(tmp_path: Path) -> None:
    def write(line: TracedLine, kind: int) -> None:
        line.event(kind, 0, 10 * MS)

    profile = read_bytes(tmp_path, operations(write, hlo_category="infeed"))
    assert (profile.duty_cycle_percent, profile.idle_percent) == (0, 0)
    assert any(note.startswith("The duty cycle leaves out infeed") for note in profile.notes)
    (finding,) = (f for f in findings(profile) if f.code == "input_bound")
    assert finding.figure == "100 % of the captured time"  # no step is inside


def test_a_duty_cycle_that_xprof_does_not_print_is_ours() -> None:
    ours = unknown()._replace(duty_cycle_percent=0.0, idle_percent=0.0)
    theirs = unknown()._replace(backend="tpu", duty_cycle_percent=99.9, idle_percent=100 - 99.9)
    theirs = theirs._replace(duty_cycle_percent=100 - theirs.idle_percent)  # type: ignore[operator]
    assert joined(ours, theirs).duty_cycle_percent == 0.0
    nothing = unknown()._replace(shares=TimeShares())
    assert joined(nothing, theirs).duty_cycle_percent == theirs.duty_cycle_percent


def test_a_duty_cycle_of_chips_is_explained_where_ours_is_of_cores() -> None:
    ours = unknown()._replace(duty_cycle_percent=80.0)
    theirs = unknown()._replace(backend="tpu", duty_cycle_percent=87.3, idle_percent=20.0)
    note = "Duty cycle: 87.3 % by xprof, 80.0 % by tpusmi's own reading of the trace."
    assert joined(ours, theirs).notes[-1] == note


def test_the_step_of_a_cpu_is_ours_and_the_shorter_one_of_xprof_is_no_difference() -> None:
    ours = unknown()._replace(backend="cpu", steps=step_times(0.02, 0.02))
    theirs = unknown()._replace(backend="cpu", steps=step_times(0.001, 0.001))
    profile = joined(ours, theirs)
    assert profile.steps == ours.steps
    assert not any("Median step" in note for note in profile.notes)
    of_tpu = joined(ours, theirs._replace(backend="tpu"))
    assert any("Median step" in note for note in of_tpu.notes)


def test_xprof_is_named_only_where_a_figure_on_the_page_is_its_own() -> None:
    profile = unknown()._replace(idle_percent=3.0, sources={"device_type": "xprof"})
    texts = ["".join(text for text, _ in line) for line in figure_lines(profile, 100)]
    assert texts[0] == "FIGURES"
    marked = profile._replace(sources={"idle_percent": "xprof"})
    texts = ["".join(text for text, _ in line) for line in figure_lines(marked, 100)]
    assert texts[0].startswith("FIGURES  from xprof where marked")
