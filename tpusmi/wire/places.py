"""Where segments lie."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import itertools
import os
import stat
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from tpusmi.wire import mountinfo

SUFFIX = ".seg"
_DIRECTORY = "tpusmi-"

SHARED_MEMORY, RUNTIME, TEMPORARY = "/dev/shm", "/run/user", "/tmp"

ENTRIES_MOST = 16384
"""Names that are looked at in one directory of segments."""
NAMES_MOST, NAMED_MOST = 65_536, 4096
"""Names that are listed in a place that all users share, such as /tmp, and of those the names of
such directories that are looked at. Any user may fill it.
"""
RUNTIMES_MOST = 1024
"""Directories of users' runtime files."""
PROCESSES_MOST = 32768
RANDOM_MOST = 64
"""Characters in a name that cannot be foreseen."""
OF_USER_MOST = 4
"""Directories of one user in one place."""


class Place(NamedTuple):
    """A segment file by its name and its owner, before anything in it was believed."""

    path: str
    pid: int
    start_ticks: int
    uid: int
    """The user whose file it is, by the kernel."""
    bytes: int
    written_s: float
    """When it was written last, as time.time() counts."""
    identity: tuple[int, int] = (0, 0)
    """Its file system and its number there."""
    within: str = ""
    """The process, /proc/PID, in whose mounts the file is; empty of a file that has this path among
    our own.
    """
    payer: int | None = None
    """Who pays for looking at it, if not the owner."""

    @property
    def charged(self) -> int:
        """The user whose share it costs."""
        return self.uid if self.payer is None else self.payer


class Found(NamedTuple):
    """What a directory has."""

    places: list[Place]
    entries: int
    """How many names there are; one more than may be looked at where there are more."""


class Directory(NamedTuple):
    """A directory for segments, or what has its name."""

    path: str
    uid: int | None
    """The user who owns it; None of a TPUSMI_DIR, which users may share."""
    trouble: str = ""
    """Why nothing in it can be read; empty when something may be."""
    within: str = ""
    """The process, /proc/PID, in whose mounts it is; empty of one among our own."""
    inner: str = ""
    """Its path there."""
    payer: int | None = None
    """Who pays for looking there, if not the owner: a user who can mount may lay the directories of
    others behind what is slow.
    """


def bases(uid: int) -> list[str]:
    """Directories in which an agent of that user may make its own, best first."""
    return [SHARED_MEMORY, own_runtime(uid) or f"{RUNTIME}/{uid}", TEMPORARY]


def own_runtime(uid: int) -> str | None:
    """XDG_RUNTIME_DIR, if it is that user's own: sudo and su may leave the one of another user."""
    named = os.environ.get("XDG_RUNTIME_DIR")
    return named if named and _owner(named) == uid else None


def directory_name(uid: int, random: str = "") -> str:
    """`tpusmi-1001`; where another user has taken that, with something that cannot be foreseen."""
    return f"{_DIRECTORY}{uid}{f'.{random}' if random else ''}"


def user_in_name(name: str) -> int | None:
    """The uid in the name of such a directory; None for any other name, and for one with characters
    that no agent puts there: the name is shown.
    """
    uid, dot, random = name.removeprefix(_DIRECTORY).partition(".")
    is_ours = not dot or _is_random(random)
    return _number(uid) if is_ours and name.startswith(_DIRECTORY) else None


def _is_random(text: str) -> bool:
    return text.isascii() and text.isalnum() and len(text) <= RANDOM_MOST


def segment_name(pid: int, start_ticks: int, random: str = "") -> str:
    """`71-12345.seg`; where another process has taken that, with something by chance: in another
    container one may have the same number, and have started in the same moment after boot.
    """
    return f"{pid}-{start_ticks}{f'.{random}' if random else ''}{SUFFIX}"


def directories(root: str) -> Iterator[Directory]:
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
    """Directories named like one for segments on which a user has mounted a file system that a
    program of theirs answers for, if it does, with that user. To ask anything of one may take for
    ever, and could not be stopped.
    """
    try:
        listed = mountinfo.listed(f"{proc}/self")
    except OSError:
        return {}
    found: dict[str, int | None] = {}
    for m in mountinfo.mounts(listed) if _DIRECTORY.encode() in listed else ():
        path = os.fsdecode(m.point)
        if m.kind.startswith(b"fuse") and user_in_name(os.path.basename(path)) is not None:
            user = m.options.partition(b",user_id=")[2].partition(b",")[0]
            found[path] = _number(user.decode("ascii", "replace"))
    return found


def _in_place(parent: str, proc: str, mounted: dict[str, int | None]) -> Iterator[Directory]:
    """Those in one place. Root's and this user's need no listing. Where there are too many names to
    look at, users who run processes need none either: one user must not hide the others.
    """
    listed, trouble = _listed(parent)
    users = (os.geteuid(), 0, *(_running_users(proc) if trouble else ()))
    names = dict.fromkeys((*map(directory_name, users), *listed))
    yield from _of_users(parent, [name for name in names if f"{parent}/{name}" not in mounted])
    for path, uid in mounted.items():
        if os.path.dirname(path) == parent:
            yield Directory(path, uid, "is a file system that may never answer (FUSE)")
    if trouble:
        yield Directory(parent, None, trouble)


def _listed(parent: str) -> tuple[list[str], str]:
    """The names there that a directory for segments may have, and why they may not be all."""
    try:
        with os.scandir(parent) as entries:
            seen = [entry.name for entry in itertools.islice(entries, NAMES_MOST + 1)]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return [], ""  # another user's runtime directory is private
    except OSError as error:
        return [], f"cannot be read: {error.strerror or error}"
    named = sorted(name for name in seen[:NAMES_MOST] if user_in_name(name) is not None)
    is_whole = len(seen) <= NAMES_MOST and len(named) <= NAMED_MOST
    return named[:NAMED_MOST], "" if is_whole else "has too many names: not all were looked at"


def _running_users(proc: str) -> list[int]:
    """The users of the processes that /proc shows."""
    found = set()
    for name in names(proc, PROCESSES_MOST):
        try:
            if name.isdigit():
                found.add(os.stat(f"{proc}/{name}").st_uid)
        except OSError:
            continue  # it has ended
    return sorted(found)


def _of_users(parent: str, listed: Iterable[str]) -> Iterator[Directory]:
    """Those of each user, by the kernel, a few for each. The name is the owner's word: another uid
    stands in it where a user namespace numbers users in its own way.
    """
    counts: dict[int, int] = {}
    for name in listed:
        path = f"{parent}/{name}"
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            continue
        except OSError:
            # The directory above is private, as /run/user/1001 is: whose is told by its name.
            continue
        uid, is_directory = found.st_uid, stat.S_ISDIR(found.st_mode)
        if not is_directory and user_in_name(name) != uid:
            continue  # another user has taken the name: the agent has gone elsewhere
        counts[uid] = counts.get(uid, 0) + 1
        if counts[uid] <= OF_USER_MOST:
            yield Directory(path, uid, "" if is_directory else "is not a directory")


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


def segments(
    directory: str,
    uid: int | None,
    most: int = ENTRIES_MOST,
    first: Container[str] | None = None,
) -> Found:
    """The files that are named like a segment, of that user if one is given, among so many entries:
    where there are more, those first that begin with one of these pids.

    Raises OSError when the directory cannot be listed.
    """
    with os.scandir(directory) as entries:
        seen = [*itertools.islice(entries, (most if first is None else ENTRIES_MOST) + 1)]
    if first is not None and len(seen) > most:
        seen.sort(key=lambda entry: entry.name.partition("-")[0] not in first)
    found = (_place(entry, uid) for entry in seen[:most])
    return Found([place for place in found if place is not None], min(len(seen), most + 1))


def _place(entry: os.DirEntry[str], uid: int | None) -> Place | None:
    named = named_process(entry.name)
    if named is None:
        return None
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return None  # removed meanwhile
    return None if uid not in (None, found.st_uid) else place(entry.path, named, found)


def named_process(name: str) -> tuple[int, int] | None:
    """The pid and the start that the name of a segment tells; None for any other name."""
    pid, _, rest = name.removesuffix(SUFFIX).partition("-")
    ticks, dot, random = rest.partition(".")
    named = (_number(pid), _number(ticks) if not dot or _is_random(random) else None)
    if not name.endswith(SUFFIX) or named[0] is None or named[1] is None:
        return None
    return named[0], named[1]


def place(path: str, named: tuple[int, int], found: os.stat_result) -> Place:
    """The file of that path and status."""
    identity = (found.st_dev, found.st_ino)
    return Place(path, *named, found.st_uid, found.st_size, found.st_mtime, identity)


def _number(text: str) -> int | None:
    """A plain decimal number as we write it; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None


def names(directory: str, most: int) -> list[str]:
    """So many names in a directory, sorted; none when it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, most))
    except OSError:
        return []
