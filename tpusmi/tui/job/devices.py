"""The devices of one job, a line each, and another job, for a page with room for them. Pure."""

from __future__ import annotations

from tpusmi.model import Device, Process, Snapshot, Value
from tpusmi.report import rows, words
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.job.graphs import SHARES
from tpusmi.tui.main.detail import About, Details

MEMORY_WIDTH = len("123.4/~192.0 GiB") + 1
_TITLES = f"{'DEVICE':<8}{'MEMORY':>{MEMORY_WIDTH}}" + "".join(
    f"{name.upper():>11}" for name, _ in SHARES
)


def device_lines(look: Look, s: Snapshot, p: Process, width: int, room: int) -> list[Row]:
    """All of them under a title, or nothing where there is no room for all."""
    devices = s.devices_of(p.key)
    if not devices or len(devices) + 2 > room:
        return []
    return [(), look.cell(_TITLES, width, "head"), *(_line(look, s, d) for d in devices)]


def other_job(look: Look, s: Snapshot, p: Process, width: int, room: int) -> list[Row]:
    """Details of the next living process, as on the main page; nothing without room for all."""
    at = next((n for n, other in enumerate(s.processes) if other.key == p.key), 0)
    order = (*s.processes[at + 1 :], *s.processes[:at])
    other = next((o for o in order if not o.is_dead and o.is_verified), None)
    if other is None:
        return []
    numbers = [d.number for d in s.devices_of(other.key)]
    about = About(words.ranges(numbers) if numbers else "")
    details = Details(look, s, other, about, width)
    return [(), *details.lines(details.wanted)] if details.wanted < room else []


def _line(look: Look, s: Snapshot, d: Device) -> Row:
    memory = rows.memory(s, d)
    text = rows.DITTO if memory.repeats else memory.text
    parts = [(f"{d.name:<8}", "bold"), (f"{text:>{MEMORY_WIDTH}}", _style(memory.used))]
    for _, metric in SHARES:
        found = rows.shown(s, d, metric)
        value = words.percent(found.value.value if found.value else None)
        parts.append((f"{rows.DITTO if found.repeats else value:>11}", _style(found.value)))
    return look.line(*parts)


def _style(v: Value | None) -> str:
    return "dim" if v is not None and v.stale else "plain"
