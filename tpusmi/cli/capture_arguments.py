"""The types of the arguments of `tpusmi profile`: targets, times, sizes, folders."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError

from tpusmi.cli.argument_types import count, number
from tpusmi.profiler.capture import COST_MOST_S
from tpusmi.profiler.capture_target import ProfileTarget, target_of
from tpusmi.profiler.requests import DURATION_LEAST_MS, DURATION_MOST_MS
from tpusmi.trace.limits import MIB

LIMIT_MOST_S, MIB_MOST = 3600.0, 2048


def target(text: str) -> ProfileTarget:
    """What to profile. Raises ArgumentTypeError."""
    try:
        return target_of(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def duration_ms(text: str) -> int:
    """How long to trace, in milliseconds. Raises ArgumentTypeError."""
    value = count(text)
    if not DURATION_LEAST_MS <= value <= DURATION_MOST_MS:
        raise ArgumentTypeError(
            f"{text} ms is not between {DURATION_LEAST_MS} and {DURATION_MOST_MS} ms"
        )
    return value


def limit_seconds(text: str) -> float:
    """A deadline in seconds. Raises ArgumentTypeError."""
    value = number(text, "seconds")
    if not 0 < value <= LIMIT_MOST_S:
        raise ArgumentTypeError(f"{text} is not between 0 and {LIMIT_MOST_S:.0f} seconds")
    return value


def cost_seconds(text: str) -> float:
    """How long to watch the job; 0 for not at all. Raises ArgumentTypeError."""
    value = number(text, "seconds")
    if not 0 <= value <= COST_MOST_S:
        raise ArgumentTypeError(f"{text} is not from 0 to {COST_MOST_S:.0f} seconds")
    return value


def mebibytes(text: str) -> int:
    """A size in MiB, as bytes. Raises ArgumentTypeError."""
    value = count(text)
    if value > MIB_MOST:
        raise ArgumentTypeError(f"{text} MiB is more than {MIB_MOST} MiB")
    return value * MIB


def folder(text: str) -> str:
    """A local directory, which need not exist yet. Raises ArgumentTypeError."""
    if not text or "\0" in text or "://" in text:
        raise ArgumentTypeError(f"{text or 'it'} is not a local directory; copy the traces later")
    return os.path.expanduser(text)
