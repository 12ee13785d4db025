"""What a monitor inside the job costs it: steps/s of one training loop, with and without each.

    python tests/bench/agent_overhead.py [--rounds 10] [--seconds 6] [--arrays 5000]

Every round runs the same loop in the same process: bare, with tpusmi's agent at 1 Hz, bare again,
and with jax-smi (PyPI) if it is installed. Each monitored stretch is set against the mean of the
bare ones beside it; medians are printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SETTLE_S = 2.0
"""A monitor has been running for this long when its stretch begins."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--arrays", type=int, default=5000)
    parser.add_argument("--platform", default="cpu", help="JAX platform: cpu, cuda, tpu")
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = options.platform
    # One core, where nothing a monitor does can hide beside the job, and less noise from others.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="tpusmi-bench-") as directory:
        os.environ["TPUSMI_DIR"] = directory
        compare(options)


def compare(options: argparse.Namespace) -> None:
    """Run every round and print what came out."""
    step = training(options.arrays)
    monitors: dict[str, Callable[[], Any]] = {"tpusmi 1 Hz": with_tpusmi}
    if importlib.util.find_spec("jax_smi"):
        monitors["jax-smi 1 Hz"] = with_jax_smi
    ratios: dict[str, list[float]] = {name: [] for name in monitors}
    for number in range(options.rounds):
        for name, monitor in monitors.items():
            before = rate(step, options.seconds / 2)
            with monitor():
                rate(step, SETTLE_S)
                during = rate(step, options.seconds)
            after = rate(step, options.seconds / 2)
            ratios[name].append(during / ((before + after) / 2))
        line = "  ".join(f"{name} {found[-1]:.4f}" for name, found in ratios.items())
        print(f"round {number + 1}: {line}   ({before:.1f} bare steps/s)", flush=True)
    for name, found in ratios.items():
        report(name, found)


def report(name: str, ratios: list[float]) -> None:
    quarter = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    print(
        f"{name}: {statistics.median(ratios):.4f} of the bare steps/s "
        f"(quartiles {quarter[0]:.4f} to {quarter[2]:.4f}, {len(ratios)} rounds)"
    )


def training(arrays: int) -> Callable[[], None]:
    """One training step of a small model that keeps so many arrays alive."""
    import jax
    import jax.numpy as jnp

    keep = [jnp.full((i % 61 + 1,), 1.0) for i in range(arrays)]
    weights = jnp.eye(256)
    update = jax.jit(lambda w, x: w - 1e-6 * jax.grad(lambda v: ((x @ v) ** 2).mean())(w))
    batch = jnp.ones((64, 256))

    def step() -> None:
        nonlocal weights
        weights = update(weights, batch).block_until_ready()
        # The Python side of a loop: input, logging, bookkeeping.
        sum(len(a.shape) for a in keep[:400])

    step()
    return step


def rate(step: Callable[[], None], seconds: float) -> float:
    """Steps per second over that long."""
    import tpusmi

    count = 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        step()
        tpusmi.step()
        count += 1
    return count / (time.perf_counter() - started)


@contextmanager
def with_tpusmi() -> Iterator[None]:
    import tpusmi

    with tpusmi.start(interval_s=1.0):
        yield


@contextmanager
def with_jax_smi() -> Iterator[None]:
    """jax-smi's own thread, which has no end: it gets one when it asks for its next profile."""
    import jax.profiler
    from jax_smi import initialise_tracking

    save, ended = jax.profiler.save_device_memory_profile, threading.Event()

    def save_until_ended(path: str) -> None:
        if ended.is_set():
            raise SystemExit
        save(path)

    with tempfile.TemporaryDirectory() as directory:
        jax.profiler.save_device_memory_profile = save_until_ended
        initialise_tracking(interval=1.0, dir_prefix=directory)
        try:
            yield
        finally:
            ended.set()
            time.sleep(1.2)
            jax.profiler.save_device_memory_profile = save


if __name__ == "__main__":
    main()
