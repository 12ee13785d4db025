"""The capture of one profiler service, in a thread of its own."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import NamedTuple

from tpusmi.profiler import local_ports, remote_troubles
from tpusmi.profiler.old_servers import NOWHERE, take_over
from tpusmi.profiler.received_file import ReceivedFile
from tpusmi.profiler.remote_addresses import Address
from tpusmi.profiler.remote_connection import Fault, StreamError, connect
from tpusmi.profiler.remote_messages import (
    ENVELOPE_MOST,
    GET_SNAPSHOT,
    MALFORMED,
    MONITOR,
    PROFILE,
    AnswerError,
    TraceCutter,
    profile_request,
)
from tpusmi.profiler.remote_round import Round
from tpusmi.profiler.remote_stream import CallStream
from tpusmi.profiler.requests import CapturedTrace, CaptureRequest
from tpusmi.sources.libtpu.grpc_status import Code
from tpusmi.trace.figures import GRPC, Capture
from tpusmi.trace.limits import MIB
from tpusmi.trace.troubles import CaptureError, Trouble

CONNECT_S = 5.0
"""To look up a name, to connect, and to find out that a profiler service answers."""
LATE_WORTH_A_NOTE_S = 0.1
_HAS_METHOD = (Code.INTERNAL.value, Code.INVALID_ARGUMENT.value)
"""What a server answers to a malformed call of a method that it has; gRPC's own in C++ the first.
"""
TRIES_MOST = 16
"""Connections to a port that several processes share, to reach one of them."""
SAID_BYTES = 8 * MIB
"""A trace of this size takes a while: a line of progress says so."""


class _Server(NamedTuple):
    """A profiler service that has answered."""

    is_old: bool
    """Older than jaxlib 0.9."""
    pid: int | None
    """The process that listens, when it is on this machine."""


class RemoteTask:
    """One address: its thread, and how it ended."""

    def __init__(self, place: int, address: Address) -> None:
        self._place = place
        self._address = address
        self._lock = threading.Lock()
        self._outcome: CapturedTrace | CaptureError | None = None
        self._stream: CallStream | None = None
        self._is_stopped = False
        self._thread: threading.Thread | None = None

    def start(self, shared: Round) -> None:
        """Begin; it ends by itself within the limits of the round."""
        name = f"capture {self._place}"
        thread = threading.Thread(target=self._run, args=(shared,), name=name, daemon=True)
        try:
            thread.start()
            self._thread = thread
        except RuntimeError:  # the user has no thread left
            self._outcome = remote_troubles.no_thread(self._address)
            shared.meeting.leave()

    @property
    def is_running(self) -> bool:
        """False once it has an outcome."""
        return self._outcome is None and self._thread is not None and self._thread.is_alive()

    def outcome(self) -> CapturedTrace | CaptureError:
        """The trace, or why there is none."""
        late = f"The capture of {self._address} did not end in time"
        return self._outcome or CaptureError(Trouble.FAILED, late)

    def give_up_connecting(self) -> None:
        """End it, if it is still not connected: only the look-up of a name can last that long."""
        with self._lock:
            if self._outcome is None and self._stream is None:
                self._is_stopped = True
                self._outcome = remote_troubles.not_looked_up(self._address, CONNECT_S)

    def stop(self) -> None:
        """Have its thread end, if that still runs, and with it the capture in the job."""
        with self._lock:
            self._is_stopped = True
            stream = self._stream
        if stream is not None:
            stream.stop()

    def join(self, until_s: float) -> None:
        """Wait until then for a thread that was stopped to remove what it has written."""
        if self.is_running and self._stream is not None and self._thread is not None:
            self._thread.join(max(0.0, until_s - time.monotonic()))

    def _run(self, shared: Round) -> None:
        try:
            outcome: CapturedTrace | CaptureError = self._capture(shared)
        except CaptureError as error:
            outcome = error
        with self._lock:
            self._outcome = self._outcome or outcome
        shared.say("")

    def _capture(self, shared: Round) -> CapturedTrace:
        is_expected = True
        try:
            server = self._server(time.monotonic() + CONNECT_S, shared.pid)
            is_expected = False
            late_s = shared.meeting.wait()
            captured = self._record(server, shared)
            return captured._replace(notes=self._notes(server, shared.pid, late_s))
        finally:
            if is_expected:
                shared.meeting.leave()
            if self._stream is not None:
                self._stream.close()

    def _server(self, until_s: float, only: int | None) -> _Server:
        """A server of the process that is to be captured, if it matters which. Raises CaptureError.

        Where several share a port, the kernel chooses one for each connection: others may come.
        """
        for _ in range(1 if only is None else TRIES_MOST):
            connection = self._connection(until_s)
            is_old = self._is_old(until_s)
            pid = local_ports.server_of(connection)
            if only is None or local_ports.is_server(only, connection):
                return _Server(is_old=is_old, pid=pid if only is None else only)
        assert only is not None
        raise remote_troubles.another_process(self._address, only, pid)

    def _connection(self, until_s: float) -> socket.socket:
        """A new connection, under `_stream`, in place of the one before."""
        try:
            connection = connect(self._address, until_s)
        except StreamError as error:
            raise remote_troubles.not_connected(self._address, error, CONNECT_S) from None
        with self._lock:
            if self._stream is not None:
                self._stream.close()
            self._stream = CallStream(connection, self._address)
            if self._is_stopped:
                raise remote_troubles.not_looked_up(self._address, CONNECT_S)
        return connection

    def _is_old(self, until_s: float) -> bool:
        """True for a profiler before jaxlib 0.9. Raises CaptureError when it is not a profiler."""
        assert self._stream is not None
        try:
            monitor = self._stream.call(MONITOR, MALFORMED, until_s, _expect_nothing)
            if monitor.status not in _HAS_METHOD:
                raise remote_troubles.another_service(self._address, monitor)
            snapshot = self._stream.call(GET_SNAPSHOT, MALFORMED, until_s, _expect_nothing)
        except StreamError as error:
            raise remote_troubles.not_a_profiler(self._address, error) from None
        return snapshot.status not in _HAS_METHOD

    def _record(self, server: _Server, shared: Round) -> CapturedTrace:
        """Raises CaptureError, and leaves no file then."""
        request = shared.request
        session = f"tpusmi-{os.urandom(8).hex()}"
        writes = server.is_old and server.pid is not None
        writes = writes and local_ports.can_write_for_us(server.pid or 0, shared.folder)
        message = profile_request(
            request,
            session,
            repository=shared.folder if writes else NOWHERE,
            host_tracer_level=0 if server.is_old else request.host_tracer_level,
        )
        began_s, began_at_s = time.monotonic(), time.time()
        shared.say(f"capturing for {request.duration_ms / 1000:g} s")
        path = os.path.join(shared.folder, f"{self._place:03}.xplane.pb")
        with ReceivedFile(path) as file:
            is_empty = self._receive(message, file, shared)
            if not file.size and server.is_old:
                file.size = self._taken_over(session, path, request) if writes else 0
                if not file.size:
                    raise remote_troubles.too_old(self._address)
            if is_empty or not file.size:
                raise remote_troubles.empty(self._address, server.is_old)
            file.keep()
        made = Capture(
            how=GRPC,
            target=str(self._address),
            host=self._address.host,
            pid=server.pid,
            captured_at_s=began_at_s,
            asked_s=request.duration_ms / 1000,
            took_s=time.monotonic() - began_s,
            trace_bytes=file.size,
        )
        return CapturedTrace(path=path, capture=made)

    def _notes(self, server: _Server, only: int | None, late_s: float) -> tuple[str, ...]:
        notes = [remote_troubles.ONLY_DEVICES] if server.is_old else []
        if server.pid is not None and only is None and local_ports.is_shared(self._address.port):
            notes.append(remote_troubles.shared(self._address, server.pid))
        if late_s >= LATE_WORTH_A_NOTE_S:
            notes.append(remote_troubles.late(self._address, late_s))
        return tuple(notes)

    def _receive(self, message: bytes, file: ReceivedFile, shared: Round) -> bool:
        """The answer, its trace into the file; True when the server says that it is empty."""
        address, request = self._address, shared.request

        def claim(size: int) -> None:
            if size > request.bytes_most + ENVELOPE_MOST:
                raise remote_troubles.too_large(address, size, request.bytes_most)
            shared.space.claim(size)
            if size > SAID_BYTES:
                shared.say(f"receiving {size / MIB:,.0f} MiB from {address}")

        assert self._stream is not None
        cutter = TraceCutter(claim, file.write)
        until_s = time.monotonic() + shared.limit_s
        try:
            end = self._stream.call(PROFILE, message, until_s, cutter.take)
            if end.status != Code.OK.value:
                raise remote_troubles.failed(address, end)
            cutter.finish()
        except AnswerError as error:
            raise remote_troubles.senseless(address, str(error)) from None
        except StreamError as error:
            raise remote_troubles.interrupted(address, error, request.deadline_s) from None
        except OSError as error:
            raise remote_troubles.not_written(shared.folder, error) from None
        return cutter.is_empty

    def _taken_over(self, session: str, path: str, request: CaptureRequest) -> int:
        """Bytes of the trace that an old server has written for us; 0 when it has not."""
        try:
            size = take_over(os.path.dirname(path), session, path, request.bytes_most) or 0
        except OSError as error:
            raise remote_troubles.not_written(os.path.dirname(path), error) from None
        if size > request.bytes_most:
            raise remote_troubles.too_large(self._address, size, request.bytes_most)
        return size


def _expect_nothing(data: bytes) -> None:
    """Takes the answer to a malformed call, which has none."""
    if data:
        raise StreamError(Fault.NOT_GRPC)
