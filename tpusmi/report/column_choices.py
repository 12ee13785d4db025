"""Which columns a user can choose, and sort by. Pure."""

from collections.abc import Sequence

from tpusmi.report.columns import DEVICE_COLUMNS, PROCESS_COLUMNS, ColumnSpec


def _titles(columns: Sequence[ColumnSpec]) -> tuple[str, ...]:
    """Titles in words, without those that are a mark."""
    return tuple(c.title for c in columns if any(map(str.isalpha, c.title)))


CHOICES = {
    "devices": _titles([c for c in DEVICE_COLUMNS if c.title != "DEVICE"]),
    "processes": _titles([c for c in PROCESS_COLUMNS if c.title not in ("S", "PID")]),
}
"""By table, the titles that a user can choose, in their order on the screen. The others say what a
row is about, and are always there.
"""
SORTED_BY = _titles([c for c in PROCESS_COLUMNS if c.get is not None])
"""Titles of the columns that processes can be sorted by."""
