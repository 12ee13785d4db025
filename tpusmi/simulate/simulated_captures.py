"""Captures of a simulated job: it takes a viewer's request as a real agent does, lets the time of
the capture pass, and hands over a trace of what the simulated chips did meanwhile.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

from tpusmi.simulate.running import Running
from tpusmi.simulate.workload import LOADING
from tpusmi.wire import capture_files
from tpusmi.wire.capture_messages import (
    BUSY,
    CAPTURING,
    DONE,
    EXPIRED,
    FAILED,
    FORBIDDEN,
    NO_BACKEND,
    REFUSED,
    TOO_LARGE,
    VERSION,
    AgentAnswer,
    AgentRequest,
)
from tpusmi.wire.layout import Identity

FAULT = "no-captures"


def published(running: Running) -> int:
    """The fact `captures` of the segment: the version of requests that are served; 0 for none."""
    return 0 if FAULT in running.faults else VERSION


class SimulatedCaptures:
    """The requests for one process of the job."""

    def __init__(
        self, running: Running, devices: list[dict[str, Any]], memory_limit_bytes: int
    ) -> None:
        self._running = running
        self._devices = devices
        self._memory_limit_bytes = memory_limit_bytes
        self._taken: _Taken | None = None
        self._refused: list[tuple[float, str]] = []
        """Refusals that a viewer may not have read yet: when they go, and their files."""

    def look(self, segment_path: str, who: Identity) -> None:
        """Take a request, go on with the capture, remove what was fetched. Never waits."""
        try:
            if self._taken is not None:
                self._go_on(self._taken)
            if capture_files.is_waiting(segment_path):
                self._take(segment_path, who)
            self._forget()
        except OSError:
            pass  # the directory is gone, or full: the viewer hears nothing

    def _take(self, segment_path: str, who: Identity) -> None:
        identity = (who.pid, who.start_ticks, who.pid_namespace)
        request = capture_files.take_request(segment_path, identity, who.uid)
        if request is None:
            return
        if reason := self._refusal(request):
            answer = AgentAnswer(nonce=request.nonce, state=REFUSED, reason=reason)
            capture_files.write_answer(segment_path, answer)
            path = capture_files.answer_path(segment_path, request.nonce)
            self._refused.append((time.monotonic() + capture_files.KEPT_S, path))
            return
        capture_files.write_answer(segment_path, AgentAnswer(nonce=request.nonce, state=CAPTURING))
        self._taken = _Taken(request, segment_path, self._running.job_time_s)

    def _refusal(self, request: AgentRequest) -> str:
        """Why it is not served; empty where it may begin."""
        if FAULT in self._running.faults:
            return FORBIDDEN
        if capture_files.is_expired(request):
            return EXPIRED
        if self._taken is not None:
            return BUSY
        is_loading = self._running.workload.activity(self._running.job_time_s) == LOADING
        return NO_BACKEND if is_loading else ""

    def _go_on(self, taken: _Taken) -> None:
        """Hand over the trace when its time is over, and remove it once it is fetched, or late."""
        now_s = time.monotonic()
        is_gone = capture_files.is_fetched(taken.segment_path, taken.request.nonce)
        if is_gone or now_s > taken.kept_until_s:
            taken.remove()
            self._taken = None
        elif not taken.is_over and now_s >= taken.ends_at_s:
            taken.is_over = True
            capture_files.write_answer(taken.segment_path, self._handed_over(taken))

    def _handed_over(self, taken: _Taken) -> AgentAnswer:
        """The last answer: the trace is there, or why it is not."""
        nonce = taken.request.nonce
        data = self._trace(taken)
        if len(data) > taken.request.bytes_most:
            return AgentAnswer(nonce=nonce, state=REFUSED, reason=TOO_LARGE)
        try:
            path = taken.write(data)
        except OSError as error:
            why = error.strerror or str(error)
            return AgentAnswer(nonce=nonce, state=REFUSED, reason=FAILED, message=why)
        return AgentAnswer(nonce=nonce, state=DONE, trace=path, trace_bytes=len(data))

    def _trace(self, taken: _Taken) -> bytes:
        from tpusmi.simulate.trace_capture import SimulatedCapture
        from tpusmi.simulate.trace_of_workload import trace

        duration_s = taken.request.duration_ms / 1000.0
        capture = SimulatedCapture(
            running=self._running,
            devices=self._devices,
            begin_s=taken.begin_s,
            end_s=taken.begin_s + duration_s,
            began_at_ns=taken.began_at_ns,
        )
        return trace(capture, self._memory_limit_bytes)

    def _forget(self) -> None:
        now_s = time.monotonic()
        for late_s, path in self._refused:
            if late_s <= now_s and os.path.lexists(path):
                os.unlink(path)
        self._refused = [refused for refused in self._refused if refused[0] > now_s]


class _Taken:
    """A request that is being served."""

    def __init__(self, request: AgentRequest, segment_path: str, begin_s: float) -> None:
        now_s = time.monotonic()
        self.request = request
        self.segment_path = segment_path
        self.begin_s = begin_s
        """When it began, in the job's time."""
        self.began_at_ns = time.time_ns()
        self.ends_at_s = now_s + request.duration_ms / 1000.0
        self.kept_until_s = self.ends_at_s + capture_files.KEPT_S
        self.is_over = False
        """True once its last answer is written."""
        directory = os.path.realpath(os.path.dirname(segment_path))
        self._folder = f"{directory}/{capture_files.folder_name(segment_path, request.nonce)}"

    def write(self, data: bytes) -> str:
        """Write the trace where only its user can enter. Returns its path; raises OSError."""
        os.mkdir(self._folder, 0o700)
        path = f"{self._folder}/{capture_files.TRACE_NAME}"
        with open(path, "xb") as file:
            file.write(data)
        return path

    def remove(self) -> None:
        """Remove the trace and the answer, if they are there."""
        shutil.rmtree(self._folder, ignore_errors=True)
        answer = capture_files.answer_path(self.segment_path, self.request.nonce)
        if os.path.lexists(answer):
            os.unlink(answer)
