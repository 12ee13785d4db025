"""What a monitor inside the job costs it: steps/s of one training loop, with and without it.

    python tests/bench/agent_overhead.py [--pairs 5] [--seconds 10] [--arrays 5000]

The same loop runs in two processes that share one core: they take turns every few milliseconds, so
that a machine whose speed drifts is slow for both alike. One of them has the monitor, and in the
next round the other: what differs between the two processes themselves cancels out. On a core that
is never idle a monitor is paid for in steps, so each process is charged for the CPU time of all its
threads. Measured by turns: nothing (the noise), tpusmi's agent at 1 Hz with its memory profile, and
jax-smi (PyPI) at 1 Hz if it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

SETTLE_S = 6.0
"""A monitor has been running for so long when it is measured: it has found its periods."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--arrays", type=int, default=5000)
    parser.add_argument("--platform", default="cpu", help="JAX platform: cpu, cuda, tpu")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = options.platform
    if options.worker:
        work(options.arrays)
        return
    with tempfile.TemporaryDirectory(prefix="tpusmi-bench-") as directory:
        os.environ["TPUSMI_DIR"] = directory
        workers = [start(options.arrays) for _ in range(2)]
        try:
            compare(workers, options.pairs, options.seconds)
        finally:
            for worker in workers:
                worker.communicate()


def start(arrays: int) -> subprocess.Popen[str]:
    """A process that runs the loop whenever it is told how long, and with which monitor."""
    command = [sys.executable, __file__, "--worker", "--arrays", str(arrays)]
    command += ["--platform", os.environ["JAX_PLATFORMS"]]
    worker = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert worker.stdout is not None
    worker.stdout.readline()
    return worker


def compare(workers: list[subprocess.Popen[str]], pairs: int, seconds: float) -> None:
    """Measure each monitor in pairs of rounds, by turns, and print the ratios."""
    names = [name for name in MONITORS if name != "jax-smi" or importlib.util.find_spec("jax_smi")]
    ratios: dict[str, list[float]] = {name: [] for name in names}
    for number in range(pairs):
        for name in names:
            first = together(workers, [name, "nothing"], seconds)
            second = together(workers, ["nothing", name], seconds)
            ratios[name].append(math.sqrt(first[0] / first[1] * second[1] / second[0]))
        line = "  ".join(f"{name} {found[-1]:.4f}" for name, found in ratios.items())
        print(f"pair {number + 1}: {line}", flush=True)
    for name, found in ratios.items():
        print(
            f"{name}: {statistics.median(found):.4f} of the bare steps/s "
            f"({min(found):.4f} to {max(found):.4f}, {len(found)} pairs)"
        )


def together(
    workers: list[subprocess.Popen[str]], monitors: list[str], seconds: float
) -> list[float]:
    """Steps per CPU second of each worker with its monitor, all running at once."""
    for worker, monitor in zip(workers, monitors, strict=True):
        assert worker.stdin is not None
        worker.stdin.write(f"{monitor} {seconds}\n")
    rates = []
    for worker in workers:
        assert worker.stdout is not None
        steps, cpu_s = worker.stdout.readline().split()
        rates.append(int(steps) / float(cpu_s))
    return rates


def work(arrays: int) -> None:
    """One worker: says that it is ready, then does as it is told, again and again."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    step = training(arrays)
    print("ready", flush=True)
    for line in sys.stdin:
        monitor, seconds = line.split()
        end = MONITORS[monitor]()
        loop(step, SETTLE_S)
        print(*loop(step, float(seconds)), flush=True)
        end()


def loop(step: Callable[[], None], seconds: float) -> tuple[int, float]:
    """How many steps were taken in that long, and the CPU time they took."""
    until = time.monotonic() + seconds
    cpu_s, count = time.process_time(), 0
    while time.monotonic() < until:
        step()
        count += 1
    return count, time.process_time() - cpu_s


def start_tpusmi() -> Callable[[], Any]:
    """Our agent; what ends it is returned."""
    import tpusmi

    return tpusmi.start(interval_s=1.0).stop


def start_jax_smi() -> Callable[[], Any]:
    """jax-smi's own thread, which has no end: it gets one when it asks for its next profile."""
    import jax.profiler
    from jax_smi import initialise_tracking

    save, ended = jax.profiler.save_device_memory_profile, threading.Event()

    def save_until_ended(path: str) -> None:
        if ended.is_set():
            raise SystemExit
        save(path)

    def end() -> None:
        ended.set()
        time.sleep(1.2)
        jax.profiler.save_device_memory_profile = save

    jax.profiler.save_device_memory_profile = save_until_ended
    directory = tempfile.mkdtemp(dir=os.environ["TPUSMI_DIR"])
    initialise_tracking(interval=1.0, dir_prefix=directory)
    return end


MONITORS: dict[str, Callable[[], Callable[[], Any]]] = {
    "nothing": lambda: lambda: None,
    "tpusmi": start_tpusmi,
    "jax-smi": start_jax_smi,
}


def training(arrays: int) -> Callable[[], None]:
    """One training step of a small model that keeps so many arrays alive."""
    import jax
    import jax.numpy as jnp

    import tpusmi

    keep = [jnp.full((i % 61 + 1,), 1.0) for i in range(arrays)]
    weights = jnp.eye(256)
    update = jax.jit(lambda w, x: w - 1e-6 * jax.grad(lambda v: ((x @ v) ** 2).mean())(w))
    batch = jnp.ones((64, 256))

    def step() -> None:
        nonlocal weights
        weights = update(weights, batch).block_until_ready()
        # The Python side of a loop: input, logging, bookkeeping.
        sum(len(a.shape) for a in keep[:400])
        tpusmi.step()

    step()
    return step


if __name__ == "__main__":
    main()
