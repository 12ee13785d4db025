"""Profiler traces: of a GPU, of a CPU, and of a TPU that trains."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

from support.step_traces import step_trace

from fuzz.target import DATA, Target, target
from tpusmi.trace.direct import read_trace
from tpusmi.trace.limits import TraceLimits
from tpusmi.trace.plain_objects import from_object, to_object
from tpusmi.trace.troubles import CaptureError

LIMIT_S = 10.0


@target
def profiler_traces(directory: Path) -> Iterator[Target]:
    """A profile that goes through JSON, or a sentence."""
    path = directory / "some.xplane.pb"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        with contextlib.suppress(CaptureError):
            profile = read_trace(str(path), TraceLimits(until_s=time.monotonic() + LIMIT_S))
            text = json.dumps(to_object(profile), allow_nan=False)
            assert from_object(json.loads(text)) == profile

    inputs = [
        (DATA / "xplane" / "gpu_mi300x" / "gemm.xplane.pb").read_bytes(),
        (DATA / "xplane" / "cpu_2_devices" / "cpu.xplane.pb").read_bytes(),
        step_trace(),
        step_trace(cores=1, steps=2, infeed_us=0),
    ]
    yield Target(run, inputs, (b"XLA Ops", b"Steps", b"step_num", b"hlo_op", b"/device:TPU:0"))
