"""Profiles that `tpusmi profile --json` has printed, read back from a file."""

from __future__ import annotations

import json
from typing import Any

from tpusmi.text import counted
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.plain_objects import from_object
from tpusmi.trace.troubles import CaptureError, Trouble

BYTES_MOST = 64 * 1024 * 1024
HOSTS_MOST = 4096


def is_saved(path: str) -> bool:
    """True for a file that begins as JSON does: a trace never does. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(64).lstrip()[:1] in (b"{", b"[")


def read_saved(path: str) -> list[TraceProfile]:
    """The profiles in a file, one per host; of several lines, as `--every` prints them, those of
    the last one that has any. Raises OSError, and CaptureError for any other file.
    """
    with open(path, "rb") as file:
        data = file.read(BYTES_MOST + 1)
    if len(data) > BYTES_MOST:
        raise CaptureError(Trouble.FAILED, f"{path}: a saved profile has at most 64 MiB")
    reason = "it is not JSON"
    for text in [data, *reversed(data.splitlines())][: 1 + HOSTS_MOST]:
        try:
            profiles = _profiles(json.loads(text))
        except (ValueError, RecursionError) as error:
            reason = reason if isinstance(error, json.JSONDecodeError) else str(error)
            continue
        if profiles:
            return profiles
        reason = "no capture in it was successful"
    raise CaptureError(Trouble.UNREADABLE, f"{path} is not a saved profile: {reason}")


def _profiles(value: Any) -> list[TraceProfile]:
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    if "new" in value:  # of --compare
        value = value["new"]
    hosts = value.get("hosts") if isinstance(value, dict) else None
    if hosts is None:
        return [] if isinstance(value, dict) and "error" in value else [from_object(value)]
    if not isinstance(hosts, list) or len(hosts) > HOSTS_MOST:
        raise ValueError(f"it has more than {counted(HOSTS_MOST, 'host')}")
    return [from_object(h) for h in hosts if not (isinstance(h, dict) and "error" in h)]
