"""The links between neighbors in a torus, and how bad each can be at worst. Pure.

libtpu names the links of a chip (`ici0`, `ici1`, …) and does not say where each of them leads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tpusmi.model.torus import Coords, TorusLink, Wraps

SHORTEST = 3
"""Chips on the shortest axis whose ends have a link of their own: of two chips, each is the other's
neighbor already.
"""


def between_neighbors(
    places: Collection[Coords],
    worst: Mapping[Coords, int],
    size: Coords | None = None,
    wraps: Wraps | None = None,
) -> tuple[TorusLink, ...]:
    """A link for each pair of neighbors among those places. `worst` has the health of the worst
    link of each chip of which that is known.
    """
    present = set(places)
    return tuple(
        TorusLink(a=place, b=other, health=at_worst(worst.get(place), worst.get(other)))
        for place in sorted(present)
        for other in _after(place, size, wraps)
        if other in present
    )


def at_worst(a: int | None, b: int | None) -> int | None:
    """How bad a link between two chips can be, by the worst link of each: it is healthy if all
    links of one of them are, and no worse than the better of the two. None if only one is known,
    and has a fault: that may be of another link.
    """
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else min(a, b)


def _after(place: Coords, size: Coords | None, wraps: Wraps | None) -> Iterator[Coords]:
    """The next place on each axis. After the last one on an axis with joined ends comes the
    first.
    """
    for axis in range(3):
        step = place[axis] + 1
        if size is not None and step == size[axis]:
            if wraps is None or not wraps[axis] or step < SHORTEST:
                continue
            step = 0
        x, y, z = (step if n == axis else at for n, at in enumerate(place))
        yield x, y, z
