"""The agent on the accelerator that JAX has here. Only with `pytest -m accelerator`, on such a
machine.

JAX_PLATFORMS=cuda pytest -m accelerator
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.free_ports import free_port
from support.jobs import Job, collector, job, seen

from tpusmi.model import DeviceKey, Host
from tpusmi.profiler import in_process, remote
from tpusmi.profiler.cost import CostMeter
from tpusmi.profiler.remote_addresses import Address
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest
from tpusmi.trace.direct import read_trace
from tpusmi.trace.limits import TraceLimits

pytestmark = [pytest.mark.accelerator, pytest.mark.timeout(300)]

MIB = 1024 * 1024

JOB = """
import json
tpusmi.start(interval_s=0.1)
import jax, jax.numpy as jnp
device = jax.local_devices()[0]
step = jax.jit(lambda x: (x @ x).sum())
def put(mib): return jax.device_put(jnp.ones((mib, 256, 1024), jnp.float32),
device).block_until_ready()
keep = [put(256)]
def tell():
    live = sum(a.nbytes for a in jax.live_arrays())
    say(json.dumps({**device.memory_stats(), "live": live, "kind": device.device_kind}))
step(jnp.ones((512, 512))).block_until_ready(); tpusmi.step(); tpusmi.step()
tell()
while True:
    word = hear()
    if word == "grow": keep.append(put(512))
    if word == "drop": keep.pop()
    tpusmi.step(); tell()
"""


BUSY = """
tpusmi.start(interval_s=0.1, profiler_port={port})
import jax, jax.numpy as jnp, threading
step = jax.jit(lambda x: jnp.tanh(x @ x))
x = step(jnp.ones((2048, 2048), jnp.bfloat16)).block_until_ready()
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
say("ready")
number = 0
while True:
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        x = step(x).block_until_ready()
    tpusmi.step()
    number += 1
"""
REQUEST = CaptureRequest(duration_ms=500, deadline_s=120.0)
"""The first trace of a process loads the vendor's profiler, which takes long."""
BACKENDS = {"cuda": "gpu", "rocm": "gpu", "gpu": "gpu", "tpu": "tpu"}


def platform_here() -> str:
    platform = os.environ.get("JAX_PLATFORMS", "")
    assert platform not in ("", "cpu"), "say which: JAX_PLATFORMS=cuda or tpu"
    return platform


@contextmanager
def busy_job(directory: Path) -> Iterator[tuple[Job, int]]:
    """A job that computes all the time, and its profiler's port."""
    port = free_port()
    with job(directory, BUSY.format(port=port), JAX_PLATFORMS=platform_here()) as running:
        assert running.hear() == "ready"
        reader = collector(directory)
        seen(reader, running.pid, lambda s, p: p.facts["profiler_port"] == port)
        first, process = seen(reader, running.pid, lambda s, p: s.value("steps", p.key))
        least = (first.value("steps", process.key) or 0) + 20
        seen(reader, running.pid, lambda s, p: (s.value("steps", p.key) or 0) >= least)
        yield running, port
        assert running.end() == 0


def through_the_agent(directory: Path, pid: int, port: int) -> CapturedTrace:
    host = Host(segment_dir=str(directory))
    return in_process.capture(host, pid, REQUEST, str(directory.parent), print)


def over_grpc(directory: Path, pid: int, port: int) -> CapturedTrace:
    (answer,) = remote.capture([Address("localhost", port)], REQUEST, str(directory.parent), print)
    assert isinstance(answer, CapturedTrace), answer
    return answer


@pytest.mark.parametrize("capture", [through_the_agent, over_grpc])
def test_a_capture_shows_the_device_and_its_steps(
    directory: Path, capture: Callable[[Path, int, int], CapturedTrace]
) -> None:
    """The plane of the device, and not that of the CPU."""
    with busy_job(directory) as (running, port):
        meter = CostMeter(Host(segment_dir=str(directory)), running.pid)
        meter.before()
        trace = capture(directory, running.pid, port)
        meter.during()
        cost = meter.after(2.0)
    profile = read_trace(trace.path, TraceLimits(until_s=time.monotonic() + 120))
    assert profile.backend == BACKENDS[platform_here()]
    assert profile.cores
    assert profile.operations
    assert profile.duty_cycle_percent is not None
    assert 1 < profile.duty_cycle_percent <= 100
    assert profile.steps is not None
    assert profile.steps.whole > 2
    assert cost.steps_per_s_before is not None
    assert cost.steps_per_s_during is not None
    sys.stdout.write(f"{trace.capture}\n{cost}\n{profile._replace(operations=())}\n")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "segments"
    place.mkdir()
    return place


def test_memory_figures_are_those_of_the_device_as_it_grows_and_shrinks(directory: Path) -> None:
    with job(directory, JOB, JAX_PLATFORMS=platform_here()) as running:
        reader = collector(directory)
        peak = 0
        for word in ("", "grow", "grow", "drop"):
            if word:
                running.tell(word)
            said = json.loads(running.hear())
            used = said["bytes_in_use"]
            snapshot, process = seen(
                reader,
                running.pid,
                lambda s, p, used=used, said=said: (
                    s.value("hbm_used_bytes", p.key) == used
                    and s.value("live_array_bytes", p.key) == said["live"]
                ),
            )
            key = DeviceKey(process.key, 0)
            peak = max(peak, said["peak_bytes_in_use"])
            assert snapshot.value("hbm_used_bytes", key) == used
            assert snapshot.value("hbm_limit_bytes", key) == said["bytes_limit"]
            assert snapshot.value("hbm_peak_bytes", key) == peak
            assert snapshot.value("allocations", key) == said["num_allocs"]
            assert snapshot.value("live_array_bytes", key) == said["live"]
            assert snapshot.devices_of(process.key)[0].kind == said["kind"]
            assert process.profile is not None
            assert process.profile.sites[0].function == "put"
        sys.stdout.write(json.dumps(snapshot.to_dict(), indent=1))
