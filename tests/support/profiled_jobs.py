"""Real JAX jobs with a profiler service and an agent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.commands import environment

JOB = """
import os, sys, time
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp, tpusmi
tpusmi.start(interval_s=0.1)
step = jax.jit(lambda a: a @ a)
x = jnp.ones((64, 64))
step(x).block_until_ready()
jax.profiler.start_server(int(sys.argv[1]))
print("serves", flush=True)
import threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
i = 0
while True:
    with tpusmi.step(), jax.profiler.StepTraceAnnotation("train", step_num=i):
        step(x).block_until_ready()
    i += 1
    time.sleep(0.005)
"""


@contextmanager
def jax_server(port: int, directory: Path) -> Iterator[int]:
    """A JAX job whose profiler listens on that port, and with an agent that has its segment in
    that directory: its pid.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", JOB, str(port)],
        env=environment(directory),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "serves\n"
        yield process.pid
    finally:
        process.kill()
        process.communicate()
