"""What a word on the command line is: a pid, the address of a profiler service, or a path."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from tpusmi.text import clean, whole_number

PROFILER_PORT = 9012
"""For an address without a port: the one in most examples of `start_server`."""
TEXT_MOST = 4096
SUFFIXES = (".pb", ".json", ".gz")
"""A word that ends like this is a path, even if there is no such file."""
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[\w.-]*)(?::(\d{1,5}))?", re.ASCII)


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
    address: str = ""
    """`host:port`."""

    @property
    def host(self) -> str:
        """The host of the address; in brackets where it is an IPv6 address."""
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port of the address."""
        return int(self.address.rpartition(":")[2])


def are_paths(targets: Sequence[ProfileTarget]) -> bool:
    """True where all of them are files: nothing is captured, and no job is disturbed. False for
    none, which means the job that runs here.
    """
    return bool(targets) and all(target.kind is TargetKind.PATH for target in targets)


def target_of(text: str) -> ProfileTarget:
    """The target that a word names. Raises ValueError with a sentence for any other word."""
    if not text or len(text) > TEXT_MOST or "\0" in text:
        raise ValueError("a target is a pid, an address such as localhost:9012, or a path")
    if text.isascii() and text.isdigit():
        return _pid(text)
    scheme, separator, rest = text.partition("://")
    if separator:
        return _address(text, rest) if scheme == "grpc" else _refused(text, scheme)
    if _is_path(text):
        return ProfileTarget(TargetKind.PATH, text)
    return _address(text, text)


def _is_path(text: str) -> bool:
    looks_like_one = "/" in text or text.startswith(("~", ".")) or text.endswith(SUFFIXES)
    return looks_like_one or os.path.lexists(text)


def _pid(text: str) -> ProfileTarget:
    pid = whole_number(text)
    if not pid or pid >= 1 << 22:
        raise ValueError(f"{text[:20]} is not a pid (a port is :{text[:20]}, a file ./{text[:20]})")
    return ProfileTarget(TargetKind.PID, text, pid=pid)


def _address(text: str, rest: str) -> ProfileTarget:
    match = _ADDRESS.fullmatch(rest)
    if match is None or not rest:
        raise ValueError(
            f"{clean(text, 100)} is not a pid, an address such as localhost:9012, or a path"
        )
    host, port = match[1] or "localhost", int(match[2] or PROFILER_PORT)
    if not 0 < port < 65536:
        raise ValueError(f"{clean(text, 100)}: {port} is not a port")
    return ProfileTarget(TargetKind.ADDRESS, text, address=f"{host}:{port}")


def _refused(text: str, scheme: str) -> ProfileTarget:
    if scheme in ("gs", "s3"):
        raise ValueError(f"{clean(text, 200)}: tpusmi reads local files; copy the trace here first")
    raise ValueError(f"{clean(text, 200)}: an address is written without {clean(scheme, 20)}://")
