"""What a process has open: the nodes, and lock files.

Most descriptors are no device's, and the text of a link is cheap to read. It tells enough among
our own mounts, where only root can put a device under another name. A process that sees other
mounts may have a node under any name: any user can arrange that, and containers do.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from tpusmi.sources.holders.allowance import Allowance
from tpusmi.sources.holders.nodes import Nodes, is_named_like_a_node, node_of
from tpusmi.sources.holders.procfs import flags_and_mount, mount_types, read, read_stat
from tpusmi.sources.mounts import namespace

LOCAL_TYPES = frozenset(
    (
        *("devtmpfs", "tmpfs", "devpts", "ramfs", "rootfs", "overlay"),
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs"),
    )
)
"""File systems that answer at once: a device node is on one of them."""
HARMLESS_MOST = 10_000
DELETED = " (deleted)"
TABLES_MOST = 64
"""Processes whose mounts are remembered."""
_NO_NODES = frozenset(("/dev/null", "/dev/zero", "/dev/tty", "/dev/console", "/dev/ptmx"))
_PARENTS_MOST = 4
"""Processes above one that may see the mount of a descriptor which came from there."""


class Opened(NamedTuple):
    """A lock file that a process has open."""

    pid: int
    link: str
    path: str
    """With ` (deleted)` behind it, if it is."""


class Open:
    """What a process has open, as far as it matters."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.count = 0
        self.nodes: dict[str, str] = {}
        """The descriptor of each node."""
        self.files: list[Opened] = []


class Descriptors:
    """Remembers what is known to be harmless."""

    def __init__(self, nodes: Nodes, lock_files: Iterable[str]) -> None:
        self._nodes = nodes
        self._lock_files = frozenset(lock_files)
        self._harmless: set[str] = set()
        """Texts of links that are known to be no node's, among our mounts."""
        self._own_mounts = namespace("/proc/self", "mnt")
        self._local: dict[tuple[str, str], bool | None] = {}
        """Of each process and mount, whether a look at its files is answered at once; None where
        nobody tells.
        """
        self._tables: dict[str, dict[str, str]] = {}
        """The file system of each mount of a process, in one pass."""
        self._allowance = Allowance()

    def begin(self) -> None:
        """Begin another pass."""
        self._allowance.renew()
        self._tables = {}

    @property
    def is_full(self) -> bool:
        """True when more is remembered than is worth it."""
        return len(self._harmless) > HARMLESS_MOST

    def forget(self) -> None:
        """Know nothing any more."""
        self._harmless, self._local = set(), {}

    def forget_ended(self, processes: Collection[str]) -> None:
        """Forget those, `/proc/PID` each."""
        if self._local:
            self._local = {k: v for k, v in self._local.items() if k[0] not in processes}

    def look_through(self, process: str, found: Open) -> bool:
        """Sort out what a process has open, or a thread; True where not all may be looked at."""
        try:
            directory = os.open(f"{process}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            return isinstance(error, PermissionError)
        try:
            # Its size is their number since Linux 6.2: too many are not even listed.
            found.count = os.fstat(directory).st_size
            if found.count and self._allowance.refuses(process, found.count):
                return True
            names = os.listdir(directory)
            is_counted, found.count = bool(found.count), len(names)
            if not is_counted and self._allowance.refuses(process, len(names)):
                return True
            return self._look_at(directory, names, found, process)
        except OSError as error:
            return isinstance(error, PermissionError)
        finally:
            os.close(directory)

    def _look_at(self, directory: int, names: Sequence[str], found: Open, process: str) -> bool:
        """Each of those descriptors. Of a process among other mounts a text tells only what is no
        file.
        """
        readlink, harmless = os.readlink, self._harmless
        is_near = not names or namespace(process, "mnt") == self._own_mounts
        is_refused = False
        for name in names:
            try:
                # The text first: reading it is cheap, and most descriptors are no device's.
                text = readlink(name, dir_fd=directory)
                if is_near:
                    is_odd = text not in harmless and ("/dev/" in text or "libtpu" in text)
                else:
                    is_odd = text.startswith("/")
                if is_odd:
                    is_refused |= self._sort_out(f"{process}/fd/{name}", text, found, is_near)
            except PermissionError:
                return True  # root without CAP_SYS_PTRACE sees the names and not the targets
            except OSError:
                continue
        return is_refused

    def _sort_out(self, link: str, text: str, found: Open, is_near: bool) -> bool:
        """Keep what is a node or a lock file; True of what cannot be told. Raises OSError."""
        path = text.removesuffix(DELETED)
        if path in self._lock_files:
            found.files.append(Opened(found.pid, link, text))
            return False
        is_local = self._is_to_be_looked_at(link)
        if not is_local:
            return is_local is None and not (is_near and _is_our_file(link, path))
        if (node := node_of(link, self._nodes)) is not None:
            found.nodes[node] = link
        elif is_near and not is_named_like_a_node(path):  # in another /dev it may be one
            self._harmless.add(text)
        return False

    def _is_to_be_looked_at(self, link: str) -> bool | None:
        """False for a descriptor that opens nothing (O_PATH calls no driver and keeps nobody out),
        and for a file whose look would never end: on a server that is down, or a file system of
        some user's making. None where that is not known. Raises OSError.
        """
        process, _, descriptor = link.rpartition("/fd/")
        flags, mount = flags_and_mount(process, descriptor)
        if flags & os.O_PATH:
            return False
        key = (process, mount)
        if key not in self._local:
            kind = self._mount_type(process, mount)
            self._local[key] = None if kind is None else kind in LOCAL_TYPES
        return self._local[key]

    def _mount_type(self, process: str, mount: str) -> str | None:
        """The file system of a mount. What a process has from the one that started it, such as its
        standard streams, is on a mount that only that one may see, or we.
        """
        kind = self._table(process).get(mount) or self._table("/proc/self").get(mount)
        proc, above = process.partition("/task/")[0].rpartition("/")[0], process
        for _ in range(_PARENTS_MOST):
            stat = None if kind else read_stat(above)
            if stat is None or stat.parent <= 0:
                break
            above = f"{proc}/{stat.parent}"
            kind = self._table(above).get(mount)
        return kind

    def _table(self, process: str) -> dict[str, str]:
        """The mounts that a process sees."""
        if process not in self._tables:
            if len(self._tables) >= TABLES_MOST:
                self._tables = {}
            self._tables[process] = mount_types(process)
        return self._tables[process]


def _is_our_file(link: str, path: str) -> bool:
    """True for a file of that name and inode among our mounts that is no node: what a container has
    from the process that made it, such as /dev/null, is on a mount that it does not see.
    """
    process, _, descriptor = link.rpartition("/fd/")
    words = read(f"{process}/fdinfo/{descriptor}").split()
    try:
        found = os.stat(path) if path in _NO_NODES else None
        return found is not None and int(words[words.index("ino:") + 1]) == found.st_ino
    except (OSError, ValueError, IndexError):
        return False
