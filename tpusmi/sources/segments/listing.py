"""Which segment files there are, in the order in which they are read, and how each is opened."""

import errno
import math
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator

from tpusmi.model import Host
from tpusmi.sources import mounts
from tpusmi.sources.mounts import Pointer
from tpusmi.sources.segments.gaps import Gaps
from tpusmi.sources.segments.namespaces import Namespaces, NamespaceScan
from tpusmi.sources.segments.quota import Quota, ReadCost, spent
from tpusmi.wire import identity, lock, places
from tpusmi.wire.places import RECENT_S, SegmentDirectory, SegmentFile

DIRECTORIES_EVERY_S = 5.0
"""How often new directories are looked for: /tmp may have very many names."""
AGAIN_S = 1.0
"""How often, once a process has ended through which the mounts of others were read."""
DESCRIPTORS_LEFT = 16
"""File descriptors that the other sources and Python need at one moment. Where the process may have
few, half of them are left.
"""


class Directories:
    """The directories of segments, between reads."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._directories: list[SegmentDirectory] = []
        self._namespaces = Namespaces(host.path("/proc"))
        self._others = NamespaceScan([], [], [], [])
        self._searched_at_s = -math.inf
        self._unlocked: dict[str, float] = {}
        """Files whose lock was free, with when they were last written: it stays free."""
        self._pids = _Pids(host.path("/proc"))

    def segments(self, now_s: float, quota: Quota, gaps: Gaps) -> list[SegmentFile]:
        """All segment files now: trusted users' directories first, then those of the others. What
        cannot be listed is added to `gaps`.
        """
        self._search(now_s, quota)
        self._pids = _Pids(self._host.path("/proc"))
        files: list[SegmentFile] = []
        for directory in sorted(
            self._directories, key=lambda d: d.uid is not None and not quota.is_trusted(d.uid)
        ):
            if directory.trouble:
                gaps.directory(directory, directory.trouble)
                continue
            try:
                listed, why = _files_in(directory, quota, self._pids)
                files += listed
                if why:
                    gaps.directory(directory, why)
            except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
                pass
            except PermissionError:
                gaps.directory(directory, "cannot be read", is_denied=True)
            except OSError as error:
                gaps.directory(directory, f"cannot be read: {error.strerror or error}")
        gaps.others(self._others)
        # A shared directory is found among the mounts of every process that shares it.
        by_identity = {file.identity: file for file in reversed(files)}
        ordered = _ordered(by_identity.values(), quota, self._is_alive)
        if len(self._unlocked) > len(files):
            paths = {file.path for file in files}
            self._unlocked = {path: at for path, at in self._unlocked.items() if path in paths}
        return ordered

    def _search(self, now_s: float, quota: Quota) -> None:
        override = self._host.segment_dir
        every_s = AGAIN_S if self._namespaces.have_changed() else DIRECTORIES_EVERY_S
        if override is not None:
            self._directories = [SegmentDirectory(override, None)]
        elif now_s - self._searched_at_s >= every_s:
            self._directories = [*places.directories(self._host.root)]
            if self._host.root == "/":
                self._others = self._namespaces.scan(quota)
                self._directories += self._others.directories
            self._searched_at_s = now_s

    def _is_alive(self, file: SegmentFile) -> bool:
        """Whether its process is there by its pid, or, in another namespace, by its lock."""
        if file.pid in self._pids:
            ticks = identity.start_ticks(self._host.path("/proc"), file.pid)
            if ticks == file.start_ticks:
                return True
        if self._unlocked.get(file.path) == file.written_s:
            return False
        is_locked = lock.is_held_at(file.path, opener(file))
        if is_locked is False:
            self._unlocked[file.path] = file.written_s
        return is_locked is True


class _Pids:
    """The processes in a /proc, listed when they are first needed."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._names: frozenset[str] | None = None

    def __contains__(self, pid: object) -> bool:
        if self._names is None:
            self._names = frozenset(places.names(self._proc, places.PROCESSES_MOST))
        return str(pid) in self._names

    def files(self, directory: str) -> Iterator[SegmentFile]:
        """The segments in a directory that are named after the processes that are listed here."""
        for name in places.names(self._proc, places.PROCESSES_MOST):
            ticks = identity.start_ticks(self._proc, int(name)) if name.isdecimal() else None
            if ticks is not None:
                path = f"{directory}/{places.segment_name(int(name), ticks)}"
                try:
                    yield places.segment_file(path, (int(name), ticks), os.lstat(path))
                except OSError:
                    continue  # most have none


def _files_in(
    directory: SegmentDirectory, quota: Quota, pids: _Pids
) -> tuple[list[SegmentFile], str]:
    """The segments in a directory, and why not all of it was read. A file that another user has put
    there does not count. Where there are too many, those of the processes in `pids` are looked for
    by name, so that a crowd does not hide them. Raises OSError.
    """
    if directory.uid is None:
        most = places.ENTRIES_MOST
        files, entries = places.segments(directory.path, None, most)
        if entries > most:
            by_path = {file.path: file for file in (*files, *pids.files(directory.path))}
            files = [*by_path.values()]
    else:
        payer = directory.uid if directory.payer is None else directory.payer
        if directory.within and (why := quota.lateness(payer)):
            return [], f"was not read: {why}"
        most = max(0, quota.left(payer).files)
        with spent(quota, payer):
            if directory.within:
                files, entries = _files_within(directory, most)
            else:
                first = pids if most else None  # sorting names of which none is read is wasted time
                files, entries = places.segments(directory.path, directory.uid, most, first)
        quota.spend(payer, ReadCost(files=entries))
    return files, f"has more than {most} files: not all were read" if entries > most else ""


def _files_within(directory: SegmentDirectory, most: int) -> tuple[list[SegmentFile], int]:
    """The segments of its owner in a directory among the mounts of another process, in the first
    `most` names, and how many names were read. Raises OSError.
    """
    with mounts.pointed_at(directory.within, directory.inner) as point:
        names = mounts.names(point, most + 1)
        files = [_file_within(directory, point, name) for name in names[:most]]
    return [file for file in files if file is not None], len(names)


def _file_within(directory: SegmentDirectory, parent: Pointer, name: str) -> SegmentFile | None:
    named = places.named_process(name)
    if named is None:
        return None
    try:
        with mounts.pointed_in(directory.within, parent, name) as point:
            status = os.fstat(point.fd)
    except OSError:
        return None
    if status.st_uid != directory.uid or not stat.S_ISREG(status.st_mode):
        return None
    file = places.segment_file(f"{directory.path}/{name}", named, status)
    return file._replace(within=directory.within, payer=directory.payer)


def opener(file: SegmentFile) -> Callable[[str, int], int]:
    """How that file is opened: among the mounts of another process by no other way."""
    if not file.within:
        return os.open

    def open_within(path: str, flags: int) -> int:
        directory, _, name = path.removeprefix(f"{file.within}/root").rpartition("/")
        with (
            mounts.pointed_at(file.within, directory) as parent,
            mounts.pointed_in(file.within, parent, name) as point,
        ):
            return mounts.opened(point, flags)

    return open_within


def sparing(opener: Callable[[str, int], int]) -> Callable[[str, int], int]:
    """That opener, which raises OSError where too few descriptors would be left."""

    def open_sparing(path: str, flags: int) -> int:
        import resource

        fd = opener(path, flags)
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limit == resource.RLIM_INFINITY or fd < limit - min(DESCRIPTORS_LEFT, limit // 2):
            return fd
        os.close(fd)
        raise OSError(errno.EMFILE, "this process may not open many more files")

    return open_sparing


def _ordered(
    files: Iterable[SegmentFile], quota: Quota, is_alive: Callable[[SegmentFile], bool]
) -> list[SegmentFile]:
    """Own and root's first. Then one of each user, then another one of each, so that no user is
    last because of the many files of others; and of each user the living ones first.
    """
    by_user: dict[int, list[SegmentFile]] = {}
    for file in files:
        by_user.setdefault(file.charged, []).append(file)
    ranked = []
    for uid, own in by_user.items():
        is_last = not quota.is_trusted(uid)
        with spent(quota, uid):
            ordered = _living_first(own, quota.left(uid), is_alive)
        ranked += [((is_last, rank, uid), file) for rank, file in enumerate(ordered)]
    return [file for _, file in sorted(ranked, key=lambda pair: pair[0])]


def _living_first(
    own: list[SegmentFile], left: ReadCost, is_alive: Callable[[SegmentFile], bool]
) -> list[SegmentFile]:
    """The files that are being written, in an order that stays, then the newest. Where not all can
    be read, those whose process is alive come first; half the time may be spent on finding out.
    """
    alive: dict[str, bool] = {}
    if len(own) > left.segments or sum(file.bytes for file in own) > left.bytes:
        until_s = time.thread_time() + left.cpu_s / 2
        for file in sorted(own, key=lambda file: -file.written_s):
            if time.thread_time() > until_s:
                break
            alive[file.path] = is_alive(file)
    now_s = time.time()

    def rank(file: SegmentFile) -> tuple[int, bool, float, str]:
        is_written = now_s - file.written_s < RECENT_S
        by_life = {True: 0, None: 1, False: 2}[alive.get(file.path)]
        return (by_life, not is_written, 0.0 if is_written else -file.written_s, file.path)

    return sorted(own, key=rank)
