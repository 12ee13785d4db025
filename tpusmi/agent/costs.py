"""The FLOPs of a jitted function's program, found after a call of it without compiling anything.

Right after a call, `trace`, `lower` and `compile` find their results in JAX's own caches, for
donated and sharded arguments as well. Where the compiled program is not there, it is not asked for:
a second compilation may take minutes.

XLA counts the body of a loop once, however often it runs: of a model whose layers are a scan, that
is one layer. So a program with loops is counted as traced: its matrix products and convolutions,
loops multiplied out. Only the jaxpr is looked at, by names; nothing of JAX is imported.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

UNKNOWN, INCOMPLETE, ESTIMATED = "flops_unknown", "flops_incomplete", "flops_estimated"


class Cost(NamedTuple):
    """FLOPs of one call, of all devices together; None when unknown."""

    flops: float | None
    code: str | None = None
    note: str = ""
    """Why the FLOPs are unknown, or which ones are left out."""


def has_costs(function: Any) -> bool:
    """True for a jitted function, a pmap, and a compiled object."""
    return _is_jitted(function) or _is_pmap(function) or hasattr(function, "runtime_executable")


def cost(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Cost:
    """The cost of a call that has just succeeded. Raises what JAX raises."""
    if _is_jitted(function):
        if type(function).__name__ == "PmapFunction":  # until JAX 0.7; lowering it traces it again
            return Cost(None, UNKNOWN, "is a pmap, whose costs this JAX does not report")
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
    """XLA's count; where XLA would count the body of a loop once, that of the traced program."""
    traced = count(program.jaxpr)
    if traced.is_endless:
        return Cost(None, UNKNOWN, "multiplies matrices inside a loop of unknown length")
    flops = traced.flops if traced.has_loops else _of_lowered(program.lower())
    if flops is None:
        flops = traced.flops or None
    if flops is None:
        return Cost(None, UNKNOWN, "has no costs that XLA reports")
    if traced.has_opaque:
        return Cost(flops, INCOMPLETE, "calls kernels that do not report their FLOPs")
    return Cost(flops)


def _unseen_loops(flops: float | None) -> Cost:
    if flops is None:
        return Cost(None, UNKNOWN, "has no costs that XLA reports")
    return Cost(flops, INCOMPLETE, "does not show its loops: XLA counts the body of one once")


def _of_lowered(lowered: Any) -> float | None:
    """None when the program would have to be compiled for it."""
    if getattr(getattr(lowered, "_lowering", None), "_executable", None) is None:
        return None
    return _of_compiled(lowered.compile())


def _of_compiled(compiled: Any) -> float | None:
    """XLA's count for one device, times the devices."""
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
    """How many devices the program runs on, in this process and others."""
    shardings = sys.modules["jax"].tree_util.tree_leaves(
        (compiled.input_shardings, compiled.output_shardings)
    )
    return max((len(s.device_set) for s in shardings if hasattr(s, "device_set")), default=1)


class Count(NamedTuple):
    """The products in a program, or in a part of it."""

    flops: float = 0.0
    has_loops: bool = False
    """True when there is a product in a loop."""
    is_endless: bool = False
    """True when there is a product in a loop of unknown length."""
    has_opaque: bool = False
    """True when there is a kernel that does not report its FLOPs."""

    def times(self, factor: float, *, is_loop: bool = False, is_endless: bool = False) -> Count:
        """The same, repeated: perhaps by a loop."""
        is_loop = is_loop and self.flops > 0
        return self._replace(
            flops=self.flops * factor,
            has_loops=self.has_loops or is_loop,
            is_endless=self.is_endless or (is_endless and is_loop),
        )

    def plus(self, other: Count) -> Count:
        """Both, one after the other."""
        return self._with_flags(other, self.flops + other.flops)

    def or_else(self, other: Count) -> Count:
        """One of the two, and it is not known which: the one with more FLOPs."""
        return self._with_flags(other, max(self.flops, other.flops))

    def _with_flags(self, other: Count, flops: float) -> Count:
        return Count(
            flops,
            has_loops=self.has_loops or other.has_loops,
            is_endless=self.is_endless or other.is_endless,
            has_opaque=self.has_opaque or other.has_opaque,
        )


def count(jaxpr: Any) -> Count:
    """The FLOPs of a program as traced: of all devices together, before XLA divides it among them.

    Raises what an unknown JAX may raise.
    """
    return _program(jaxpr, {})


def _program(jaxpr: Any, counts: dict[int, Count]) -> Count:
    """The count of one jaxpr. A function that is called twice is one jaxpr, and looked at once."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    if id(jaxpr) not in counts:
        counts[id(jaxpr)] = reduce(Count.plus, (_equation(e, counts) for e in jaxpr.eqns), Count())
    return counts[id(jaxpr)]


def _equation(equation: Any, counts: dict[int, Count]) -> Count:
    name, params = equation.primitive.name, equation.params
    own = _OWN.get(name)
    if own is not None:
        return own(equation)
    join = Count.or_else if name == "cond" else Count.plus
    total = reduce(join, (_program(inner, counts) for inner in _inner(params)), Count())
    if name == "scan":
        return total.times(params["length"], is_loop=params["length"] > 1)
    if name == "while":
        return total.times(1, is_loop=True, is_endless=True)
    if name == "shard_map":
        return total.times(_shards(params))
    return total


def _inner(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if hasattr(getattr(item, "jaxpr", item), "eqns"):
                yield item


def _shards(params: dict[str, Any]) -> int:
    """How many devices run the body: the devices along the axes that it sees divided."""
    sizes = dict(params["mesh"].shape)
    manual = params.get("manual_axes")
    if manual is None:
        manual = sizes.keys() - params.get("auto", ())
    return math.prod(sizes[axis] for axis in manual)


def _product(equation: Any) -> Count:
    (contracted, _), _ = equation.params["dimension_numbers"]
    shape = equation.invars[0].aval.shape
    return Count(2.0 * _size(equation.outvars[0]) * math.prod(shape[i] for i in contracted))


def _ragged_product(equation: Any) -> Count:
    """Every row meets the matrix of its group only."""
    dimensions = equation.params.get("ragged_dot_dimension_numbers")
    if dimensions is None:
        inner = equation.invars[0].aval.shape[-1]
    else:
        (contracted, _), _ = dimensions.dot_dimension_numbers
        inner = math.prod(equation.invars[0].aval.shape[i] for i in contracted)
        if set(dimensions.lhs_ragged_dimensions) & set(contracted):
            # Groups divide the summed dimension: each sum runs over its own group.
            groups = equation.outvars[0].aval.shape[0]
            return Count(2.0 * _size(equation.outvars[0]) * inner / max(1, groups))
    return Count(2.0 * _size(equation.outvars[0]) * inner)


def _convolution(equation: Any) -> Count:
    params, kernel = equation.params, equation.invars[1].aval.shape
    per_output = math.prod(kernel) / max(1, kernel[params["dimension_numbers"].rhs_spec[0]])
    # A dilated input is mostly zeros, which are not multiplied.
    return Count(
        2.0 * _size(equation.outvars[0]) * per_output / math.prod(params["lhs_dilation"] or (1,))
    )


def _kernel(equation: Any) -> Count:
    """A Pallas kernel, which may report its cost."""
    flops = getattr(equation.params.get("cost_estimate"), "flops", None)
    return Count(has_opaque=True) if flops is None else Count(float(flops))


def _size(variable: Any) -> int:
    return math.prod(variable.aval.shape)


_OWN = {
    "dot_general": _product,
    "ragged_dot": _ragged_product,
    "ragged_dot_general": _ragged_product,
    "conv_general_dilated": _convolution,
    "pallas_call": _kernel,
}
