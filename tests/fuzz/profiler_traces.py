"""Profiler traces: the bytes of XSpace, and the profiles that other versions have written."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from support import traces
from support.cut_traces import shortened
from support.step_traces import step_trace

from fuzz.target import Target, target
from tpusmi.report.profile.monitor_lines import lines as monitor_lines
from tpusmi.report.profile.profile_text import lines as page_lines
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.limits import TraceLimits
from tpusmi.trace.plain_objects import from_object, to_object
from tpusmi.trace.troubles import CaptureError

SECONDS = 1.0


@target
def trace_files(directory: Path) -> Iterator[Target]:
    """Traces of a real TPU with fewer events, a simulated one, one of a GPU; and what is shown."""
    path = directory / "trace.xplane.pb"
    gpu = traces.DATA / "xplane/gpu_mi300x/gemm.xplane.pb"
    inputs = [
        shortened(traces.REAL.read_bytes(), 12),
        shortened(gpu.read_bytes(), 12),
        (traces.DATA / "xplane/cpu_2_devices/cpu.xplane.pb").read_bytes(),
        step_trace(cores=1, steps=2, infeed_us=0),
        traces.ordinary(),
        traces.metadata_that_names_itself(),
        traces.stats_of_wrong_kinds(),
    ]

    def run(data: bytes) -> None:
        path.write_bytes(data)
        try:
            profile = read_trace(str(path), TraceLimits(time.monotonic() + SECONDS))
        except CaptureError:
            return
        text = json.dumps(to_object(profile), allow_nan=False)
        assert from_object(json.loads(text)) == profile
        _show(profile)

    words = [
        b"\x22\x06\x08\x01\x10\x01\x18\x01",
        b"/device:TPU:1",
        b"XLA Ops",
        b"Steps",
        b"\x1a\x00",
    ]
    words += [
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x11\x00\x00\x00\x00\x00\x00\xf8\x7f",
    ]
    yield Target(run, inputs, words)


@target
def profile_objects(directory: Path) -> Iterator[Target]:
    """What --json has printed, read again for --compare."""
    path = directory / "trace.xplane.pb"
    path.write_bytes(traces.ordinary())
    profile = read_trace(str(path), TraceLimits(time.monotonic() + 10.0))
    inputs = [json.dumps(to_object(profile)).encode()]

    def run(data: bytes) -> None:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return
        try:
            read = from_object(value)
        except ValueError:
            return
        _show(read)

    words = [b"null", b"1e300", b"-1", b"1e-320", b'"\\ud800"', b"[]", b"{}", b"9" * 40, b"true"]
    yield Target(run, inputs, words)


def _show(profile: TraceProfile) -> None:
    json.dumps(to_object(profile), allow_nan=False)
    for width in (60, 120):
        page_lines([profile], width)
    for level in (1, 2):
        monitor_lines(profile, level)
