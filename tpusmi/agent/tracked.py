"""A callable to use in place of a jitted function: the same, and its calls are counted in FLOPs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

from tpusmi.agent.costs import UNKNOWN, cost
from tpusmi.agent.flops import Flops

SIGNATURES_MOST = 256
"""Of one function; a call of another one counts like the newest."""
KEYED = -1
"""In place of a number of compiled programs: calls are told apart by their arguments."""


class Tracked:
    """Calls the function and counts the call.

    While all programs of the function cost the same, one look at how many there are is all that a
    call needs. Only when two differ, a sequence length for example, is each call told by the
    shapes of its arguments.
    """

    def __init__(self, function: Callable[..., Any], flops: Flops) -> None:
        self._function = function
        self._sum = flops
        size = getattr(function, "_cache_size", None)
        self._size: Callable[[], int] = size if callable(size) else _one
        self._seen = 0
        """How many compiled programs there were when the function was last looked at."""
        self._each = 0.0
        self._by_signature: dict[Any, float] = {}
        for name in ("__doc__", "__module__"):  # the class has its own
            self.__dict__[name] = getattr(function, name, None)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        result = self._function(*args, **kwargs)
        # Inside jit, grad or vmap nothing is computed, it is only traced.
        if _is_top_level():
            if self._size() == self._seen:
                self._sum.tracked += self._each
            else:
                self._count(args, kwargs)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_function"], name)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"tpusmi.track({self._function!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._function,)

    def _count(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Count a call that may be of a program not seen before. Raises nothing."""
        try:
            if self._seen != KEYED:
                size, flops = self._size(), self._cost(args, kwargs)
                self._seen = size if self._seen == 0 or flops == self._each else KEYED
                self._each = flops
            else:
                flops = self._cost_by_signature(args, kwargs)
            self._sum.tracked += flops
        except Exception as error:  # noqa: BLE001  # the job's own call has succeeded
            self._note(UNKNOWN, f"cannot be counted: {type(error).__name__}: {error}")
            self._seen, self._each = self._size(), 0.0

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
            self._note(found.code, found.note)
        return found.flops or 0.0

    def _note(self, code: str, reason: str) -> None:
        name = getattr(self._function, "__name__", None) or type(self._function).__name__
        self._sum.note(code, f"track({name}): {reason}; tell step(flops=) instead")


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


def _again(function: Callable[..., Any]) -> Any:
    """A copy in another process counts there."""
    from tpusmi.agent import track

    return track(function)


def _find_top_level() -> bool:
    """True when JAX is not tracing. The first call finds how this JAX tells, if there is one."""
    global _is_top_level
    core = sys.modules.get("jax._src.core")
    if core is None:
        return True
    _is_top_level = getattr(core, "trace_state_clean", _never)
    return _is_top_level()


def _never() -> bool:
    """Without a way to tell, nothing is counted: unknown is better than wrong."""
    return False


_is_top_level: Callable[[], bool] = _find_top_level
