"""Starts a simulated host."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tpusmi.model import Host
from tpusmi.simulate.attached import attach
from tpusmi.simulate.directory import sweep
from tpusmi.simulate.offspring import start_module
from tpusmi.text import counted

START_S = 25.0
"""More than the keeper gives its processes."""
END_S = 15.0
SETTLED_S = 60.0
"""Age of a job at which its numbers are those of training."""


class PortBusyError(Exception):
    """A metrics port that was asked for is in use."""


class StartError(Exception):
    """The host could not be made; the sentence says why."""


class Plan(NamedTuple):
    """Which host to simulate."""

    machine: str
    """An accelerator type: `v5e-8`."""
    worker: int = 0
    chips: int | None = None
    """Another number of local chips."""
    processes: int = 1
    port: int | None = None
    """Of the first process; None takes free ones."""
    faults: tuple[str, ...] = ()
    seed: int = 0
    age_s: float = SETTLED_S
    """So long has the job run already."""
    freeze_s: float | None = None
    """Its age for ever: every answer is the same."""
    hold: bool = True
    """False leaves the device nodes and the lock to somebody else."""
    agent: bool = False
    """The job has tpusmi's agent: its processes write segments."""

    def check(self) -> None:
        """Raises ValueError with a sentence when there can be no such host."""
        from tpusmi.simulate import faults, machine

        chips = machine.parse(self.machine, self.worker, self.chips).chips
        faults.parse(list(self.faults))
        if not 1 <= self.processes <= chips or chips % self.processes:
            among = counted(self.processes, "process", "processes")
            raise ValueError(f"{counted(chips, 'chip')} cannot be split among {among}")
        if self.port is not None and not 1 <= self.port <= 65536 - self.processes:
            raise ValueError(f"{self.port} is not a port")


@contextmanager
def start(plan: Plan) -> Iterator[Host]:
    """The host, while its processes run; they and its files are gone afterwards.

    Everything listens when it is handed out. Raises ValueError, PortBusyError or StartError.
    """
    plan.check()
    try:
        keeper = start_module("tpusmi.simulate.keeper")
    except OSError as error:
        reason = f"its Python cannot be run: {error.strerror}"
        raise StartError(f"the simulated host did not start: {reason}") from error
    try:
        yield attach(_directory(keeper, plan))
    finally:
        _end(keeper)


def set_faults(directory: str, texts: Sequence[str]) -> None:
    """Make a running host go wrong in other ways, or right: `("slow:3", "idle")`, `()`."""
    from tpusmi.simulate import faults

    faults.parse(list(texts))
    path = f"{directory}/{faults.FILE}"
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write("".join(f"{text}\n" for text in texts))
    os.replace(f"{path}.new", path)


def _directory(keeper: subprocess.Popen[bytes], plan: Plan) -> str:
    """Where the keeper has made the host. Raises PortBusyError or StartError."""
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        keeper.stdin.write(f"{json.dumps(plan._asdict())}\n".encode())
    except BrokenPipeError:
        pass  # it has ended, which its stdout tells
    if not select.select([keeper.stdout], [], [], START_S)[0]:
        raise StartError(f"the simulated host did not start within {START_S:.0f} s")
    words = keeper.stdout.readline()
    if not words:
        raise StartError("the simulated host did not start: its Python has ended")
    said = json.loads(words)
    if "directory" in said:
        return str(said["directory"])
    raise (PortBusyError if said["failed"] == "busy" else StartError)(said["message"])


def _end(keeper: subprocess.Popen[bytes]) -> None:
    """Let the keeper clear up; do it ourselves where it was killed."""
    try:
        keeper.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        keeper.kill()  # its processes die with it
        keeper.communicate(timeout=END_S)
    sweep()
