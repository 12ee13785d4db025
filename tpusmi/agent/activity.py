"""The phase of a job, judged from its steps, compilations, allocations and CPU time."""

from __future__ import annotations

import os
import sys
from time import monotonic

from tpusmi.agent.compilations import Compilations
from tpusmi.agent.steps import Steps, StepTimes
from tpusmi.model import Phase

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

    def phase(self, now_s: float, allocations: float, times: StepTimes | None) -> str:
        """`starting`, `compiling`, `running` or `idle`.

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
            return Phase.RUNNING if now_s - self._busy_at_s < IDLE_AFTER_S else "idle"
        patience = (
            IDLE_AFTER_S
            if times is None
            else max(IDLE_AFTER_S, IDLE_AFTER_STEPS * times.period.p95)
        )
        return Phase.RUNNING if now_s - last_step < patience else "idle"

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
