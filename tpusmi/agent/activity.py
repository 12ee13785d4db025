"""What a job is doing: its compilations, counted from JAX's public monitoring events, and its
phase, judged from its steps, compilations, allocations and CPU time.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from time import monotonic
from typing import Any

from tpusmi.agent.steps import Steps, StepTimes
from tpusmi.model import Phase

LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
RECENT_S = 60.0
WARM_UP_S = 60.0
"""Compilations this soon after the first belong to the start of a job, and are not recent."""
COMPILING_MOST_S = 1800.0
"""A program lowered longer ago than this was only lowered, not compiled."""
MISSED = "compilations_missed"
_MISSED = (
    "a library has cleared JAX's monitoring listeners: how many compilations there were in all is "
    "no longer known; those of the last minute are counted again"
)

IDLE_AFTER_S = 30.0
IDLE_AFTER_STEPS = 10
"""A job that marks steps is idle after this many of its own step times without one, or the seconds
above.
"""
BUSY_CPU_SHARE = 0.02
"""A job without steps that uses more than this share of one core is at work."""
COMPILING_SHARE = 0.3
"""A job that spent more than this share of the time since the last sample on it is compiling."""
STARTING_MOST_S = 60.0
"""A job that has not imported JAX for this long may never do so."""


class Compilations:
    """Listens to one JAX.

    Events come in any thread; each is counted in a microsecond and never raises. Any library may
    clear all listeners: compilations until that is noticed are missed.
    """

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.first_at_s: float | None = None
        self.notes: dict[str, str] = {}
        """Warnings, one sentence for each code."""
        self._lowered_at_s: float | None = None
        self._recent: deque[tuple[float, str]] = deque(maxlen=1000)
        self._listener = self._on_event
        self._monitoring: Any = None
        self._is_closed = False
        self._can_ask = True
        self._missed_at_s: float | None = None

    @property
    def listening(self) -> bool:
        """True once the events are being counted."""
        return self._monitoring is not None

    @property
    def total(self) -> int | None:
        """How many there were so far; None before listen(), and once some may have been missed."""
        return self.count if self.listening and self._missed_at_s is None else None

    @property
    def total_s(self) -> float | None:
        """How long they took; None as in total."""
        return None if self.total is None else self.seconds

    def listen(self) -> bool:
        """Count from now on if the job has imported JAX; it is never imported here. Call it often:
        where the listener has been cleared, it is registered again.

        True when counting. Only one thread may call this at a time.
        """
        monitoring = sys.modules.get("jax.monitoring")
        register = getattr(monitoring, "register_event_duration_secs_listener", None)
        if self._is_closed or register is None:
            return self.listening
        if not self.listening:
            self._register(register)
            self._monitoring = monitoring
        elif self._can_ask and not _is_among(self._listener, register):
            self._register(register)
            self._lowered_at_s = None
            self._missed_at_s = monotonic()
            self.notes[MISSED] = _MISSED
        return self.listening

    def _register(self, register: Any) -> None:
        register(self._listener)
        # A library may wrap each listener in a function of its own, which hides ours.
        self._can_ask = _is_among(self._listener, register)

    def close(self) -> None:
        """Stop counting, for good. Raises nothing.

        A JAX without a public way to unregister keeps a listener that does nothing.
        """
        self._is_closed = True
        monitoring, self._monitoring = self._monitoring, None
        unregister = getattr(monitoring, "unregister_event_duration_listener", None)
        if unregister is not None:
            try:
                unregister(self._listener)
            except Exception:  # noqa: BLE001  # the listeners were cleared: each JAX raises another
                pass

    def recent(self, now_s: float) -> list[str]:
        """The function of each compilation of the last minute, the job's first minute left out.

        Only the agent's thread may call this.
        """
        recent = self._recent
        while recent and now_s - recent[0][0] > RECENT_S:
            recent.popleft()
        return [name for _, name in tuple(recent)]

    def recent_count(self, now_s: float) -> int | None:
        """Their number; None where some of that minute may have been missed."""
        missed_at_s = self._missed_at_s
        if not self.listening or (missed_at_s is not None and now_s - missed_at_s < RECENT_S):
            return None
        return len(self.recent(now_s))

    def is_compiling(self, now_s: float, last_step_at_s: float | None) -> bool:
        """True while a program has been lowered and its compilation has not ended.

        A step since then means that it was only lowered, perhaps for its costs.
        """
        lowered = self._lowered_at_s
        if lowered is None or (last_step_at_s is not None and last_step_at_s > lowered):
            return False
        return now_s - lowered < COMPILING_MOST_S

    def _on_event(self, event: str, duration_s: float, /, **details: Any) -> None:
        if event == LOWERED and self.listening:
            self._lowered_at_s = monotonic()
        elif event == COMPILED and self.listening:
            now = monotonic()
            self._lowered_at_s = None
            self.count += 1
            self.seconds += duration_s
            if self.first_at_s is None:
                self.first_at_s = now
            if now - self.first_at_s > WARM_UP_S:
                self._recent.append((now, _plain(details.get("fun_name"))))


class Activity:
    """The phase of one job, which may use no JAX.

    A job that never calls step() is judged by its allocations and CPU time.
    """

    def __init__(self, steps: Steps, compilations: Compilations) -> None:
        self.has_backend = False
        """True once JAX has its devices."""
        self._steps = steps
        self._compilations = compilations
        self._began_s = monotonic()
        self._at_s: float | None = None
        self._busy_at_s: float | None = None
        self._cpu_s = 0.0
        self._allocations = 0.0
        self._compile_s = 0.0

    def phase(self, now_s: float, allocations: float, times: StepTimes | None) -> Phase:
        """Any phase but ENDED.

        Call once per sample; the first answer rests on little.
        """
        if self._is_starting(now_s):
            return Phase.STARTING
        elapsed = None if self._at_s is None else max(1e-3, now_s - self._at_s)
        compiled = self._compilations.seconds - self._compile_s
        worked = elapsed is None or self._worked(elapsed, allocations)
        self._at_s = now_s
        self._compile_s = self._compilations.seconds
        if worked or self._busy_at_s is None:
            self._busy_at_s = now_s
        if self._compilations.is_compiling(now_s, self._steps.last_at_s):
            return Phase.COMPILING
        if elapsed is not None and compiled / elapsed > COMPILING_SHARE:
            return Phase.COMPILING
        last_step = self._steps.last_at_s
        if last_step is None:
            return Phase.RUNNING if now_s - self._busy_at_s < IDLE_AFTER_S else Phase.IDLE
        of_steps_s = 0.0 if times is None else IDLE_AFTER_STEPS * times.period.p95
        patience_s = max(IDLE_AFTER_S, of_steps_s)
        return Phase.RUNNING if now_s - last_step < patience_s else Phase.IDLE

    def _is_starting(self, now_s: float) -> bool:
        if self.has_backend or self._steps.last_at_s is not None:
            return False
        return "jax" in sys.modules or now_s - self._began_s < STARTING_MOST_S

    def _worked(self, elapsed_s: float, allocations: float) -> bool:
        used = os.times()
        cpu = used.user + used.system
        busy = cpu - self._cpu_s > BUSY_CPU_SHARE * elapsed_s or allocations != self._allocations
        self._cpu_s, self._allocations = cpu, allocations
        return busy


def _is_among(listener: Any, register: Any) -> bool:
    """False when that listener is no longer registered; True where this JAX does not show it."""
    home = sys.modules.get(getattr(register, "__module__", None) or "")
    ask = getattr(home, "get_event_duration_listeners", None)
    try:
        listeners = ask() if ask else home._event_duration_secs_listeners  # type: ignore[union-attr]
        return any(one is listener for one in listeners)
    except Exception:  # noqa: BLE001  # how it keeps them is internal to JAX
        return True


def _plain(name: Any) -> str:
    """The function's own name: some JAX releases call it `jit(train_step)`."""
    if not isinstance(name, str):
        return ""
    return name[4:-1] if name.startswith("jit(") and name.endswith(")") else name
