"""FLOPs of a traced program: its matrix products and convolutions, loops multiplied out.

XLA's own count takes the body of a loop once, however often it runs: of a model whose layers are a
scan, that is one layer. Only what a jaxpr shows is used here, by name; nothing of JAX is imported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple


class Count(NamedTuple):
    """What was found in a program, or in a part of it."""

    flops: float = 0.0
    has_loops: bool = False
    """A product stands in a loop."""
    is_endless: bool = False
    """A product stands in a loop whose length is not known beforehand."""
    has_opaque: bool = False
    """There is a kernel that does not tell its FLOPs."""

    def times(self, factor: float, *, is_loop: bool = False, is_endless: bool = False) -> Count:
        """That often, perhaps in a loop."""
        is_loop = is_loop and self.flops > 0
        return Count(
            self.flops * factor,
            self.has_loops or is_loop,
            self.is_endless or (is_endless and is_loop),
            self.has_opaque,
        )

    def plus(self, other: Count) -> Count:
        """Both."""
        return Count(self.flops + other.flops, *_either(self, other))

    def or_else(self, other: Count) -> Count:
        """One of the two, nobody knows which: the dearer."""
        return Count(max(self.flops, other.flops), *_either(self, other))


def count(jaxpr: Any) -> Count:
    """The FLOPs of a program as traced: of all devices together, before XLA divides it among them.

    Raises what an unknown JAX may raise.
    """
    return _program(jaxpr, {})


def _program(jaxpr: Any, known: dict[int, Count]) -> Count:
    """Of one jaxpr. A function that is called twice is one jaxpr, and looked at once."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    if id(jaxpr) not in known:
        known[id(jaxpr)] = reduce(Count.plus, (_equation(e, known) for e in jaxpr.eqns), Count())
    return known[id(jaxpr)]


def _equation(equation: Any, known: dict[int, Count]) -> Count:
    name, params = equation.primitive.name, equation.params
    own = _OWN.get(name)
    if own is not None:
        return own(equation)
    join = Count.or_else if name == "cond" else Count.plus
    total = reduce(join, (_program(inner, known) for inner in _inner(params)), Count())
    if name == "scan":
        return total.times(params["length"], is_loop=params["length"] > 1)
    if name == "while":
        return total.times(1, is_loop=True, is_endless=True)
    if name == "shard_map":
        return total.times(_shards(params))
    return total


def _either(a: Count, b: Count) -> Iterator[bool]:
    return (x or y for x, y in zip(a[1:], b[1:], strict=True))


def _inner(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if hasattr(getattr(item, "jaxpr", item), "eqns"):
                yield item


def _shards(params: dict[str, Any]) -> int:
    """How many devices run the body: those along the axes that it sees divided."""
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
            # Groups divide what is summed up: each sum runs over its own group.
            groups = equation.outvars[0].aval.shape[0]
            return Count(2.0 * _size(equation.outvars[0]) * inner / max(1, groups))
    return Count(2.0 * _size(equation.outvars[0]) * inner)


def _convolution(equation: Any) -> Count:
    params, kernel = equation.params, equation.invars[1].aval.shape
    per_output = math.prod(kernel) / max(1, kernel[params["dimension_numbers"].rhs_spec[0]])
    # A dilated input is mostly zeros, which nobody multiplies.
    return Count(
        2.0 * _size(equation.outvars[0]) * per_output / math.prod(params["lhs_dilation"] or (1,))
    )


def _kernel(equation: Any) -> Count:
    """A Pallas kernel tells what it costs, or nothing."""
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
