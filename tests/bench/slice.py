"""What the slice costs a job of several processes: its steps with and without it.

    python tests/bench/slice.py [--processes 4] [--pairs 60] [--seconds 2] [--times 100]

One job, joined by jax.distributed, in which each process runs the same training loop, flat out, and
has tpusmi's agent. Windows of a few seconds alternate: in one the agents share the slice, in the
next they pause it, with all else as it was; the order changes with each pair. Nothing is started or
compiled anew in between, so that both windows of a pair see the same machine.

On a machine with other work, pairs differ by percents, and the slice costs hundredths of one: no
number of pairs that anyone waits for resolves that. So the slice works `--times` as often as it
does in a job. Its work is the same round each time, a put and a read of all processes: steps lost
per round, divided by its true period, are what it costs a job. Writing what a round has read is the
sampler's work, once per sample, and is timed by itself. Printed are, in this order:

1. **The proof**: steps lost by rounds, as a share of all steps, at the true period. It is the mean
   of all pairs with its 95 % interval (bootstrap): of steps per CPU second, which other programs
   change least, and of steps per second. All threads of all processes count, those of the
   coordinator and of gRPC as well, and waiting for the interpreter, caches and switches are in it.
   Here the processes share cores with each other and with other programs; the share is that of a
   process with a core for its loop, as a host of a slice has. How much each has here is printed.
2. The same where the loop computes nothing: the CPU time of all threads, without noise.
3. The slice threads alone: CPU time per round, and the longest time that one can have kept the
   interpreter from the loop: no more than its CPU time in one round. Requests leave it to the loop.
4. With `--times 1`, the same measurement without help: it shows how wide the interval is then.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agent_overhead import training
from slice_rounds import Rounds

SETTLE_S = 12.0
"""An agent has been running for so long when it is measured."""
AHEAD_S = 0.5
"""All processes begin a window at the same moment, so long after they are told."""
MARGIN_S = 0.1
"""The time after the begin of a window for a round that is under way."""
RESAMPLES = 4000


class Window(NamedTuple):
    """What a process did in one window, or all of them together."""

    steps: float
    cpu_s: float
    """CPU time of all of its threads."""
    wall_s: float
    rounds: float
    round_cpu_s: float
    """CPU time of the slice thread."""
    round_most_s: float
    """The most CPU time in one round."""
    write_cpu_s: float
    """CPU time of writing what was read into the segment: per write."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--idle-pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--times", type=float, default=100.0)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    if options.worker:
        index, address = options.worker
        work(int(index), options.processes, address, options.times)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory(prefix="tpusmi-bench-") as directory:
        workers = [start(i, options, address, directory) for i in range(options.processes)]
        try:
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "ready\n"
            compare(workers, options)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def start(
    index: int, options: argparse.Namespace, address: str, directory: str
) -> subprocess.Popen[str]:
    """One process of the job, with a segment directory of its own, as a host of its own has."""
    own = f"{directory}/{index}"
    os.mkdir(own)
    command = [sys.executable, __file__, "--worker", str(index), address]
    command += ["--processes", str(options.processes), "--times", str(options.times)]
    return subprocess.Popen(
        command,
        env={**os.environ, "TPUSMI_DIR": own},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # JAX tells how the others ended
        text=True,
        bufsize=1,
    )


# -- what is made of the windows


def compare(workers: list[subprocess.Popen[str]], options: argparse.Namespace) -> None:
    """Measure all pairs, and print what they show."""
    from tpusmi.wire.slice_summary import period_s

    true_s, count = period_s(len(workers)), len(workers)
    busy = measured_pairs(workers, options.pairs, options.seconds, False)
    idle = measured_pairs(workers, options.idle_pairs, options.seconds, True)
    on = [pair[0] for pair in (*busy, *idle)]
    writing_s = max(w.write_cpu_s for w in on) / count
    added = 100 * writing_s / true_s
    print(
        f"{count} processes, {options.pairs} pairs of {options.seconds:g} s, the slice "
        f"{options.times:g} times as often: {statistics.median(rounds_per_s(w) for w in on):.1f} "
        f"rounds per second in all; {statistics.median(cores(w) for _, w in busy) / count:.2f} "
        f"cores for each"
    )
    for name, rate in (
        ("steps per CPU second", lambda w: w.steps / w.cpu_s),
        ("steps per second", lambda w: w.steps / w.wall_s),
    ):
        losses = [loss_percent(pair, rate, count, true_s) + added for pair in busy]
        print(f"1. {name} lost: {interval(losses)} of a process with a core, once per {true_s:g} s")
    costs = [idle_percent(pair, count, true_s) + added for pair in idle]
    print(f"2. CPU time of all threads without other work: {interval(costs)} of a core per process")
    each_s = sum(w.round_cpu_s for w in on) / max(1.0, sum(w.rounds for w in on))
    most_s = max(w.round_most_s for w in on)
    print(
        f"3. slice threads: {1e3 * each_s:.2f} ms of CPU time per round, {1e3 * most_s:.2f} ms at "
        f"most, {100 * each_s / true_s:.4f} % of a core; writing: {1e3 * writing_s:.3f} ms"
    )


def measured_pairs(
    workers: list[subprocess.Popen[str]], pairs: int, seconds: float, is_idle: bool
) -> list[tuple[Window, Window]]:
    """Pairs of windows: with the slice, and without it."""
    found = []
    for number in range(pairs):
        order = (True, False) if number % 2 == 0 else (False, True)
        both = {is_on: together(workers, is_on, seconds, is_idle) for is_on in order}
        found.append((both[True], both[False]))
    return found


def rounds_per_s(w: Window) -> float:
    """Of all processes together."""
    return w.rounds / w.wall_s


def loss_percent(
    pair: tuple[Window, Window], rate: Callable[[Window], float], count: int, true_s: float
) -> float:
    """Share of the steps that one round in that time costs a process with a core of its own."""
    on, off = pair
    more_often = rounds_per_s(on) / count * true_s
    return 100 * (1 - rate(on) / rate(off)) / more_often * min(1.0, cores(off) / count)


def cores(w: Window) -> float:
    """How many cores all processes together had."""
    return w.cpu_s / w.wall_s


def idle_percent(pair: tuple[Window, Window], count: int, true_s: float) -> float:
    """CPU time that one round in that time adds to a process, as a share of a core."""
    on, off = pair
    added_s = on.cpu_s - off.cpu_s * on.wall_s / off.wall_s
    return 100 * added_s / max(1.0, on.rounds) / true_s


def interval(values: Sequence[float]) -> str:
    """Their mean with its interval, by resampling."""
    if not values:
        return "not measured"
    chance = random.Random(1)
    means = sorted(
        statistics.fmean(chance.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]
    mean, median = statistics.fmean(values), statistics.median(values)
    return f"{mean:.4f} % (95 %: {low:.4f} to {high:.4f}; median {median:.4f})"


def together(
    workers: list[subprocess.Popen[str]], is_on: bool, seconds: float, is_idle: bool
) -> Window:
    """One window of all workers at once."""
    begin_s = time.monotonic() + AHEAD_S
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{int(is_on)} {int(is_idle)} {begin_s} {seconds}\n")
    windows = []
    for worker in workers:
        assert worker.stdout is not None
        windows.append(Window._make(map(float, worker.stdout.readline().split())))
    total = Window._make(map(sum, zip(*windows, strict=True)))
    most_s = max(w.round_most_s for w in windows)
    return total._replace(wall_s=total.wall_s / len(windows), round_most_s=most_s)


# -- a process of the job


def work(index: int, count: int, address: str, times: float) -> None:
    """One worker: joins the job, says that it is ready, then does as it is told."""
    import jax

    import tpusmi

    jax.distributed.initialize(address, count, index)
    rounds = Rounds(times)
    with jax.default_device(jax.local_devices()[0]):
        step = training(1000)
        tpusmi.start()
        run_until(step, time.monotonic() + SETTLE_S)
        print("ready", flush=True)
        for line in sys.stdin:
            is_on, is_idle, begin_s, seconds = line.split()
            run = idle_step if is_idle == "1" else step
            print(*window(run, rounds, is_on == "1", float(begin_s), float(seconds)), flush=True)


def idle_step() -> None:
    """A step that computes nothing."""
    time.sleep(0.05)


def run_until(step: Callable[[], None], end_s: float) -> int:
    """How many steps there were until then."""
    count = 0
    while time.monotonic() < end_s:
        step()
        count += 1
    return count


def window(
    step: Callable[[], None], rounds: Rounds, is_on: bool, begin_s: float, seconds: float
) -> Window:
    """The steps of one window, and what they and the slice cost."""
    run_until(step, begin_s - MARGIN_S)
    rounds.allow(is_on)
    run_until(step, begin_s)
    rounds.forget()
    started_s, cpu_s = time.monotonic(), time.process_time()
    steps = run_until(step, begin_s + seconds)
    cpu_s, wall_s = time.process_time() - cpu_s, time.monotonic() - started_s
    costs, writes = [*rounds.costs], [*rounds.writes]
    rounds.allow(False)
    return Window(
        steps=steps,
        cpu_s=cpu_s,
        wall_s=wall_s,
        rounds=len(costs),
        round_cpu_s=sum(costs),
        round_most_s=max(costs, default=0.0),
        write_cpu_s=statistics.fmean(writes) if writes else 0.0,
    )


if __name__ == "__main__":
    main()
