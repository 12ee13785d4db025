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
"""Compilations this soon after the first are a job starting up, and are not counted as recent."""
COMPILING_MOST_S = 1800.0
"""A program lowered longer ago than this was only lowered, not compiled."""


class Compilations:
    """Listens to one JAX.

    Events come in any thread; each is counted in a microsecond and never raises.
    """

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.first_at_s: float | None = None
        self._lowered_at_s: float | None = None
        self._recent: deque[tuple[float, str]] = deque(maxlen=1000)
        self._monitoring: Any = None

    @property
    def listening(self) -> bool:
        """True once the events are being counted."""
        return self._monitoring is not None

    def listen(self) -> bool:
        """Start counting if the job has imported JAX; it is never imported here.

        True when counting.
        """
        monitoring = sys.modules.get("jax.monitoring")
        register = getattr(monitoring, "register_event_duration_secs_listener", None)
        if not self.listening and register is not None:
            register(self._on_event)
            self._monitoring = monitoring
        return self.listening

    def close(self) -> None:
        """Stop counting.

        A JAX without a public way to unregister keeps a listener that does nothing.
        """
        monitoring, self._monitoring = self._monitoring, None
        unregister = getattr(monitoring, "unregister_event_duration_listener", None)
        if unregister is not None:
            try:
                unregister(self._on_event)
            except (ValueError, AssertionError):
                pass  # the job cleared all listeners itself

    def recent(self, now_s: float) -> list[str]:
        """The function of each compilation of the last minute, the job's first minute left out.

        Only the agent's thread may call this.
        """
        recent = self._recent
        while recent and now_s - recent[0][0] > RECENT_S:
            recent.popleft()
        return [name for _, name in tuple(recent)]

    def is_compiling(self, now_s: float, last_step_at_s: float | None) -> bool:
        """True while a program has been lowered and its compilation has not ended.

        A step since then means that it was only lowered, for its costs perhaps.
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


def _plain(name: Any) -> str:
    """The function's own name: some JAX releases call it `jit(train_step)`."""
    if not isinstance(name, str):
        return ""
    return name[4:-1] if name.startswith("jit(") and name.endswith(")") else name
