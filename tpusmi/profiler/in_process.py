"""Captures by the agent inside a job: a request as a file, answers as files, and the trace copied.

No port is open to anyone. Only the user of the job, and root, can ask.
"""

from __future__ import annotations

import os
import time

from tpusmi.model import Host
from tpusmi.profiler import agent_job, agent_words
from tpusmi.profiler.agent_job import AgentJob, JobDirectory
from tpusmi.profiler.disk_room import would_fill
from tpusmi.profiler.received_file import ReceivedFile
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest, Progress
from tpusmi.sources.holders import procfs
from tpusmi.sources.users import user_name
from tpusmi.trace.figures import IN_PROCESS, Capture
from tpusmi.trace.limits import MIB, size_words
from tpusmi.trace.troubles import CaptureError, TooLongError, Trouble
from tpusmi.wire import capture_files
from tpusmi.wire.capture_messages import (
    DONE,
    DURATION_MOST_MS,
    FORBIDDEN,
    REFUSED,
    AgentAnswer,
    AgentRequest,
)

LOOK_S = 0.05
SILENT_S = 20.0
"""An agent looks for requests every one or two seconds, unless the job keeps Python's lock."""
PIECE_BYTES = MIB


def capture(
    host: Host, pid: int, request: CaptureRequest, folder: str, progress: Progress
) -> CapturedTrace:
    """A trace of that process, taken by its agent: a file in `folder`.

    Raises CaptureError with a sentence: no process, no agent, not allowed, busy, silent, ended, no
    room, too large. Nothing is left beside the job's segment, also after Ctrl-C.
    """
    began_s = time.monotonic()
    job = agent_job.find(host, pid)
    _check_rights(job)
    _check_runs(job)
    _check_duration(request)  # without an agent, another way may take longer ones
    until_s = began_s + request.duration_ms / 1000.0 + request.deadline_s
    try:
        with agent_job.opened_directory(job) as directory:
            _check_directory(job, directory)
            own = _agent_request(job, request, until_s)
            talk = _Talk(job, directory, own, until_s=until_s, progress=progress)
            path, size = talk.trace(folder)
    except OSError as error:
        why = error.strerror or str(error)
        message = f"the files beside the segment of process {pid} cannot be used: {why}"
        raise CaptureError(Trouble.FAILED, message) from None
    made = Capture(
        how=IN_PROCESS,
        target=str(pid),
        pid=pid,
        command=job.process.command,
        asked_s=request.duration_ms / 1000.0,
        took_s=time.monotonic() - began_s,
        trace_bytes=size,
        simulated=host.simulated,
    )
    return CapturedTrace(path=path, capture=made, notes=talk.notes)


def _check_duration(request: CaptureRequest) -> None:
    if request.duration_ms > DURATION_MOST_MS:
        most_s = DURATION_MOST_MS // 1000
        raise TooLongError(
            Trouble.FAILED,
            f"an agent captures at most {most_s} s: the job cannot trace itself meanwhile",
        )


def _check_rights(job: AgentJob) -> None:
    """Raises CaptureError where the job forbids it, or its agent or its user prevents it."""
    pid = job.pid
    if os.geteuid() not in (0, job.uid):
        owner = user_name(job.uid)
        who = f"{owner} and root" if job.uid else "root"
        message = f"process {pid} belongs to {owner}: only {who} can capture it"
        raise CaptureError(Trouble.DENIED, message)
    if job.captures is None:
        raise CaptureError(
            Trouble.ABSENT,
            f"the agent in process {pid} is too old for captures: upgrade tpusmi there",
        )
    if not job.captures:
        raise CaptureError(Trouble.DENIED, agent_words.refusal(FORBIDDEN, pid))


def _check_runs(job: AgentJob) -> None:
    if procfs.waits_for_sigcont(job.host.path(f"/proc/{job.pid}")):
        message = f"process {job.pid} is stopped: resume it with `kill -CONT {job.pid}`"
        raise CaptureError(Trouble.FAILED, message)


def _agent_request(job: AgentJob, request: CaptureRequest, until_s: float) -> AgentRequest:
    left_s = min(until_s - time.monotonic(), capture_files.LIFE_MOST_S - 1.0)
    return AgentRequest(
        nonce=capture_files.new_nonce(),
        pid=job.header.pid,
        start_ticks=job.header.start_ticks,
        pid_namespace=job.header.pid_namespace,
        duration_ms=request.duration_ms,
        bytes_most=request.bytes_most,
        expires_s=time.time() + left_s,
        host_tracer_level=request.host_tracer_level,
        python_tracer_level=request.python_tracer_level,
    )


def _check_directory(job: AgentJob, directory: JobDirectory) -> None:
    if not directory.is_safe():
        where = os.path.dirname(job.file.path)
        message = f"the agent of process {job.pid} takes no requests in {where}: others write there"
        raise CaptureError(Trouble.DENIED, message)


class _Talk:
    """One request and its answers. Removes its files on every way out."""

    def __init__(
        self,
        job: AgentJob,
        directory: JobDirectory,
        request: AgentRequest,
        until_s: float,
        progress: Progress,
    ) -> None:
        self._job = job
        self._directory = directory
        self._request = request
        self._until_s = until_s
        self._progress = progress
        self._segment = job.file.path
        self._ask = capture_files.ask_name(self._segment)
        self.notes: tuple[str, ...] = ()
        self._written: tuple[int, int] | None = None
        """The file of the request; None before it is written."""
        self._place = ""
        """Where the trace is, or will be."""

    def trace(self, folder: str) -> tuple[str, int]:
        """The trace, copied into that folder, and its size. Raises CaptureError and OSError."""
        self._progress(f"asking the agent of process {self._job.pid}")
        try:
            self._write()
            answer = self._last_answer()
            if answer.message:
                self.notes = (answer.message,)
            return self._copied(answer, folder)
        finally:
            self._clean()

    def _write(self) -> None:
        """Write the request. A request that the agent has not taken for minutes is replaced."""
        for is_last in (False, True):
            try:
                self._written = self._directory.write_request(self._request)
                return
            except FileExistsError:
                status = os.stat(self._ask, dir_fd=self._directory.fd, follow_symlinks=False)
                if is_last or time.time() - status.st_mtime < capture_files.LIFE_MOST_S:
                    message = f"another capture of process {self._job.pid} waits for its agent"
                    raise CaptureError(Trouble.BUSY, message) from None
                self._directory.remove(self._ask)

    def _last_answer(self) -> AgentAnswer:
        """Wait for the end of the capture. Raises CaptureError where there is no trace."""
        pid, state = self._job.pid, ""
        silent_at_s = min(self._until_s, time.monotonic() + SILENT_S)
        while True:
            is_alive = self._job.is_alive()  # before the answer: its last one may be the trace
            answer = self._answer()
            if answer is not None and answer.state != state:
                state, self._place = answer.state, answer.trace or self._place
                if answer.state == REFUSED:
                    sentence = agent_words.refusal(answer.reason, pid, answer.message)
                    raise CaptureError(agent_words.TROUBLES[answer.reason], sentence)
                if answer.state == DONE:
                    return answer
                self._progress(agent_words.STATES[answer.state])
            if not is_alive:
                raise CaptureError(Trouble.FAILED, f"process {pid} ended during the capture")
            if time.monotonic() >= (self._until_s if state else silent_at_s):
                raise CaptureError(Trouble.FAILED, agent_words.lateness(pid, state))
            time.sleep(LOOK_S)

    def _answer(self) -> AgentAnswer | None:
        opener = self._directory.open
        return capture_files.read_answer(self._segment, self._request.nonce, self._job.uid, opener)

    def _copied(self, answer: AgentAnswer, folder: str) -> tuple[str, int]:
        nonce, size = self._request.nonce, answer.trace_bytes or 0
        if not capture_files.is_place_of_trace(answer.trace, self._segment, nonce):
            message = f"the agent of process {self._job.pid} names no place of a trace"
            raise CaptureError(Trouble.FAILED, message)
        self._progress(f"fetching the trace ({size_words(size)})")
        path = f"{folder}/{self._job.pid}.{nonce}.xplane.pb"
        try:
            source = self._directory.open_trace(answer.trace)
        except FileNotFoundError:
            message = f"process {self._job.pid} ended, or removed its trace, during the capture"
            raise CaptureError(Trouble.FAILED, message) from None
        try:
            return path, _copy(source, path, self._request.bytes_most, self._until_s)
        finally:
            os.close(source)

    def _clean(self) -> None:
        """Remove our files; of a job that has ended also the trace, if that is safe."""
        if self._written is not None:
            self._directory.remove_same(self._ask, self._written)
        nonce = self._request.nonce
        self._directory.remove(capture_files.answer_name(self._segment, nonce))
        is_ours = capture_files.is_place_of_trace(self._place, self._segment, nonce)
        if is_ours and not self._job.is_alive():
            self._directory.remove_folder(os.path.dirname(self._place))


def _copy(source: int, path: str, bytes_most: int, until_s: float) -> int:
    """Copy the trace; its size. Raises CaptureError, after which there is no copy."""
    size = os.fstat(source).st_size
    if not size:
        raise CaptureError(Trouble.FAILED, "the trace is empty")
    if size > bytes_most:
        raise CaptureError(Trouble.FAILED, f"the trace has {size} bytes, over {bytes_most}")
    _check_room(os.path.dirname(path), size)
    try:
        with ReceivedFile(path) as file:
            while file.size < size:
                piece = os.read(source, min(PIECE_BYTES, size - file.size))
                if not piece or time.monotonic() > until_s:
                    raise CaptureError(
                        Trouble.FAILED, f"the trace was cut off at {file.size} bytes"
                    )
                file.write(memoryview(piece))
            file.keep()
            return file.size
    except OSError as error:
        message = f"the trace cannot be written to {path}: {error.strerror or error}"
        raise CaptureError(Trouble.FAILED, message) from None


def _check_room(folder: str, size: int) -> None:
    """Raises CaptureError where there is no room for it."""
    if would_fill(folder, size):
        needed = f"the trace needs {size_words(size)}, too much for the disk"
        raise CaptureError(Trouble.FAILED, f"{needed} of {folder}: set TMPDIR")
