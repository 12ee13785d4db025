"""The cells of a heat map: what each shows. How they are drawn is in `heat_map.py`."""

from typing import NamedTuple


class HeatCell(NamedTuple):
    """One device, chip or host."""

    key: object
    """Under which it is selected."""
    name: str
    ratio: float | None
    """0 to 1; None where it is unknown."""
    mark: str = ""
    """One character beside the number, such as the mark of a warning; empty for none."""
    is_old: bool = False
    """The ratio is of a reading that is too old to count: it is gray."""
