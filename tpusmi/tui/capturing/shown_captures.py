"""The captures of this dashboard: the one that runs, the profiles that are kept, and the errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tpusmi.model import ProcessKey

if TYPE_CHECKING:
    from tpusmi.trace.figures import TraceProfile
    from tpusmi.tui.capturing.capture_thread import CaptureThread

PROCESSES_MOST = 16
"""Processes whose profiles are kept. A profile has up to a few MiB."""
KEPT_MOST = 2
"""Profiles of a process: the newest, and the one to compare it with."""
STARTING = "starting"


class CaptureOrder(NamedTuple):
    """A capture that the user has confirmed."""

    process: ProcessKey
    duration_ms: int


class KeptProfile(NamedTuple):
    """A profile, and the moment that it shows."""

    profile: TraceProfile
    at_s: float
    """CLOCK_MONOTONIC at the end of the capture."""


class RunningCapture:
    """A capture that is under way."""

    def __init__(self, order: CaptureOrder, thread: CaptureThread, began_s: float) -> None:
        self.order, self.thread, self.began_s = order, thread, began_s
        self.stage = STARTING
        """The newest line of its progress."""


class ShownCaptures:
    """What the screen shows about captures. Only the app's own thread uses it."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = time.monotonic
        self.running: RunningCapture | None = None
        self.shown: ProcessKey | None = None
        """The process that the profile page is about."""
        self._kept: dict[ProcessKey, tuple[KeptProfile, ...]] = {}
        self._errors: dict[ProcessKey, str] = {}

    @property
    def processes(self) -> tuple[ProcessKey, ...]:
        """Those with a profile, an error or a running capture, the one captured first in front."""
        own = () if self.running is None else (self.running.order.process,)
        return tuple(dict.fromkeys((*self._kept, *self._errors, *own)))

    def newest(self, process: ProcessKey | None) -> KeptProfile | None:
        """The newest profile of a process; None before the first."""
        kept = () if process is None else self._kept.get(process, ())
        return kept[-1] if kept else None

    def before(self, process: ProcessKey | None) -> KeptProfile | None:
        """The profile before the newest; None where there are not two."""
        kept = () if process is None else self._kept.get(process, ())
        return kept[-2] if len(kept) > 1 else None

    def error(self, process: ProcessKey | None) -> str:
        """Why the last capture of that process gave no profile, in a sentence; else empty."""
        return "" if process is None else self._errors.get(process, "")

    def age_s(self, kept: KeptProfile) -> float:
        """How long ago the capture ended."""
        return max(0.0, self.clock() - kept.at_s)

    def runs_for_s(self) -> float:
        """How long the capture has been running; 0 when none is."""
        return 0.0 if self.running is None else max(0.0, self.clock() - self.running.began_s)

    def begin(self, running: RunningCapture) -> None:
        """Note the capture that runs from now on."""
        self.running = running
        self._errors.pop(running.order.process, None)

    def finish(self, order: CaptureOrder, result: KeptProfile | str) -> None:
        """Keep the profile, or the error in its place."""
        self.running = None
        if isinstance(result, str):
            self._errors[order.process] = result
        else:
            kept = (*self._kept.pop(order.process, ()), result)
            self._kept[order.process] = kept[-KEPT_MOST:]
        for many in (self._kept, self._errors):
            while len(many) > PROCESSES_MOST:
                del many[next(iter(many))]
