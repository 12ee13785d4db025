"""What a capture costs the job, and how long the analysis of its trace takes.

    python tests/bench/profile.py [--duration-ms 1000] [--before 20] [--after 60] [--large-mib 64]

Printed are, for a capture by the agent and one over gRPC: the steps/s of a real JAX job before it,
in the seconds of the capture, and in the minute after it, beside those of the same job in a second
process on a core of its own, which is not captured; a machine whose speed drifts is slow for both
alike. Then what a look for requests costs the job when there is none. Last, how long our own
analysis and xprof's take for each MiB of a trace, and the most memory of each: of a real v6e, of
the capture before, and of a large one that is made up.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.pop(0)  # this directory, whose profile.py is not Python's module
sys.path.insert(0, str(Path(__file__).parent.parent))

from support import traces
from support.reading_traces import readings

from tpusmi.model import Host
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest
from tpusmi.trace.limits import MIB, TraceLimits
from tpusmi.wire import capture_files

START_S, PORT_S = 60.0, 30.0
ANALYSIS_S = 300.0
LOOKS = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration-ms", type=int, default=1000)
    parser.add_argument("--before", type=float, default=20.0)
    parser.add_argument("--after", type=float, default=60.0)
    parser.add_argument("--large-mib", type=int, default=64)
    parser.add_argument("--job", type=int, metavar="CORE", help=argparse.SUPPRESS)
    parser.add_argument("--xprof", metavar="TRACE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job is not None:
        train(options.job)
    elif options.xprof:
        analyze_with_xprof(options.xprof)
    else:
        measure(options)


def measure(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="tpusmi-bench-") as directory:
        os.environ |= {"TPUSMI_DIR": f"{directory}/segments", "JAX_PLATFORMS": "cpu"}
        captured = None
        for how in ("agent", "grpc"):
            captured = cost_of(how, options, directory) or captured
        show_cost_of_a_look(directory)
        show_analysis("real v6e", traces.REAL)
        if captured is not None:
            show_analysis("fresh CPU capture", Path(captured.path))
        large = Path(directory) / "large.xplane.pb"
        traces.write_large(large, "devices", options.large_mib)
        show_analysis(f"generated, {traces.DEVICES} cores", large)


class Job:
    """A process that trains, and reports its steps."""

    def __init__(self, core: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--job", str(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.pid = self._process.pid
        self._looks: list[tuple[float, int]] = []
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at_s, steps = line.split()
            self._looks.append((float(at_s), int(steps)))

    def steps_per_s(self, begin_s: float, end_s: float) -> float:
        """Of that time, by the job's own count."""
        looks = [look for look in self._looks if begin_s <= look[0] <= end_s]
        (first_s, first), (last_s, last) = looks[0], looks[-1]
        return (last - first) / (last_s - first_s)

    def end(self) -> None:
        """Let it end, and wait for that."""
        self._process.terminate()
        self._process.wait(30)


@contextmanager
def jobs() -> Iterator[tuple[Job, Job]]:
    """One that is captured, and one that is not, each on a core of its own if there are two."""
    cores = sorted(os.sched_getaffinity(0))
    both = Job(cores[0]), Job(cores[-1])
    try:
        yield both
    finally:
        for job in both:
            job.end()


def cost_of(how: str, options: argparse.Namespace, directory: str) -> CapturedTrace | None:
    """Capture one of two jobs in that way, and print the steps/s of both."""
    folder = Path(directory) / how
    folder.mkdir()
    with jobs() as (job, other):
        began_s = time.time()
        time.sleep(options.before)
        asked_s = time.time()
        captured = capture(how, job, CaptureRequest(duration_ms=options.duration_ms), str(folder))
        there_s = time.time()
        time.sleep(options.after)
        ended_s = time.time()
        print(
            f"{how}: {options.duration_ms} ms, the trace was there after {there_s - asked_s:.2f} s"
        )
        spans = {"before": (began_s, asked_s), "during": (asked_s, there_s)}
        spans["after"] = (there_s, ended_s)
        kept = [1.0, 1.0]
        for name, span in spans.items():
            rates = [one.steps_per_s(*span) for one in (job, other)]
            show_rates(name, span[1] - span[0], rates)
            if name != "during":
                kept = [rate / of for rate, of in zip(rates, kept, strict=True)]
        print(
            f"    what it cost in the {options.after:.0f} s after it: {percent(kept)}", flush=True
        )
    return captured


def percent(kept: list[float]) -> str:
    """How much of its speed the captured job has lost, compared to the other one."""
    return f"{100 * (1 - kept[0] / kept[1]):.2f} %"


def show_rates(name: str, seconds: float, rates: list[float]) -> None:
    """Print a line of steps/s."""
    print(
        f"    {name:>6} ({seconds:4.1f} s): {rates[0]:8.1f} steps/s, not captured {rates[1]:8.1f}"
    )


def capture(how: str, job: Job, request: CaptureRequest, folder: str) -> CapturedTrace | None:
    """The trace; None where there is none."""
    from tpusmi.profiler import in_process, remote
    from tpusmi.profiler.remote_addresses import Address
    from tpusmi.trace.troubles import CaptureError

    try:
        if how == "agent":
            return in_process.capture(
                Host(segment_dir=os.environ["TPUSMI_DIR"]), job.pid, request, folder, quiet
            )
        (answer,) = remote.capture([Address("localhost", job.port)], request, folder, quiet)
        if isinstance(answer, CapturedTrace):
            return answer
        print(f"    {answer}")
    except CaptureError as error:
        print(f"    {error}")
    return None


def quiet(sentence: str) -> None:
    """Says nothing of the progress."""


def train(core: int) -> None:
    """The job: small steps, one after the other, with the agent and a profiler service."""
    os.sched_setaffinity(0, {core})
    import socket

    import jax
    import jax.numpy as jnp

    import tpusmi

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    jax.profiler.start_server(port)
    tpusmi.start()
    weights = jnp.ones((256, 256))
    batch = jnp.ones((64, 256))

    @jax.jit
    def update(weights: jax.Array, batch: jax.Array) -> jax.Array:
        def loss(weights: jax.Array) -> jax.Array:
            return jnp.mean(jnp.tanh(batch @ weights) ** 2)

        return weights - 0.1 * jax.grad(loss)(weights)

    update(weights, batch).block_until_ready()
    print(port, flush=True)
    steps, next_s = 0, 0.0
    while True:
        with jax.profiler.StepTraceAnnotation("train", step_num=steps):
            weights = update(weights, batch)
            weights.block_until_ready()
        tpusmi.step()
        steps += 1
        if time.time() >= next_s:
            print(time.time(), steps, flush=True)
            next_s = time.time() + 0.1


def show_cost_of_a_look(directory: str) -> None:
    """What the agent does once a second where nothing was asked."""
    segment = f"{directory}/segments/1-1.seg"
    times = []
    for _ in range(9):
        started = time.perf_counter()
        for _ in range(LOOKS // 9):
            capture_files.is_waiting(segment)
        times.append((time.perf_counter() - started) / (LOOKS // 9))
    print(
        f"a look for requests, once per sample: {1e6 * statistics.median(times):.2f} µs", flush=True
    )


def show_analysis(name: str, path: Path) -> None:
    """How long each analysis takes, and its memory."""
    mib = path.stat().st_size / MIB
    print(f"{name}: {mib:.1f} MiB")
    (own,) = readings([path], ANALYSIS_S, ANALYSIS_S + 30)
    show_reading("tpusmi", mib, own.took_s, own.peak_mib, own.text if own.trouble else "")
    command = [sys.executable, __file__, "--xprof", str(path)]
    done = subprocess.run(command, capture_output=True, timeout=ANALYSIS_S + 60, check=True)
    theirs = json.loads(done.stdout)
    show_reading("xprof", mib, theirs["took_s"], theirs["peak_mib"], theirs["failure"])


def show_reading(who: str, mib: float, took_s: float, peak_mib: float, failure: str) -> None:
    """Print a line."""
    speed = f"{1e3 * took_s / mib:7.1f} ms per MiB"
    print(f"    {who:>6}: {took_s:6.2f} s, {speed}, {peak_mib:6.0f} MiB {failure}", flush=True)


def analyze_with_xprof(path: str) -> None:
    """Print how long xprof takes in its child, and the most memory of that."""
    from tpusmi.profiler.xprof_run import pages_of

    ended, peaks = threading.Event(), [0.0]
    watch = threading.Thread(target=watch_children, args=(ended, peaks))
    watch.start()
    began_s = time.monotonic()
    pages = pages_of(path, TraceLimits(began_s + ANALYSIS_S))
    took_s = time.monotonic() - began_s
    ended.set()
    watch.join()
    print(json.dumps({"took_s": took_s, "peak_mib": max(peaks), "failure": pages.failure}))


def watch_children(ended: threading.Event, peaks: list[float]) -> None:
    """Note the most memory that any child has had."""
    import psutil

    while not ended.wait(0.02):
        for child in psutil.Process().children(recursive=True):
            try:
                lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
            except OSError:
                continue  # it has just ended
            peaks += [int(n.split()[1]) / 1024 for n in lines if n.startswith("VmHWM:")]


if __name__ == "__main__":
    main()
