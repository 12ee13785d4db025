"""What the memory profile of a process lists: lines of code and what they keep alive.

No I/O, no clock.
"""

from collections.abc import Mapping
from typing import NamedTuple

Place = tuple[str, str, int]
"""A line of code: function, file, line."""


class Site(NamedTuple):
    """A line of code and what it keeps alive on all devices together."""

    function: str
    file: str
    line: int
    kind: str
    """`buffer` or `executable`."""
    bytes: int | None
    """None when the backend does not know the size (executables on a TPU)."""
    count: int  # type: ignore[assignment]  # hides tuple.count
    growth_bytes_per_s: float | None = None
    """How fast it grows; None until that is known, and for programs."""


class Allocation(NamedTuple):
    """What a line of code keeps alive on one device."""

    function: str
    file: str
    line: int
    kind: str
    """`buffer` or `executable`."""
    device: int | None
    """Global id, as JAX says; None where the profile names no device."""
    bytes: int | None
    """None when the backend does not know the size (executables on a TPU)."""
    count: int  # type: ignore[assignment]  # hides tuple.count


class MemoryProfile(NamedTuple):
    """The newest device memory profile of a process, largest sites first."""

    at_s: float
    sites: tuple[Site, ...]
    allocations: tuple[Allocation, ...] = ()
    """The same by device, largest first; empty unless asked for."""
    allocations_left_out_bytes: int | None = 0
    """Bytes of the smallest, which the list has no room for; None when unknown."""
    allocations_left_out_count: int | None = 0
    rates: Mapping[Place, float | None] = {}
    """How fast lines grow on all devices together, in bytes per second. None: not known yet."""

    @property
    def rated_sites(self) -> tuple[Site, ...]:
        """The sites with how fast they grow."""
        rates = self.rates
        if not rates:
            return self.sites
        return tuple(
            s if s.bytes is None else s._replace(growth_bytes_per_s=rates.get(s[:3]))
            for s in self.sites
        )
