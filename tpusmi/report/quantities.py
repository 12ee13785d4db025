"""The quantities that graphs, heat maps and topologies show of a device. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Quantity(NamedTuple):
    """A metric of devices as a share of its largest value."""

    name: str
    """Its name in a table."""
    label: str
    """Its name above a graph."""
    word: str
    """Its name before a number."""
    metric: str
    """Its name in the model."""
    title: str
    """What it is, in a few words."""

    @property
    def map_titles(self) -> tuple[str, ...]:
        """What a heat map of it is called, the longest first."""
        return f"{self.title} (g: next)", f"{self.name} (g: next)", self.name

    @property
    def device_titles(self) -> tuple[str, ...]:
        """The same of a map below other things than devices."""
        return *(f"DEVICES  {title}" for title in self.map_titles), self.name

    @property
    def torus_titles(self) -> tuple[str, ...]:
        """What a torus of it is called, the longest first."""
        return f"{self.title} (g: next)", f"{self.word} (g: next)", self.word


# fmt: off
QUANTITIES = HBM, MXU, DUTY, BANDWIDTH = (
    Quantity("HBM", "HBM", "HBM", "hbm_used_bytes",
        "HBM in use, % of the limit"),
    Quantity("MXU", "MXU", "MXU", "tensorcore_utilization_percent",
        "MXU, % of the peak throughput"),
    Quantity("DUTY", "duty cycle", "duty", "duty_cycle_percent",
        "duty cycle, % of the time"),
    Quantity("BW", "HBM bandwidth", "bandwidth", "hbm_bandwidth_utilization_percent",
        "HBM bandwidth, % of the peak"),
)
"""In the order in which they are chosen."""
THROTTLE = Quantity("THROTTLE", "throttled", "throttled", "throttle_percent", "throttled, %")
"""All devices of a chip have it in common."""
MFU = Quantity("MFU", "MFU", "MFU", "mfu_percent", "MFU of the process, % of the peak")
"""All devices of a process have it in common."""
ARRAYS = Quantity("ARRAYS", "live arrays", "live arrays", "live_array_bytes", "live arrays")
"""In bytes; drawn where the memory in use is not known."""
SIZES = (HBM, ARRAYS)
# fmt: on
OF_TORUS = (*QUANTITIES, THROTTLE)
OF_SLICE = HBM, DUTY, MFU
"""What agents tell each other, as a share. They do not know MXU: MFU is what stands for it."""
