"""The devices of a slice as cells of a heat map. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tpusmi.merge.slice_notices import stragglers
from tpusmi.model.slice_hosts import Slice, SliceProcess
from tpusmi.report.quantities import MFU
from tpusmi.report.slice_table import HostOrder
from tpusmi.report.torus import chip_facts
from tpusmi.tui.draw.heat_cells import HeatCell


def cells(s: Slice, order: HostOrder, metric: str) -> list[HeatCell]:
    """A cell for each device, host by host in that order; old where the host is silent."""
    slow = stragglers(s)
    return [cell for h in sorted(s.hosts, key=order.key) for cell in _cells_of(s, h, metric, slow)]


def labels(s: Slice) -> dict[object, str]:
    """The host of each cell; with the number of the process where a host has several."""
    count = Counter(h.name for h in s.hosts)
    return {
        (s.job, h.process_index, number): h.name
        if h.name and count[h.name] == 1
        else f"{h.name} process {h.process_index}".strip()
        for h in s.hosts
        for number in range(len(h.devices))
    }


def facts(s: Slice, key: object) -> str:
    """Everything that is known of the device under the cursor; empty where it is gone."""
    for h in s.hosts:
        for number, d in enumerate(h.devices):
            if key == (s.job, h.process_index, number):
                known = (*chip_facts.facts_elsewhere(d), *chip_facts.facts_of_host(h))
                text = ", ".join((*known, f"process {h.process_index}"))
                return f"{_name(h, number)}: {text}"
    return ""


def _cells_of(s: Slice, h: SliceProcess, metric: str, slow: set[int]) -> Iterator[HeatCell]:
    of_process = None if h.mfu_percent is None else h.mfu_percent / 100
    for number, d in enumerate(h.devices):
        yield HeatCell(
            key=(s.job, h.process_index, number),
            name=_name(h, number),
            ratio=of_process if metric == MFU.metric else chip_facts.ratio_elsewhere(d, metric),
            mark=chip_facts.mark(h, slow),
            is_old=h.is_old,
        )


def _name(h: SliceProcess, number: int) -> str:
    return f"{chip_facts.host_name(h)} {chip_facts.name_elsewhere(h, number)}"
