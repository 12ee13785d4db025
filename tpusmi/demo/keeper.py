"""The demo's keeper: runs a training job on a simulated host, and clears both away once the demo is
gone.

It reads a pipe that only the demo holds open: however the demo ends, by SIGKILL too, the kernel
closes that pipe. In a session of its own it hears nothing of what is sent to the demo's terminal or
group. Line by line it says on stdout: the host's directory, what the job says there, and, should
the job end by itself, its obituary.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from types import FrameType
from typing import Any

from tpusmi.demo.served import shared
from tpusmi.model import Host
from tpusmi.simulate import description
from tpusmi.simulate.environment import job_environment
from tpusmi.simulate.holding import lock, open_lockfile, open_nodes
from tpusmi.simulate.host import Plan, PortBusyError, StartError, start
from tpusmi.simulate.machine import parse
from tpusmi.simulate.offspring import die_with

MACHINE = "v5e-8"
"""As many devices as XLA_FLAGS makes."""
AGE_S = 22.0
"""Of the simulated job: it has loaded and compiled, and its steps begin as those of JAX do here."""
TERMINATE_S, KILL_S = 2.0, 5.0
LAST_WORDS_LINES, LAST_WORDS_BYTES = 8, 2000

XLA_FLAGS = "--xla_force_host_platform_device_count=8 --xla_cpu_multi_thread_eigen=false"


def main() -> None:
    """Keep the job until the demo is gone."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _exit)
    try:
        # The job holds the chips; what serves their metrics is a process beside it.
        with start(Plan(MACHINE, age_s=AGE_S, hold=False)) as host:
            _say(host.root)
            _keep(host)
    except (StartError, PortBusyError) as error:
        _say(f"\nThere is no simulated host: {error}")


def _keep(host: Host) -> None:
    keeper = os.getpid()
    told = description.read(host.root)
    lockfile = open_lockfile(host.root)
    nodes = open_nodes(host.root, [node for chip in told["chips"] for node in chip["nodes"]])
    own = (lockfile, *nodes, *(fd for p in told["processes"] for fd in shared(p["port"])))

    def prepare() -> None:  # in the child; safe: this process has one thread
        die_with(keeper)
        lock(lockfile)

    with open(f"{host.root}/training.log", "w+b") as log:
        trainer = subprocess.Popen(
            [sys.executable, "-m", "tpusmi.demo.training"],
            env=_environment(host, told["processes"]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=own,
            preexec_fn=prepare,
        )
        for descriptor in own:
            os.close(descriptor)  # the job's now
        try:
            _watch(trainer, log.fileno())
        finally:
            _end(trainer)


def _watch(trainer: subprocess.Popen[bytes], log: int) -> None:
    """Pass on what the job says until the demo is gone. No limit: that is told by the pipe."""
    demo, job = sys.stdin.fileno(), trainer.stdout
    assert job is not None
    watched = [demo, job.fileno()]
    ready: list[int] = []
    while demo not in ready:
        ready = select.select(watched, [], [])[0]
        if job.fileno() not in ready:
            continue
        words = os.read(job.fileno(), 4096).decode("utf-8", "replace").strip()
        if not words:
            watched.remove(job.fileno())
        _say(words or _obituary(trainer, log))


def _obituary(trainer: subprocess.Popen[bytes], log: int) -> str:
    """How the job ended, and its last words on stderr."""
    try:
        status = trainer.wait(KILL_S)
    except subprocess.TimeoutExpired:
        return "The training job closed its output."
    how = f"with status {status}" if status >= 0 else f"by signal {-status}"
    start = max(0, os.fstat(log).st_size - LAST_WORDS_BYTES)
    words = os.pread(log, LAST_WORDS_BYTES, start).decode("utf-8", "replace").splitlines()
    return "\n  ".join([f"The training job ended {how}.", *words[-LAST_WORDS_LINES:]])


def _end(trainer: subprocess.Popen[bytes]) -> None:
    trainer.terminate()
    try:
        trainer.wait(TERMINATE_S)
    except subprocess.TimeoutExpired:
        trainer.kill()
        trainer.wait(KILL_S)


def _environment(host: Host, processes: list[dict[str, Any]]) -> dict[str, str]:
    """That of a job on the TPU, but for JAX, which runs on the CPU."""
    ours = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": XLA_FLAGS, "TPUSMI_DIR": str(host.segment_dir)}
    return job_environment(parse(MACHINE), processes, 0) | ours


def _say(words: str) -> None:
    try:
        os.write(sys.stdout.fileno(), f"{words}\n".encode())
    except BrokenPipeError:
        pass  # the demo is gone, which the other pipe tells as well


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
