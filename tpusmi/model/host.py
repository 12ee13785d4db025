"""The machine that everything else is on.

No I/O, no clock.
"""

# No `from __future__ import annotations`: see `model/__init__.py`.

from typing import NamedTuple


class HostFacts(NamedTuple):
    """This machine, as the snapshot shows it. None means that it could not be read."""

    name: str
    time: str
    """RFC 3339, UTC."""
    boot_id: str | None
    container: bool | None
    libtpu_version: str | None = None
    load_averages: tuple[float, float, float] | None = None
    """Tasks that ran, wanted to or waited for a disk, over the last 1, 5 and 15 minutes."""
    cpus: int | None = None
    """Number of processors that are online."""
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    """What programs can still have without swapping, as the kernel estimates it."""
    uptime_s: float | None = None
    kernel: str | None = None
    """Release of the kernel: `6.8.0-1015-gcp`."""
    tpu_driver: str | None = None
    """Driver of the chips: `vfio-pci`."""
    tpu_driver_version: str | None = None
    """None for a driver without a version of its own."""
