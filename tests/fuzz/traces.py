"""Profiler traces: of a GPU, of a CPU, of a TPU that trains; and profiles that were printed."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

from support import traces as made
from support.cut_traces import shortened
from support.step_traces import step_trace

from fuzz.target import DATA, Target, target
from tpusmi.report.profile.monitor_lines import lines as monitor_lines
from tpusmi.report.profile.profile_text import lines as page_lines
from tpusmi.trace.direct import read_trace
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.limits import TraceLimits
from tpusmi.trace.plain_objects import from_object, to_object
from tpusmi.trace.troubles import CaptureError

LIMIT_S = 10.0


@target
def profiler_traces(directory: Path) -> Iterator[Target]:
    """A profile that goes through JSON and onto a page, or a sentence."""
    path = directory / "some.xplane.pb"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        with contextlib.suppress(CaptureError):
            profile = read_trace(str(path), TraceLimits(until_s=time.monotonic() + LIMIT_S))
            text = json.dumps(to_object(profile), allow_nan=False)
            assert from_object(json.loads(text)) == profile
            _show(profile)

    inputs = [
        (DATA / "xplane" / "gpu_mi300x" / "gemm.xplane.pb").read_bytes(),
        (DATA / "xplane" / "cpu_2_devices" / "cpu.xplane.pb").read_bytes(),
        shortened(made.REAL.read_bytes(), events_most=12),
        step_trace(),
        step_trace(cores=1, steps=2, infeed_us=0),
        made.metadata_that_names_itself(),
        made.stats_of_wrong_kinds(),
    ]
    words = [b"XLA Ops", b"Steps", b"step_num", b"hlo_op", b"/device:TPU:0"]
    words += [b"\x22\x06\x08\x01\x10\x01\x18\x01", b"\x1a\x00", b"\x08" + b"\xff" * 9 + b"\x01"]
    yield Target(run, inputs, [*words, b"\x11\x00\x00\x00\x00\x00\x00\xf8\x7f"])


@target
def printed_profiles(directory: Path) -> Iterator[Target]:
    """What --json has printed, read again for --compare."""
    path = directory / "some.xplane.pb"
    path.write_bytes(made.ordinary())
    profile = read_trace(str(path), TraceLimits(until_s=time.monotonic() + LIMIT_S))
    inputs = [json.dumps(to_object(profile)).encode()]

    def run(data: bytes) -> None:
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(data)
            try:
                read = from_object(value)
            except ValueError:
                return
            try:
                _show(read)
            except ValueError as error:
                raise AssertionError(f"shown: {error}") from error

    words = [b"null", b"1e300", b"-1", b"1e-320", b'"\\ud800"', b"[]", b"{}", b"9" * 40, b"true"]
    yield Target(run, inputs, words)


def _show(profile: TraceProfile) -> None:
    for width in (60, 120):
        page_lines([profile], width)
    for level in (1, 2):
        monitor_lines(profile, level)
