"""Captures one process: `tpusmi profile PID --json` in a child, on a thread of its own."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from tpusmi.interpreter import this_python
from tpusmi.model import Host
from tpusmi.text import clean
from tpusmi.tui.capturing.profile_child import EndedChild, ProfileChild
from tpusmi.tui.capturing.shown_captures import CaptureOrder, KeptProfile

if TYPE_CHECKING:
    from tpusmi.trace.figures import TraceProfile

DEADLINE_S = 180.0
"""For all of it beyond the duration of the trace: the child has shorter limits of its own."""
SENTENCE_MOST = 400
OPERATIONS_MOST = 2000
"""Operations that are kept, most self time first: large programs have tens of thousands, which take
megabytes, and seconds to decode.
"""
PREFIX = "tpusmi: "
_ENDS_WITH_US = """
import ctypes, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
ctypes.CDLL(None).prctl(1, signal.SIGINT, 0, 0, 0)
if os.getppid() != int(sys.argv.pop(1)):
    sys.exit(1)
import runpy
runpy.run_module("tpusmi", run_name="__main__", alter_sys=True)
"""
"""The program of the child: `python -m tpusmi`, which is interrupted when the thread of its parent
ends (PR_SET_PDEATHSIG).
"""


@dataclass
class Heard(Message, namespace="capture"):
    """What a capture is doing, in a sentence."""

    text: str


@dataclass
class Captured(Message, namespace="capture"):
    """What became of a capture: a profile, or why there is none."""

    order: CaptureOrder
    result: KeptProfile | str


def command_for(host: Host, order: CaptureOrder) -> tuple[str, ...]:
    """The command that captures. Raises OSError if this Python cannot be started again."""
    python = (this_python(), "-c", _ENDS_WITH_US, str(os.getpid()))
    where = ("--simulate", host.root) if host.simulated else ()
    return (*python, *arguments(order), *where)


def arguments(order: CaptureOrder) -> tuple[str, ...]:
    """The arguments of `tpusmi` for that capture."""
    limits = ("--duration-ms", str(order.duration_ms), "--top", str(OPERATIONS_MOST))
    return ("profile", str(order.process.pid), "--json", "--progress", *limits)


class CaptureThread(threading.Thread):
    """Runs one capture, and posts its progress and its result. A daemon: quitting does not wait."""

    def __init__(
        self,
        order: CaptureOrder,
        host: Host,
        capturer: Sequence[str] | None,
        post: Callable[[Message], object],
    ) -> None:
        super().__init__(name=f"tpusmi-capture-{order.process.pid}", daemon=True)
        self._order, self._host, self._capturer, self._post = order, host, capturer, post
        self._cancelled = threading.Event()

    def begin(self) -> None:
        """Start; if no thread can be started, post that as the result."""
        try:
            self.start()
        except RuntimeError as error:
            self._post(Captured(self._order, f"the capture cannot be started: {error}"))

    def cancel(self) -> None:
        """End the child; its result is posted once it has ended."""
        self._cancelled.set()

    def run(self) -> None:
        """Capture, and post what became of it."""
        began_s = time.monotonic()
        try:
            result: KeptProfile | str = self._result(began_s)
        except Exception as error:  # noqa: BLE001  # shown, in place of the profile
            result = clean(f"the capture failed: {error}", SENTENCE_MOST)
        self._post(Captured(self._order, result))

    def _result(self, began_s: float) -> KeptProfile | str:
        command = (
            command_for(self._host, self._order)
            if self._capturer is None
            else (*self._capturer, *arguments(self._order))
        )
        child = ProfileChild(command, _environment(self._host), self._hear)
        until_s = began_s + self._order.duration_ms / 1000 + DEADLINE_S
        ended = child.run(until_s, self._cancelled.is_set)
        if ended.trouble or ended.code:
            return ended.trouble or _sentence(ended)
        profile = profile_of(ended.output)
        return KeptProfile(profile, _captured_until_s(profile, began_s, time.monotonic()))

    def _hear(self, line: str) -> None:
        self._post(Heard(clean(line.removeprefix(PREFIX), SENTENCE_MOST)))


def profile_of(output: bytes) -> TraceProfile:
    """The profile that the child printed. Raises ValueError with a sentence."""
    from tpusmi.trace.plain_objects import from_object, json_in

    return from_object(json_in(output))


def _sentence(ended: EndedChild) -> str:
    """Why the child gave no profile: its last line on stderr, without the program's name."""
    text = clean(ended.last_line.removeprefix(PREFIX), SENTENCE_MOST)
    how = f"exit code {ended.code}" if ended.code > 0 else f"signal {-ended.code}"
    return text or f"the capture ended with {how}, and did not say why"


def _captured_until_s(profile: TraceProfile, began_s: float, ended_s: float) -> float:
    """CLOCK_MONOTONIC at the end of the trace, by its own clock where that makes sense."""
    at_s = profile.capture.captured_at_s
    if at_s is None:
        return ended_s
    ago_s = time.time() - at_s - (profile.captured_s or 0.0)
    return min(max(ended_s - ago_s, began_s), ended_s)


def _environment(host: Host) -> dict[str, str]:
    """Ours, with the modules of this Python: the child runs in another directory."""
    paths = os.pathsep.join(map(os.path.abspath, sys.path))
    own = {"TPUSMI_DIR": os.path.abspath(host.segment_dir)} if host.segment_dir else {}
    return {**os.environ, "PYTHONPATH": paths, **own}
