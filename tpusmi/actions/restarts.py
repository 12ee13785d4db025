"""What may start a process again after its end (a unit or a container by its control group, or a
parent that waits), and which processes have taken a node since the plan was made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tpusmi.actions.outcome import Newcomer
from tpusmi.actions.plan import Plan, Starter, Target
from tpusmi.model import Host, ProcessKey
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.life import INIT, REAPERS
from tpusmi.sources.users import user_name
from tpusmi.text import clean

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "busybox")
_WRAPPERS = ("sudo", "su", "timeout", "time", "doas", "runuser", "setpriv", "unshare", "nsenter")
"""These wait for the one program that they run, and end with it."""
_HOSTS = (*REAPERS, "sshd", "sshd-session", "login", "screen", "cron", "crond", "atd")
"""These have children, and start none of them again."""
_RESTART = r"(?m)^Restart=([a-z-]+)\s*$"
_DAEMONS = re.compile(r"(cron|crond|atd|ssh|sshd|docker|containerd|user@\d+)\.service")
"""Units of programs that run other users' jobs, and do not start those again."""
_UNIT_NAME = re.compile(r"[A-Za-z0-9:_.@\\-]{1,240}\.service")
"""Names that systemd accepts. A control group may have any other name, which is never put into a
command.
"""
_UNIT_DIRECTORIES = (
    "/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/usr/local/lib/systemd/system",
    "/run/systemd/generator",
    "/run/systemd/transient",
    "/run/systemd/system",
    "/etc/systemd/system",
)
"""Lowest priority first."""
_STEPS_MOST = 8
COMMAND_MOST = 70


class EndedTarget(NamedTuple):
    """A target that has ended."""

    target: Target
    at_s: float
    """CLOCK_BOOTTIME, as for the start ticks of processes."""


def starter_of(host: Host, pid: int, ours: Collection[int], again: bool = False) -> Starter | None:
    """What may start a process again; None where nothing is known to. `ours` are pids that will
    not: this process, its ancestors, the other targets. `again` is for a process that has been
    started again already. A simulator starts no job again.
    """
    if host.simulated:
        return None
    proc = host.path("/proc")
    groups = procfs.read(f"{proc}/{pid}/cgroup")
    return _container(groups) or _unit(host, groups) or _parent(proc, pid, ours, again)


def is_there(host: Host, starter: Starter) -> bool:
    """False for a parent that has ended with its child, like a script with nothing left to do."""
    if starter.kind != "parent":
        return True
    stat = procfs.read_stat(host.path(f"/proc/{starter.name}"))
    return stat is not None and not stat.has_ended


def _container(groups: str) -> Starter | None:
    ids = procfs.containers(groups)
    if not ids:
        return None
    short = ids[-1][:12]
    if "kubepods" in groups:
        return Starter("container", ids[-1], f"container {short} of a pod: kubectl delete pod")
    if "/user.slice/" in groups:
        # Any user can name their own control group after another user's container: it is not put
        # into a command for root.
        return Starter("container", ids[-1], f"container {short} of that user: podman stop as them")
    engine = "podman" if "libpod" in groups else "docker"
    return Starter("container", ids[-1], f"container {short}: {engine} stop {short}")


def _unit(host: Host, groups: str) -> Starter | None:
    """The service that it runs in, if systemd may start that again."""
    parts = [part for line in groups.split("\n") for part in line.split(":", 2)[-1].split("/")]
    units = [part for part in parts if part.endswith((".service", ".scope"))]
    name = units[-1] if units else ""
    if not _UNIT_NAME.fullmatch(name) or _DAEMONS.fullmatch(name):
        return None
    of_user = any(part.startswith("user@") for part in parts)
    restart = None if of_user else _restart(host, name)
    if restart == "no":
        return None
    how = "" if restart is None else f" (Restart={restart})"
    cure = "systemctl --user stop" if of_user else "systemctl stop"
    return Starter("unit", name, f"unit {name}{how}: {cure} {name}")


def _restart(host: Host, name: str) -> str | None:
    """The unit's Restart setting by its files: `no`, `always`; None without a file."""
    stem, at, _ = name.partition("@")
    template = f"{stem}@.service" if at else name
    files = [
        path
        for directory in _UNIT_DIRECTORIES
        for unit in dict.fromkeys((name, template))
        for path in _with_additions(host.path(f"{directory}/{unit}"))
    ]
    settings = [word for path in files for word in re.findall(_RESTART, procfs.read(path))]
    return settings[-1] if settings else "no" if files else None


def _with_additions(unit: str) -> list[str]:
    """The file of a unit if it exists, and its drop-in files."""
    files = [unit] if os.path.isfile(unit) else []
    try:
        names = sorted(os.listdir(f"{unit}.d"))
    except OSError:
        return files
    return files + [f"{unit}.d/{name}" for name in names if name.endswith(".conf")]


def _parent(proc: str, pid: int, ours: Collection[int], again: bool) -> Starter | None:
    """The process that waits for it, unless that is an interactive shell."""
    for _ in range(_STEPS_MOST):
        stat = procfs.read_stat(f"{proc}/{pid}")
        if stat is None or stat.parent <= INIT or stat.parent in ours:
            return None
        pid = stat.parent
        name = procfs.read(f"{proc}/{pid}/comm").strip()
        if name in _HOSTS or name.startswith("tmux"):
            return None
        if name not in _WRAPPERS:
            return _waiting(proc, pid, name, again)
    return None


def _waiting(proc: str, pid: int, name: str, again: bool) -> Starter | None:
    stat = procfs.read_stat(f"{proc}/{pid}")
    if stat is None or stat.has_ended:
        return None
    if stat.state == "D":
        # Its command line is in its memory, which may be locked: a reader would sleep with it.
        return Starter("parent", str(pid), f"pid {pid}: {clean(name, COMMAND_MOST)}")
    command = clean(procfs.command(f"{proc}/{pid}"), COMMAND_MOST)
    if name not in SHELLS:
        return Starter("parent", str(pid), f"pid {pid}: {command}")
    words = procfs.arguments(f"{proc}/{pid}")[1:]
    if all(word.startswith("-") and word != "-c" for word in words):
        return None  # interactive: `-bash`, `bash -l`
    what = "a shell loop" if again else "a shell script"
    return Starter("parent", str(pid), f"pid {pid}, {what}: {command}")


def newcomers(
    host: Host,
    plan: Plan,
    held: Mapping[str, tuple[int, ...]],
    ended: Sequence[EndedTarget],
    since_s: float,
) -> tuple[Newcomer, ...]:
    """The processes that hold a node now and are not in the plan, which began at `since_s`."""
    listed = (*plan.refused, *plan.spared)
    others = {*plan.also_held_by, *(r.pid for r in listed if r.process is not None)}
    targets = {t.process.key for t in plan.targets}
    new = []
    for pid in dict.fromkeys(pid for pids in held.values() for pid in pids):
        stat = procfs.read_stat(host.path(f"/proc/{pid}"))
        if stat is None or pid in others or ProcessKey(pid, stat.start_ticks) in targets:
            continue
        nodes = tuple(node for node, pids in held.items() if pid in pids)
        new.append(_newcomer(host, pid, stat, nodes, ended, since_s))
    return tuple(new)


def _newcomer(
    host: Host,
    pid: int,
    stat: procfs.Stat,
    nodes: tuple[str, ...],
    ended: Sequence[EndedTarget],
    since_s: float,
) -> Newcomer:
    process = host.path(f"/proc/{pid}")
    command = "" if stat.state == "D" else procfs.command(process)
    starter = starter_of(host, pid, ())
    uid = procfs.read_status(process).uid
    tick_s = 1 / procfs.ticks_per_s()
    began_s = stat.start_ticks * tick_s  # or up to a tick later
    before = next((e for e in reversed(ended) if _is_like(e.target, command, starter)), None)
    is_later = before is not None and began_s + tick_s >= since_s
    return Newcomer(
        pid=pid,
        start_ticks=stat.start_ticks,
        uid=uid,
        user=None if uid is None else user_name(uid),
        command=command,
        nodes=nodes,
        replaces=None if before is None else before.target.process.pid,
        after_s=max(0.0, began_s - before.at_s) if before is not None and is_later else None,
        starter=starter if before is None else starter_of(host, pid, (), again=True),
    )


def _is_like(target: Target, command: str, starter: Starter | None) -> bool:
    """True if the same unit, container or parent starts both, or the command is the same."""
    old = target.starter
    if old is not None and starter is not None and old[:2] == starter[:2]:
        return True
    return bool(command) and command == target.process.command
