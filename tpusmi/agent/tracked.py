"""A callable to use in place of a jitted function: the same, and its calls are counted in FLOPs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from tpusmi.agent.costs import UNKNOWN, cost, has_costs
from tpusmi.agent.flops import Flops

SIGNATURES_MOST = 256
"""Of one function; a call of another one counts like the newest."""
KEYED = -1
"""In place of a number of compiled programs: calls are told apart by their arguments."""


def tracked(function: Callable[..., Any], flops: Flops) -> Callable[..., Any]:
    """The function, its calls counted; the function itself, and a note, where that cannot be.

    A closure and not an object with `__call__`, which would cost a third more at each call.
    """
    core = _core()
    if core is None or not has_costs(function):
        _note(flops, function, UNKNOWN, "is no jitted function")
        return function
    programs = _Programs(function, flops)
    size, seen, each = programs.size, 0, 0.0

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal seen, each
        result = function(*args, **kwargs)
        # Inside jit, grad or vmap nothing is computed, it is only traced.
        if core.trace_ctx.trace is core.eval_trace:
            if size() == seen:
                flops.tracked += each
            else:
                each, seen = programs.count(args, kwargs)
        return result

    return _like(call, function)


class _Programs:
    """The compiled programs of a function, and what a call of each costs.

    While all cost the same, one look at how many there are is all that a call needs. Only when two
    differ, a sequence length for example, is each call told by the shapes of its arguments.
    """

    def __init__(self, function: Callable[..., Any], flops: Flops) -> None:
        self._function = function
        self._flops = flops
        size = getattr(function, "_cache_size", None)
        self.size: Callable[[], int] = size if callable(size) else _one
        self._seen = 0
        self._each = 0.0
        self._by_signature: dict[Any, float] = {}

    def count(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[float, int]:
        """Count a call that may be of a program not seen before. Raises nothing.

        What the next call costs if there are still as many programs: the cost and their number.
        """
        try:
            if self._seen != KEYED:
                size, flops = self.size(), self._cost(args, kwargs)
                self._seen = size if self._seen == 0 or flops == self._each else KEYED
                self._each = flops
            else:
                flops = self._cost_by_signature(args, kwargs)
            self._flops.tracked += flops
        except Exception as error:  # noqa: BLE001  # the job's own call has succeeded
            reason = f"cannot be counted: {type(error).__name__}: {error}"
            _note(self._flops, self._function, UNKNOWN, reason)
            self._seen, self._each = self.size(), 0.0
        return self._each, self._seen

    def _cost_by_signature(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
        known = self._by_signature
        signature = _signature(args, kwargs)
        flops = known.get(signature)
        if flops is None:
            if len(known) >= SIGNATURES_MOST:
                return self._each
            flops = known[signature] = self._each = self._cost(args, kwargs)
        return flops

    def _cost(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
        """FLOPs of one such call; 0, with a warning published, when unknown."""
        found = cost(self._function, args, kwargs)
        if found.code is not None:
            _note(self._flops, self._function, found.code, found.note)
        return found.flops or 0.0


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


def _like(call: Any, function: Any) -> Callable[..., Any]:
    """Give the call everything that a jitted function has: `lower`, `clear_cache`, its names."""
    functools.update_wrapper(call, function)
    for name in dir(function):
        if not name.startswith("__") or name == "__wrapped__":
            try:
                setattr(call, name, getattr(function, name))
            except Exception:  # noqa: BLE001  # a property of a compiled object that it has not
                continue
    call.tpusmi_tracked = True
    return call  # type: ignore[no-any-return]


def _note(flops: Flops, function: Any, code: str, reason: str) -> None:
    name = getattr(function, "__name__", None) or type(function).__name__
    flops.note(code, f"track({name}): {reason}; tell step(flops=) instead")


def _signature(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a program is compiled for, as far as its FLOPs depend on it."""
    leaves, tree = sys.modules["jax"].tree_util.tree_flatten((args, kwargs))
    return tree, tuple(map(_kind, leaves))


def _kind(leaf: Any) -> Any:
    shape = getattr(leaf, "shape", None)
    if shape is not None:
        return shape, getattr(leaf, "dtype", None)
    # A number may be a static argument, say of layers; a float is a rate that changes every call.
    return type(leaf), None if isinstance(leaf, float | complex) else leaf


def _one() -> int:
    return 1
