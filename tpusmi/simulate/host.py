"""Starts a simulated host: a keeper process makes it and clears it away."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tpusmi.interpreter import this_python
from tpusmi.model import Host
from tpusmi.simulate.directory import attach, sweep
from tpusmi.text import counted

START_S = 25.0
"""More than the keeper gives its processes."""
END_S = 15.0
SETTLED_S = 60.0
"""Age of a job at which its numbers are those of training."""
PR_SET_PDEATHSIG = 1


class PortBusyError(Exception):
    """A metrics port that was asked for is in use."""


class StartError(Exception):
    """The host could not be made; the sentence says why."""


class HostPlan(NamedTuple):
    """Which host to simulate."""

    machine: str
    """An accelerator type: `v5e-8`."""
    worker: int = 0
    chips: int | None = None
    """Number of local chips; None is as many as the type has."""
    processes: int = 1
    port: int | None = None
    """Metrics port of the first process; None takes free ones."""
    faults: tuple[str, ...] = ()
    seed: int = 0
    age_s: float = SETTLED_S
    """How long the job has run when the host starts."""
    freeze_s: float | None = None
    """Age of the job for ever, so that every answer is the same; None lets time pass."""
    hold: bool = True
    """False leaves the device nodes and the lock to another process."""
    agent: bool = False
    """The job has tpusmi's agent: its processes write segments."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables of the program, beside those of a job on this machine."""
    program: tuple[str, ...] = ()
    """Arguments of a Python that runs a real program as the job: it has the nodes, the lock and the
    socket of the metrics. Goes with `hold=False`. Empty for a job that is all simulated.
    """

    def check(self) -> None:
        """Raises ValueError with a sentence when there can be no such host."""
        from tpusmi.simulate import accelerator, faults

        machine = accelerator.parse(self.machine, self.worker, self.chips)
        chips = machine.chips
        faults.check_hosts(faults.parse(list(self.faults)), machine.hosts, self.worker)
        if not 1 <= self.processes <= chips or chips % self.processes:
            among = counted(self.processes, "process", "processes")
            raise ValueError(f"{counted(chips, 'chip')} cannot be split evenly among {among}")
        if self.port is not None and not 1 <= self.port <= 65536 - self.processes:
            raise ValueError(f"{self.port} is not a port")


class Keeper:
    """The process that keeps a simulated host, which is there once this exists.

    Raises ValueError, PortBusyError or StartError.
    """

    def __init__(self, plan: HostPlan) -> None:
        plan.check()
        self._starter = os.getpid()
        try:
            self._process = _start_keeper()
        except OSError as error:
            reason = f"its Python cannot be run: {error.strerror}"
            raise StartError(f"the simulated host did not start: {reason}") from error
        try:
            self.host = attach(self._directory(plan))
        except BaseException:
            self._process.terminate()  # it may wait for a process, and not read its pipe yet
            self.end()
            raise

    def line(self, limit_s: float) -> str | None:
        """The next line that the keeper prints; empty when it has ended, None after the limit."""
        assert self._process.stdout is not None
        poll = select.poll()  # select() takes no descriptor above 1023, which a job may have
        poll.register(self._process.stdout, select.POLLIN)
        if not poll.poll(max(0.0, limit_s) * 1000):
            return None
        return self._process.stdout.readline().decode("utf-8", "replace").strip()

    def end(self) -> str:
        """Let the keeper clear up, or do that for it where it was killed; its last lines.

        Does nothing in a forked child: the host is the parent's, also when the child ends.
        """
        if os.getpid() != self._starter:
            return ""
        try:
            lines, _ = self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its processes die with it
            lines, _ = self._process.communicate(timeout=END_S)
        sweep()
        return lines.decode("utf-8", "replace").strip()

    def _directory(self, plan: HostPlan) -> str:
        """Where the keeper has made the host. Raises PortBusyError or StartError."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{json.dumps(plan._asdict())}\n".encode())
        except BrokenPipeError:
            pass  # it has ended, which its stdout shows
        line = self.line(START_S)
        if line is None:
            raise StartError(f"the simulated host did not start within {START_S:.0f} s")
        if not line:
            raise StartError("the simulated host did not start: its Python has ended")
        reply = json.loads(line)
        if "directory" in reply:
            return str(reply["directory"])
        raise (PortBusyError if reply["failed"] == "busy" else StartError)(reply["message"])


@contextmanager
def start(plan: HostPlan) -> Iterator[Host]:
    """The host, while its processes run; they and its files are gone afterwards.

    Everything listens when it is handed out. Raises ValueError, PortBusyError or StartError.
    """
    keeper = Keeper(plan)
    try:
        yield keeper.host
    finally:
        keeper.end()


@contextmanager
def opened_host(name: str, agent: bool = False) -> Iterator[Host]:
    """The host in that directory, which goes on afterwards; or one of that type, `v5e-8`, started
    and ended here, whose job has an agent if `agent` says so. Raises as `start` does.
    """
    if os.sep in name or os.path.isdir(name):
        yield attach(name)
        return
    with start(HostPlan(name, agent=agent)) as host:
        yield host


def _start_keeper() -> subprocess.Popen[bytes]:
    """The keeper in a Python of its own, which reads and writes pipes of ours.

    Ctrl-C is for us: it goes when its pipe does. Raises OSError where it cannot be started.
    """
    # It finds what this process finds, also in a source tree, and nothing else: `-m` puts the
    # current directory first, where the user may have a random.py.
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    return subprocess.Popen(
        [this_python(), "-m", "tpusmi.simulate.keeper"],
        env={**os.environ, "PYTHONPATH": path},
        cwd="/",
        bufsize=0,  # select() knows nothing of what a buffer holds
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def die_with(parent: int) -> None:
    """In a child, before it is a program: end when the parent does, even by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # it ended before the kernel knew
