"""What a reader is tried with: a target takes bytes, and raises what must not come out of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent.parent / "data"


class Target(NamedTuple):
    run: Callable[[bytes], None]
    inputs: Sequence[bytes]
    words: Sequence[bytes] = ()


TARGETS: dict[str, Callable[[Path], contextlib.AbstractContextManager[Target]]] = {}


def target(
    make: Callable[[Path], Iterator[Target]],
) -> Callable[[Path], contextlib.AbstractContextManager[Target]]:
    """Names it after the function."""
    TARGETS[make.__name__] = contextlib.contextmanager(make)
    return TARGETS[make.__name__]
