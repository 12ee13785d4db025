"""Compilations, counted from JAX's public monitoring events."""

from __future__ import annotations

import sys
from collections import deque
from time import monotonic
from typing import Any

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
