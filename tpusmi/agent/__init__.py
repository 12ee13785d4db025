"""The quiet thread inside a training process: start, stop, step.

Loads the standard library only.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tpusmi.agent.own_process import say
from tpusmi.agent.profiler_server import checked_port
from tpusmi.agent.sampler import Sampler
from tpusmi.agent.steps import Steps
from tpusmi.agent.tracked import Tracked, wrap
from tpusmi.wire.writer import close_inherited

Function = TypeVar("Function", bound=Callable[..., Any])

INTERVAL_LEAST_S, INTERVAL_MOST_S = 0.05, 3600.0
LOOK_S = 0.01

_steps = Steps()
# Reentrant: a signal handler may call stop() while the same thread is in start().
_lock = threading.RLock()
_sampler: Sampler | None = None
_hooked = False


class Agent:
    """The result of `start()`: a handle that stops the agent at the end of a `with` block.

    >>> with tpusmi.start() as agent:
    ...     print(agent.running)
    True
    >>> agent
    <tpusmi agent: stopped>
    """

    @property
    def running(self) -> bool:
        """True while the agent publishes this process. False where it switched itself off."""
        sampler = _sampler
        return sampler is not None and sampler.is_alive() and sampler.segment.trouble is None

    def stop(self) -> None:
        """The same as tpusmi.stop()."""
        stop()

    def __enter__(self) -> Agent:
        return self

    def __repr__(self) -> str:
        sampler = _sampler
        if sampler is None:
            state = "stopped" if _is_enabled() else "off: TPUSMI_DISABLE is set"
        else:
            state = sampler.state
        return f"<tpusmi agent: {state}>"

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        # After an exception the segment is the black box: it shows what the devices held.
        _finish(keep=kind is not None)


def start(interval_s: float = 1.0, profiler_port: int | None = None, slice: bool = True) -> Agent:
    """Publish this process to tpusmi until stop(): device memory, steps, compilations, memory
    profile.

    May be called before or after JAX starts, and before jax.distributed.initialize(): it waits
    until a backend exists and never makes one. Calling it again changes nothing. Where there is no
    room for the segment, it tries again later. TPUSMI_DISABLE=1 in the environment turns it off.
    Raises TypeError when interval_s is not a number and ValueError when it is not positive, and so
    for profiler_port; nothing else, here or later: where the agent cannot run, it prints a line on
    stderr.

    `profiler_port` starts JAX's profiler server on that port, once JAX has a backend, and publishes
    the port. It listens on all addresses. `tpusmi profile` needs no port: it asks the agent, unless
    TPUSMI_PROFILE=0 in the environment forbids it.

    In a job of several processes the agents tell each other what their hosts do, through JAX's own
    coordination service: the viewer on each host then shows all of them. `slice=False`, or
    TPUSMI_SLICE=0 in the environment, turns that off for this process.

    Then call `step()` once per step. At the end of the process the agent stops by itself; `stop()`
    and the end of `with tpusmi.start():` stop it earlier. The result's repr says what it does:
    publishes to a file, with so many devices, or waits for JAX.

    >>> agent = tpusmi.start()
    >>> for batch in range(3):
    ...     state = train_step(batch)
    ...     _ = tpusmi.step()
    >>> agent
    <tpusmi agent: ...>
    >>> tpusmi.stop()
    """
    seconds, port = _seconds(interval_s), checked_port(profiler_port)
    try:
        with _lock:
            if _is_enabled():
                _start(min(max(seconds, INTERVAL_LEAST_S), INTERVAL_MOST_S), port, bool(slice))
    except Exception as error:  # noqa: BLE001  # the job goes on without an agent
        kind = "" if isinstance(error, RuntimeError) else f"{type(error).__name__}: "
        say(f"agent not started: {kind}{error}")
    return Agent()


def _seconds(interval_s: float) -> float:
    try:
        if isinstance(interval_s, (str, bytes)):
            raise TypeError
        seconds = float(interval_s)
    except Exception:  # noqa: BLE001  # an object of the job's may raise anything
        raise TypeError("interval_s must be a number of seconds") from None
    if not seconds > 0:
        raise ValueError(f"interval_s must be positive, not {seconds}")
    return seconds


def stop() -> None:
    """Stop publishing and remove the segment. Does nothing when the agent is not running. Raises
    nothing.

    >>> agent = tpusmi.start()
    >>> tpusmi.stop()
    >>> agent.running
    False
    """
    _finish(keep=False)


def step(flops: float | None = None) -> Steps:
    """Mark the end of a training step; or, as `with tpusmi.step():`, its body.

    Call it once per step, in the thread of the loop. The time of a step is the time between the
    ends of two steps; the time of the body is shown beside it. Costs about a microsecond, and
    raises nothing.

    `flops` are the model FLOPs of **one step of the whole job**, forward and backward, all
    processes and devices together, without recomputed work: for a transformer about 6 times the
    parameters times the tokens of the global batch. With them tpusmi shows FLOP/s and, on a TPU,
    MFU. `track()` counts them where you do not know them.

    >>> for batch in range(3):
    ...     state = train_step(batch)
    ...     _ = tpusmi.step(flops=6 * 1e9 * 4096)
    >>> for batch in range(3):
    ...     with tpusmi.step():
    ...         state = train_step(batch)
    """
    return _steps.step(flops)


def track(function: Function) -> Function:
    """The same jitted function, whose calls are counted in FLOPs: use it in place of the original.

    `train_step = tpusmi.track(jax.jit(train_step))`, or `@tpusmi.track` above `@jax.jit`. The FLOPs
    of its program are found at its first call, without compiling it again. Where it runs programs
    of different cost, with several sequence lengths for example, the sum is an estimate. The work
    inside a loop of unknown length, or inside a kernel, cannot be seen: pass it to `step(flops=…)`,
    which replaces this count. With TPUSMI_DISABLE=1 in the environment, returns the function
    itself. Raises nothing.

    >>> import jax
    >>> train_step = tpusmi.track(jax.jit(lambda x: x @ x))
    >>> train_step(jax.numpy.ones((64, 64))).shape
    (64, 64)
    """
    if not _is_enabled() or type(function) is Tracked:
        return function
    return cast(Function, wrap(function, _steps.flops))


def wait_until_published(most_s: float) -> None:
    """Wait until the agent that was just started here has its segment, at most `most_s` seconds.
    Returns at once where there is no agent, or none that can write.
    """
    until_s = time.monotonic() + most_s
    while (sampler := _sampler) is not None and time.monotonic() < until_s:
        segment = sampler.segment
        if segment.path is not None or segment.trouble is not None or not sampler.is_alive():
            break
        time.sleep(LOOK_S)


def _is_enabled() -> bool:
    return os.environ.get("TPUSMI_DISABLE", "0") in ("", "0")


def _start(interval_s: float, port: int | None, slice: bool) -> None:
    global _sampler
    before = _sampler
    if before is not None and before.is_alive():
        before.segment.hurry()
        before.server.wish = port
        return
    _hook()
    override = os.environ.get("TPUSMI_DIR") or None
    if override is not None:
        override = os.path.abspath(override)  # the job may go to another directory
    if before is not None:
        before.finish(keep=True)
    sampler = Sampler(interval_s, _steps, override, _mode(), _end_before_jax)
    sampler.server.wish, sampler.slice.wish = port, slice
    try:
        sampler.compilations.listen()
        sampler.start()
    except BaseException:  # no more threads, or the interpreter is shutting down
        sampler.compilations.close()
        raise
    _sampler = sampler


def _finish(keep: bool) -> None:
    global _sampler
    with _lock:
        sampler, _sampler = _sampler, None
    if sampler is not None:
        try:
            sampler.finish(keep)
        except Exception as error:  # noqa: BLE001  # the job goes on
            say(f"agent not stopped: {type(error).__name__}: {error}")
        _steps.forget()


def _end_before_jax() -> None:
    """Hooks run last in, first out: one that is registered after JAX's own runs before it."""
    atexit.unregister(_finish)
    atexit.register(_finish, keep=True)


def _hook() -> None:
    """Once: end quietly before JAX is torn down, and let go in a forked child."""
    global _hooked
    if not _hooked:
        _hooked = True
        atexit.register(_finish, keep=True)
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    """In a forked child the thread is gone, and the lock may never be released: start over. The
    segment is the parent's.
    """
    global _sampler, _lock
    _lock = threading.RLock()
    _steps.forget()
    close_inherited()
    sampler, _sampler = _sampler, None
    if sampler is not None:
        sampler.compilations.close()


def _mode() -> int:
    """Permissions of the segment: readable by other users' viewers unless TPUSMI_SEGMENT_MODE says
    otherwise.
    """
    try:
        return int(os.environ.get("TPUSMI_SEGMENT_MODE", "0644"), 8) & 0o666 | 0o600
    except ValueError:
        return 0o644
