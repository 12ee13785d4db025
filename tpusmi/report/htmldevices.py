"""The devices of a Snapshot in HTML: a row for each, or a heat map where they are many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tpusmi.model import Device, Snapshot, Value
from tpusmi.report import rows, words
from tpusmi.report.markup import (
    MAP_COLUMNS,
    OLD,
    Markup,
    filled,
    fullness,
    joined,
    old,
    tag,
    tint,
)

ROWS_MOST = 32
"""More devices than these are a heat map."""
_SHARES = {
    "MXU": "tensorcore_utilization_percent",
    "DUTY": "duty_cycle_percent",
    "BW": "hbm_bandwidth_utilization_percent",
}


def devices(s: Snapshot) -> Markup:
    """The table or the heat map, with the averages of all; empty when there is no device."""
    if not s.devices:
        return Markup("")
    if len(s.devices) > ROWS_MOST:
        return joined((_maps(s), tag("div", _summary(s))))
    heads = [tag("th", title, class_="l") for title in ("DEVICE", "HBM")]
    heads += [tag("th", title) for title in ("USED/LIMIT", *_SHARES, "IDLE")]
    body = [_row(s, d) for d in s.devices]
    if len(s.devices) > 1:
        body.append(_averages(s))
    return tag("table", tag("tr", *heads), *body)


def _row(s: Snapshot, d: Device) -> Markup:
    about = (d.kind, rows.node(d), f"pid {rows.pids(d)}" if d.owners else "")
    name = tag("td", d.name, class_="l", title=", ".join(filter(None, about)))
    memory = rows.memory(s, d)
    shares = (_share(s, d, metric) for metric in _SHARES.values())
    idle = tag("td", _text(rows.shown(s, d, "idle_s"), words.idle), class_="n")
    return tag("tr", name, _bar(memory), tag("td", _used(s, d, memory)), *shares, idle)


def _bar(memory: rows.Memory) -> Markup:
    share = memory.share
    if share is None or memory.used is None or memory.used.stale or memory.repeats:
        return tag("td", class_="m")
    title = "" if memory.peak is None else f"peak {words.size(memory.peak.value)}"
    look = filled(share, memory.peak_share)
    return tag("td", class_=f"m {fullness(share)}", style=look, title=title)


def _used(s: Snapshot, d: Device, memory: rows.Memory) -> str:
    """Used of limit; what is live, and said so, where nobody tells the former."""
    if memory.repeats:
        return rows.DITTO
    if memory.used is not None:
        is_old, age_s = memory.used.stale, memory.used.age_s
        return old(memory.text, age_s) if is_old else memory.text
    live = s.values.get((d.key, "live_array_bytes"))
    if live is None:
        return d.error or memory.text
    text = f"{words.size(live.value)} live"
    return old(text, live.age_s) if live.stale else text


def _share(s: Snapshot, d: Device, metric: str) -> Markup:
    found = rows.shown(s, d, metric)
    value = found.value
    is_drawn = value is not None and not (found.repeats or value.stale)
    look = filled(value.value / 100) if value is not None and is_drawn else ""
    return tag("td", _text(found, words.percent), class_="n", style=look)


def _text(found: rows.Shown, read: Callable[[float | None], str]) -> str:
    """The value as a person reads it: grey with its age when it is old."""
    if found.repeats:
        return rows.DITTO
    value = found.value
    text = read(None if value is None else value.value)
    return old(text, value.age_s) if value is not None and value.stale else text


def _averages(s: Snapshot) -> Markup:
    name = tag("td", f"all {len(s.devices)}", class_="l")
    numbers = ("", _all_memory(s), *(_mean(s, metric) for metric in _SHARES.values()), "")
    return tag("tr", name, *(tag("td", text) for text in numbers), class_="all")


def _summary(s: Snapshot) -> str:
    """The averages as a line."""
    shares = [f"{title} {_mean(s, metric)}" for title, metric in _SHARES.items()]
    return " · ".join((f"all {len(s.devices)}: HBM {_all_memory(s)}", *shares))


def _mean(s: Snapshot, metric: str) -> str:
    """Over the devices that tell, and how many those are when not all do."""
    found = [rows.shown(s, d, metric).value for d in s.devices]
    known = [v.value for v in found if v is not None and not v.stale]
    text = words.percent(sum(known) / len(known) if known else None)
    return text + _of(len(known), len(found))


def _all_memory(s: Snapshot) -> str:
    """Used and limit of all devices that tell both; what is a whole chip's is counted once."""
    found = [rows.memory(s, d) for d in s.devices]
    known = [m for m in found if m.share is not None and m.used is not None and not m.used.stale]
    once = [m for m in known if not m.repeats]
    used = sum(m.used.value for m in once if m.used is not None)
    limit = sum(m.limit.value for m in once if m.limit is not None)
    text = words.size_pair(used, limit) if once else words.UNKNOWN
    return text + _of(len(known), len(found))


def _of(known: int, every: int) -> str:
    return f" ({known} of {every})" if 0 < known < every else ""


def _maps(s: Snapshot) -> Markup:
    """How full and how busy, a small cell for each device."""
    busy = next((t for t in _SHARES if any(_is_known(s, d, t) for d in s.devices)), "MXU")
    memory = _map(s.devices, "HBM, % of the limit", (_memory_cell(s, d) for d in s.devices))
    shares = _map(s.devices, f"{busy}, %", (_busy_cell(s, d, busy) for d in s.devices))
    return tag("div", memory, shares, class_="maps")


def _is_known(s: Snapshot, d: Device, title: str) -> bool:
    return rows.shown(s, d, _SHARES[title]).value is not None


def _map(of: tuple[Device, ...], title: str, cells: Iterable[Markup]) -> Markup:
    # Blanks are for who sees the text without its style.
    grid = tag("div", joined(_labelled(of, cells), " "), class_="map")
    return tag("div", tag("b", title), grid)


def _labelled(of: tuple[Device, ...], cells: Iterable[Markup]) -> Iterator[Markup]:
    """The cells, with the name of the first device in front of each line."""
    for i, cell in enumerate(cells):
        if i % MAP_COLUMNS == 0:
            yield tag("span", of[i].name)
        yield cell


def _memory_cell(s: Snapshot, d: Device) -> Markup:
    memory = rows.memory(s, d)
    return _cell(f"{d.name} {memory.text}", memory.share, memory.used, fullness(memory.share or 0))


def _busy_cell(s: Snapshot, d: Device, title: str) -> Markup:
    found = {t: rows.shown(s, d, metric).value for t, metric in _SHARES.items()}
    about = [f"{t} {words.percent(v.value)}" for t, v in found.items() if v is not None]
    idle = rows.shown(s, d, "idle_s").value
    about += [] if idle is None else [f"idle {words.idle(idle.value)}"]
    value = found[title]
    share = None if value is None else value.value / 100
    return _cell(" ".join((d.name, *about)), share, value, "")


def _cell(title: str, share: float | None, value: Value | None, look: str) -> Markup:
    """One device: a number on a colour; a dash where nobody knows, grey where it is old."""
    if share is None or value is None:
        return tag("i", words.UNKNOWN, title=title)
    text = f"{100 * share:.0f}"
    if value.stale:
        return tag("i", text, title=f"{title} ({value.age_s:.0f} s old)", class_=OLD)
    return tag("i", text, title=title, class_=look, style=tint(share))
