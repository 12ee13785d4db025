"""What kind of work an operation is, and its name in a sentence. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tpusmi import text
from tpusmi.report import words
from tpusmi.trace.figures import Operation
from tpusmi.trace.operation_facts import COLLECTIVES, OFF_DUTY, share_of

MATMULS = ("convolution", "dot", "gemm", "matmul")
WAITS = (*OFF_DUTY, "copy-done", "copy-start", "async-done", "async-start")
"""Categories of operations that wait for the host, or for data."""
LAYOUT = (
    "copy", "transpose", "reshape", "pad", "slice", "dynamic-slice", "dynamic-update-slice",
    "concatenate", "data formatting", "bitcast-convert", "reverse",
)  # fmt: skip
"""Categories that only move data. Fusions of them have ` fusion` after the name."""
CALLBACKS = ("callback", "outfeed", "debug_print")
"""In the name or the path of an operation that calls the host."""
NAMES_MOST = 3
NAME_WIDTH = 36
NAMED_RATIO = 0.01
"""Operations with less of the time of all in the sentence are not even counted in it."""


@lru_cache(4096)  # a program has a hundred thousand operations, and few categories
def is_of(category: str | None, names: tuple[str, ...]) -> bool:
    """Whether the category is one of the names, or a fusion of it."""
    own = (category or "").lower()
    return any(own == name or own.startswith((f"{name} ", f"{name}-fusion")) for name in names)


def is_wait(o: Operation) -> bool:
    """Whether it waits for the host, for data or for other devices."""
    return is_collective(o) or is_of(o.category or _stem(o), WAITS)


def is_collective(o: Operation) -> bool:
    """Whether it exchanges data with other devices."""
    return _share(o.category or "", _stem(o)) == COLLECTIVES


def _stem(o: Operation) -> str:
    """Its name without the number: `all-reduce`."""
    return o.name.partition(".")[0]


@lru_cache(4096)
def _share(category: str, stem: str) -> str:
    return share_of(category.lower(), stem)


def named(operations: Sequence[Operation]) -> str:
    """The names of the longest, safe to print: `fusion.1 (train.py:41), fusion.2 and 5 more`."""
    least = NAMED_RATIO * sum(o.self_percent for o in operations)
    long = [o for o in operations if o.self_percent >= least]
    parts = [_named(o) for o in long[:NAMES_MOST]]
    more = len(long) - len(parts)
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")


def _named(o: Operation) -> str:
    name = words.shortened(text.clean(o.name, 200), NAME_WIDTH)
    source = words.shortened(text.clean(o.source or "", 200).rpartition("/")[2], NAME_WIDTH)
    return f"{name} ({source})" if source else name
