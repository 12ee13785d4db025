"""The agent on the accelerator that JAX has here. Only with `pytest -m accelerator`, on such a
machine.

JAX_PLATFORMS=cuda pytest -m accelerator
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from support.jobs import collector, job, seen

from tpusmi.model import DeviceKey

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


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "segments"
    place.mkdir()
    return place


def test_memory_figures_are_those_of_the_device_as_it_grows_and_shrinks(directory: Path) -> None:
    platform = os.environ.get("JAX_PLATFORMS", "")
    assert platform not in ("", "cpu"), "say which: JAX_PLATFORMS=cuda or tpu"
    with job(directory, JOB, JAX_PLATFORMS=platform) as running:
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
