"""Processor time of something, for a generous bound on what must not grow out of all proportion."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def takes_at_most(seconds: float) -> Iterator[None]:
    """Fails when what is done meanwhile takes more processor time. Without the garbage collector,
    which would look through all that the tests before have left.
    """
    was_on = gc.isenabled()
    gc.disable()
    started_s = time.process_time()
    try:
        yield
        took_s = time.process_time() - started_s
    finally:
        if was_on:
            gc.enable()
    assert took_s < seconds
