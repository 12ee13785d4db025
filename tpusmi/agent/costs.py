"""The FLOPs of a jitted function's program, found after a call of it without compiling anything.

Right after a call, `trace`, `lower` and `compile` find their results in JAX's own caches, for
donated and sharded arguments too. Where the compiled program is not there, nobody asks for it: a
second compilation may take minutes.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

from tpusmi.agent import traced

UNKNOWN, INCOMPLETE = "flops_unknown", "flops_incomplete"


class Cost(NamedTuple):
    """FLOPs of one call, of all devices together; None when unknown."""

    flops: float | None
    code: str | None = None
    note: str = ""
    """Why they are unknown, or what they leave out."""


def has_costs(function: Any) -> bool:
    """True for what JAX compiles: a jitted function, a pmap, a compiled object."""
    return _is_jitted(function) or _is_pmap(function) or hasattr(function, "runtime_executable")


def cost(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cost:
    """What a call that has just succeeded costs. Raises what JAX raises."""
    if _is_jitted(function):
        if type(function).__name__ == "PmapFunction":  # until JAX 0.7; lowering it traces it again
            return Cost(None, UNKNOWN, "is a pmap, whose costs this JAX does not tell")
        return _of_jitted(function.trace(*args, **kwargs))
    if _is_pmap(function):
        return _unseen_loops(_of_lowered(function.lower(*args, **kwargs)))
    return _unseen_loops(_of_compiled(function))


def _is_jitted(function: Any) -> bool:
    # Other libraries have their own jit, whose lower() traces the function once more.
    return str(type(function).__module__).startswith("jaxlib") and hasattr(function, "trace")


def _is_pmap(function: Any) -> bool:
    """A pmap since JAX 0.7 is a function with a `lower` of JAX."""
    module = getattr(getattr(function, "lower", None), "__module__", None)
    return isinstance(module, str) and module.startswith("jax.")


def _of_jitted(program: Any) -> Cost:
    """XLA's count; where it would count the body of a loop once, the count of what was traced."""
    found = traced.count(program.jaxpr)
    if found.is_endless:
        return Cost(None, UNKNOWN, "multiplies matrices inside a loop of unknown length")
    flops = found.flops if found.has_loops else _of_lowered(program.lower())
    if flops is None:
        flops = found.flops or None
    if flops is None:
        return Cost(None, UNKNOWN, "has no costs that XLA tells")
    if found.has_opaque:
        return Cost(flops, INCOMPLETE, "calls kernels that do not tell their FLOPs")
    return Cost(flops)


def _unseen_loops(flops: float | None) -> Cost:
    if flops is None:
        return Cost(None, UNKNOWN, "has no costs that XLA tells")
    return Cost(flops, INCOMPLETE, "does not show its loops: XLA counts the body of one once")


def _of_lowered(lowered: Any) -> float | None:
    """None when the program would have to be compiled for it."""
    if getattr(getattr(lowered, "_lowering", None), "_executable", None) is None:
        return None
    return _of_compiled(lowered.compile())


def _of_compiled(compiled: Any) -> float | None:
    """XLA counts what one device does."""
    try:
        costs = compiled.cost_analysis()
    except Exception:  # noqa: BLE001  # a plugin raises what it likes
        return None
    if isinstance(costs, list):
        costs = costs[0] if costs else None
    flops = costs.get("flops") if isinstance(costs, dict) else None
    if not isinstance(flops, float | int) or not 0 <= flops < math.inf:
        return None
    return float(flops) * _devices(compiled)


def _devices(compiled: Any) -> int:
    """How many devices the program runs on, those of other processes included."""
    shardings = sys.modules["jax"].tree_util.tree_leaves(
        (compiled.input_shardings, compiled.output_shardings)
    )
    return max((len(s.device_set) for s in shardings if hasattr(s, "device_set")), default=1)
