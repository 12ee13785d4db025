"""What the kernel says about a holder: where it comes from, and signs that it may be stale.

These are only signs. Whether the process works all the same is judged where its numbers are.
"""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Iterator, Sequence

from tpusmi.model import Life, Sign
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.open_files import DELETED
from tpusmi.sources.holders.procfs import ProcessStatus, Stat
from tpusmi.text import counted

INIT = 1
ANCESTORS_MOST = 32
STUCK_S = 10.0
"""An uninterruptible sleep of this length is not a read from a disk."""

_ROLES = (
    ("multiprocessing.resource_tracker", "resource tracker"),
    ("multiprocessing.forkserver", "fork server"),
    ("multiprocessing.spawn", "spawned worker"),
)
REAPERS = ("systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "containerd-shim")
"""Names of programs that adopt processes, besides the machine's init."""
TERMINALS = ("/dev/pts/", "/dev/tty")

PLATFORM_AGENTS = (
    "instance_agent",
    "tpu-runtime",
    "tpu_runtime",
    "vbarcontrolagent",
    "tpu-device-plugin",
    "tpu_device_plugin",
    "google_guest_agent",
    "google_osconfig_agent",
)
"""Programs of the platform's own agents, on TPU VMs and GKE nodes: they are never stale and never
killed.
"""
_PLATFORM_UNITS = frozenset(
    f"/system.slice/{name}.service" for n in PLATFORM_AGENTS for name in (n, n.replace("_", "-"))
)
_COMM_LENGTH = 15
"""The kernel keeps this many characters of a name."""
_ROOT = 0


def life_of(
    process: str,
    facts: tuple[Stat, ProcessStatus],
    words: Sequence[str],
    launcher: int,
    asleep_s: float,
    older_s: float = 0.0,
) -> Life:
    """What the kernel says about `/proc/PID`.

    `words` are its command line; `launcher` is the parent that it was first seen with; `asleep_s`
    is how long it has been seen in uninterruptible sleep; `older_s` is how much older it is than
    the kernel says.
    """
    proc, _, name = process.rpartition("/")
    stat, status = facts
    groups = procfs.read(f"{process}/cgroup")
    comm = procfs.read(f"{process}/comm").rstrip("\n")
    age_s = _age_s(proc, stat, older_s)
    containers = procfs.containers(groups)
    signs = [
        *_ending(process, stat, status, asleep_s),
        *_container(groups, bool(containers), stat, status),
        *_launcher(proc, int(name), stat, status, launcher),
        *_stopped(stat),
    ]
    return Life(
        state=stat.state,
        parent=stat.parent,
        group=stat.group,
        session=stat.session,
        age_s=age_s,
        threads=stat.threads,
        container=containers[-1] if containers else None,
        inner_pid=status.inner_pid,
        signs=tuple(signs),
        platform=is_platform_agent(process, comm, status.uid, groups),
        role=next((role for text, role in _ROLES if any(text in word for word in words)), None),
        newest_thread_s=_newest_thread_s(process, older_s),
        # In percent of one core, since its start.
        mean_cpu_percent=100 * stat.cpu_ticks / procfs.ticks_per_s() / age_s if age_s else None,
    )


def ancestors(proc: str, parent: int, most: int = ANCESTORS_MOST) -> tuple[tuple[int, str], ...]:
    """Pid and command of a parent, of its parent, and so on, without the init process."""
    chain: list[tuple[int, str]] = []
    while parent > INIT and len(chain) < most:
        stat = procfs.read_stat(f"{proc}/{parent}")
        if stat is None:
            break
        chain.append((parent, procfs.command(f"{proc}/{parent}")))
        parent = stat.parent
    return tuple(chain)


def stream_terminal(process: str) -> str | None:
    """The terminal on its standard streams, such as `pts/0`; None when there is none."""
    for text in procfs.standard_streams(process):
        if text.startswith(TERMINALS) and not text.endswith(DELETED):
            return text.removeprefix("/dev/")
    return None


def is_platform_agent(process: str, comm: str, uid: int | None, groups: str) -> bool:
    """True for a process that only root can have made look like an agent of the platform: it is in
    the control group of the agent's system unit, or it is root's, has the name, and its program
    lies where only root can write.

    `process` is `/proc/PID`; `comm` and `groups` are the contents of its files `comm` and `cgroup`.
    What a process says about itself proves nothing: any user can call any program `tpu-runtime`.
    """
    # `0::/system.slice/x.service`, or in an older hierarchy `1:name=systemd:/system.slice/…`.
    if any(line.split(":", 2)[-1] in _PLATFORM_UNITS for line in groups.split("\n")):
        return True
    if uid != _ROOT:
        return False
    try:
        program = os.readlink(f"{process}/exe").removesuffix(DELETED)
    except OSError:
        return _is_agent_name(comm)  # only root may read it; its uid is the kernel's word
    named = _is_agent_name(comm) or _is_agent_name(os.path.basename(program))
    return named and _only_root_writes(f"{process}/root", os.path.dirname(program))


def _is_agent_name(name: str) -> bool:
    return name in PLATFORM_AGENTS or name in {n[:_COMM_LENGTH] for n in PLATFORM_AGENTS}


def _only_root_writes(root: str, directory: str) -> bool:
    """True when only root can put a file into it. In a directory above it with a sticky bit, such
    as /tmp, other users cannot move what root has there.
    """
    here = directory
    while True:
        try:
            info = os.stat(root + here)
        except OSError:
            return False
        others_write = info.st_mode & (modes.S_IWGRP | modes.S_IWOTH)
        kept = info.st_mode & modes.S_ISVTX and here != directory
        if info.st_uid != _ROOT or (others_write and not kept):
            return False
        if here in ("/", ""):
            return True
        here = os.path.dirname(here)


def _age_s(proc: str, stat: Stat, older_s: float) -> float | None:
    """How long ago a process or a thread began; None where the kernel does not say."""
    uptime_s = procfs.uptime_s(proc)
    if uptime_s is None:
        return None
    return max(0.0, uptime_s - stat.start_ticks / procfs.ticks_per_s()) + older_s


def _newest_thread_s(process: str, older_s: float) -> float | None:
    """How long ago its newest thread began; None when that is unknown.

    The kernel lists threads in the order in which they began, and numbers them upwards until it
    runs out of numbers: two are read, out of hundreds.
    """
    paths = procfs.threads(process)
    highest = sorted(paths, key=lambda path: int(path.rpartition("/")[2]))[-1:]
    likely = {*paths[-1:], *highest}
    stats = [stat for stat in map(procfs.read_stat, likely) if stat is not None]
    ages_s = [_age_s(process.rpartition("/")[0], stat, older_s) for stat in stats]
    return min((age_s for age_s in ages_s if age_s is not None), default=None)


def _ending(process: str, stat: Stat, status: ProcessStatus, asleep_s: float) -> Iterator[Sign]:
    """Signs of a process that is ending, or that cannot end."""
    if stat.state == "D" and status.kill_pending:
        place = procfs.where_it_sleeps(process)
        yield Sign("unkillable", f"SIGKILL is pending, but it is in {place}")
    elif stat.state == "D" and asleep_s >= STUCK_S:
        place = procfs.where_it_sleeps(process)
        yield Sign("unkillable", f"in {place} for {asleep_s:.0f} s: no signal reaches it there")
    elif stat.has_ended:
        left = counted(stat.threads - 1, "thread")
        reaper = f"its parent, process {stat.parent}, reaps it after the last of them"
        yield Sign("zombie", f"its main thread has ended, {left} still running ({reaper})")
    elif stat.exiting or status.kill_pending:
        yield Sign("releasing", "it is ending: the kernel has yet to release what it holds")


def _container(groups: str, has_id: bool, stat: Stat, status: ProcessStatus) -> Iterator[Sign]:
    if has_id and any(line.endswith(DELETED) for line in groups.split("\n")):
        yield Sign("container_gone", "its container has been removed")
    elif has_id and status.inner_pid == INIT and stat.parent == INIT:
        yield Sign("container_gone", "the runtime of its container has ended")


def _launcher(
    proc: str, pid: int, stat: Stat, status: ProcessStatus, launcher: int
) -> Iterator[Sign]:
    """Signs that nothing waits for the process. A process that handles or ignores SIGHUP
    was meant to outlive its launcher, and a session leader is independent of it.
    """
    if status.expects_hangup:
        return
    if launcher != stat.parent:
        yield Sign("orphaned", f"its launcher, process {launcher}, has ended")
        return
    if stat.session == pid:
        return
    if _was_adopted(proc, stat):
        leader = stat.session if stat.group == pid else stat.group
        name = "session" if stat.group == pid else "launcher"
        gone = _has_ended(proc, leader)
        code = "session_gone" if name == "session" and gone else "orphaned"
        what = f"its {name}, process {leader}, has ended" if gone else "its launcher has ended"
        yield Sign(code, f"{what}: it is now a child of process {stat.parent}")
        return
    for text in procfs.standard_streams(f"{proc}/{pid}"):
        if text.startswith(TERMINALS) and text.endswith(DELETED):
            yield Sign("session_gone", f"its terminal {text.removesuffix(DELETED)} is gone")
            return


def _stopped(stat: Stat) -> Iterator[Sign]:
    if stat.state == "T":
        yield Sign("stopped", "stopped (state T): SIGSTOP or Ctrl-Z")
    elif stat.state == "t":
        yield Sign("stopped", "stopped (state t): by a debugger")


def _was_adopted(proc: str, stat: Stat) -> bool:
    """True when its parent is one that adopts and cannot have started it: a child begins in its
    parent's session and group, and only a shell with a terminal gives it another group.

    A session or group outside this container has the number 0: then this is unknown.
    """
    path = f"{proc}/{stat.parent}"
    adopts = stat.parent == INIT or procfs.read(f"{path}/comm").strip() in REAPERS
    parent = procfs.read_stat(path) if stat.parent > 0 and adopts else None
    if parent is None:
        return False  # one that does not adopt may have left its session
    others = not parent.has_terminal and _has_ended(proc, stat.group)
    return parent.session != stat.session or others


def _has_ended(proc: str, pid: int) -> bool:
    """True for a process that is gone, or waits only for its parent to reap it. One outside this
    container has the number 0, and may live.
    """
    if pid <= 0:
        return False
    stat = procfs.read_stat(f"{proc}/{pid}")
    return stat is None or stat.has_ended
