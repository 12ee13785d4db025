"""A callable to use in place of a jitted function: the same, and its calls are counted in FLOPs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

from tpusmi.agent.costs import INCOMPLETE, UNKNOWN, has_costs
from tpusmi.agent.flops import Flops
from tpusmi.agent.programs import Programs, note

TRACES_MOST = 64
"""Of transformations within each other."""


def tracked(function: Callable[..., Any], flops: Flops) -> Callable[..., Any]:
    """The function, its calls counted; the function itself, and a note, where that cannot be.

    Raises nothing, whatever it is given.
    """
    if type(function) is Tracked:
        return function
    try:
        core = _core()
        if core is not None and has_costs(function):
            return Tracked(function, flops, core)
    except Exception:  # noqa: BLE001  # an object of the job's may raise what it likes
        pass
    note(flops, function, UNKNOWN, "is not a jitted function")
    return function


class Tracked:
    """Looks like the function in everything, and counts its calls.

    What jit, grad and functools.wraps copy onto their own objects is `__dict__`, so nothing is
    in it but what the function has there. All else is found when it is asked for: a copied `lower`
    would make the gradient's program the function's own.
    """

    __slots__ = ("__dict__", "__weakref__", "_tpusmi")

    def __init__(self, function: Callable[..., Any], flops: Flops, core: Any) -> None:
        programs = Programs(function, flops)
        self._tpusmi = _State(function, flops, core, programs)
        self.__dict__.update(getattr(function, "__dict__", {}))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and count it."""
        state = self._tpusmi
        result = state.function(*args, **kwargs)
        # Inside jit, grad or vmap nothing is computed, it is only traced.
        trace = state.core.trace_ctx.trace
        if trace is not state.core.eval_trace:
            state.note_trace(trace)
        elif state.programs.size() == state.seen:
            state.flops.tracked += state.each
        else:
            state.each, state.seen = state.programs.count(args, kwargs)
        return result

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method, where the function would be one."""
        if instance is None or not hasattr(type(self._tpusmi.function), "__get__"):
            return self
        return MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        """What the function has besides."""
        if name == "_tpusmi":  # not yet made, by a copy
            raise AttributeError(name)
        return getattr(self._tpusmi.function, name)

    # isinstance(…, jax.stages.Wrapped) looks at the class.
    lower = property(lambda self: self._tpusmi.function.lower)
    trace = property(lambda self: self._tpusmi.function.trace)

    def __repr__(self) -> str:
        return repr(self._tpusmi.function)

    def __reduce__(self) -> Any:
        """In another process it counts what is called there."""
        from tpusmi.agent import track

        return track, (self._tpusmi.function,)


class _State:
    """Of one tracked function; in one place, and so in one look."""

    __slots__ = ("core", "each", "flops", "function", "programs", "seen")

    def __init__(
        self, function: Callable[..., Any], flops: Flops, core: Any, programs: Programs
    ) -> None:
        self.function, self.flops, self.core, self.programs = function, flops, core, programs
        self.seen, self.each = 0, 0.0

    def note_trace(self, trace: Any) -> None:
        """Say that a call is not counted; not where it is compiled into what may be tracked itself.

        Raises nothing.
        """
        if INCOMPLETE in self.flops.notes:
            return
        for _ in range(TRACES_MOST):
            # A jit's own trace may have a parent as well: what it collects is compiled.
            if trace is None or type(trace).__name__ == "DynamicJaxprTrace":
                return
            trace = getattr(trace, "parent_trace", None)
            if trace is self.core.eval_trace:
                reason = "called inside grad or vmap, outside of jit: not counted there"
                note(self.flops, self.function, INCOMPLETE, reason)
                return


def _core() -> Any | None:
    """What tells whether JAX is tracing; None without a JAX that does."""
    core = sys.modules.get("jax._src.core")
    if hasattr(core, "eval_trace") and hasattr(getattr(core, "trace_ctx", None), "trace"):
        return core
    return _Asking(core) if hasattr(core, "trace_state_clean") else None


class _Asking:
    """In place of a core that has other names: asks it, which takes longer."""

    eval_trace = True

    def __init__(self, core: Any) -> None:
        self._core = core
        self.trace_ctx = self

    @property
    def trace(self) -> bool:
        return bool(self._core.trace_state_clean())
