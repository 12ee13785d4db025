"""Reading as somebody whose files these are not."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534

ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root to act as another user")


@contextmanager
def reachable(directory: Path) -> Iterator[None]:
    """Other users may get to that directory, below the one for temporary files, meanwhile."""
    above = [d for d in (directory, *directory.parents) if d.stat().st_uid == os.getuid()]
    modes = {d: d.stat().st_mode for d in above if Path(tempfile.gettempdir()) in d.parents}
    for d, mode in modes.items():
        d.chmod(mode | 0o055)
    try:
        yield
    finally:
        for d, mode in modes.items():
            d.chmod(mode)


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    """This process of root's has the rights of that user meanwhile."""
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def as_another_user(directory: Path) -> Iterator[None]:
    """Whom only the modes under that directory can stop; whoever is not root stays himself."""
    if os.getuid() != 0:
        yield
        return
    with reachable(directory), acting_as(NOBODY):
        yield
