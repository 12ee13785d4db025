"""Where the chips of a host are in its slice, by the environment of a job that holds them. Pure.

The variables are another user's words: none of them is believed to be sensible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from operator import lt
from typing import NamedTuple

from tpusmi import chips
from tpusmi.chips import Generation
from tpusmi.model.torus import Coords, Wraps

AXIS_MOST = 256
"""More chips than any axis of a slice has: larger coordinates make no sense."""
_BOUNDS = re.compile(r"([0-9]{1,3})[x,]([0-9]{1,3})(?:[x,]([0-9]{1,3}))?")
_FLAGS = re.compile(r"(?:true|false|1|0)(?:[x,](?:true|false|1|0)){1,2}", re.IGNORECASE)

Environment = Mapping[str, str]


class Placement(NamedTuple):
    """Where a host is in its slice."""

    places: tuple[Coords, ...]
    """The place of each chip of the host, in their order; empty if unknown."""
    reason: str
    """Why that is not known, in a sentence; empty if it is."""


def bounds(text: str | None) -> Coords | None:
    """The numbers of `4x4x8`, `16x16` or `2,2,1`; None for anything else."""
    match = _BOUNDS.fullmatch(text.strip()) if text and len(text) < 16 else None
    if match is None:
        return None
    x, y, z = int(match[1]), int(match[2]), int(match[3] or 1)
    return (x, y, z) if all(1 <= n <= AXIS_MOST for n in (x, y, z)) else None


def sizes_of(environment: Environment) -> tuple[Coords, ...]:
    """What the size of the slice may be: the topology, and the bounds that split it among
    processes, which some launchers set for one host alone.
    """
    each = bounds(environment.get("TPU_CHIPS_PER_PROCESS_BOUNDS"))
    processes = bounds(environment.get("TPU_PROCESS_BOUNDS"))
    split = None
    if each is not None and processes is not None:
        x, y, z = (a * b for a, b in zip(each, processes, strict=True))
        split = (x, y, z)
    return tuple(size for size in (bounds(environment.get("TPU_TOPOLOGY")), split) if size)


def size_around(places: Iterable[Coords], sizes: Sequence[Coords]) -> Coords | None:
    """The first of those sizes that has all places; None if none has."""
    most = [max(axis, default=0) for axis in zip(*places, strict=True)]
    return next((size for size in sizes if all(map(lt, most, size))), None)


def wraps_of(environment: Environment) -> Wraps | None:
    """Whether the ends of each axis are joined, as `true,true,false` says it; None if unknown."""
    text = environment.get("TPU_TOPOLOGY_WRAP") or environment.get("WRAP") or ""
    if len(text) > 32 or not _FLAGS.fullmatch(text):
        return None
    x, y, *z = (flag.lower() in ("true", "1") for flag in re.split("[x,]", text))
    return x, y, bool(z and z[0])


def wrap_text(wraps: Wraps | None) -> str | None:
    """The same as a label: `true,true,false`. None where it is unknown."""
    return None if wraps is None else ",".join("true" if joined else "false" for joined in wraps)


def placement(
    environment: Environment, size: Coords | None, generation: Generation | None, local: int
) -> Placement:
    """Where the `local` chips of a host are in a slice of that size, if nothing but the environment
    of its job says so.

    Hosts and the chips in them are in order, x before y before z: so libtpu numbers them.
    """
    if size is None:
        return Placement((), _no_size(environment))
    if prod(size) < local:
        return Placement((), f"{axes_text(size)} chips are fewer than this host has")
    shape = size if prod(size) == local else _host_shape(environment, generation, local)
    if shape is None or any(a % b for a, b in zip(size, shape, strict=True)):
        return Placement((), f"the shape of a host with {local} chips is unknown")
    worker = _worker(environment, prod(size) // prod(shape))
    if worker is None:
        return Placement((), "TPU_WORKER_ID does not say which host of it this is")
    return Placement(_of_host(size, shape, worker), "")


def _no_size(environment: Environment) -> str:
    if environment.get("TPU_TOPOLOGY"):
        return "TPU_TOPOLOGY cannot be read"
    return "no agent reports them, and TPU_TOPOLOGY is not in the environment of the job"


def axes_text(size: Coords) -> str:
    """`4x4x8`"""
    return "x".join(map(str, size))


def _host_shape(
    environment: Environment, generation: Generation | None, local: int
) -> Coords | None:
    """How the chips of each host stand."""
    names = ("TPU_CHIPS_PER_HOST_BOUNDS", "CHIPS_PER_HOST_BOUNDS")
    own = next((shape for name in names if (shape := bounds(environment.get(name)))), None)
    if own is not None:
        return own if prod(own) == local else None
    shapes = () if generation is None else generation.host_shapes
    return next((shape for shape in shapes if prod(shape) == local), None)


def _worker(environment: Environment, hosts: int) -> int | None:
    """The number of the host in the slice."""
    if hosts == 1:
        return 0
    text = environment.get("TPU_WORKER_ID", "")
    is_number = text.isascii() and text.isdigit() and len(text) < 7
    return int(text) if is_number and int(text) < hosts else None


def _of_host(size: Coords, shape: Coords, worker: int) -> tuple[Coords, ...]:
    across, along = size[0] // shape[0], size[1] // shape[1]
    x0, y0 = worker % across * shape[0], worker // across % along * shape[1]
    z0 = worker // across // along * shape[2]
    return tuple(
        (x0 + x, y0 + y, z0 + z)
        for z in range(shape[2])
        for y in range(shape[1])
        for x in range(shape[0])
    )


def sensible(coords: tuple[int, ...] | None) -> Coords | None:
    """Coordinates in three dimensions; None if unknown, or if no slice has such a place."""
    if coords is None or not 1 <= len(coords) <= 3 or not all(0 <= n < AXIS_MOST for n in coords):
        return None
    x, y, z = (*coords, 0, 0)[:3]
    return x, y, z


def generation_of(kind: str | None) -> Generation | None:
    """The generation of that kind of device; None if unknown."""
    return None if kind is None else chips.by_kind(kind)
