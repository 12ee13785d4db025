"""What may start a process again after its end, by the kernel: a unit or a container by its control
group, a parent that waits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from tpusmi.actions.plan import Starter
from tpusmi.model import Host
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.life import INIT, REAPERS
from tpusmi.text import clean

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "busybox")
_WRAPPERS = ("sudo", "su", "timeout", "time", "doas", "runuser", "setpriv", "unshare", "nsenter")
"""They wait for the one program that they run, and end with it."""
_HOSTS = (*REAPERS, "sshd", "sshd-session", "login", "screen", "cron", "crond", "atd")
"""They have children and start none again."""
_DAEMONS = re.compile(r"(cron|crond|atd|ssh|sshd|docker|containerd|user@\d+)\.service")
"""Units of programs that run the jobs of others: they do not start those again."""
_UNIT_NAME = re.compile(r"[A-Za-z0-9:_.@\\-]{1,240}\.service")
"""Names as systemd takes them. A group may have any other: it is not put into a command."""
_UNIT_DIRECTORIES = (
    *("/lib/systemd/system", "/usr/lib/systemd/system", "/usr/local/lib/systemd/system"),
    *("/run/systemd/generator", "/run/systemd/transient", "/run/systemd/system"),
    "/etc/systemd/system",
)
"""The weightiest last."""
_STEPS_MOST = 8
COMMAND_MOST = 70


def starter_of(host: Host, pid: int, ours: Collection[int], again: bool = False) -> Starter | None:
    """What may start a process again; None where nothing is known to. `ours` are pids that will
    not: this process, those that started it, those that are ended too. `again` is for a process
    that was started again already. A simulator starts no job again.
    """
    if host.simulated:
        return None
    proc = host.path("/proc")
    groups = procfs.read(f"{proc}/{pid}/cgroup")
    return _container(groups) or _unit(host, groups) or _parent(proc, pid, ours, again)


def is_there(host: Host, starter: Starter) -> bool:
    """False for a parent that has ended with its child, as a script does that has nothing left."""
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
        # Any user can name a control group of his own after another's container: no command that
        # root would run is made of it.
        return Starter("container", ids[-1], f"container {short} of that user: podman stop as them")
    engine = "podman" if "libpod" in groups else "docker"
    return Starter("container", ids[-1], f"container {short}: {engine} stop {short}")


def _unit(host: Host, groups: str) -> Starter | None:
    """The service that it runs in, if systemd may start that again."""
    parts = [part for line in groups.splitlines() for part in line.split(":", 2)[-1].split("/")]
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
    """When systemd starts it again, by its files: `no`, `always`; None without a file."""
    stem, at, _ = name.partition("@")
    template = f"{stem}@.service" if at else name
    files = [
        path
        for directory in _UNIT_DIRECTORIES
        for unit in dict.fromkeys((name, template))
        for path in _with_additions(host.path(f"{directory}/{unit}"))
    ]
    found = [re.findall(r"(?m)^Restart=([a-z-]+)\s*$", procfs.read(path)) for path in files]
    settings = [word for words in found for word in words]
    return settings[-1] if settings else "no" if files else None


def _with_additions(unit: str) -> list[str]:
    """The file of a unit if it is there, and those that add to it."""
    found = [unit] if os.path.isfile(unit) else []
    try:
        names = sorted(os.listdir(f"{unit}.d"))
    except OSError:
        return found
    return found + [f"{unit}.d/{name}" for name in names if name.endswith(".conf")]


def _parent(proc: str, pid: int, ours: Collection[int], again: bool) -> Starter | None:
    """Who waits for it, and is no person's shell."""
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
        # Its command line stands in its memory, which may be locked: who asks would sleep with it.
        return Starter("parent", str(pid), f"pid {pid}: {clean(name, COMMAND_MOST)}")
    command = clean(procfs.command(f"{proc}/{pid}"), COMMAND_MOST)
    if name not in SHELLS:
        return Starter("parent", str(pid), f"pid {pid}: {command}")
    if not _runs_a_script(procfs.arguments(f"{proc}/{pid}")):
        return None
    what = "a shell loop" if again else "a shell script"
    return Starter("parent", str(pid), f"pid {pid}, {what}: {command}")


def _runs_a_script(words: list[str]) -> bool:
    """False for a shell that a person types into: `-bash`, `bash -l`."""
    return any(word == "-c" or not word.startswith("-") for word in words[1:])
