"""Log folders of TensorBoard and xprof: finds the traces of the newest session, and saves others.

A trace is at `plugins/profile/SESSION/HOST.xplane.pb` below a log folder. A walk through a folder
of a training run, which may hold millions of checkpoint files, has limits.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from tpusmi.profiler.saved_trace import place
from tpusmi.text import clean
from tpusmi.trace.troubles import CaptureError, Trouble
from tpusmi.wire.capture_files import TRACE_SUFFIX

ENTRIES_MOST = 200_000
"""Names that are looked at below a folder, the nearest first."""
LOOK_MOST_S = 5.0
DEPTH_MOST = 10
TRACES_MOST = 1024
"""Hosts of a session."""

_BROWSER = (".trace.json.gz", ".trace.json", ".perfetto-trace", "perfetto_trace.json.gz")
"""Traces that have no figures: a browser draws them."""
_TIMESTAMP = r"\d{4}(?:_\d\d){5}"
"""The usual name of a session, in local time."""


class FoundTraces(NamedTuple):
    """The traces at a path, one for each host, by name."""

    traces: list[str]
    note: str = ""
    """A sentence if there may be a newer session, which was not reached."""


class _Session(NamedTuple):
    """A folder with traces in it."""

    when: str
    """When it was recorded, as in the usual names of sessions."""
    modified_s: float
    folder: str
    traces: tuple[str, ...]


class _Folder(NamedTuple):
    """What one folder has in it."""

    traces: list[str]
    folders: list[str]
    has_browser_traces: bool


class _Walk:
    """A walk through folders, the nearest first, and what it meets."""

    def __init__(self) -> None:
        self.has_browser_traces = False
        self.unreadable = ""
        """A folder that cannot be read; empty when there is none."""
        self.is_cut_short = False
        self._entries_left = ENTRIES_MOST
        self._until_s = time.monotonic() + LOOK_MOST_S
        self._met: set[tuple[int, int]] = set()

    def sessions(self, top: str) -> Iterator[_Session]:
        """The folders with traces. A trace at the top ends it: then that is the session."""
        waiting = deque([(top, 0)])
        while waiting and not self.is_cut_short:
            path, depth = waiting.popleft()
            inside = self._look(path)
            self.has_browser_traces |= inside.has_browser_traces
            if inside.traces:
                yield _session(path, inside.traces)
                if path == top:
                    return
            if depth < DEPTH_MOST:
                waiting.extend((folder, depth + 1) for folder in inside.folders)

    def _look(self, path: str) -> _Folder:
        inside = _Folder(traces=[], folders=[], has_browser_traces=False)
        try:
            here = os.stat(path)
            if (here.st_dev, here.st_ino) in self._met:  # a link leads back to it
                return inside
            self._met.add((here.st_dev, here.st_ino))
            with os.scandir(path) as entries:
                for entry in entries:
                    inside = self._sort(entry, inside)
                    if self.is_cut_short:
                        break
        except OSError:
            self.unreadable = self.unreadable or path
        inside.folders.sort(reverse=True)  # sessions are named by their time: the newest first
        return inside

    def _sort(self, entry: os.DirEntry[str], inside: _Folder) -> _Folder:
        self._entries_left -= 1
        self.is_cut_short = self._entries_left < 0 or time.monotonic() > self._until_s
        try:
            if entry.name.endswith(TRACE_SUFFIX) and entry.is_file():
                inside.traces.append(entry.path)
            elif entry.is_dir():
                inside.folders.append(entry.path)
            elif entry.name.endswith(_BROWSER):
                inside = inside._replace(has_browser_traces=True)
        except OSError:
            pass  # a link in a loop
        return inside


def found_in(folder: str) -> FoundTraces:
    """The trace files of a session, or of the newest one below a log folder or a folder of runs,
    one for each host, by name. Raises CaptureError with a sentence that says what to do.
    """
    walk = _Walk()
    sessions = list(walk.sessions(folder))
    if not sessions:
        raise _none_below(folder, walk)
    newest = max(sessions)
    name = clean(os.path.basename(newest.folder), 100)
    note = f"{clean(folder, 200)} has more files than are searched: {name} may not be the newest."
    return FoundTraces([*newest.traces], note if walk.is_cut_short else "")


def save(trace: str, folder: str, session: str, host: str) -> str:
    """Copy a trace into a log folder that TensorBoard and xprof open: the path of the copy.

    An existing file is never replaced: then the name of the host gets a number. Raises
    CaptureError, and leaves no part of a file then.
    """
    return place(trace, os.path.join(folder, "plugins", "profile"), (session, host), TRACE_SUFFIX)


def session_name(at_s: float) -> str:
    """The usual name of a session that was recorded at that Unix time."""
    return time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(at_s))


def _session(folder: str, traces: list[str]) -> _Session:
    modified_s = max(_modified_s(trace) for trace in traces)
    name = os.path.basename(folder)
    is_usual = re.fullmatch(_TIMESTAMP, name, re.ASCII) is not None
    return _Session(
        when=name if is_usual else session_name(modified_s),
        modified_s=modified_s,
        folder=folder,
        traces=tuple(sorted(traces)[:TRACES_MOST]),
    )


def _modified_s(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _none_below(path: str, walk: _Walk) -> CaptureError:
    shown = clean(path, 200)
    if walk.is_cut_short:
        sentence = f"No trace among the first files below {shown}: name the folder of the session"
        return CaptureError(Trouble.ABSENT, sentence)
    if walk.has_browser_traces:
        sentence = (
            f"{shown} has only traces for a browser, without figures, and no *{TRACE_SUFFIX} file"
        )
        return CaptureError(Trouble.UNREADABLE, sentence)
    if walk.unreadable:
        sentence = f"No trace below {shown}; {clean(walk.unreadable, 200)} may not be read"
        return CaptureError(Trouble.DENIED, sentence)
    return CaptureError(Trouble.ABSENT, f"No trace (*{TRACE_SUFFIX}) in {shown} or below it")
