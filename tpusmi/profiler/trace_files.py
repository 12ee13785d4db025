"""What a path holds: traces, finished pages of xprof, or profiles that tpusmi has saved."""

from __future__ import annotations

import os
import stat
from typing import Any, NamedTuple

from tpusmi.text import counted
from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.limits import MIB
from tpusmi.trace.plain_objects import NOT_JSON, from_object, json_in
from tpusmi.trace.troubles import CaptureError, Trouble

SAVED_BYTES_MOST = 64 * MIB
HOSTS_MOST = 4096


class PathContents(NamedTuple):
    """The traces of a path, one per host; or profiles that are finished already."""

    traces: tuple[str, ...] = ()
    profiles: tuple[TraceProfile, ...] = ()
    notes: tuple[str, ...] = ()
    """What may be missing, in sentences."""


def contents_of(text: str) -> PathContents:
    """What is at that path, where `~` is the home directory. Raises CaptureError."""
    path = os.path.expanduser(text)
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            return _of_directory(path)
        if not stat.S_ISREG(mode):
            raise CaptureError(Trouble.UNREADABLE, f"{text} is not a regular file: save it to one")
        if _is_saved(path):
            return PathContents(profiles=tuple(read_saved(path)))
    except (FileNotFoundError, NotADirectoryError):
        raise CaptureError(Trouble.ABSENT, f"{text}: no such file or directory") from None
    except PermissionError:
        raise CaptureError(Trouble.DENIED, f"{text}: no permission to read it") from None
    except OSError as error:
        raise CaptureError(Trouble.FAILED, f"{text}: {error.strerror or error}") from error
    return PathContents(traces=(path,))


def _of_directory(path: str) -> PathContents:
    """A TensorBoard log folder; without a trace in it, a folder of xprof's pages."""
    from tpusmi.profiler.finished_pages import read_pages
    from tpusmi.profiler.log_folder import found_in

    try:
        traces, note = found_in(path)
        return PathContents(traces=tuple(traces), notes=(note,) if note else ())
    except CaptureError as error:
        if error.trouble is not Trouble.ABSENT:
            raise
    try:
        return PathContents(profiles=(read_pages(path),))
    except CaptureError as error:
        if error.trouble is not Trouble.ABSENT:
            raise
    reason = f"{path}: neither a trace (*.xplane.pb) nor pages of xprof are in this directory"
    raise CaptureError(Trouble.ABSENT, reason)


def _is_saved(path: str) -> bool:
    """True for a file that begins as JSON does: a trace never does. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(64).lstrip()[:1] in (b"{", b"[")


def read_saved(path: str) -> list[TraceProfile]:
    """The profiles in a file, one per host; of several lines, as `--every` prints them, those of
    the last one that has any. Raises OSError, and CaptureError for any other file.
    """
    with open(path, "rb") as file:
        data = file.read(SAVED_BYTES_MOST + 1)
    if len(data) > SAVED_BYTES_MOST:
        raise CaptureError(
            Trouble.FAILED, f"{path}: a saved profile has at most {SAVED_BYTES_MOST // MIB} MiB"
        )
    reason = NOT_JSON
    for text in [data, *reversed(data.splitlines())][: 1 + HOSTS_MOST]:
        try:
            profiles = _listed(json_in(text))
        except ValueError as error:
            reason = reason if str(error) == NOT_JSON else str(error)
            continue
        if profiles:
            return profiles
        reason = "no capture in it was successful"
    raise CaptureError(Trouble.UNREADABLE, f"{path} is not a saved profile: {reason}")


def _listed(value: Any) -> list[TraceProfile]:
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
