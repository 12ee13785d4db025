"""libtpu's lock file: that it exists means nothing, a lock on it does.

libtpu opens it with O_CREAT | O_RDWR and mode 0644, takes a POSIX lock and keeps both until it
ends. It cannot open a file that another user left, and takes that for a lock.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tpusmi.model import Host, LockFile, LockState
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.open_files import DELETED, OpenLockFile
from tpusmi.sources.mounts import namespace
from tpusmi.sources.users import user_before_sudo, user_name

PATHS = ("/tmp/libtpu_lockfile", "/tmp/libtpu.so_lockfile")
LOCKS_MOST_BYTES = 64 << 20


class NextUser(NamedTuple):
    """The user whose next job a leftover lock file may keep from the TPU."""

    uid: int
    protected: int
    """The kernel's setting fs.protected_regular."""


def lock_files(
    host: Host, opened: Sequence[OpenLockFile], sees_all: bool = True
) -> tuple[LockFile, ...]:
    """The lock file and its state, and others that older versions left.

    `opened` are the descriptors that processes have of one. Without `sees_all` a lock may be hidden
    from us: the kernel does not show those of processes outside a container.
    """
    locks = _Locks(host.path("/proc"), sees_all)
    user = _next_user(host)
    files = [_lock_file(host, path, opened, locks, user) for path in PATHS]
    files += _deleted(host, opened, locks)
    return tuple(f for f in files if f.state != LockState.ABSENT or f.path == PATHS[0])


def _next_user(host: Host) -> NextUser:
    """The user who runs this; under sudo the user who called it."""
    before = user_before_sudo()
    uid = os.geteuid() if before is None else before
    protected = procfs.read(host.path("/proc/sys/fs/protected_regular")).strip()
    return NextUser(uid, int(protected) if protected.isdecimal() else 0)


def is_in_the_way(file: os.stat_result, directory: os.stat_result, user: NextUser) -> bool:
    """True when libtpu, run by that user, cannot open the file in its way."""
    if file.st_uid == user.uid:
        return False
    sticky = directory.st_mode & stat.S_ISVTX and directory.st_mode & stat.S_IWOTH
    if user.protected and sticky and file.st_uid != directory.st_uid:
        return True
    return user.uid != 0 and not file.st_mode & stat.S_IWOTH


class _Locks:
    """The kernel's table of locks. It is read late, and only if needed: all locking on the machine
    stands still meanwhile.
    """

    def __init__(self, proc: str, sees_all: bool) -> None:
        self._proc = proc
        self._sees_all = sees_all
        self._pids: dict[str, list[int]] | None = None

    @property
    def is_known(self) -> bool:
        """False where the kernel does not show locks, or not those of every process."""
        return self._sees_all and os.access(f"{self._proc}/locks", os.R_OK)

    def on(self, file: os.stat_result) -> list[int] | None:
        """Pids that lock the file, 0 or less for an invisible one; None if it is not locked."""
        if self._pids is None:
            self._pids = _table(procfs.read(f"{self._proc}/locks", LOCKS_MOST_BYTES))
        device = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}"
        return self._pids.get(f"{device}:{file.st_ino}")

    def by(self, opened: OpenLockFile) -> bool:
        """True if a lock is held through that descriptor. It holds on file systems for which stat()
        and the table name different devices.
        """
        process, _, descriptor = opened.link.rpartition("/fd/")
        return "\nlock:" in procfs.read(f"{process}/fdinfo/{descriptor}")


def _table(text: str) -> dict[str, list[int]]:
    """Pids by file, without those that only wait for a lock."""
    pids: dict[str, list[int]] = {}
    for line in text.splitlines():
        words = line.split()
        if "->" not in words and len(words) > 5 and words[4].lstrip("-").isdigit():
            pids.setdefault(words[5], []).append(int(words[4]))
    return pids


def _lock_file(
    host: Host, path: str, opened: Iterable[OpenLockFile], locks: _Locks, user: NextUser
) -> LockFile:
    here = host.path(path)
    try:
        file, directory = os.lstat(here), os.stat(os.path.dirname(here))
    except OSError:
        return LockFile(path, LockState.ABSENT, owner=None, pids=(), message="no lock file")
    owner, pids = user_name(file.st_uid), None
    is_regular = stat.S_ISREG(file.st_mode)
    if is_regular:
        users = [o for o in opened if o.path == here and _is_same(o, file)]
        pids = [o.pid for o in users if locks.by(o)] or locks.on(file)
    visible = tuple(sorted({p for p in pids or () if p > 0}))
    if not is_regular:
        kind = "a symbolic link" if stat.S_ISLNK(file.st_mode) else "not a regular file"
        state, message = LockState.UNKNOWN, f"{kind}: not libtpu's, left alone"
    elif pids is not None:
        by = _pids(visible) if visible else "a process that cannot be seen"
        state, message = LockState.LOCKED, f"locked by {by}"
    elif not locks.is_known:
        state, message = LockState.UNKNOWN, "cannot tell from here whether it is locked"
    elif not is_in_the_way(file, directory, user):
        state, message = LockState.HARMLESS, "left over, unlocked, harmless"
    else:
        state = LockState.BLOCKING
        message = (
            f"left by {owner}, not locked, and in the way: {user_name(user.uid)} cannot open it, "
            "which libtpu takes for a lock"
        )
    return LockFile(path, state, owner=owner, pids=visible, message=message)


def _is_same(opened: OpenLockFile, file: os.stat_result) -> bool:
    """True when it is open on that very file: a container has a /tmp of its own."""
    try:
        info = os.stat(opened.link)
    except OSError:
        return False
    return (info.st_dev, info.st_ino) == (file.st_dev, file.st_ino)


def _sees_our_files(opened: OpenLockFile) -> bool:
    """True when the process has the same mounts as we do, or may not be asked."""
    process = opened.link.rpartition("/fd/")[0]
    theirs, ours = namespace(process, "mnt"), namespace("/proc/self", "mnt")
    return theirs == ours or None in (theirs, ours)


def _deleted(host: Host, opened: Iterable[OpenLockFile], locks: _Locks) -> list[LockFile]:
    """The lock files that were deleted while a process holds their lock."""
    pids_by_path: dict[str, list[int]] = {}
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
            pids_by_path.setdefault(o.path, []).append(o.pid)
            owners[o.path] = user_name(info.st_uid)
    here = {host.path(path): path for path in PATHS}
    return [
        LockFile(
            here[path.removesuffix(DELETED)],
            LockState.DELETED,
            owner=owners[path],
            pids=tuple(sorted(pids)),
            message=f"deleted while {_pids(pids)} holds its lock: "
            "a second process may start on the TPU",
        )
        for path, pids in pids_by_path.items()
    ]


def _pids(pids: Iterable[int]) -> str:
    return f"pid {', '.join(map(str, sorted(pids)))}"
