"""Real JAX jobs with the agent in them, driven line by line through their pipes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.commands import environment
from support.waits import LIMIT_S, until
from tpusmi.collect import Collector, open_collector
from tpusmi.model import Host, Process, Snapshot

PRELUDE = """
import gc, os, sys
# After a full collection in the agent's thread it pauses for a minute, to stay within its share.
gc.set_threshold(700, 10, 1_000_000)
if not os.environ.get("JAX_PLATFORMS"):
    os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
def say(*words): print(*words, flush=True)
def hear():
    line = sys.stdin.readline().strip()
    return line or sys.exit(0)
import tpusmi
"""


class Job:
    """A running job: hears the lines it says, tells it others."""

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self.process = process
        self.pid = process.pid
        self._errors = errors

    def hear(self) -> str:
        """The next line the job says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the job ended: {self.stderr}"
        return line.strip()

    def tell(self, line: str) -> None:
        """Say a line to the job."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self) -> int:
        """Close the job's input, which ends it, and wait: its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(LIMIT_S)

    @property
    def stderr(self) -> str:
        """What the job has said on stderr."""
        return self._errors.read_text()


@contextmanager
def job(directory: Path, code: str, *prefix: str, **more: str | None) -> Iterator[Job]:
    """A job running that code; killed at the end if it still runs. `prefix` is put before it."""
    errors = directory.parent / f"stderr-{time.monotonic_ns()}"
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [*prefix, sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
            env=environment(directory, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    try:
        yield Job(process, errors)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def collector(directory: Path) -> Collector:
    """A reader of that directory."""
    return open_collector(Host(segment_dir=str(directory), metrics_ports=()))


def seen(
    reader: Collector, pid: int, wanted: Callable[[Snapshot, Process], object]
) -> tuple[Snapshot, Process]:
    """The first snapshot in which the process of that pid is as wanted."""

    def look() -> tuple[Snapshot, Process] | None:
        snapshot = reader.read_once()
        for process in snapshot.processes:
            if process.pid == pid and wanted(snapshot, process):
                return snapshot, process
        return None

    return until(look)
