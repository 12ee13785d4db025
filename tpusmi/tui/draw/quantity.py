"""What graphs and heat maps show of a device. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Quantity(NamedTuple):
    """What a graph or a heat map shows of each device."""

    name: str
    metric: str
    title: str


QUANTITIES = (
    Quantity("HBM", "hbm_used_bytes", "HBM in use, % of the limit"),
    Quantity("MXU", "tensorcore_utilization_percent", "MXU, % of the peak throughput"),
    Quantity("DUTY", "duty_cycle_percent", "duty cycle, % of the time"),
    Quantity("BW", "hbm_bandwidth_utilization_percent", "HBM bandwidth, % of the peak"),
)
GRAPHED = (*(quantity.metric for quantity in QUANTITIES), "live_array_bytes")
"""What graphs of devices are of: live arrays where nobody tells the memory in use."""
