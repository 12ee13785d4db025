"""What another process sees as its files: which mount a path is on, and a way there that nobody on
it can turn aside or hold up.

A container may have mounted anything: a link that leads out of it, a file system of its own making
that never answers. So no link is followed, and nothing is asked of a directory before the kernel
has said that it is on a local file system.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from tpusmi.wire import mountinfo
from tpusmi.wire.mountinfo import Mount

MOST_BYTES = 256 * 1024
"""Of a list of mounts: they are those of very many processes."""
LOCAL = frozenset(
    b"bcachefs btrfs devtmpfs erofs ext2 ext3 ext4 f2fs ramfs rootfs squashfs tmpfs xfs zfs".split()
)
"""File systems that answer by themselves. Only root can mount those that need a device."""
OVERLAY = b"overlay"
"""It answers if what lies below it does: any user may lay it over one that does not."""
STEPS_MOST, CROSSED_MOST = 32, 6
"""Directories on the way to a path, and mounts: to ask for each is dear where there are many."""

_POINT = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""To point at something: neither opens it, nor asks its file system."""


class RefusedError(OSError):
    """A path that is not followed, and why."""


Mounts = dict[bytes, list[Mount]]
"""Mounts by the number of the one that each is mounted on; the first of all by none."""


class Pointer(NamedTuple):
    """Something that is pointed at by a descriptor."""

    fd: int
    mount_id: bytes


def mounts(process: str) -> bytes:
    """The list of the mounts that a process sees, or its beginning. Raises OSError."""
    return mountinfo.listed(process, MOST_BYTES)


def table(listed: bytes) -> Mounts:
    """A list of mounts, read."""
    found = [*mountinfo.mounts(listed)]
    numbers = {m.number for m in found}
    by_parent: Mounts = {}
    for m in found:
        is_first = m.parent not in numbers or m.parent == m.number
        by_parent.setdefault(b"" if is_first else m.parent, []).append(m)
    return by_parent


def mount_of(path: bytes, among: Mounts) -> Mount | None:
    """On which mount a path lies that has no links on its way; None where that is not told."""
    under, on_way, found = b"", b"/", None
    for _ in among:
        # The first that is met on the way is entered, and what lies below it is out of sight.
        met = [m for m in among.get(under, ()) if _leads(on_way, m.point) and _leads(m.point, path)]
        if not met:
            break
        found = min(met, key=lambda m: len(m.point))
        under, on_way = found.number, found.point
    return found


def directory_of(path: bytes, among: Mounts) -> tuple[bytes, bytes] | None:
    """The file system and the directory of it that has that path: the same for two lists where it
    is the same one. None where that is not told.
    """
    found = mount_of(path, among)
    if found is None:
        return None
    inside = path[len(found.point.rstrip(b"/")) :].rstrip(b"/")
    return found.device, found.root.rstrip(b"/") + inside


def _leads(above: bytes, path: bytes) -> bool:
    return path == above or path.startswith(above.rstrip(b"/") + b"/")


def namespace(process: str, kind: str) -> str | None:
    """`mnt:[4026531832]`; None when that may not be asked, or the process is gone."""
    try:
        return os.readlink(f"{process}/ns/{kind}")
    except OSError:
        return None


@contextmanager
def pointed_at(process: str, path: str, root: Pointer | None = None) -> Iterator[Pointer]:
    """What has that absolute path for a process, of which the root may be pointed at already.

    Raises OSError: RefusedError where it is no plain path of directories on local file systems.
    """
    steps = path.strip("/").split("/")
    if len(steps) > STEPS_MOST:
        raise RefusedError(0, "is too deep")
    with ExitStack() as opened_here:
        point = opened_here.enter_context(root_of(process)) if root is None else root
        left = CROSSED_MOST
        for name in steps:
            above, point = point, opened_here.enter_context(pointed_in(process, point, name))
            left -= point.mount_id != above.mount_id
            if left < 0:
                raise RefusedError(0, "is behind too many mounts")
        yield point


@contextmanager
def root_of(process: str, among: Mounts | None = None) -> Iterator[Pointer]:
    """The root of a process's files, of which the mounts may have been read a moment ago.

    Raises OSError: RefusedError where it is on no local file system.
    """
    mount = mount_of(b"/", table(mounts(process)) if among is None else among)
    if mount is None or not _is_local(process, mount.kind):
        raise RefusedError(0, "is not on a local file system")
    fd = os.open(f"{process}/root", os.O_PATH | os.O_CLOEXEC)
    try:
        yield _checked(process, fd, None)
    finally:
        os.close(fd)


@contextmanager
def pointed_in(process: str, directory: Pointer, name: str) -> Iterator[Pointer]:
    """What has that name in a directory.

    Raises OSError: RefusedError where it is not on a local file system.
    """
    if name in ("", ".", "..") or "/" in name:
        raise RefusedError(0, "is no plain path")
    fd = os.open(name, _POINT, dir_fd=directory.fd)
    try:
        yield _checked(process, fd, directory)
    finally:
        os.close(fd)


def opened(point: Pointer, flags: int) -> int:
    """A regular file, opened.

    Raises OSError: RefusedError for anything else, which may do harm, or wait for ever.
    """
    if not stat.S_ISREG(os.fstat(point.fd).st_mode):
        raise RefusedError(0, "is not a regular file")
    return os.open(f"/proc/self/fd/{point.fd}", flags & ~os.O_NOFOLLOW)


def names(point: Pointer, most: int) -> list[str]:
    """So many of the names in a directory. Raises OSError."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=point.fd)
    try:
        with os.scandir(fd) as entries:
            return [entry.name for entry, _ in zip(entries, range(most), strict=False)]
    finally:
        os.close(fd)


def _checked(process: str, fd: int, above: Pointer | None) -> Pointer:
    """The descriptor with its mount: above's, or a local one that the process sees.

    Raises OSError: RefusedError for any other.
    """
    # The descriptor keeps its mount: no other one can have the same number meanwhile.
    mount_id = _mount_id(fd)
    if above is None or mount_id != above.mount_id:
        _check_local(process, mount_id)
    return Pointer(fd, mount_id)


def _mount_id(fd: int) -> bytes:
    own = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(own, 4096).partition(b"mnt_id:")[2].split()[0]
    except IndexError:
        raise RefusedError(0, "is on a mount that the kernel does not tell") from None
    finally:
        os.close(own)


def _check_local(process: str, mount_id: bytes) -> None:
    """Raises RefusedError for a mount that is not a local file system of that process."""
    listed = b"\n" + mounts(process)
    _, found, rest = listed.partition(b"\n" + mount_id + b" ")
    kind = rest.partition(b"\n")[0].partition(b" - ")[2].split(b" ", 1)[0]
    if not found or not _is_local(process, kind):
        raise RefusedError(0, "is not on a local file system")


def _is_local(process: str, kind: bytes) -> bool:
    return is_overlay_trusted(process) if kind == OVERLAY else kind in LOCAL


def is_overlay_trusted(process: str) -> bool:
    """True if an overlay that this process sees will answer: it is of our user namespace.

    A user other than root may look at their own processes alone, and can only keep themselves
    waiting.
    """
    own = namespace("/proc/self", "user")
    return os.geteuid() != 0 or (own is not None and namespace(process, "user") == own)
