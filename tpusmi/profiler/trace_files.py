"""What a path holds: traces, finished pages of xprof, or profiles that tpusmi has saved."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.trace.figures import TraceProfile
from tpusmi.trace.troubles import CaptureError, Trouble


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
            return PathContents(profiles=tuple(_saved(path)))
    except (FileNotFoundError, NotADirectoryError):
        raise CaptureError(Trouble.ABSENT, f"{text}: no such file or directory") from None
    except PermissionError:
        raise CaptureError(Trouble.DENIED, f"{text}: no permission to read it") from None
    except OSError as error:
        raise CaptureError(Trouble.FAILED, f"{text}: {error.strerror or error}") from error
    return PathContents(traces=(path,))


def _is_saved(path: str) -> bool:
    from tpusmi.profiler.saved_profiles import is_saved

    return is_saved(path)


def _saved(path: str) -> Sequence[TraceProfile]:
    from tpusmi.profiler.saved_profiles import read_saved

    return read_saved(path)


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
