"""A callable to use in place of a jitted function: the same, and its calls are counted in FLOPs.

A call counts as much as the newest program of the function. Where there are several programs, a
call is looked at now and then to see which one runs; once two of them differ in cost, as with
several sequence lengths, the sum is called an estimate.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from types import MethodType
from typing import Any

from tpusmi.agent.costs import ESTIMATED, INCOMPLETE, UNKNOWN, cost, has_costs
from tpusmi.agent.flops import Flops

TRACES_MOST = 64
"""How many transformations within each other are looked through."""
SEVERAL = -1
"""In place of a number of programs: the next call may be of any of them."""
SHARE = 0.001
"""The share of the job's time that looks at calls may take, where there are several programs."""
ESTIMATE = "runs programs of different cost and counts each call as the newest: an estimate"


def wrap(function: Callable[..., Any], flops: Flops) -> Callable[..., Any]:
    """The function, its calls counted; the function itself, and a note, where that is impossible.

    Raises nothing, whatever it is given.
    """
    if type(function) is Tracked:
        return function
    try:
        core = _core()
        if core is not None and has_costs(function):
            return Tracked(function, flops, core)
    except Exception:  # noqa: BLE001  # an object of the job's may raise anything
        pass
    note(flops, function, UNKNOWN, "is not a jitted function")
    return function


class Tracked:
    """Looks like the function in everything, and counts its calls.

    What jit, grad and functools.wraps copy onto their own objects is `__dict__`, so nothing is
    in it but what the function has there. All else is looked up when it is used: a copied `lower`
    would make the gradient's program the function's own.
    """

    __slots__ = ("__dict__", "__weakref__", "_tpusmi")

    def __init__(self, function: Callable[..., Any], flops: Flops, core: Any) -> None:
        self._tpusmi = _Calls(function, flops, core)
        self.__dict__.update(getattr(function, "__dict__", {}))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and count it."""
        calls = self._tpusmi
        result = calls.function(*args, **kwargs)
        # Inside jit, grad or vmap nothing is computed, it is only traced.
        trace = calls.core.trace_ctx.trace
        if trace is not calls.core.eval_trace:
            calls.note_trace(trace)
        elif calls.count_programs() == calls.programs:
            calls.flops.tracked += calls.each
        else:
            calls.add(args, kwargs)
        return result

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method, where the function would be one."""
        if instance is None or not hasattr(type(self._tpusmi.function), "__get__"):
            return self
        return MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        """Every other attribute of the function."""
        if name == "_tpusmi":  # not yet made, by a copy
            raise AttributeError(name)
        return getattr(self._tpusmi.function, name)

    # isinstance(…, jax.stages.Wrapped) looks at the class.
    lower = property(lambda self: self._tpusmi.function.lower)
    trace = property(lambda self: self._tpusmi.function.trace)

    def __repr__(self) -> str:
        return repr(self._tpusmi.function)

    def __reduce__(self) -> Any:
        """In another process it counts the calls there."""
        from tpusmi.agent import track

        return track, (self._tpusmi.function,)


class _Calls:
    """The calls of one tracked function, and what each costs. Raises nothing."""

    __slots__ = (
        "_look_at_s",
        "_size",
        "core",
        "count_programs",
        "each",
        "flops",
        "function",
        "programs",
    )

    def __init__(self, function: Callable[..., Any], flops: Flops, core: Any) -> None:
        self.function, self.flops, self.core = function, flops, core
        size = getattr(function, "_cache_size", None)
        self.count_programs: Callable[[], int] = size if callable(size) else lambda: 1
        """How many programs JAX has compiled: another number means that there may be a new one."""
        self.programs = 0
        """How many programs there were at the last look: 1, or SEVERAL."""
        self.each = 0.0
        """FLOPs of a call, as of the last look."""
        self._size = 0
        self._look_at_s = 0.0

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Count a call that may be of another program than the last one looked at."""
        try:
            size = self.count_programs()
            if size != self._size or perf_counter() >= self._look_at_s:
                self._look(size, args, kwargs)
        except Exception as error:  # noqa: BLE001  # the job's own call has succeeded
            self.each = 0.0
            reason = f"cannot be counted: {type(error).__name__}: {error}"
            note(self.flops, self.function, UNKNOWN, reason)
        self.flops.tracked += self.each

    def _look(self, size: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Find what this call costs; 0, with a note, when unknown."""
        # The first one, also after the job cleared the cache, differs from none.
        is_first, before = size < self._size or self._size == 0, self.each
        self._size = size
        self.programs = size if size == 1 else SEVERAL
        started_s = perf_counter()
        try:
            call = cost(self.function, args, kwargs)
            if call.code is not None:
                note(self.flops, self.function, call.code, call.note)
            self.each = call.flops or 0.0
        finally:
            ended_s = perf_counter()
            self._look_at_s = ended_s + (ended_s - started_s) / SHARE
        if self.each != before and not is_first:
            note(self.flops, self.function, ESTIMATED, ESTIMATE)

    def note_trace(self, trace: Any) -> None:
        """Note that a call is not counted, unless it is compiled into a program that may be tracked
        itself.
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


def note(flops: Flops, function: Any, code: str, reason: str) -> None:
    """Publish what is wrong with the count of a function's FLOPs. Raises nothing."""
    try:
        name = str(getattr(function, "__name__", None) or type(function).__name__)
    except Exception:  # noqa: BLE001  # an object of the job's may raise anything
        name = "?"
    flops.notes.setdefault(code, f"track({name}): {reason}")


def _core() -> Any | None:
    """The module of JAX that knows whether it is tracing; None without a JAX that does."""
    core = sys.modules.get("jax._src.core")
    if hasattr(core, "eval_trace") and hasattr(getattr(core, "trace_ctx", None), "trace"):
        return core
    return _OldCore(core) if hasattr(core, "trace_state_clean") else None


class _OldCore:
    """In place of a core that has other names: asks it, which takes longer."""

    eval_trace = True

    def __init__(self, core: Any) -> None:
        self._core = core
        self.trace_ctx = self

    @property
    def trace(self) -> bool:
        return bool(self._core.trace_state_clean())
