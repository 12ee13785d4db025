"""Hosts whose nodes real processes hold: device nodes where we may make them, files elsewhere.

Every process here is ours, and is gone at the end, whatever became of the test.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tpusmi.collect import open_collector
from tpusmi.model import Chip, Host, Snapshot, Verdict
from tpusmi.sources.holders import procfs

IS_ROOT = os.geteuid() == 0


def _sees_every_process() -> bool:
    return all(
        os.access(f"/proc/{pid}/fd", os.R_OK)
        for pid in filter(str.isdigit, os.listdir("/proc"))
        if os.path.exists(f"/proc/{pid}/fd")
    )


SEES_ALL = IS_ROOT or _sees_every_process()
IS_FREE = True if SEES_ALL else None
"""What a report says of nodes that no process of a test holds any more: where processes of others
cannot be looked into, one of them may hold the nodes.
"""
FREED = 0 if SEES_ALL else 3
"""The exit code of `kill` then."""
NODE, SECOND = "/dev/vfio/0", "/dev/vfio/1"
BUS = "sys/bus/pci/devices"

MARK = "TPUSMI_TEST_CHILD"
"""In the environment of every process that a test starts, and of all that come from it."""

HOLD = """
import os, sys
def hold(*paths): return [os.open(p, os.O_RDWR) for p in paths]
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # in one piece
def wait(): sys.stdin.read()
"""
"""What the code of a holder begins with. It ends with its stdin. Another user may be able to load
little of our Python: what else is needed is imported where it is.
"""

BEFORE_OTHERS = """
try: os.nice(-20)
except OSError: pass
"""
"""For one that must get a part of a processor, also while many others want one. Not all may."""


def chip(index: int, *nodes: str) -> Chip:
    """A chip with these nodes."""
    return Chip(index, "v5e", "TPU v5e", (f"0000:00:0{index}.0",), nodes, 1)


def host(tmp_path: Path, *nodes: str, device: bool = False) -> Host:
    """A host whose nodes are files, or character devices where we may make them."""
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "proc").symlink_to("/proc")
    (tmp_path / "tmp").mkdir()
    for node in nodes:
        path = tmp_path / node.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if device:
            os.mknod(path, 0o666 | 0o020000, os.makedev(1, 3))
        else:
            path.touch()
    return Host(root=str(tmp_path), segment_dir=str(tmp_path / "segments"), metrics_ports=())


def add_chips(tmp_path: Path, count: int) -> None:
    """So many v5e on the PCI bus, with the nodes /dev/vfio/0, 1, …"""
    for n in range(count):
        groups = tmp_path / "sys/kernel/iommu_groups" / str(n)
        groups.mkdir(parents=True)
        function = tmp_path / BUS / f"0000:00:0{n}.0"
        function.mkdir(parents=True)
        for name, content in (
            ("vendor", "0x1ae0"),
            ("device", "0x0063"),
            ("class", "0x120000"),
            ("numa_node", "0"),
        ):
            (function / name).write_text(f"{content}\n")
        (function / "iommu_group").symlink_to(f"../../../../kernel/iommu_groups/{n}")


def open_machine(tmp_path: Path, count: int) -> Host:
    """A host with so many chips, whose nodes are devices that every user may open."""
    nodes = [f"/dev/vfio/{n}" for n in range(count)]
    found = host(tmp_path, *nodes, device=True)
    add_chips(tmp_path, count)
    for node in nodes:
        os.chmod(found.path(node), 0o666)
    return found


def seen(machine: Host) -> Snapshot:
    """One look at it with every source."""
    collector = open_collector(machine)
    try:
        return collector.read_once(60.0)
    finally:
        collector.stop()


def as_stale(s: Snapshot, *pids: int) -> Snapshot:
    """The snapshot with the verdict that these holders are stale, whatever speaks against it. It is
    for tests of what follows from a verdict.
    """
    how = {"verdict": Verdict.STALE, "stale_code": "orphaned", "stale_reason": "says the test"}
    return s._replace(
        processes=tuple(p._replace(**how) if p.pid in pids else p for p in s.processes)
    )


class Running:
    """A child that holds something."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def line(self) -> str:
        """The next line that it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_on(self) -> str:
        """Let it read one line, and wait for what it says then."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.line()

    def let_go(self) -> None:
        """Close its stdin, on which it waits, and wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)


@contextmanager
def running(
    code: str,
    *arguments: object,
    user: int | None = None,
    env: Mapping[str, str | None] | None = None,
    argv0: str | bytes | None = None,
) -> Iterator[Running]:
    """A child of ours that runs that code in a group of its own, which is ended with it. Its
    environment is ours, and `env` (None: unset).
    """
    # Another user may not be able to run our Python, but one that runs can become his.
    become = "" if user is None else f"os.setgroups([]); os.setgid({user}); os.setuid({user})\n"
    # Not in a `preexec_fn`: with one the gRPC of other tests would break the child now and then.
    whole = f"{HOLD}os.setpgrp()\n{become}{code}"
    command: Sequence[str | bytes] = [sys.executable, "-c", whole, *map(str, arguments)]
    mark = f"{time.monotonic_ns()}"
    variables = {**os.environ, MARK: mark, **(env or {})}
    process = subprocess.Popen(
        [argv0, *command[1:]] if argv0 is not None else command,
        executable=sys.executable,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in variables.items() if value is not None},
        text=True,
    )
    try:
        yield Running(process)
    finally:
        for pid in marked(mark):
            _kill(pid)
        _kill(process.pid)
        process.wait(20)
        for pipe in (process.stdin, process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except BrokenPipeError:
                pass


def marked(mark: str = "") -> list[int]:
    """Every process that bears that mark; without one, any mark."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and is_marked(name, mark)]


def is_marked(pid: int | str, mark: str = "") -> bool:
    """True for a process that a test has started, or that has come from such a one."""
    # Of a leader that has ended only its threads know the environment.
    return any(
        f"{MARK}={mark}" in procfs.read(f"{thread}/environ")
        for thread in procfs.threads(f"/proc/{pid}")
    )


_kill_really = os.kill


def _kill(pid: int) -> None:
    try:
        _kill_really(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@contextmanager
def holder(*paths: Path, user: int | None = None, **environment: str) -> Iterator[int]:
    """The pid of a process that has those files open."""
    code = "files = hold(*sys.argv[1:]); say('holds'); wait()"
    with running(code, *paths, user=user, env=environment) as child:
        assert child.line() == "holds"
        yield child.pid


class AnyMount(dict[str, str]):
    """Every mount has that file system."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def get(self, key: str, default: object = None) -> str:  # type: ignore[override]
        return self._kind
