"""What the graphs of the device page are of, and the line above each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.segment import Segment

from tpusmi.chips import peak_hbm_bytes_per_s_per_device
from tpusmi.model import Device, Snapshot
from tpusmi.report import rows, words
from tpusmi.tui.device.rates import generation_of
from tpusmi.tui.draw.cells import age
from tpusmi.tui.draw.look import Look, Row, width_of

SIZE_WIDTH, PERCENT_WIDTH = 11, 7
"""Of a present value, with the blank before it."""

USED, LIVE, BANDWIDTH = "hbm_used_bytes", "live_array_bytes", "hbm_bandwidth_utilization_percent"
SIZES = (USED, LIVE)


class Drawn(NamedTuple):
    """One graph."""

    name: str
    metric: str


HBM, ARRAYS = Drawn("HBM", USED), Drawn("live arrays", LIVE)
SHARES = (
    Drawn("MXU", "tensorcore_utilization_percent"),
    Drawn("duty cycle", "duty_cycle_percent"),
    Drawn("HBM bandwidth", BANDWIDTH),
)


def title(
    look: Look, s: Snapshot, d: Device, g: Drawn, values: Sequence[float | None], width: int
) -> Row:
    """Name, present value, and as much else as there is room for. `values` are the graph's."""
    found = rows.shown(s, d, g.metric).value
    read, value_width = (
        (words.size, SIZE_WIDTH) if g.metric in SIZES else (words.percent, PERCENT_WIDTH)
    )
    style = "dim" if found is not None and found.stale else "bold"
    value = look.fitted(read(None if found is None else found.value), value_width, right=True)
    row = look.line((g.name, "title"), (value, style))
    gap = "  "
    for remark in _remarks(s, d, g, values):
        if width_of(row) + len(gap) + len(remark) > width:
            break
        row = (*row, *look.line((gap + remark, "dim")))
        gap = f" {look.glyphs.dot} "
    return tuple(Segment.adjust_line_length(list(row), width, look.style["plain"]))


def _remarks(s: Snapshot, d: Device, g: Drawn, values: Sequence[float | None]) -> Iterator[str]:
    """What else is to be said, the most important first."""
    found = rows.shown(s, d, g.metric).value
    own = (d.key, g.metric) in s.values
    if found is not None and found.stale:
        yield f"{age(found.age_s)} old"
    if found is not None and not own:
        yield f"{rows.DITTO} of the chip"
    if g.metric == USED:
        yield from _of_memory(s, d)
    if g.metric not in SIZES:
        yield from _over(values)
    generation = generation_of(s, d)
    if g.metric == BANDWIDTH and found is not None and generation is not None:
        most = peak_hbm_bytes_per_s_per_device(generation) if own else generation.hbm_bytes_per_s
        whole = f"{most / 1e9:.0f}"
        yield f"{most * found.value / 1e11:{len(whole)}.0f} of {whole} GB/s"


def _of_memory(s: Snapshot, d: Device) -> Iterator[str]:
    memory = rows.memory(s, d)
    if memory.share is not None and memory.limit is not None:
        yield f"{100 * memory.share:3.0f} % of {words.size(memory.limit.value)}"
    if memory.peak is not None:
        yield f"peak {words.size(memory.peak.value)}"


def _over(values: Sequence[float | None]) -> Iterator[str]:
    """What the graph says in numbers."""
    known = [v for v in values if v is not None]
    if known:
        yield f"mean {sum(known) / len(known):3.0f} %"
        yield f"most {max(known):3.0f} %"
