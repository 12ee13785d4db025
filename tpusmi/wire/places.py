"""Where segments lie, and who the current process is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from tpusmi.wire.layout import Identity

SUFFIX = ".seg"
_DIRECTORY = "tpusmi-"

SHARED_MEMORY, RUNTIME, TEMPORARY = "/dev/shm", "/run/user", "/tmp"


class Place(NamedTuple):
    """A segment file by its name, before anything in it was believed."""

    path: str
    pid: int
    start_ticks: int
    uid: int | None
    """The user the directory is named after; None in a TPUSMI_DIR."""


def directories_for(uid: int, override: str | None) -> list[str]:
    """Where an agent of that user may write, best first."""
    if override:
        return [override]
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"{RUNTIME}/{uid}"
    return [f"{base}/tpusmi-{uid}" for base in (SHARED_MEMORY, runtime, TEMPORARY)]


def directories(root: str) -> list[tuple[str, int]]:
    """Every user's directories for segments, with the user they are named after."""
    base = root.rstrip("/")
    runtimes = [f"{base}{RUNTIME}/{name}" for name in _names(f"{base}{RUNTIME}")]
    own = os.environ.get("XDG_RUNTIME_DIR")
    if own and own not in runtimes and not base:
        runtimes.append(own)
    found = []
    for parent in (f"{base}{SHARED_MEMORY}", *runtimes, f"{base}{TEMPORARY}"):
        for name in _names(parent):
            uid = _number(name.removeprefix(_DIRECTORY))
            if (
                name.startswith(_DIRECTORY)
                and uid is not None
                and _owner(f"{parent}/{name}") == uid
            ):
                found.append((f"{parent}/{name}", uid))
    return found


def is_private(directory: str, uid: int) -> bool:
    """True when the directory is that user's own and nobody else can put files into it."""
    try:
        found = os.lstat(directory)
    except OSError:
        return False
    writable_by_others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not writable_by_others


def _owner(path: str) -> int | None:
    try:
        return os.lstat(path).st_uid
    except OSError:
        return None


def segments(directory: str, uid: int | None) -> Iterator[Place]:
    """Every file in a directory that is named like a segment; `uid` is whose it should be."""
    for name in _names(directory):
        pid, _, ticks = name.removesuffix(SUFFIX).partition("-")
        named = (_number(pid), _number(ticks))
        if name.endswith(SUFFIX) and named[0] is not None and named[1] is not None:
            yield Place(f"{directory}/{name}", named[0], named[1], uid)


def _number(text: str) -> int | None:
    """A plain decimal number as we write it; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def me() -> Identity:
    """This process. Raises OSError when /proc is not mounted."""
    pid = os.getpid()
    ticks = start_ticks("/proc", pid)
    if ticks is None:
        raise OSError(f"/proc/{pid}/stat cannot be read")
    return Identity(pid, os.getuid(), ticks, boot_id("/proc"), pid_namespace("/proc"))


def start_ticks(proc: str, pid: int) -> int | None:
    """When a process started, in clock ticks since boot (field 22 of its stat); None when it is
    not there.
    """
    try:
        with open(f"{proc}/{pid}/stat", "rb") as file:
            # The name in parentheses may itself hold parentheses and spaces.
            fields = file.read(4096).rpartition(b")")[2].split()
        # A zombie has ended and only its parent has not noticed, unless other threads of it live.
        gone = fields[0] in (b"Z", b"X") and int(fields[17]) < 2
        return None if gone else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def real_uid(proc: str, pid: int) -> int | None:
    """The user who runs a process; None when it is not there or not visible."""
    try:
        with open(f"{proc}/{pid}/status", "rb") as file:
            line = next(line for line in file if line.startswith(b"Uid:"))
        return int(line.split()[1])
    except (OSError, StopIteration, IndexError, ValueError):
        return None


def boot_id(proc: str) -> bytes:
    """Sixteen bytes that change at every boot; zeros when the kernel does not tell."""
    try:
        with open(f"{proc}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return bytes.fromhex(file.read(64).strip().replace("-", ""))[:16].ljust(16, b"\0")
    except (OSError, ValueError):
        return bytes(16)


def pid_namespace(proc: str) -> int:
    """The inode of this process's pid namespace; 0 when the kernel does not tell."""
    try:
        return os.stat(f"{proc}/self/ns/pid").st_ino
    except OSError:
        return 0
