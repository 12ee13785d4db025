"""What the writer of traces writes, read by JAX's own reader."""

from __future__ import annotations

import pytest
from support.jax_traces import planes_of

from tpusmi.simulate.trace_bytes import Reference, TraceWriter, Unsigned


def test_jax_reads_each_kind_of_value_as_it_was_written() -> None:
    stats = {
        "a double": 918.25,
        "an int": -7,
        "unsigned": Unsigned(2**64 - 1),
        "a text": "café",
        "bytes": b"text",
        "a reference": Reference("convolution"),
    }
    trace = TraceWriter()
    plane = trace.plane("/device:TPU:0")
    plane.stats(stats)
    kind = plane.new_kind("%fusion.1", {"flops": 8, "hlo_category": Reference("convolution")})
    line = plane.line("XLA Ops", timestamp_ns=1_700_000_000_000_000_000)
    line.event(kind, 2_000, 3_000, stats)
    line.counted("idle", 5)
    read_plane = planes_of(trace.message)["/device:TPU:0"]
    expected = {**stats, "bytes": "text"}  # JAX gives both as texts
    assert dict(read_plane.stats) == expected
    (ops,) = read_plane.lines
    fusion, idle = ops.events
    assert (ops.name, fusion.name, idle.name) == ("XLA Ops", "%fusion.1", "idle")
    assert fusion.start_ns == pytest.approx(1_700_000_000_000_000_002, abs=256)
    assert fusion.duration_ns == 3
    own = {"flops": 8, "hlo_category": "convolution"}
    assert dict(fusion.stats) in (expected, {**expected, **own})


def test_planes_have_their_own_names_and_may_be_empty() -> None:
    trace = TraceWriter(hostnames=["host-a"])
    first, _ = trace.plane("/device:TPU:0"), trace.plane("/device:TPU:1")
    third = trace.plane("/host:CPU")
    for plane in (first, third):
        plane.line("empty")
        for name in ("b", "a", "b"):
            plane.line(name).event(name, 0, 1_000)
    planes = planes_of(trace.message)
    assert list(planes) == ["/device:TPU:0", "/device:TPU:1", "/host:CPU"]
    for name in ("/device:TPU:0", "/host:CPU"):
        lines = [[event.name for event in line.events] for line in planes[name].lines]
        assert lines == [[], ["b"], ["a"], ["b"]]
    assert not list(planes["/device:TPU:1"].lines)


def test_a_trace_without_planes_is_read() -> None:
    trace = TraceWriter()
    trace.problem("cut off")
    trace.problem("no device", is_error=True)
    assert planes_of(trace.message) == {}
