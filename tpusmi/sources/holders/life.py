"""What the kernel says of a holder: where it comes from, and what speaks for its being stale.

These are signs alone. Whether the process works all the same is judged where its numbers are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpusmi.model import Life, Sign
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.platform import is_platform_agent
from tpusmi.sources.holders.procfs import Stat, Status
from tpusmi.text import counted

INIT = 1
ANCESTORS_MOST = 32
STUCK_S = 10.0
"""In uninterruptible sleep for so long: it is not a read from a disk."""

_ROLES = (
    ("multiprocessing.resource_tracker", "resource tracker"),
    ("multiprocessing.forkserver", "fork server"),
    ("multiprocessing.spawn", "spawned worker"),
)
REAPERS = ("systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "containerd-shim")
"""Names of programs that adopt processes besides the machine's init."""
DELETED = " (deleted)"
TERMINALS = ("/dev/pts/", "/dev/tty")


def life_of(
    process: str,
    seen: tuple[Stat, Status],
    words: Sequence[str],
    launcher: int,
    asleep_s: float,
    older_s: float = 0.0,
) -> Life:
    """Of `/proc/PID`. `words` are its command line; `launcher` is the parent that it was first seen
    with; `asleep_s` for how long it has been seen in uninterruptible sleep; `older_s` how much
    older it is than the kernel says.
    """
    proc, _, name = process.rpartition("/")
    pid = int(name)
    stat, status = seen
    groups = procfs.read(f"{process}/cgroup")
    comm = procfs.read(f"{process}/comm").rstrip("\n")
    age_s = _age_s(proc, stat, older_s)
    containers = procfs.containers(groups)
    signs = [
        *_ending(process, stat, status, asleep_s),
        *_container(groups, bool(containers), stat, status),
        *_launcher(proc, pid, stat, status, launcher),
        *_stopped(stat),
    ]
    return Life(
        stat.state,
        stat.parent,
        stat.group,
        stat.session,
        age_s,
        stat.threads,
        containers[-1] if containers else None,
        status.inner_pid,
        tuple(signs),
        platform=is_platform_agent(process, comm, status.uid, groups),
        role=next((role for text, role in _ROLES if any(text in word for word in words)), None),
        newest_thread_s=_newest_thread_s(process, older_s),
        mean_cpu_percent=_mean_cpu_percent(stat, age_s),
    )


def _age_s(proc: str, stat: Stat, older_s: float) -> float | None:
    """How long ago a process or a thread began; None where the kernel does not tell."""
    uptime_s = procfs.uptime_s(proc)
    if uptime_s is None:
        return None
    return max(0.0, uptime_s - stat.start_ticks / procfs.ticks_per_s()) + older_s


def _newest_thread_s(process: str, older_s: float) -> float | None:
    """How long ago its newest thread began; None when that cannot be told.

    The kernel lists threads in the order in which they began, and numbers them upwards until the
    numbers are used up: of hundreds, two are read.
    """
    found = procfs.threads(process)
    likely = {found[-1], max(found, key=_number)} if found else set()
    stats = [stat for stat in map(procfs.read_stat, likely) if stat is not None]
    ages_s = [_age_s(process.rpartition("/")[0], stat, older_s) for stat in stats]
    return min((age_s for age_s in ages_s if age_s is not None), default=None)


def _number(directory: str) -> int:
    return int(directory.rpartition("/")[2])


def _mean_cpu_percent(stat: Stat, age_s: float | None) -> float | None:
    """Of one core, since its start; None right after it."""
    return 100 * stat.cpu_ticks / procfs.ticks_per_s() / age_s if age_s else None


def ancestors(proc: str, parent: int, most: int = ANCESTORS_MOST) -> tuple[tuple[int, str], ...]:
    """Pid and command of a parent, of its parent, and so on, without the init process."""
    found: list[tuple[int, str]] = []
    while parent > INIT and len(found) < most:
        stat = procfs.read_stat(f"{proc}/{parent}")
        if stat is None:
            break
        found.append((parent, procfs.command(f"{proc}/{parent}")))
        parent = stat.parent
    return tuple(found)


def stream_terminal(process: str) -> str | None:
    """The terminal on its standard streams: `pts/0`; None when there is none."""
    for text in procfs.standard_streams(process):
        if text.startswith(TERMINALS) and not text.endswith(DELETED):
            return text.removeprefix("/dev/")
    return None


def _ending(process: str, stat: Stat, status: Status, asleep_s: float) -> Iterator[Sign]:
    """Of a process that ends, or that cannot."""
    if stat.state == "D" and status.kill_pending:
        place = procfs.where_it_sleeps(process)
        yield Sign("unkillable", f"SIGKILL is pending, but it is in {place}")
    elif stat.state == "D" and asleep_s >= STUCK_S:
        place = procfs.where_it_sleeps(process)
        yield Sign("unkillable", f"in {place} for {asleep_s:.0f} s: no signal reaches it there")
    elif stat.has_ended:
        left = counted(stat.threads - 1, "thread")
        reaper = f"its parent, process {stat.parent}, reaps it after the last of them"
        yield Sign("zombie", f"its main thread has ended, {left} still there ({reaper})")
    elif stat.exiting or status.kill_pending:
        yield Sign("releasing", "it is ending: the kernel has yet to release what it holds")


def _container(groups: str, has_id: bool, stat: Stat, status: Status) -> Iterator[Sign]:
    if has_id and any(line.endswith(DELETED) for line in groups.splitlines()):
        yield Sign("container_gone", "its container has been removed")
    elif has_id and status.inner_pid == INIT and stat.parent == INIT:
        yield Sign("container_gone", "the runtime of its container has ended")


def _launcher(proc: str, pid: int, stat: Stat, status: Status, launcher: int) -> Iterator[Sign]:
    """Of a process that nobody waits for any more. Whoever expects SIGHUP was meant to live on, and
    a session leader is its own master.
    """
    if status.expects_hangup:
        return
    if launcher != stat.parent:
        yield Sign("orphaned", f"its launcher, process {launcher}, has ended")
        return
    if stat.session == pid:
        return
    lost = [t for t in procfs.standard_streams(f"{proc}/{pid}") if _is_gone_terminal(t)]
    if _was_adopted(proc, stat):
        leader = stat.session if stat.group == pid else stat.group
        name = "session" if stat.group == pid else "launcher"
        gone = _has_ended(proc, leader)
        code = "session_gone" if name == "session" and gone else "orphaned"
        what = f"its {name}, process {leader}, has ended" if gone else "its launcher has ended"
        yield Sign(code, f"{what}: it is now a child of process {stat.parent}")
    elif lost:
        name = lost[0].removesuffix(DELETED)
        yield Sign("session_gone", f"its terminal {name} is gone")


def _stopped(stat: Stat) -> Iterator[Sign]:
    if stat.state == "T":
        yield Sign("stopped", "stopped (state T): SIGSTOP or Ctrl-Z")
    elif stat.state == "t":
        yield Sign("stopped", "stopped (state t): by a debugger")


def _was_adopted(proc: str, stat: Stat) -> bool:
    """True when its parent is one that adopts, and cannot be who started it: a child begins in its
    parent's session and group, and only a shell with a terminal gives it a group of others.

    A session or group outside this container has the number 0: in such a one, nobody can tell.
    """
    if stat.parent <= 0 or not _adopts(proc, stat.parent):
        return False
    parent = procfs.read_stat(f"{proc}/{stat.parent}")
    if parent is None:
        return False
    others = not parent.has_terminal and _has_ended(proc, stat.group)
    return parent.session != stat.session or others


def _adopts(proc: str, pid: int) -> bool:
    """True for who takes in the children of others: any other parent may have left its session."""
    return pid == INIT or procfs.read(f"{proc}/{pid}/comm").strip() in REAPERS


def _has_ended(proc: str, pid: int) -> bool:
    """True for one that is gone, or waits only for its parent to notice. One that is outside this
    container has the number 0, and may live.
    """
    if pid <= 0:
        return False
    stat = procfs.read_stat(f"{proc}/{pid}")
    return stat is None or stat.has_ended


def _is_gone_terminal(link: str) -> bool:
    return link.startswith(TERMINALS) and link.endswith(DELETED)
