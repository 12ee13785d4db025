"""Which processes hold which device nodes of a TPU.

One pass over /proc with scandir and readlink. A node is never opened: a monitor's open would make
the real job's fail.
"""

from __future__ import annotations

import math
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tpusmi.model import ABSENT, DENIED, FAILED, OK, Chip, Host, Outcome, Process, ProcessKey
from tpusmi.sources.segments.facts import user_name
from tpusmi.sources.sysfs.nodes import lookalikes
from tpusmi.text import clean, command_line, redacted
from tpusmi.wire import places

PERIOD_S = 2.0
LOOK_AT_ALL_S = 10.0
READ_MOST = 64 * 1024
ENVIRONMENT = frozenset(
    (
        "TPU_RUNTIME_METRICS_PORTS",
        "TPU_PROCESS_ADDRESSES",
        "TPU_PROCESS_PORT",
        "TPU_PROCESS_BOUNDS",
        "TPU_CHIPS_PER_PROCESS_BOUNDS",
        "TPU_CHIPS_PER_HOST_BOUNDS",
        "TPU_VISIBLE_CHIPS",
        "TPU_VISIBLE_DEVICES",
        "TPU_ACCELERATOR_TYPE",
        "TPU_TOPOLOGY",
        "TPU_WORKER_ID",
        "TPU_SKIP_MDS_QUERY",
        "TPU_LOAD_LIBRARY",
        "LIBTPU_INIT_ARGS",
        "JAX_PLATFORMS",
    )
)
"""Variables of other processes that are ever read: none of them carries a secret."""


class Nodes(NamedTuple):
    """The device nodes of a host, and how to know them again."""

    names: dict[str, None]
    """In order, without the host's root: `/dev/vfio/0`."""
    by_identity: dict[tuple[int, int], str]


class Holders:
    """The processes that hold a TPU. Asked by other sources too, hence the lock."""

    name = "holders"
    period_s = PERIOD_S

    def __init__(self, host: Host, chips: Callable[[], Sequence[Chip]]) -> None:
        self._host = host
        self._chips = chips
        self._lock = threading.Lock()
        self._newest: Outcome | None = None
        self._read_at_s = 0.0
        self._nodes = Nodes({}, {})
        self._without: dict[int, list[str]] = {}
        """Descriptors of each process that had no node open."""
        self._looked_at_all_s = -math.inf

    def read(self, now_s: float) -> Outcome:
        """Every holder with its nodes. ABSENT when the host has no node of a TPU."""
        with self._lock:
            self._newest = self._scan(now_s)
            self._read_at_s = now_s
            return self._newest

    def close(self) -> None:
        """Nothing is held open."""

    def processes(self) -> Sequence[Process]:
        """The holders, from a pass that is not older than two periods."""
        now_s = time.monotonic()
        with self._lock:
            if self._newest is None or now_s - self._read_at_s > 2 * PERIOD_S:
                self._newest = self._scan(now_s)
                self._read_at_s = now_s
            return self._newest.processes

    def _scan(self, now_s: float) -> Outcome:
        nodes = known_nodes(self._host, self._chips())
        if not nodes.names:
            return Outcome(self.name, ABSENT, "no device node of a TPU", time.monotonic() - now_s)
        proc = self._host.path("/proc")
        found: list[Process] = []
        hidden = 0
        try:
            pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
        except OSError as error:
            return Outcome(self.name, FAILED, f"{proc}: {error.strerror}")
        for pid, held in self._held(proc, pids, nodes, now_s):
            if held is None:
                hidden += 1
            elif (process := describe(proc, pid, held)) is not None:
                found.append(process)
        status, message = _status(found, hidden)
        return Outcome(self.name, status, message, time.monotonic() - now_s, processes=tuple(found))

    def _held(
        self, proc: str, pids: Sequence[int], nodes: Nodes, now_s: float
    ) -> Iterator[tuple[int, list[str] | None]]:
        """What each process holds, if anything; None where that may not be looked at.

        A process that held nothing and still has the same descriptors is not looked at again, but
        now and then: one of them may have been opened anew.
        """
        if now_s - self._looked_at_all_s >= LOOK_AT_ALL_S or nodes != self._nodes:
            self._looked_at_all_s, self._nodes = now_s, nodes
            self._without = {}
        before, self._without = self._without, {}
        for pid in pids:
            process = f"{proc}/{pid}"
            descriptors = open_descriptors(process)
            if descriptors is None:
                yield pid, None
                continue
            is_known = before.get(pid) == descriptors
            held = [] if is_known else held_nodes(process, descriptors, nodes)
            if held == []:
                self._without[pid] = descriptors
            else:
                yield pid, held


def known_nodes(host: Host, chips: Iterable[Chip]) -> Nodes:
    """The device nodes of those chips; without a chip, every node that looks like one of a TPU.

    A container may have the nodes and no PCI bus.
    """
    names: list[str] = []
    by_identity: dict[tuple[int, int], str] = {}
    for name in [node for chip in chips for node in chip.nodes] or lookalikes(host):
        try:
            by_identity[_identity(os.stat(host.path(name)))] = name
        except OSError:
            continue  # the chips' own source says so
        names.append(name)
    return Nodes(dict.fromkeys(names), by_identity)


def _identity(found: os.stat_result) -> tuple[int, int]:
    """Of a device its number, whichever /dev it was opened through; of a file that stands in for
    one its place on disk.
    """
    if stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) != _MEMORY_DEVICES:
        return (-1, found.st_rdev)
    return (found.st_dev, found.st_ino)


_MEMORY_DEVICES = 1
"""/dev/null and its like: a simulated host's nodes have their numbers, all the same one."""


def open_descriptors(process: str) -> list[str] | None:
    """The numbers of its open descriptors; None when they may not be listed."""
    try:
        return os.listdir(f"{process}/fd")
    except PermissionError:
        return [] if is_dead(process) else None
    except OSError:
        return []


def held_nodes(process: str, descriptors: Iterable[str], nodes: Nodes) -> list[str] | None:
    """Names of the nodes among its descriptors; None when they may not be looked at."""
    held = set()
    for descriptor in descriptors:
        link = f"{process}/fd/{descriptor}"
        try:
            # The text first: reading it is cheap, and most descriptors are no device's.
            path = os.readlink(link)
            start = path.rfind("/dev/")
            if start >= 0 and path[start:].removesuffix(" (deleted)") in nodes.names:
                name = nodes.by_identity.get(_identity(os.stat(link)))
                held.update([name] if name else [])
        except PermissionError:
            # Root without CAP_SYS_PTRACE sees the names and not the targets.
            return [] if is_dead(process) else None
        except OSError:
            continue
    return [name for name in nodes.names if name in held] if held else []


def is_dead(process: str) -> bool:
    """True for one that ended while we looked: its descriptors then refuse everybody."""
    try:
        with open(f"{process}/stat", "rb") as file:
            return file.read(READ_MOST).rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"])
    except OSError:
        return True


def describe(proc: str, pid: int, held: Sequence[str]) -> Process | None:
    """The process as the model knows it; None when it is gone."""
    ticks = places.start_ticks(proc, pid)
    if ticks is None:
        return None
    uid = places.real_uid(proc, pid)
    return Process(
        ProcessKey(pid, ticks),
        None if uid is None else user_name(uid),
        _command(f"{proc}/{pid}"),
        "live",
        None,
        None,
        None,
        {},
        holds=tuple(held),
        environment=environment(f"{proc}/{pid}"),
    )


def environment(process: str) -> dict[str, str]:
    """Its variables that are ever read; empty when it may not be asked."""
    words = _read(f"{process}/environ").split("\0")
    pairs = (word.partition("=") for word in words)
    return {name: clean(redacted(value), 300) for name, _, value in pairs if name in ENVIRONMENT}


def _command(process: str) -> str:
    words = _read(f"{process}/cmdline").rstrip("\0").split("\0")
    return command_line(words) or clean(_read(f"{process}/comm"), 64)


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(READ_MOST).decode("utf-8", "replace")
    except OSError:
        return ""


def _status(found: Sequence[Process], hidden: int) -> tuple[str, str]:
    """Never `free` when there are processes that could not be inspected."""
    is_root = os.geteuid() == 0
    cure = "not even by root: a container?" if is_root else "try sudo"
    unseen = f"{hidden} process{'es' if hidden != 1 else ''} could not be inspected, {cure}"
    if found:
        count = f"{len(found)} holder{'s' if len(found) > 1 else ''}"
        return OK, f"{count} ({unseen})" if hidden else count
    if hidden:
        return OK if is_root else DENIED, f"no holder visible ({unseen})"
    return OK, "no process holds the TPU"
