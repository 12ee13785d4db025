"""libtpu's lock file: existence means nothing, a lock on it does.

libtpu opens it with O_CREAT | O_RDWR and mode 0644, takes a POSIX lock and keeps both until it
ends. A file that another user left cannot be opened, which looks like a lock to libtpu.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tpusmi.model import Host, LockFile, LockState
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.scan import DELETED, Opened
from tpusmi.sources.users import user_before_sudo, user_name

PATHS = ("/tmp/libtpu_lockfile", "/tmp/libtpu.so_lockfile")
LOCKS_MOST_BYTES = 64 << 20


class Who(NamedTuple):
    """Whom a left file may keep from the TPU."""

    uid: int
    protected: int
    """The kernel's fs.protected_regular."""


def lock_files(host: Host, opened: Sequence[Opened], sees_all: bool = True) -> tuple[LockFile, ...]:
    """The lock file in its state, and others that older versions left.

    `opened` are the descriptors that processes have of one. Without `sees_all` a lock may be hidden
    from us: of processes outside a container the kernel tells none.
    """
    locks = _Locks(host.path("/proc"), sees_all)
    who = who_wants_it(host)
    found = [_state(host, path, opened, locks, who) for path in PATHS]
    found += _deleted(host, opened, locks)
    return tuple(f for f in found if f.state != LockState.ABSENT or f.path == PATHS[0])


def who_wants_it(host: Host) -> Who:
    """Whose jobs are meant: of root by sudo those of its user."""
    before = user_before_sudo()
    uid = os.geteuid() if before is None else before
    protected = procfs.read(host.path("/proc/sys/fs/protected_regular")).strip()
    return Who(uid, int(protected) if protected.isdecimal() else 0)


def is_in_the_way(file: os.stat_result, directory: os.stat_result, who: Who) -> bool:
    """True when libtpu, run by that user, cannot open the file as it does."""
    if file.st_uid == who.uid:
        return False
    sticky = directory.st_mode & stat.S_ISVTX and directory.st_mode & stat.S_IWOTH
    if who.protected and sticky and file.st_uid != directory.st_uid:
        return True
    return who.uid != 0 and not file.st_mode & stat.S_IWOTH


class _Locks:
    """The kernel's table of locks. It is read late, and only if needed: for the time of a read, all
    locking on the machine stands still.
    """

    def __init__(self, proc: str, sees_all: bool) -> None:
        self._proc = proc
        self._sees_all = sees_all
        self._pids: dict[str, list[int]] | None = None

    @property
    def is_known(self) -> bool:
        """False where the kernel does not tell, or not of everybody."""
        return self._sees_all and os.access(f"{self._proc}/locks", os.R_OK)

    def on(self, file: os.stat_result) -> list[int] | None:
        """Who locks that file, 0 or less where it cannot be seen; None when nobody does."""
        if self._pids is None:
            self._pids = _table(_whole(f"{self._proc}/locks"))
        device = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}"
        return self._pids.get(f"{device}:{file.st_ino}")

    def by(self, opened: Opened) -> bool:
        """Whether a lock is held through that descriptor. On some file systems stat() and the table
        name different devices, which the kernel does not do here.
        """
        process, _, descriptor = opened.link.rpartition("/fd/")
        return "\nlock:" in procfs.read(f"{process}/fdinfo/{descriptor}")


def _whole(path: str) -> str:
    """A file of any length, within reason; empty when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(LOCKS_MOST_BYTES).decode("ascii", "replace")
    except OSError:
        return ""


def _table(text: str) -> dict[str, list[int]]:
    """Pids by file; whoever only waits for a lock is left out."""
    found: dict[str, list[int]] = {}
    for line in text.splitlines():
        words = line.split()
        if "->" not in words and len(words) > 5 and words[4].lstrip("-").isdigit():
            found.setdefault(words[5], []).append(int(words[4]))
    return found


def _state(host: Host, path: str, opened: Iterable[Opened], locks: _Locks, who: Who) -> LockFile:
    here = host.path(path)
    try:
        found, directory = os.lstat(here), os.stat(os.path.dirname(here))
    except OSError:
        return LockFile(path, LockState.ABSENT, None, (), "no lock file")
    owner = user_name(found.st_uid)
    if not stat.S_ISREG(found.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no regular file"
        return LockFile(path, LockState.UNKNOWN, owner, (), f"{kind}: not libtpu's, and left alone")
    users = [o for o in opened if o.path == here and _is_same(o, found)]
    pids = [o.pid for o in users if locks.by(o)] or locks.on(found)
    if pids is not None:
        seen = tuple(sorted({p for p in pids if p > 0}))
        by = _pids(seen) if seen else "a process that cannot be seen"
        return LockFile(path, LockState.LOCKED, owner, seen, f"locked by {by}")
    if not locks.is_known:
        message = "whether somebody locks it cannot be seen from here"
        return LockFile(path, LockState.UNKNOWN, owner, (), message)
    if not is_in_the_way(found, directory, who):
        return LockFile(
            path, LockState.HARMLESS, owner, (), "left over, locked by nobody: harmless"
        )
    message = (
        f"left by {owner}, locked by nobody, and in the way: {user_name(who.uid)} cannot open it, "
        f"which libtpu takes for a lock. {owner} or root can remove it: tpusmi kill --stale"
    )
    return LockFile(path, LockState.BLOCKING, owner, (), message)


def _is_same(opened: Opened, file: os.stat_result) -> bool:
    """True when it is open on that very file: a container has a /tmp of its own."""
    try:
        found = os.stat(opened.link)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino)


def _sees_our_files(opened: Opened) -> bool:
    """True when it lives among the same mounts as we do; where that may not be asked, too."""
    process = opened.link.rpartition("/fd/")[0]
    try:
        return os.readlink(f"{process}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
    except OSError:
        return True


def _deleted(host: Host, opened: Iterable[Opened], locks: _Locks) -> list[LockFile]:
    """A file that was deleted under whoever holds its lock."""
    found: dict[str, list[int]] = {}
    owners: dict[str, str] = {}
    for o in opened:
        try:
            info = os.stat(o.link)
        except OSError:
            continue
        if (
            o.path.endswith(DELETED)
            and _sees_our_files(o)
            and (locks.by(o) or locks.on(info) is not None)
        ):
            found.setdefault(o.path, []).append(o.pid)
            owners[o.path] = user_name(info.st_uid)
    here = {host.path(path): path for path in PATHS}
    return [
        LockFile(
            here[path.removesuffix(DELETED)],
            LockState.DELETED,
            owners[path],
            tuple(sorted(pids)),
            f"deleted while {_pids(pids)} holds its lock: a second process may start on the TPU",
        )
        for path, pids in found.items()
    ]


def _pids(pids: Iterable[int]) -> str:
    return f"pid {', '.join(map(str, sorted(pids)))}"
