"""The figures of a chip, of one here and of one on another host. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from tpusmi.chips import by_kind
from tpusmi.model import Device, Link, Snapshot
from tpusmi.model.slice_hosts import SliceDevice, SliceProcess
from tpusmi.model.states import SliceState
from tpusmi.model.torus import Coords
from tpusmi.report import rows, words
from tpusmi.report.concerns import MARK, SILENT, STRAGGLES
from tpusmi.report.quantities import DUTY, HBM, MXU, OF_TORUS, THROTTLE
from tpusmi.text import counted

LINKS_MOST = 6
"""Links of a chip that are named: no chip has more."""
NAMED_MOST = 6
"""Chips with bad links that a sentence names."""
IDLE_LEAST_S = 1.0
"""Shorter pauses are those between two steps."""
OLD = " (old)"
"""Behind a figure whose reading is too old to count."""


def ratio_elsewhere(d: SliceDevice, metric: str) -> float | None:
    """The quantity of a device of another host, 0 to 1, as its agent says; None if unknown."""
    if metric == HBM.metric:
        used, limit = d.hbm_used_bytes, d.hbm_limit_bytes
        return None if used is None or not limit else used / limit
    percent: float | None = getattr(d, metric, None)
    return None if percent is None else percent / 100


def facts(s: Snapshot, d: Device) -> Iterator[str]:
    """The bad links of a device of this host, and its figures."""
    yield from bad_links(s.links_of(d))
    memory = rows.memory(s, d)
    if memory.used is not None or memory.limit is not None:
        is_old = memory.used is not None and memory.used.stale
        yield f"HBM {memory.text}{OLD if is_old else ''}"
    for quantity in OF_TORUS[1:]:
        share, is_old = rows.share(s, d, quantity.metric)
        if share is not None and (share or quantity != THROTTLE):
            yield f"{quantity.word} {words.percent(100 * share)}{OLD if is_old else ''}"
    idle = s.value("idle_s", d.key)
    if idle is not None and idle >= IDLE_LEAST_S:
        yield f"idle {words.idle(idle)}"


def bad_links(links: Iterable[Link]) -> Iterator[str]:
    """`ici0 health 7` for each of these links of a chip that has a fault."""
    bad = [link for link in links if link.health]
    for link in bad[:LINKS_MOST]:
        yield f"{link.port} health {link.health}"
    if len(bad) > LINKS_MOST:
        yield f"{len(bad) - LINKS_MOST} more"


def about_bad_links(names: Mapping[Coords, str]) -> tuple[str, ...]:
    """A sentence about chips with bad links, each with their names; empty without any."""
    named = [names[coords] for coords in sorted(names)]
    left = len(named) - NAMED_MOST
    more = [counted(left, "more chip")] if left > 0 else []
    return (f"Bad links: {'; '.join([*named[:NAMED_MOST], *more])}.",) if named else ()


def name_elsewhere(h: SliceProcess, number: int) -> str:
    """What every screen calls that device of another host: `tpu:13`."""
    d = h.devices[number]
    is_tpu = by_kind(h.kind or "") is not None or d.coords is not None
    platform = "tpu" if is_tpu else "cpu" if h.kind == "cpu" else "device"
    return f"{platform}:{number if d.id is None else d.id}"


def host_name(h: SliceProcess) -> str:
    """The name of its host; the number of the process where that is unknown."""
    return h.name or f"process {h.process_index}"


def mark(h: SliceProcess, slow: Collection[int]) -> str:
    """The mark of the devices of a process, empty for none. `slow`: the numbers of stragglers."""
    if h.state != SliceState.LIVE:
        return SILENT
    if h.process_index in slow:
        return STRAGGLES
    return MARK if h.warnings else ""


def facts_elsewhere(d: SliceDevice) -> Iterator[str]:
    """The figures of a device of another host."""
    if d.hbm_used_bytes is not None or d.hbm_limit_bytes is not None:
        yield f"HBM {words.size_pair(d.hbm_used_bytes, d.hbm_limit_bytes)}"
    for quantity in (MXU, DUTY):
        if (share := ratio_elsewhere(d, quantity.metric)) is not None:
            yield f"{quantity.word} {words.percent(100 * share)}"
    if d.idle_s is not None and d.idle_s >= IDLE_LEAST_S:
        yield f"idle {words.idle(d.idle_s)}"


def facts_of_host(h: SliceProcess) -> Iterator[str]:
    """What the process does that has the device, and its warnings."""
    yield h.state if h.state != SliceState.LIVE else h.phase or h.state
    if h.step_time_s is not None:
        yield f"step {words.duration(h.step_time_s)}"
    if h.is_old:
        yield f"{words.elapsed(h.data_age_s)} old"
    yield from h.warnings
