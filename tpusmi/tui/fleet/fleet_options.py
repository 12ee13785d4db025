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
    """One of ORDERS; empty for the worst first."""
    filter: str = ""
    at_s: float | None = None
    """The Unix time that is shown at the start; None for now."""
