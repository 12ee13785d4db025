"""What tells the programs of one jitted function apart: the kinds of a call's arguments.

A kind is a hash of shapes, dtypes and static values. It keeps nothing of the job alive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

Kinds = dict[Any, int]
"""Of each argument, by its place or its name."""


class Arguments:
    """How the arguments of one function are told apart."""

    def __init__(self, function: Any) -> None:
        info = getattr(function, "_jit_info", None)
        self._static_places: Sequence[int] = getattr(info, "static_argnums", ())
        self._static_names: Sequence[str] = getattr(info, "static_argnames", ())
        self._is_static_known = info is not None

    def kinds(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Kinds:
        """Of all arguments of a call."""
        return self.some(args, kwargs, [*range(len(args)), *kwargs])

    def some(self, args: tuple[Any, ...], kwargs: dict[str, Any], names: Iterable[Any]) -> Kinds:
        """Of those arguments only, as far as the call has them."""
        static = {i % len(args) for i in self._static_places} if args else set()
        found = {}
        for name in names:
            if isinstance(name, int):
                if name < len(args):
                    found[name] = self._kind(args[name], name in static)
            elif name in kwargs:
                found[name] = self._kind(kwargs[name], name in self._static_names)
        return found

    def _kind(self, argument: Any, is_static: bool) -> int:
        if is_static:
            return _of_static(argument)
        of_leaf = _of_leaf if self._is_static_known else _of_unknown_leaf
        if isinstance(getattr(argument, "shape", None), tuple):
            return of_leaf(argument)  # the usual batch: no tree to look through
        leaves, tree = sys.modules["jax"].tree_util.tree_flatten(argument)
        return hash((tree, tuple(map(of_leaf, leaves))))


def places_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """A hash of where the arrays lie: two programs of the same shapes may differ in that alone."""
    leaves = sys.modules["jax"].tree_util.tree_leaves((args, kwargs))
    return hash(tuple(map(_place, leaves)))


def _of_static(value: Any) -> int:
    try:
        return hash((type(value), value))
    except Exception:  # noqa: BLE001  # a hash of the job's own; JAX has accepted the call
        return hash(type(value))


def _of_leaf(leaf: Any) -> int:
    """A number that is no static argument is not part of the program."""
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if dtype is not None and isinstance(shape, tuple):
        return hash((shape, dtype))
    return hash(type(leaf))


def _of_unknown_leaf(leaf: Any) -> int:
    """Where JAX does not say what is static: a float is a rate that changes at every call."""
    if hasattr(leaf, "dtype") or isinstance(leaf, float | complex):
        return _of_leaf(leaf)
    return _of_static(leaf)


def _place(leaf: Any) -> Any:
    sharding = getattr(leaf, "sharding", None)
    weak = getattr(leaf, "weak_type", None)
    return type(leaf), weak, getattr(leaf, "_committed", None), sharding
