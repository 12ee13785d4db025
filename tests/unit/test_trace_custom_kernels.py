"""Custom kernels, whose FLOPs XLA does not count: figures that they hide or inflate are unknown."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tpusmi.profiler.xprof import joined
from tpusmi.report.profile.findings import findings
from tpusmi.simulate.trace_bytes import TraceWriter, Unsigned
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.limits import TraceLimits

US = 1_000_000
"""In picoseconds."""
MATMUL = ("convolution fusion", 400 * 10**6, 10**6)
"""Category, FLOPs and bytes of one run: at half of the peak, as long as it takes 8 µs."""


def profile_of(
    directory: Path, *rows: tuple[int, tuple[str, int, int]], measured: float = 0.0
) -> TraceProfile:
    """The profile of operations, each of so many µs, on a core that does 100 TFLOP/s."""
    writer = TraceWriter()
    plane = writer.plane("/device:TPU:0")
    peaks = {"peak_teraflops_per_second": 100.0, "peak_hbm_bw_gigabytes_per_second": 1000.0}
    plane.stats(peaks)
    line, at_us = plane.line("XLA Ops"), 0
    for number, (us, (category, flops, size)) in enumerate(rows):
        stats = {"hlo_category": category, "flops": flops, "bytes_accessed": size}
        name = f"op.{number}"
        kind = plane.new_kind(f"%{name} = f32[] op()", stats, display_name=name)
        line.event(kind, at_us * US, us * US)
        at_us += us
    writer.plane("/host:CPU").stats({"matrix_unit_utilization_percent": measured})
    path = directory / "some.xplane.pb"
    path.write_bytes(writer.message)
    return read_trace(str(path), TraceLimits(until_s=time.monotonic() + 30))


def test_kernels_that_hide_their_flops_and_bytes_leave_no_rate(tmp_path: Path) -> None:
    """A job that is nearly all flash attention would seem to do no matrix multiplications."""
    p = profile_of(tmp_path, (8, MATMUL), (12, ("custom-call", 0, 0)))
    (core,) = p.cores
    assert (p.mxu_percent, p.flops_per_s, p.hbm_bandwidth_percent) == (None, None, None)
    assert (core.mxu_percent, core.flops_per_s, core.hbm_bandwidth_percent) == (None, None, None)
    kernel = p.operations[0]
    assert (kernel.name, kernel.mxu_percent, kernel.hbm_bandwidth_percent) == ("op.1", None, None)
    assert p.operations[1].mxu_percent == pytest.approx(50)
    assert p.notes[:2] == (
        "Custom kernels take 60% of the busy time, and XLA does not count their FLOPs:"
        " no MXU utilization.",
        "XLA does not count the bytes that custom kernels move: no HBM bandwidth.",
    )
    assert "low_mxu" not in {f.code for f in findings(p)}


def test_a_few_of_them_are_only_noted(tmp_path: Path) -> None:
    p = profile_of(tmp_path, (19, MATMUL), (1, ("custom-call", 0, 0)))
    assert p.mxu_percent == pytest.approx(20)
    assert p.notes[0].startswith("Custom kernels take 5% of the busy time. XLA does not count")
    assert p.hbm_bandwidth_percent == pytest.approx(5)


def test_kernels_that_declare_their_work_count_as_any_operation(tmp_path: Path) -> None:
    p = profile_of(tmp_path, (8, MATMUL), (8, ("custom-call", 800 * 10**6, 10**6)))
    assert p.mxu_percent == pytest.approx(75)
    assert max(o.mxu_percent or 0 for o in p.operations) == pytest.approx(100)


def test_kernels_that_invent_flops_leave_no_rate(tmp_path: Path) -> None:
    """As on a real v5p, where the FLOPs make 59.7 % and the hardware counted 15.7 %."""
    p = profile_of(tmp_path, (80, MATMUL), (2, ("custom-call", 900 * 10**6, 10**6)))
    assert (p.mxu_percent, p.flops_per_s) == (None, None)
    assert p.hbm_bandwidth_percent is not None
    assert p.notes[0] == "Operations declare more FLOPs than a core can do: no MXU utilization."
    assert "overclaimed" in {f.code for f in findings(p)}


def test_what_the_profiler_measured_is_known_all_the_same(tmp_path: Path) -> None:
    p = profile_of(tmp_path, (8, MATMUL), (12, ("custom-call", 0, 10**6)), measured=30.0)
    assert (p.mxu_percent, p.flops_per_s) == (30.0, None)
    assert p.notes[0].endswith("XLA does not count their FLOPs: no FLOP rate.")


def test_both_readings_say_once_that_there_is_no_rate(tmp_path: Path) -> None:
    own = profile_of(tmp_path, (8, MATMUL), (12, ("custom-call", 0, 0)))
    theirs = own._replace(
        notes=("xprof counts no FLOPs of custom calls: no MXU utilization.",), sources={}
    )
    assert joined(own, theirs).notes == own.notes
    known = joined(own, theirs._replace(mxu_percent=40.0, hbm_bandwidth_percent=9.0, notes=()))
    assert known.notes == own.notes[2:]


def test_flops_of_equal_names_add_up(tmp_path: Path) -> None:
    """Older traces do not say to which program an operation belongs."""
    writer = TraceWriter()
    plane = writer.plane("/device:TPU:0")
    plane.stats({"peak_teraflops_per_second": 100.0})
    line = plane.line("XLA Ops")
    for number, flops in enumerate((300 * 10**6, 500 * 10**6)):
        stats = {"hlo_category": "convolution fusion", "flops": Unsigned(flops)}
        text = f"%fusion.1 = f32[{number}] fusion()"
        kind = plane.new_kind(text, stats, display_name="fusion.1")
        line.event(kind, number * 10 * US, 10 * US)
    path = tmp_path / "some.xplane.pb"
    path.write_bytes(writer.message)
    p = read_trace(str(path), TraceLimits(until_s=time.monotonic() + 30))
    (operation,) = p.operations
    assert (operation.runs, operation.flops_per_s) == (2, pytest.approx(40e12))
