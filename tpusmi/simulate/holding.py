"""How a process holds a simulated TPU: its device nodes open, and libtpu's lock taken."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable

LOCKFILE = "/tmp/libtpu_lockfile"


def open_nodes(root: str, nodes: Iterable[str]) -> list[int]:
    """Descriptors of those nodes of the host."""
    return [os.open(root + node, os.O_RDWR) for node in nodes]


def open_lockfile(root: str) -> int:
    """A descriptor of libtpu's lock file, made as libtpu makes it."""
    return os.open(root + LOCKFILE, os.O_CREAT | os.O_RDWR, 0o644)


def lock(descriptor: int) -> None:
    """Take the lock for this process, as long as it lives; a program it becomes keeps it."""
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
