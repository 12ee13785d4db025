"""The lines at the top of the device page: its names, its owners, its faults. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.model import Device, Holding, Snapshot
from tpusmi.report import rows, verdicts, words
from tpusmi.tui.device.device_facts import HEALTHY, health, links_of, short_name
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.process.process_facts import letter, verdict_style

MOST_OWNERS = 2


def title(look: Look, s: Snapshot, d: Device, width: int) -> list[Row]:
    """A line of names, a line for each owner, and a line for each fault."""
    count = len(s.devices)
    place = next((n for n, other in enumerate(s.devices, 1) if other.key == d.key), 0)
    dot = f" {look.glyphs.dot} "
    names = look.line(
        (d.name, "bold"), (f"  {place} of {count}  ", "dim"), (dot.join(_names(s, d)), "plain")
    )
    faults = [row for text in _faults(s, d) for row in look.wrapped(text, width, "bad", "! ")]
    return [names, *_owners(look, s, d), *faults]


def _names(s: Snapshot, d: Device) -> Iterator[str]:
    """The other names of the device, and where it is."""
    chip = s.chip_of(d)
    if d.kind or chip is not None:
        yield d.kind or (chip.kind if chip is not None else "")
    if d.id is not None:
        yield f"id {d.id}"
    if d.coords is not None:
        yield f"at {','.join(map(str, d.coords))}"
    if d.chip is not None:
        yield f"chip {d.chip}"
    if d.core_on_chip is not None:
        yield f"core {d.core_on_chip}"
    if d.node:
        yield d.node


def _owners(look: Look, s: Snapshot, d: Device) -> list[Row]:
    """State, pid, user and command of each owner."""
    if not d.owners:
        return [look.line((_no_owner(s, d), "dim"))]
    owners = [p for p in s.processes if p.key in d.owners]
    lines = []
    for p in owners[:MOST_OWNERS]:
        style, doubtful = verdict_style(p), p.is_doubtful
        lines.append(
            look.line(
                (f"{letter(p)} ", style),
                (f"{p.pid}", "bold"),
                (f" {p.user or words.UNKNOWN}  {words.command(p.command)}", "plain"),
                (f"  {verdicts.sentence(p)}" if doubtful else "", style),
            )
        )
    more = len(d.owners) - len(lines)
    if more or not lines:
        pids = rows.pids(d) if not lines else f"and {more} more"
        lines.append(look.line((pids, "dim")))
    return lines


def _no_owner(s: Snapshot, d: Device) -> str:
    from tpusmi.model.holding import node_states

    if d.node not in s.visibility.nodes:
        return "no known process holds it"
    state = next((n.state for n in node_states(s) if n.node == d.node), "")
    if state == Holding.FREE:
        return "free: no process holds it"
    return state.replace("_", " ") or "no known process holds it"


def _faults(s: Snapshot, d: Device) -> Iterator[str]:
    if d.error:
        yield d.error
    chip = s.chip_of(d)
    yield from chip.notes if chip is not None else ()
    for link in links_of(s, d):
        if (state := health(link.health)) != HEALTHY:
            yield f"ICI link {short_name(link.name)}: {state.word} fault ({link.health} of 10)"
