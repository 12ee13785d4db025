"""Chips at their places in the torus of a slice, and the links between them. No I/O, no clock."""

from typing import NamedTuple

Coords = tuple[int, int, int]
Wraps = tuple[bool, bool, bool]
"""Whether the ends of each axis are joined."""


class TorusChip(NamedTuple):
    """A chip, or a device of one, at its place."""

    coords: Coords
    host: str
    """Its host's name: chips of one host are outlined together."""
    name: str
    ratio: float | None
    """The chosen quantity, 0 to 1; None where it is unknown."""
    is_old: bool = False
    """The ratio is of a reading that is too old to count: it is gray."""
    mark: str = ""
    """`*` on a straggler's host, `!` for a warning, `x` on a host that is not heard of."""
    key: object = None
    """The name of its selection: opaque to those who draw."""
    facts: str = ""
    """One line about it: its figures, its bad links, what its host does."""


class TorusLink(NamedTuple):
    """A link between two neighbors."""

    a: Coords
    b: Coords
    health: int | None
    """0 healthy, 1 to 5 passing faults, 6 to 9 a lasting one, 10 unusable; None is unknown."""


class Torus(NamedTuple):
    """Chips of one slice. Places without a chip that is known are missing: they are not drawn."""

    size: Coords | None
    """That of the whole slice; None where that is unknown."""
    wraps: Wraps | None
    """None is unknown."""
    chips: tuple[TorusChip, ...]
    links: tuple[TorusLink, ...]
    notes: tuple[str, ...]
    """Unknown things in sentences: chips without coordinates, links without health."""
    warnings: tuple[str, ...] = ()
    """Bad things in sentences: links with faults, by their names."""
    title: str = ""
    """Whose chips they are: `slice of pid 4321: 16 processes, 16 live`."""
    job: int | None = None
    """The number of that job, where it has several hosts."""
