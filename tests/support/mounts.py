"""A directory in a mount namespace, empty but for what our Python needs of it.

`python mounts.py DIRECTORY KEPT…`, as root in a mount namespace of its own: a clone or a virtual
environment below that directory stays where it is, and so does what is to be kept.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator

BIND, RECURSIVE = 0x1000, 0x4000
_libc = ctypes.CDLL(None, use_errno=True)


def needed() -> Iterator[str]:
    """Every directory of ours that a Python like this one reads."""
    executable = os.path.realpath(sys.executable)
    for path in (sys.prefix, sys.base_prefix, os.path.dirname(executable), *sys.path):
        if path and os.path.isdir(path):
            yield from dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))


def empty(directory: str, kept: Iterable[str], mode: str = "755") -> None:
    """In place of that directory one that leads to those below it, and to no more."""
    found = {p: os.open(p, os.O_PATH) for p in kept if is_below(p, directory) and os.path.isdir(p)}
    mount("tmpfs", directory, "tmpfs", 0, f"mode={mode}")
    for path in sorted(found):
        if not os.path.isdir(path):  # it may be within one that is there already
            os.makedirs(path, 0o755)
            mount(f"/proc/self/fd/{found[path]}", path, "", BIND | RECURSIVE)
        os.close(found[path])


def is_below(path: str, directory: str) -> bool:
    return path.startswith(f"{directory}/")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """As the system call does. Raises OSError."""
    words = (word.encode() for word in (source, target, kind))
    if _libc.mount(*words, flags, data.encode()):
        raise OSError(ctypes.get_errno(), f"cannot mount {target}")


if __name__ == "__main__":
    os.umask(0o022)
    where, *names = map(os.path.realpath, sys.argv[1:])
    empty(where, [*needed(), *names], "1777")
