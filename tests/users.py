"""Reading as somebody whose files these are not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534

ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root to act as another user")


@contextmanager
def as_another_user(directory: Path) -> Iterator[None]:
    """Whom only the modes under that directory can stop; whoever is not root stays himself."""
    if os.getuid() != 0:
        yield
        return
    for above in (directory, *directory.parents[:-2]):
        above.chmod(0o755)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
