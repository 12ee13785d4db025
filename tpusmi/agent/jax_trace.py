"""One trace of this process, by the public functions of jax.profiler. Whatever goes wrong, JAX is
left ready for the job's own traces.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tpusmi.text import clean
from tpusmi.wire.capture_files import TRACE_NAME
from tpusmi.wire.capture_messages import BUSY, ENDED, FAILED, NO_ROOM, TOO_LARGE, AgentRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

RESET_MOST_S = 5.0
"""The longest wait for JAX's own lock after a failure."""
SUFFIX = ".xplane.pb"
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
    `on_saving` is called before JAX writes it.
    Raises TraceError, and nothing else unless JAX does.
    """
    profiler = sys.modules["jax"].profiler
    try:
        _start(profiler, folder, request)
    except Exception as error:  # noqa: BLE001  # JAX's errors have many types
        _let_go(folder)
        raise _sorted(error) from None
    is_cut = wait(request.duration_ms / 1000.0)
    on_saving()
    try:
        profiler.stop_trace()
    except Exception as error:  # noqa: BLE001
        _let_go(folder)
        # The job's own stop_trace() may have ended our trace: then the file is there.
        if "No profile started" not in str(error):
            raise _sorted(error) from None
    if is_cut:
        raise TraceError(ENDED)
    return _only_trace(folder, request.bytes_most)


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
    profiler.start_trace(folder, profiler_options=options)


def _let_go(folder: str) -> None:
    """After a stop_trace() that failed JAX still has our session, and the job's next start_trace()
    would raise: drop it, and only ours.
    """
    state = getattr(sys.modules.get("jax._src.profiler"), "_profile_state", None)
    lock = getattr(state, "lock", None)
    if state is None or lock is None or not lock.acquire(timeout=RESET_MOST_S):
        return
    try:
        if state.profile_session is not None and state.log_dir == folder:
            state.reset()
    except AttributeError:
        pass  # another JAX, which keeps it elsewhere
    finally:
        lock.release()


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
    paths = [path for path in _files(folder) if path.endswith(SUFFIX)]
    if len(paths) != 1:
        raise TraceError(FAILED, f"JAX wrote {len(paths)} traces, not one")
    size = os.path.getsize(paths[0])
    if size > bytes_most:
        raise TraceError(TOO_LARGE, f"{size} bytes, and at most {bytes_most} were asked for")
    trace = f"{folder}/{TRACE_NAME}"
    os.rename(paths[0], trace)
    os.chmod(trace, 0o600)
    return trace


def _files(folder: str) -> Iterator[str]:
    for directory, _, names in os.walk(folder):
        yield from (f"{directory}/{name}" for name in names)
