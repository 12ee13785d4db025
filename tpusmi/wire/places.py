"""Where segment files are: their directories, and what the names of both mean."""

import itertools
import os
import stat
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from tpusmi.text import whole_number
from tpusmi.wire import mountinfo

SUFFIX = ".seg"
_DIRECTORY = "tpusmi-"

SHARED_MEMORY, RUNTIME, TEMPORARY = "/dev/shm", "/run/user", "/tmp"

ENTRIES_MOST = 16384
"""Most names that are read in one directory of segments."""
NAMES_MOST, NAMED_MOST = 65_536, 4096
"""Most names that are listed in a place that all users share, such as /tmp, and most of those that
are directories for segments by their name. Any user may fill such a place.
"""
RUNTIMES_MOST = 1024
"""Most directories of users' runtime files that are searched."""
PROCESSES_MOST = 32768
"""Most processes of /proc that are listed."""
RECENT_S = 60.0
"""A living agent writes to its segment more often than this."""
RANDOM_MOST = 64
"""Most characters in the random part of a name."""
OF_USER_MOST = 4
"""Most directories of one user in one place."""


class SegmentFile(NamedTuple):
    """A segment file by its name and its owner, before anything in it was believed."""

    path: str
    pid: int
    start_ticks: int
    uid: int
    """The user who owns the file, as the kernel reports."""
    bytes: int
    written_s: float
    """When it was last written, as time.time() counts."""
    identity: tuple[int, int] = (0, 0)
    """Device and inode of the file."""
    within: str = ""
    """The process, /proc/PID, in whose mounts the file is; empty for a file among our own."""
    payer: int | None = None
    """Who pays for reading the file, if not its owner."""

    @property
    def charged(self) -> int:
        """The user whose share it costs."""
        return self.uid if self.payer is None else self.payer


class SegmentDirectory(NamedTuple):
    """A directory for segments, or another file with the name of one."""

    path: str
    uid: int | None
    """The user who owns the directory; None for a TPUSMI_DIR, which users may share."""
    trouble: str = ""
    """Why nothing in the directory can be read; empty when something may be."""
    within: str = ""
    """The process, /proc/PID, in whose mounts the directory is; empty for one among our own."""
    inner: str = ""
    """The path of the directory for that process."""
    payer: int | None = None
    """Who pays for reading the directory, if not its owner: a user who can mount may hide the
    directories of others behind something slow.
    """


def bases(uid: int) -> list[str]:
    """Directories in which an agent of that user may make its own, best first."""
    return [SHARED_MEMORY, own_runtime(uid) or f"{RUNTIME}/{uid}", TEMPORARY]


def own_runtime(uid: int) -> str | None:
    """XDG_RUNTIME_DIR, if that user owns it: sudo and su may leave the one of another user."""
    directory = os.environ.get("XDG_RUNTIME_DIR", "")
    try:
        return directory if directory and os.lstat(directory).st_uid == uid else None
    except OSError:
        return None


def directory_name(uid: int, random: str = "") -> str:
    """`tpusmi-1001`; with a random part where another user has taken that name."""
    return f"{_DIRECTORY}{uid}{f'.{random}' if random else ''}"


def user_in_name(name: str) -> int | None:
    """The uid in the name of a directory for segments; None for any other name, and for one with
    characters that no agent puts there: the name is shown.
    """
    uid, dot, random = name.removeprefix(_DIRECTORY).partition(".")
    is_ours = not dot or _is_random(random)
    return whole_number(uid) if is_ours and name.startswith(_DIRECTORY) else None


def _is_random(text: str) -> bool:
    return text.isascii() and text.isalnum() and len(text) <= RANDOM_MOST


def segment_name(pid: int, start_ticks: int, random: str = "") -> str:
    """`71-12345.seg`; with a random part where another process has taken that name: one in another
    container may have the same pid and the same start.
    """
    return f"{pid}-{start_ticks}{f'.{random}' if random else ''}{SUFFIX}"


def directories(root: str) -> Iterator[SegmentDirectory]:
    """Every user's directories for segments, and the places that could not be searched for them."""
    base = root.rstrip("/")
    runtimes = [f"{base}{RUNTIME}/{name}" for name in names(f"{base}{RUNTIME}", RUNTIMES_MOST)]
    own = own_runtime(os.geteuid())
    if own and own not in runtimes and not base:
        runtimes.append(own)
    mounted = never_answering(f"{base}/proc")
    for parent in (f"{base}{SHARED_MEMORY}", *runtimes, f"{base}{TEMPORARY}"):
        yield from _in_place(parent, f"{base}/proc", mounted)


def never_answering(proc: str) -> dict[str, int | None]:
    """Directories with a name for segments on which a user has mounted a FUSE file system, and that
    user, whose program answers for it, or never does: a call could not be interrupted.
    """
    try:
        listed = mountinfo.listed(f"{proc}/self")
    except OSError:
        return {}
    users: dict[str, int | None] = {}
    for m in mountinfo.mounts(listed) if _DIRECTORY.encode() in listed else ():
        path = os.fsdecode(m.point)
        if m.kind.startswith(b"fuse") and user_in_name(os.path.basename(path)) is not None:
            user = m.options.partition(b",user_id=")[2].partition(b",")[0]
            users[path] = whole_number(user.decode("ascii", "replace"))
    return users


def _in_place(parent: str, proc: str, mounted: dict[str, int | None]) -> Iterator[SegmentDirectory]:
    """The directories in one place. Those of root and of this user are tried by name. Where a place
    has too many names, so are those of users who run processes: one user must not hide the others.
    """
    listed, trouble = _listed(parent)
    users = (os.geteuid(), 0, *(_running_users(proc) if trouble else ()))
    tried = dict.fromkeys((*map(directory_name, users), *listed))
    yield from _of_users(parent, [name for name in tried if f"{parent}/{name}" not in mounted])
    for path, uid in mounted.items():
        if os.path.dirname(path) == parent:
            yield SegmentDirectory(path, uid, "is a FUSE file system, which may never respond")
    if trouble:
        yield SegmentDirectory(parent, None, trouble)


def _listed(parent: str) -> tuple[list[str], str]:
    """The names of directories for segments in a place, and why the list may be incomplete."""
    try:
        with os.scandir(parent) as entries:
            all_names = [entry.name for entry in itertools.islice(entries, NAMES_MOST + 1)]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return [], ""  # another user's runtime directory is private
    except OSError as error:
        return [], f"cannot be read: {error.strerror or error}"
    ours = sorted(name for name in all_names[:NAMES_MOST] if user_in_name(name) is not None)
    is_complete = len(all_names) <= NAMES_MOST and len(ours) <= NAMED_MOST
    return ours[:NAMED_MOST], "" if is_complete else "has too many names: not all were checked"


def _running_users(proc: str) -> list[int]:
    """The users of the processes that /proc shows."""
    users = set()
    for name in names(proc, PROCESSES_MOST):
        try:
            if name.isdigit():
                users.add(os.stat(f"{proc}/{name}").st_uid)
        except OSError:
            continue  # it has ended
    return sorted(users)


def _of_users(parent: str, listed: Iterable[str]) -> Iterator[SegmentDirectory]:
    """A few directories of each user, who is the owner that the kernel reports. The name may have
    another uid in it: a user namespace numbers users in its own way.
    """
    counts: dict[int, int] = {}
    for name in listed:
        path = f"{parent}/{name}"
        try:
            status = os.lstat(path)
        except OSError:
            continue  # not there, or in another user's private directory, as /run/user/1001 is
        uid, is_directory = status.st_uid, stat.S_ISDIR(status.st_mode)
        if not is_directory and user_in_name(name) != uid:
            continue  # another user has taken the name, and the agent uses another
        counts[uid] = counts.get(uid, 0) + 1
        if counts[uid] <= OF_USER_MOST:
            yield SegmentDirectory(path, uid, "" if is_directory else "is not a directory")


def is_private(directory: str, uid: int) -> bool:
    """True when that user owns the directory and no other user can put files into it."""
    try:
        status = os.lstat(directory)
    except OSError:
        return False
    writable_by_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == uid and not writable_by_others


def segments(
    directory: str, uid: int | None, most: int = ENTRIES_MOST, first: Container[str] | None = None
) -> tuple[list[SegmentFile], int]:
    """The files with the name of a segment, of that user if one is given, in the first `most`
    entries; and how many entries there are, `most` + 1 for more. Then names that begin with one of
    the pids in `first` come first.

    Raises OSError when the directory cannot be listed.
    """
    with os.scandir(directory) as entries:
        listed = [*itertools.islice(entries, (most if first is None else ENTRIES_MOST) + 1)]
    if first is not None and len(listed) > most:
        listed.sort(key=lambda entry: entry.name.partition("-")[0] not in first)
    files = (_file_of(entry, uid) for entry in listed[:most])
    return [file for file in files if file is not None], min(len(listed), most + 1)


def _file_of(entry: os.DirEntry[str], uid: int | None) -> SegmentFile | None:
    named = named_process(entry.name)
    if named is None:
        return None
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None  # it was removed
    return None if uid not in (None, status.st_uid) else segment_file(entry.path, named, status)


def named_process(name: str) -> tuple[int, int] | None:
    """The pid and the start in the name of a segment; None for any other name."""
    pid_text, _, rest = name.removesuffix(SUFFIX).partition("-")
    ticks_text, dot, random = rest.partition(".")
    pid, ticks = whole_number(pid_text), whole_number(ticks_text)
    if (
        not name.endswith(SUFFIX)
        or pid is None
        or ticks is None
        or (dot and not _is_random(random))
    ):
        return None
    return pid, ticks


def segment_file(path: str, named: tuple[int, int], status: os.stat_result) -> SegmentFile:
    """The file of that path and status, which names that pid and start."""
    pid, start_ticks = named
    return SegmentFile(
        path,
        pid=pid,
        start_ticks=start_ticks,
        uid=status.st_uid,
        bytes=status.st_size,
        written_s=status.st_mtime,
        identity=(status.st_dev, status.st_ino),
    )


def names(directory: str, most: int) -> list[str]:
    """Up to `most` names in a directory, sorted; none when it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, most))
    except OSError:
        return []
