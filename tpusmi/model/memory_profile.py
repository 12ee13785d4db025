"""What the lines of a job's code keep alive on its devices. No I/O."""

# No `from __future__ import annotations`: see `model/__init__.py`.

from typing import NamedTuple


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
