"""The demo's keeper: runs the training job, and clears it away once the demo is gone.

It reads a pipe that only the demo holds open: however the demo ends, by SIGKILL too, the kernel
closes that pipe. In a session of its own it hears nothing of what is sent to the demo's terminal or
group. Line by line it says on stdout: the job's directory, what the job says there, and, should the
job end by itself, its obituary.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from types import FrameType

SHARED_MEMORY = "/dev/shm"
ROOM_BYTES = 8 * 1024 * 1024
TERMINATE_S, KILL_S = 2.0, 5.0
LAST_WORDS_LINES, LAST_WORDS_BYTES = 8, 2000
PR_SET_PDEATHSIG = 1

FOREIGN = ("JAX_", "XLA_", "TPUSMI_")
"""What the user set for jobs of their own, a coordinator or a GPU's flags, is not for this one."""
XLA_FLAGS = "--xla_force_host_platform_device_count=8 --xla_cpu_multi_thread_eigen=false"


def main() -> None:
    """Keep the job until the demo is gone."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _exit)
    directory = tempfile.mkdtemp(prefix="tpusmi-demo-", dir=_parent())
    try:
        _say(directory)
        _keep(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _keep(directory: str) -> None:
    keeper = os.getpid()
    with open(f"{directory}/log", "w+b") as log:
        trainer = subprocess.Popen(
            [sys.executable, "-m", "tpusmi.demo.training"],
            env=_environment(directory),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=lambda: _die_with(keeper),  # safe: this process has one thread
        )
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


def _die_with(keeper: int) -> None:
    """In the job, before it is one: end when the keeper does, even by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != keeper:
        os._exit(1)  # it ended before the kernel knew


def _environment(directory: str) -> dict[str, str]:
    ours = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": XLA_FLAGS, "TPUSMI_DIR": directory}
    return {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)} | ours


def _parent() -> str | None:
    """Shared memory when it can be used and has room; None stands for the usual place."""
    try:
        free = shutil.disk_usage(SHARED_MEMORY).free
    except OSError:
        return None
    return SHARED_MEMORY if free > ROOM_BYTES and os.access(SHARED_MEMORY, os.W_OK) else None


def _say(words: str) -> None:
    try:
        os.write(sys.stdout.fileno(), f"{words}\n".encode())
    except BrokenPipeError:
        pass  # the demo is gone, which the other pipe tells as well


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
