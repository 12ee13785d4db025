"""What the dashboard of a fleet starts with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tpusmi.fleet.groups.group_members import JOB


class FleetOptions(NamedTuple):
    """Options from the command line and the settings file. Those of a dashboard of one host mean
    the same.
    """

    interval_s: float = 5.0
    ascii: bool = False
    color: bool = True
    theme: str | None = None
    colors: Mapping[str, str] = {}
    terminal_colors: int = 1 << 24
    keys: Mapping[str, str] = {}
    group: str = JOB
    """One of GROUPINGS."""
    sort: str = ""
    """Title of the column to sort by; empty for the worst first."""
    reverse: bool = False
    filter: str = ""
    quantity: str = ""
    """`HBM`, `MXU`, `DUTY` or `BW`: what heat maps and the topology show at the start."""
    heat: bool = False
    """Start with the heat map."""
    span_s: int | None = None
    """The span of graphs at the start."""
