"""What another process sees as its files: which mount a path is on, and a way there that a hostile
container can neither divert nor block.

A container may have mounted anything: a link that leads out of it, or a file system of its own that
never responds. So no link is followed, and a directory is not read before the kernel has said that
it is on a local file system.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple

from tpusmi.wire import mountinfo
from tpusmi.wire.mountinfo import Mount

MOST_BYTES = 256 * 1024
"""Most that is read of a process's list of mounts: there may be very many processes."""
LOCAL = frozenset(
    b"bcachefs btrfs devtmpfs erofs ext2 ext3 ext4 f2fs ramfs rootfs squashfs tmpfs xfs zfs".split()
)
"""File systems that respond by themselves. Only root can mount those that need a device."""
OVERLAY = b"overlay"
"""A file system that responds if those below it do: any user may lay it over one that does not."""
STEPS_MOST, CROSSED_MOST = 32, 6
"""Most directories on the way to a path, and most mounts: each costs a call of the kernel."""

_CAP_SYS_PTRACE = 19
_POINT = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that point at a file without opening it or calling its file system."""


class NotFollowedError(OSError):
    """A path that is not followed, and why."""


Mounts = dict[bytes, list[Mount]]
"""Mounts by the number of their parent mount; b"" for those without one."""


class Pointer(NamedTuple):
    """A descriptor that points at a file or a directory, and the mount it is on."""

    fd: int
    mount_id: bytes


def mounts(process: str) -> bytes:
    """The list of the mounts that a process sees, or its beginning. Raises OSError."""
    return mountinfo.listed(process, MOST_BYTES)


def table(listed: bytes) -> Mounts:
    """A list of mounts, parsed."""
    parsed = [*mountinfo.mounts(listed)]
    numbers = {m.number for m in parsed}
    by_parent: Mounts = {}
    for m in parsed:
        is_first = m.parent not in numbers or m.parent == m.number
        by_parent.setdefault(b"" if is_first else m.parent, []).append(m)
    return by_parent


def table_of(process: str) -> Mounts:
    """The mounts that a process sees; none where its list cannot be read."""
    try:
        return table(mounts(process))
    except OSError:
        return {}


def mount_of(path: bytes, among: Mounts) -> Mount | None:
    """On which mount a path is that has no links on its way; None where the list does not say."""
    parent, on_way, mount = b"", b"/", None
    for _ in among:
        # The first mount on the way is entered. It hides the others at or below its mount point.
        next_ones = [
            m for m in among.get(parent, ()) if _leads(on_way, m.point) and _leads(m.point, path)
        ]
        if not next_ones:
            break
        mount = min(next_ones, key=lambda m: len(m.point))
        parent, on_way = mount.number, mount.point
    return mount


def directory_of(path: bytes, among: Mounts) -> tuple[bytes, bytes] | None:
    """The file system and the directory on it that has that path: equal for two processes that see
    the same directory. None where the list does not say.
    """
    mount = mount_of(path, among)
    if mount is None:
        return None
    inside = path[len(mount.point.rstrip(b"/")) :].rstrip(b"/")
    return mount.device, mount.root.rstrip(b"/") + inside


def _leads(above: bytes, path: bytes) -> bool:
    return path == above or path.startswith(above.rstrip(b"/") + b"/")


def namespace(process: str, kind: str) -> str | None:
    """`mnt:[4026531832]`; None when this user may not see it, or the process is gone."""
    try:
        return os.readlink(f"{process}/ns/{kind}")
    except OSError:
        return None


@contextmanager
def pointed_at(process: str, path: str, root: Pointer | None = None) -> Iterator[Pointer]:
    """A pointer at that absolute path as a process sees it. `root`, if given, points at its root.

    Raises OSError: NotFollowedError for anything but a plain path on local file systems.
    """
    steps = path.strip("/").split("/")
    if len(steps) > STEPS_MOST:
        raise NotFollowedError(0, "is too deep")
    with ExitStack() as opened_here:
        point = opened_here.enter_context(root_of(process)) if root is None else root
        left = CROSSED_MOST
        for name in steps:
            above, point = point, opened_here.enter_context(pointed_in(process, point, name))
            left -= point.mount_id != above.mount_id
            if left < 0:
                raise NotFollowedError(0, "is behind too many mounts")
        yield point


def root_of(process: str, among: Mounts | None = None) -> AbstractContextManager[Pointer]:
    """A pointer at the root of a process's files. `among`, if given, is a fresh list of its mounts.

    Raises OSError: NotFollowedError where it is not on a local file system.
    """
    mount = mount_of(b"/", table(mounts(process)) if among is None else among)
    if mount is None or not _is_local(process, mount.kind):
        raise NotFollowedError(0, "is not on a local file system")
    return _pointing(process, os.open(f"{process}/root", os.O_PATH | os.O_CLOEXEC), None)


def pointed_in(process: str, directory: Pointer, name: str) -> AbstractContextManager[Pointer]:
    """A pointer at the file of that name in a directory.

    Raises OSError: NotFollowedError where it is not on a local file system.
    """
    if name in ("", ".", "..") or "/" in name:
        raise NotFollowedError(0, "is not a plain path")
    return _pointing(process, os.open(name, _POINT, dir_fd=directory.fd), directory)


def opened(point: Pointer, flags: int) -> int:
    """The descriptor of a regular file, opened.

    Raises OSError: NotFollowedError for anything else, which may do harm, or block forever.
    """
    if not stat.S_ISREG(os.fstat(point.fd).st_mode):
        raise NotFollowedError(0, "is not a regular file")
    return os.open(f"/proc/self/fd/{point.fd}", flags & ~os.O_NOFOLLOW)


def names(point: Pointer, most: int) -> list[str]:
    """Up to `most` of the names in a directory. Raises OSError."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=point.fd)
    try:
        with os.scandir(fd) as entries:
            return [entry.name for entry, _ in zip(entries, range(most), strict=False)]
    finally:
        os.close(fd)


@contextmanager
def _pointing(process: str, fd: int, above: Pointer | None) -> Iterator[Pointer]:
    """The descriptor with its mount: that of the directory above, or a local one of the process.

    Raises OSError: NotFollowedError for any other.
    """
    try:
        # The descriptor keeps its mount, so that its number cannot be reused.
        mount_id = _mount_id(fd)
        if above is None or mount_id != above.mount_id:
            _check_local(process, mount_id)
        yield Pointer(fd, mount_id)
    finally:
        os.close(fd)


def _mount_id(fd: int) -> bytes:
    own = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(own, 4096).partition(b"mnt_id:")[2].split()[0]
    except IndexError:
        raise NotFollowedError(0, "is on a mount that the kernel does not report") from None
    finally:
        os.close(own)


def _check_local(process: str, mount_id: bytes) -> None:
    """Raises NotFollowedError for a mount that is not a local file system of that process."""
    listed = b"\n" + mounts(process)
    _, is_listed, rest = listed.partition(b"\n" + mount_id + b" ")
    kind = rest.partition(b"\n")[0].partition(b" - ")[2].split(b" ", 1)[0]
    if not is_listed or not _is_local(process, kind):
        raise NotFollowedError(0, "is not on a local file system")


def _is_local(process: str, kind: bytes) -> bool:
    return is_overlay_trusted(process) if kind == OVERLAY else kind in LOCAL


def is_overlay_trusted(process: str) -> bool:
    """True if an overlay that this process sees will answer: it is of our user namespace.

    Who may look at their own processes alone can only keep themselves waiting.
    """
    own = namespace("/proc/self", "user")
    if own is not None and namespace(process, "user") == own:
        return True
    return not _may_see_strangers()


def _may_see_strangers() -> bool:
    """True where this thread may look at processes of other users: as root, or as an exporter that
    was given CAP_SYS_PTRACE alone; also where the kernel does not say.
    """
    if os.geteuid() == 0:
        return True
    try:
        with open("/proc/thread-self/status", "rb") as status:
            words = status.read().partition(b"\nCapEff:")[2].split(maxsplit=1)
        return bool(int(words[0], 16) >> _CAP_SYS_PTRACE & 1)
    except (OSError, ValueError, IndexError):
        return True
