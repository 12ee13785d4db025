"""Tori whose chips have their number as their quantity."""

from __future__ import annotations

from collections.abc import Mapping

from tpusmi.model.torus import Coords, Torus, TorusChip
from tpusmi.report.torus.neighbor_links import Wraps, between_neighbors


def torus(
    size: Coords,
    host: Coords = (2, 2, 1),
    devices: int = 1,
    wraps: Wraps | None = None,
    worst: Mapping[Coords, int] | None = None,
) -> Torus:
    """All chips of that size, with healthy links unless `worst` says otherwise."""
    places = [(x, y, z) for z in range(size[2]) for y in range(size[1]) for x in range(size[0])]
    numbered = ((place, core) for place in places for core in range(devices))
    chips = tuple(
        TorusChip(
            coords=place,
            host=str(tuple(a // b for a, b in zip(place, host, strict=True))),
            name=f"tpu:{n}",
            ratio=n % 100 / 100,
            key=n,
        )
        for n, (place, _) in enumerate(numbered)
    )
    healthy = dict.fromkeys(places, 0)
    links = between_neighbors(places, healthy if worst is None else worst, size, wraps)
    return Torus(size=size, wraps=wraps, chips=chips, links=links, notes=())
