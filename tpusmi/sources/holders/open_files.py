"""What a process has open: device nodes and lock files.

Most descriptors are not a device's, and the text of a link is cheap to read. The text is enough
among our own mounts, where only root can put a device under another name. A process with other
mounts may have a node under any name: any user can arrange that, and containers do.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from tpusmi.sources.holders.allowance import Allowance
from tpusmi.sources.holders.mount_kinds import MountKinds
from tpusmi.sources.holders.nodes import Nodes, is_named_like_a_node, node_of
from tpusmi.sources.holders.procfs import flags_and_mount, read
from tpusmi.sources.mounts import namespace

HARMLESS_MOST = 10_000
DELETED = " (deleted)"
_NO_NODES = frozenset(("/dev/null", "/dev/zero", "/dev/tty", "/dev/console", "/dev/ptmx"))


class OpenLockFile(NamedTuple):
    """A lock file that a process has open."""

    pid: int
    link: str
    path: str
    """Ends with ` (deleted)` if the file was deleted."""


class OpenFiles:
    """What a process has open, as far as it matters."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.count = 0
        self.nodes: dict[str, str] = {}
        """One descriptor of each node."""
        self.lock_files: list[OpenLockFile] = []


class Descriptors:
    """Sorts out what processes have open, and remembers which texts are harmless."""

    def __init__(self, proc: str, nodes: Nodes, lock_files: Iterable[str]) -> None:
        self._nodes = nodes
        self._lock_files = frozenset(lock_files)
        self._harmless: set[str] = set()
        """Texts of links, among our own mounts, that are known not to be a node's."""
        self._own_mounts = namespace("/proc/self", "mnt")
        self._allowance = Allowance()
        self._mounts = MountKinds(proc, self._allowance)

    def begin(self) -> None:
        """Begin another pass."""
        self._allowance.renew()
        self._mounts.begin()

    @property
    def is_full(self) -> bool:
        """True when more is remembered than is worth it."""
        return len(self._harmless) > HARMLESS_MOST

    def forget(self) -> None:
        """Forget everything."""
        self._harmless = set()
        self._mounts.forget()

    def forget_ended(self, processes: Collection[str]) -> None:
        """Forget processes that have ended, named as `/proc/PID`."""
        self._mounts.forget_ended(processes)

    def is_node(self, link: str) -> bool:
        """True for a descriptor that is open on a node."""
        try:
            return bool(self._answers_at_once(link)) and node_of(link, self._nodes) is not None
        except OSError:
            return False

    def look_through(self, process: str, files: OpenFiles) -> bool:
        """Add what a process or thread has open to `files`; True if not all could be inspected."""
        try:
            directory = os.open(f"{process}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            return isinstance(error, PermissionError)
        try:
            # Its size is their number since Linux 6.2: too many are not even listed.
            files.count = os.fstat(directory).st_size
            if files.count and self._allowance.refuses(process, files.count):
                return True
            names = os.listdir(directory)
            is_counted, files.count = bool(files.count), len(names)
            if not is_counted and self._allowance.refuses(process, len(names)):
                return True
            return self._look_at(directory, names, files, process)
        except OSError as error:
            return isinstance(error, PermissionError)
        finally:
            os.close(directory)

    def _look_at(
        self, directory: int, names: Sequence[str], files: OpenFiles, process: str
    ) -> bool:
        """Look at each descriptor; True if not all could be inspected.

        Among other mounts than ours the text of a link only shows that something is not a file.
        """
        readlink, harmless = os.readlink, self._harmless
        is_near = not names or namespace(process, "mnt") == self._own_mounts
        is_refused = False
        for name in names:
            try:
                # The text first: reading it is cheap, and most descriptors are not a device's.
                text = readlink(name, dir_fd=directory)
                if is_near:
                    is_odd = text not in harmless and ("/dev/" in text or "libtpu" in text)
                else:
                    is_odd = text.startswith("/")
                if is_odd:
                    is_refused |= self._sort_out(f"{process}/fd/{name}", text, files, is_near)
            except PermissionError:
                return True  # root without CAP_SYS_PTRACE sees the names and not the targets
            except OSError:
                continue
        return is_refused

    def _sort_out(self, link: str, text: str, files: OpenFiles, is_near: bool) -> bool:
        """Keep a node or a lock file; True if it may be a node and cannot be inspected.

        Raises OSError.
        """
        path = text.removesuffix(DELETED)
        if path in self._lock_files:
            files.lock_files.append(OpenLockFile(files.pid, link, text))
            return False
        answers = self._answers_at_once(link)
        if not answers:
            return answers is None and not (is_near and _is_our_file(link, path))
        if (node := node_of(link, self._nodes)) is not None:
            files.nodes[node] = link
        elif is_near and not is_named_like_a_node(path):  # in another /dev it may be one
            self._harmless.add(text)
        return False

    def _answers_at_once(self, link: str) -> bool | None:
        """False for a descriptor that opens nothing (O_PATH calls no driver and keeps nothing
        from opening it), and for a file that may never answer: on a server that is down, or on a
        file system that a user made. None where that is unknown. Raises OSError.
        """
        process, _, descriptor = link.rpartition("/fd/")
        flags, mount = flags_and_mount(process, descriptor)
        if flags & os.O_PATH:
            return False
        return self._mounts.answers_at_once(process, mount)


def _is_our_file(link: str, path: str) -> bool:
    """True for a file of that name and inode among our own mounts that is not a node.

    A container gets /dev/null and the like from the process that made it, on a mount that the
    container does not see.
    """
    process, _, descriptor = link.rpartition("/fd/")
    words = read(f"{process}/fdinfo/{descriptor}").split()
    try:
        info = os.stat(path) if path in _NO_NODES else None
        return info is not None and int(words[words.index("ino:") + 1]) == info.st_ino
    except (OSError, ValueError, IndexError):
        return False
