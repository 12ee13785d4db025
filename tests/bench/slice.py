"""What the slice costs a job of several processes: steps with and without it.

    python tests/bench/slice.py [--processes 4] [--pairs 5] [--idle-pairs 5] [--seconds 20]

One job, joined by jax.distributed, in which each process runs the same training loop, flat out.
Every process has tpusmi's agent; in one round it shares the slice, in the next it does not, and the
two swap places in each pair. A step is charged the CPU time of all threads of all processes: those
of the agents, and those of the coordinator in process 0, which runs in the job. Printed are also
the CPU time of the agents' slice threads alone, and the requests that the coordinator got.

Steps per CPU second differ by percents from round to round on a busy machine, far more than the
slice costs. So further rounds are of a loop that computes nothing: the CPU time of all threads with
the slice, less that without it, is what it costs, and the share of wall time what steps can lose.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from agent_overhead import loop, training

SETTLE_S = 11.0
"""An agent has been running for so long when it is measured."""


class Round(NamedTuple):
    """What the processes did in one round, all together."""

    steps: int
    cpu_s: float
    """CPU time of all of their threads."""
    slice_cpu_s: float
    """CPU time of the slice threads."""
    requests: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--idle-pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    if options.worker:
        index, address = options.worker
        work(int(index), options.processes, address)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory(prefix="tpusmi-bench-") as directory:
        workers = [
            start(i, options.processes, address, directory) for i in range(options.processes)
        ]
        try:
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "ready\n"
            if options.pairs:
                compare(workers, options.pairs, options.seconds)
            if options.idle_pairs:
                compare_idle(workers, options.idle_pairs, options.seconds)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def start(index: int, count: int, address: str, directory: str) -> subprocess.Popen[str]:
    """One process of the job, with a segment directory of its own, as a host of its own has."""
    own = f"{directory}/{index}"
    os.mkdir(own)
    command = [sys.executable, __file__, "--worker", str(index), address, "--processes", str(count)]
    return subprocess.Popen(
        command,
        env={**os.environ, "TPUSMI_DIR": own},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # JAX tells how the others ended
        text=True,
        bufsize=1,
    )


def compare(workers: list[subprocess.Popen[str]], pairs: int, seconds: float) -> None:
    """Measure pairs of rounds, and print what each shows."""
    ratios, shares, rates = [], [], []
    for number in range(pairs):
        order = (True, False) if number % 2 == 0 else (False, True)
        found = {is_on: together(workers, is_on, seconds) for is_on in order}
        on, off = found[True], found[False]
        ratios.append(on.steps / on.cpu_s * off.cpu_s / off.steps)
        shares.append(100 * on.slice_cpu_s / (seconds * len(workers)))
        rates.append(on.requests / seconds)
        print(
            f"pair {number + 1}: {ratios[-1]:.4f} of the steps per CPU second without it; slice "
            f"threads {shares[-1]:.4f} % of wall time; {rates[-1]:.1f} requests/s",
            flush=True,
        )
    print(
        f"{len(workers)} processes: {statistics.median(ratios):.4f} of the steps "
        f"({min(ratios):.4f} to {max(ratios):.4f}, {pairs} pairs of {seconds:.0f} s); slice "
        f"threads {statistics.mean(shares):.4f} % of wall time; "
        f"{statistics.mean(rates):.1f} requests/s"
    )


def compare_idle(workers: list[subprocess.Popen[str]], pairs: int, seconds: float) -> None:
    """Measure pairs of rounds without work, and print what the slice adds to each process."""
    costs = [idle_cost_percent(workers, seconds) for _ in range(pairs)]
    print(
        f"all threads of a process together: {statistics.median(costs):.4f} % of wall time "
        f"({min(costs):.4f} to {max(costs):.4f}, {pairs} pairs of {seconds:.0f} s)"
    )


def idle_cost_percent(workers: list[subprocess.Popen[str]], seconds: float) -> float:
    """CPU time that the slice adds to a process in which nothing else runs, in percent of time."""
    on, off = (together(workers, is_on, seconds, is_idle=True) for is_on in (True, False))
    cost = 100 * (on.cpu_s - off.cpu_s) / (seconds * len(workers))
    print(f"idle: {cost:.4f} % of wall time per process", flush=True)
    return cost


def together(
    workers: list[subprocess.Popen[str]], is_on: bool, seconds: float, is_idle: bool = False
) -> Round:
    """One round of all workers at once."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{int(is_on)} {int(is_idle)} {seconds}\n")
    rows = []
    for worker in workers:
        assert worker.stdout is not None
        rows.append([float(word) for word in worker.stdout.readline().split()])
    steps, cpu_s, slice_cpu_s, requests = map(sum, zip(*rows, strict=True))
    return Round(int(steps), cpu_s, slice_cpu_s, int(requests))


def work(index: int, count: int, address: str) -> None:
    """One worker: joins the job, says that it is ready, then does as it is told."""
    import jax

    jax.distributed.initialize(address, count, index)
    requests = counted_requests()
    with jax.default_device(jax.local_devices()[0]):
        step = training(1000)
        print("ready", flush=True)
        for line in sys.stdin:
            is_on, is_idle, seconds = line.split()
            run = idle if is_idle == "1" else step
            print(*measured(run, is_on == "1", float(seconds), requests), flush=True)


def idle() -> None:
    """A step that computes nothing."""
    time.sleep(0.05)
    import tpusmi

    tpusmi.step()


def measured(
    step: Callable[[], None], is_on: bool, seconds: float, requests: list[str]
) -> tuple[float, ...]:
    """Steps, CPU time, that of the slice thread, and requests, with the agent running."""
    import tpusmi
    from tpusmi import agent

    tpusmi.start(slice=is_on)
    loop(step, SETTLE_S)
    sampler: Any = agent._sampler
    before_s, before = sampler.slice.cpu_s, len(requests)
    steps, cpu_s = loop(step, seconds)
    slice_cpu_s = sampler.slice.cpu_s - before_s
    asked = len(requests) - before
    tpusmi.stop()
    time.sleep(0.5)  # the others may still be asking
    return steps, cpu_s, slice_cpu_s, asked


def counted_requests() -> list[str]:
    """A list that gets an entry for each request to the coordinator."""
    from tpusmi.agent.slice_service import CoordinationService

    requests: list[str] = []
    for name in ("put", "texts", "remove"):
        original = getattr(CoordinationService, name)

        def counting(
            service: Any, *arguments: Any, _call: Any = original, _name: str = name
        ) -> Any:
            requests.append(_name)
            return _call(service, *arguments)

        setattr(CoordinationService, name, counting)
    return requests


if __name__ == "__main__":
    main()
