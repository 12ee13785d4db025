"""Captures that a viewer asks for by a file: taken one at a time, in a thread of their own, and
handed over in a file. Off with TPUSMI_PROFILE=0.
"""

from __future__ import annotations

import os
import time

from tpusmi.agent import capture_places, jax_trace, jaxread
from tpusmi.agent.jax_trace import TraceError
from tpusmi.agent.own_process import block_signals
from tpusmi.agent.threads import Event, Thread
from tpusmi.wire import capture_files
from tpusmi.wire.capture_messages import (
    ACCEPTED,
    BUSY,
    CAPTURING,
    DONE,
    ENDED,
    EXPIRED,
    FAILED,
    FORBIDDEN,
    HANGS,
    NO_BACKEND,
    NO_ROOM,
    REFUSED,
    SAVING,
    VERSION,
    AgentAnswer,
    AgentRequest,
)
from tpusmi.wire.layout import Identity

LOOK_S = 1.0
"""How long a request may wait for the agent's thread to look."""
FETCH_LOOK_S = 0.1
LAST_MOST_S = 0.3
"""How long a process that ends waits for a viewer to fetch its trace."""
JAX_MOST_S = 180.0
"""JAX takes about 0.2 s per megabyte to collect a trace. After this time it is said to hang."""
FINISH_MOST_S = 30.0
"""How long a process that ends waits for JAX. Python ends a thread that comes back from C++ after
its end, and with it the process, with SIGABRT.
"""
PYTHON_NOTE = "This JAX also traces every Python call, which slows the job down: upgrade JAX."
_OFF = ("0", "off", "no", "false")


def is_allowed() -> bool:
    """False where the job forbids captures by TPUSMI_PROFILE=0."""
    return os.environ.get("TPUSMI_PROFILE", "1").strip().lower() not in _OFF


def published() -> int:
    """The fact `captures`: the version of the requests that are served; 0 for none."""
    return VERSION if is_allowed() else 0


class OwnCaptures:
    """The requests for this process. Raises nothing into the agent."""

    def __init__(self, override: str | None) -> None:
        self._override = override
        self._running: _OwnCapture | None = None
        self._answers: list[tuple[float, str, str]] = []
        """Refusals that a viewer may not have read yet: when they go, segment and nonce."""
        self._was_swept = False
        self._end = Event()

    def look(self, segment_path: str | None, who: Identity | None) -> None:
        """Take the request that is there, if any. One call of the kernel where there is none."""
        if segment_path is None or who is None or self._end.is_set():
            return
        if not self._was_swept:
            self._was_swept = True
            capture_places.sweep(segment_path, who.uid, self._override)
        try:
            if self._running is not None or self._answers:
                self._tend()
            if capture_files.is_waiting(segment_path):
                self._take(segment_path, who)
        except OSError:
            pass  # the directory is gone, or full: the viewer hears nothing

    def finish(self) -> None:
        """End a capture early, and remove every file of one. Waits until JAX has let go."""
        self._end.set()
        running, self._running = self._running, None
        if running is not None:
            running.join(FINISH_MOST_S)
        for _, segment_path, nonce in self._answers:
            _remove_answer(segment_path, nonce)

    def _take(self, segment_path: str, who: Identity) -> None:
        identity = (who.pid, who.start_ticks, who.pid_namespace)
        request = capture_files.take_request(segment_path, identity, who.uid)
        if request is None:
            return
        answer = self._refusal(request)
        if answer is None:
            capture = _OwnCapture(
                request,
                segment_path=segment_path,
                uid=who.uid,
                override=self._override,
                end=self._end,
            )
            answer = AgentAnswer(request.nonce, ACCEPTED)
            try:
                capture_files.write_answer(segment_path, answer)
                capture.start()
                self._running = capture
                return
            except RuntimeError:  # no more threads
                answer = _refused(request.nonce, FAILED, "the job cannot start a thread")
        self._answers.append((time.monotonic() + capture_files.KEPT_S, segment_path, request.nonce))
        capture_files.write_answer(segment_path, answer)

    def _refusal(self, request: AgentRequest) -> AgentAnswer | None:
        """Why it is not served; None where it may begin."""
        reason, message = "", ""
        if not is_allowed():
            reason = FORBIDDEN
        elif capture_files.is_expired(request):
            reason = EXPIRED
        elif self._running is not None and not self._running.is_fetched():
            reason = HANGS if self._running.is_given_up else BUSY
            message = "another capture of this process is running"
        elif jaxread.backend() is None:
            reason = NO_BACKEND
        return _refused(request.nonce, reason, message) if reason else None

    def _tend(self) -> None:
        """Forget what is over."""
        running = self._running
        if running is not None:
            running.give_up_if_late()
            if not running.is_alive():
                self._running = None
        now_s = time.monotonic()
        for late in [answer for answer in self._answers if answer[0] <= now_s]:
            _remove_answer(late[1], late[2])
        self._answers = [answer for answer in self._answers if answer[0] > now_s]


class _OwnCapture(Thread):
    """One capture. Every path through it removes the directory of the trace, and the answer."""

    def __init__(
        self, request: AgentRequest, segment_path: str, uid: int, override: str | None, end: Event
    ) -> None:
        super().__init__()
        self.is_given_up = False
        """True once JAX has taken far too long."""
        self._request = request
        self._segment_path = segment_path
        self._uid = uid
        self._override = override
        self._end = end
        self._pause = Event()
        """Never set: a wait for it is a sleep that no library has replaced."""
        self._folder: str | None = None
        self._late_at_s = time.monotonic() + request.duration_ms / 1000.0 + JAX_MOST_S
        self._is_over = False

    def run(self) -> None:
        """The thread."""
        block_signals()
        try:
            self._serve()
            self._is_over = True
            self._wait(capture_files.KEPT_S, LAST_MOST_S)
        finally:
            self._remove_folder()
            _remove_answer(self._segment_path, self._request.nonce)

    def is_fetched(self) -> bool:
        """True when it is over but for the last moments of its thread, which are waited for."""
        if capture_files.is_fetched(self._segment_path, self._request.nonce):
            self.join(2 * FETCH_LOOK_S)
        return not self.is_alive()

    def give_up_if_late(self) -> None:
        """Tell the viewer when JAX does not come back. Raises OSError."""
        is_late = not self._is_over and time.monotonic() > self._late_at_s
        if is_late and not self.is_given_up:
            self.is_given_up = True
            self._answer(_refused(self._request.nonce, HANGS, ""))

    def _serve(self) -> None:
        try:
            done = self._record()
            if not self.is_given_up:
                self._answer(done)
        except TraceError as error:
            self._refuse(error.reason, str(error))
        except capture_places.NoRoomError as error:
            self._refuse(NO_ROOM, str(error.strerror))
        except Exception as error:  # noqa: BLE001  # the job goes on
            self._refuse(FAILED, f"{type(error).__name__}: {error}")

    def _record(self) -> AgentAnswer:
        """The answer with the trace. Raises TraceError and OSError."""
        request, segment_path = self._request, self._segment_path
        self._folder = capture_places.make_folder(
            segment_path, request.nonce, self._uid, self._override
        )
        self._answer(AgentAnswer(request.nonce, CAPTURING, trace=self._place()))
        if jaxread.backend() is None:
            raise TraceError(NO_BACKEND)  # JAX would make one
        trace = jax_trace.record(request, self._folder, self._wait_for_trace, self._note_saving)
        if self._end.is_set():
            raise TraceError(ENDED)
        return AgentAnswer(
            request.nonce,
            DONE,
            message="" if jax_trace.has_options() else PYTHON_NOTE,
            trace=self._place(),
            trace_bytes=os.path.getsize(trace),
        )

    def _place(self) -> str:
        """The path of the trace for the viewer."""
        beside = os.path.realpath(os.path.dirname(self._segment_path))
        return f"{self._folder}/{capture_files.TRACE_NAME}".removeprefix(f"{beside}/")

    def _wait_for_trace(self, seconds: float) -> bool:
        return self._wait(seconds, 0.0)

    def _wait(self, seconds: float, at_end_s: float) -> bool:
        """Wait that long, and `at_end_s` once the process ends; True when the viewer has left, or
        the process ends.
        """
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            if capture_files.is_fetched(self._segment_path, self._request.nonce):
                return True
            if self._end.is_set():
                until_s = min(until_s, time.monotonic() + at_end_s)
            self._pause.wait(min(FETCH_LOOK_S, left_s))
        return self._end.is_set()

    def _note_saving(self) -> None:
        self._answer(AgentAnswer(self._request.nonce, SAVING, trace=self._place()))

    def _answer(self, answer: AgentAnswer) -> None:
        """Replace the answer, unless the viewer has left and removed it. Raises OSError."""
        if not capture_files.is_fetched(self._segment_path, answer.nonce):
            capture_files.write_answer(self._segment_path, answer)

    def _refuse(self, reason: str, message: str) -> None:
        self._remove_folder()  # first: the file system may be full
        if not self.is_given_up:
            try:
                self._answer(_refused(self._request.nonce, reason, message))
            except OSError:
                pass  # there is no room for it either

    def _remove_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            capture_places.remove_folder(folder, self._override)


def _refused(nonce: str, reason: str, message: str) -> AgentAnswer:
    return AgentAnswer(nonce, REFUSED, reason, message)


def _remove_answer(segment_path: str, nonce: str) -> None:
    capture_places.remove_file(capture_files.answer_path(segment_path, nonce))
