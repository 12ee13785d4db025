"""That a job runs on the CPU of a TPU host is told to who has not chosen it, and to no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import environment

JOB = """
import json, os, sys
sys.modules["libtpu"] = None  # that of this environment takes its time to find no TPU
import jax
from tpusmi.agent import jaxread, own_process
jaxread.tpu_functions = lambda: 4
found = []
def ask(): found.append(len(own_process.fallback_warning("cpu")))
ask()
os.environ["JAX_PLATFORMS"] = "cpu"  # too late for JAX
jax.devices()
ask()
for name in sys.argv[1:]:
    before = jax.config._read(name)
    jax.config.update(name, "cpu")
    ask()
    jax.config.update(name, before)
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    ("variables", "settings", "warnings"),
    [
        ({"JAX_PLATFORMS": "cpu"}, (), [0, 0]),
        ({"JAX_PLATFORM_NAME": "CPU"}, (), [0, 0]),
        ({"JAX_PLATFORMS": ""}, (), [1, 1]),
        ({}, ("jax_platforms", "jax_platform_name"), [1, 1, 0, 0]),
    ],
    ids=["platforms", "platform name", "empty", "settings"],
)
def test_who_has_chosen_the_cpu_is_not_warned_and_who_has_not_is(
    variables: dict[str, str], settings: tuple[str, ...], warnings: list[int], tmp_path: Path
) -> None:
    job = subprocess.run(
        [sys.executable, "-c", JOB, *settings],
        env=environment(tmp_path, **variables),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert job.returncode == 0, job.stderr
    assert json.loads(job.stdout) == warnings
