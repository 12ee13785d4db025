"""One trace of this process, by jax.profiler. Whatever goes wrong, JAX is left ready for the job's
own traces.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tpusmi.agent import jaxread
from tpusmi.text import clean
from tpusmi.wire.capture_files import TRACE_NAME, TRACE_SUFFIX
from tpusmi.wire.capture_messages import BUSY, ENDED, FAILED, NO_ROOM, TOO_LARGE, AgentRequest
from tpusmi.wire.writer import check_limit, check_room

LOCK_MOST_S = 5.0
"""The longest wait for JAX's own lock."""
CPU_LEVEL = 2
"""From this level on a JAX before 0.9 traces the operations of CPU devices."""
_STATE = ("lock", "reset")
PIECE_BYTES = 1024 * 1024
_BUSY_WORDS = ("already been started", "ALREADY_EXISTS", "Another profiling session")
_ROOM_WORDS = ("RESOURCE_EXHAUSTED", "No space left", "Disk quota", "File too large")


class TraceError(Exception):
    """No trace: one of capture_messages.REASONS, and more about it in words."""

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message)
        self.reason = reason


def record(
    request: AgentRequest, folder: str, wait: Callable[[float], bool], on_saving: Callable[[], None]
) -> str:
    """Trace this process into a directory of ours; the path of the trace there, alone in it.

    `wait` waits that many seconds; True when the trace is to end early, which is an error then.
    `on_saving` is called before JAX collects it.
    Raises TraceError, and nothing else unless JAX does.
    """
    profiler = sys.modules["jax"].profiler
    try:
        _start(profiler, folder, request)
    except Exception as error:  # noqa: BLE001  # JAX's errors have many types
        _let_go(folder)
        raise _sorted(error) from None
    try:
        is_cut = wait(request.duration_ms / 1000.0)
        on_saving()
    finally:  # whatever happens, the trace ends
        data = _ended(profiler, folder)
    if is_cut:
        raise TraceError(ENDED)
    if data is None:
        return _only_trace(folder, request.bytes_most)
    return _written(data, folder, request.bytes_most)


def has_options() -> bool:
    """False for a JAX so old that its traces always have every call of Python in them."""
    return hasattr(sys.modules["jax"].profiler, "ProfileOptions")


def _start(profiler: Any, folder: str, request: AgentRequest) -> None:
    if not has_options():
        profiler.start_trace(folder)
        return
    options = profiler.ProfileOptions()
    options.python_tracer_level = request.python_tracer_level
    options.host_tracer_level = request.host_tracer_level
    if getattr(jaxread.backend(), "platform", "") == "cpu":
        options.host_tracer_level = max(CPU_LEVEL, request.host_tracer_level)
    profiler.start_trace(folder, profiler_options=options)


def _ended(profiler: Any, folder: str) -> bytes | None:
    """End the trace, as _stopped() does, with JAX ready for the next one. Raises TraceError."""
    try:
        return _stopped(profiler, folder)
    except Exception as error:  # noqa: BLE001
        _let_go(folder)
        if "No profile started" in str(error):
            return None  # by the job's own stop_trace(), which has written it
        raise _sorted(error) from None


def _stopped(profiler: Any, folder: str) -> bytes | None:
    """End the trace: its bytes, or None where JAX has written it into the folder.

    jax.profiler.stop_trace() would also write all events as JSON, which takes ten times as long and
    pauses the job for seconds: that is for a JAX that keeps its session elsewhere. Where the job
    has ended ours, and has begun one of its own since, there is nothing to end.
    """
    with _running_session() as running:
        if running is not None and running.folder not in (folder, None):
            return None
        stop = getattr(running and running.folder and running.session, "stop", None)
        if running is not None and stop is not None:
            data = bytes(stop())
            running.drop()
            return data
    profiler.stop_trace()
    return None


def _let_go(folder: str) -> None:
    """After a stop that failed JAX still has our session, and the job's next start_trace() would
    raise: drop it.
    """
    with _running_session() as running:
        if running is not None and running.folder == folder:
            running.drop()


class _RunningSession(NamedTuple):
    """The trace in JAX's state, of which there is one: since JAX 0.12 in an object of its own."""

    state: Any
    owner: Any
    session: Any
    folder: str | None
    """Where it is to be written; None where this JAX does not say."""

    def drop(self) -> None:
        """JAX is ready for the next trace."""
        if self.owner is not self.state:
            self.owner._raw_session, self.owner._is_running = None, False
        self.state.reset()


@contextmanager
def _running_session() -> Iterator[_RunningSession | None]:
    """The trace that runs, with JAX's state locked; None where there is none, or JAX is another."""
    state: Any = getattr(sys.modules.get("jax._src.profiler"), "_profile_state", None)
    is_there = all(hasattr(state, name) for name in _STATE)
    if not is_there or not state.lock.acquire(timeout=LOCK_MOST_S):
        yield None
        return
    try:
        owner = getattr(state, "session", None) or state
        session = getattr(owner, "profile_session" if owner is state else "_raw_session", None)
        folder = getattr(owner, "log_dir", None)
        running = _RunningSession(state=state, owner=owner, session=session, folder=folder)
        yield None if session is None else running
    finally:
        state.lock.release()


def _sorted(error: Exception) -> TraceError:
    """The reason why JAX has raised that."""
    words = str(error)
    if any(word in words for word in _BUSY_WORDS):
        return TraceError(BUSY, "the job traces itself, or its profiler server does")
    if any(word in words for word in _ROOM_WORDS):
        return TraceError(NO_ROOM, clean(words, 200))
    return TraceError(FAILED, clean(f"{type(error).__name__}: {words}", 200))


def _only_trace(folder: str, bytes_most: int) -> str:
    """The trace that JAX has written, moved to the top. Raises TraceError."""
    paths = [path for path in _files(folder) if path.endswith(TRACE_SUFFIX)]
    if len(paths) != 1:
        raise TraceError(FAILED, f"JAX wrote {len(paths)} traces, not one")
    _check_size(os.path.getsize(paths[0]), bytes_most)
    trace = f"{folder}/{TRACE_NAME}"
    os.rename(paths[0], trace)
    os.chmod(trace, 0o600)
    return trace


def _written(data: bytes, folder: str, bytes_most: int) -> str:
    """The trace with those bytes, written. Raises TraceError, and OSError where they do not fit."""
    _check_size(len(data), bytes_most)
    path = f"{folder}/{TRACE_NAME}"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        check_limit(len(data))
        check_room(fd, len(data))
        with memoryview(data) as whole:
            for start in range(0, len(data), PIECE_BYTES):
                os.pwrite(fd, whole[start : start + PIECE_BYTES], start)
    except OSError as error:
        raise TraceError(NO_ROOM, error.strerror or str(error)) from None
    finally:
        os.close(fd)
    if os.path.getsize(path) != len(data):
        raise TraceError(NO_ROOM, "the trace was cut short")
    return path


def _check_size(size: int, bytes_most: int) -> None:
    if size > bytes_most:
        raise TraceError(TOO_LARGE, f"{size} bytes, and at most {bytes_most} were asked for")


def _files(folder: str) -> Iterator[str]:
    for directory, _, names in os.walk(folder):
        yield from (f"{directory}/{name}" for name in names)
