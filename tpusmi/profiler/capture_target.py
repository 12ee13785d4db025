"""What a word on the command line is: a pid, the address of a profiler service, or a path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from tpusmi.profiler.remote_addresses import Address, parse
from tpusmi.text import whole_number

TEXT_MOST = 4096
SUFFIXES = (".pb", ".json", ".gz")
"""A word that ends like this is a path, even if there is no such file."""


class TargetKind(Enum):
    """Where a trace comes from."""

    PID = "pid"
    ADDRESS = "address"
    PATH = "path"


class ProfileTarget(NamedTuple):
    """One target, and the text that the user gave for it."""

    kind: TargetKind
    text: str
    pid: int | None = None
    address: Address | None = None


def are_paths(targets: Sequence[ProfileTarget]) -> bool:
    """True where all of them are files: nothing is captured, and no job is disturbed. False for
    none, which means the job that runs here.
    """
    return bool(targets) and all(target.kind is TargetKind.PATH for target in targets)


def distinct(targets: Sequence[ProfileTarget]) -> list[ProfileTarget]:
    """The targets in their order; of those that name the same job or file, only the first."""
    by_place: dict[object, ProfileTarget] = {}
    for target in targets:
        by_place.setdefault(_place(target), target)
    return [*by_place.values()]


def _place(target: ProfileTarget) -> object:
    """What is equal for two targets that are the same one."""
    if target.address is not None:
        host = target.address.host.lower()
        return ("localhost" if host == "127.0.0.1" else host, target.address.port)
    try:
        return os.path.realpath(target.text) if target.pid is None else target.pid
    except OSError:  # the current directory has been removed
        return target.text


def target_of(text: str) -> ProfileTarget:
    """The target that a word names. Raises ValueError with a sentence for any other word."""
    if not text or len(text) > TEXT_MOST or "\0" in text:
        raise ValueError("a target is a pid, an address such as localhost:9012, or a path")
    if text.isascii() and text.isdigit():
        return _pid(text)
    if "://" not in text and _is_path(text):
        return ProfileTarget(TargetKind.PATH, text)
    return ProfileTarget(TargetKind.ADDRESS, text, address=parse(text))


def _is_path(text: str) -> bool:
    looks_like_one = "/" in text or text.startswith(("~", ".")) or text.endswith(SUFFIXES)
    return looks_like_one or os.path.lexists(text)


def _pid(text: str) -> ProfileTarget:
    pid = whole_number(text)
    if not pid or pid >= 1 << 22:
        raise ValueError(f"{text[:20]} is not a pid (a port is :{text[:20]}, a file ./{text[:20]})")
    return ProfileTarget(TargetKind.PID, text, pid=pid)
