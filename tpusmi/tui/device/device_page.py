"""The device page: one device, its history, and everything measured of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpusmi.merge.roofline import roofline
from tpusmi.model import Device, Holding, Process, Snapshot
from tpusmi.report import rows, verdicts, words
from tpusmi.report.concerns import OF_VERDICT, Concerns
from tpusmi.tui.device.chip_limits import rates, roofline_block
from tpusmi.tui.device.device_facts import DeviceFacts
from tpusmi.tui.device.device_graphs import DeviceGraphs
from tpusmi.tui.device.device_programs import network, programs
from tpusmi.tui.draw import blocks
from tpusmi.tui.draw.blocks import Block
from tpusmi.tui.draw.graphs import GRAPHED, Drawn, history_subjects
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.notice_lines import below_verdict, notice_rows
from tpusmi.tui.page import AROUND, ScrollPage, scroll_keys, stepped
from tpusmi.tui.process.process_facts import letter, verdict_style

KEYS = scroll_keys("device", "device")
GRAPHS_FROM = 16
"""Least lines below the title for graphs to be drawn."""
LEAST_GRAPHS = 9
ROOMY = 36
"""Least lines below the title for a plot of the roofline."""
MOST_MISSING = 2
"""Lines about missing measurements."""
MOST_FACTS = 0.45
"""Facts take wide columns if they then fill no more than this share of the page."""


class DevicePage(ScrollPage):
    """One device."""

    NAME = "device"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    @property
    def targets(self) -> tuple[Process, ...]:
        """The owners of the device, whatever process is selected elsewhere."""
        return self.scene.owners

    def graphed(self, snapshot: Snapshot) -> tuple[object, Iterable[Drawn]]:
        """The device by its number: its key changes when a job's agent reports it."""
        device = self.scene.device
        if device is None:
            return None, ()
        return device.index, ((history_subjects(snapshot, device, name), name) for name in GRAPHED)

    def on_screen_resume(self) -> None:
        self.scene.watch_programs(True)
        super().on_screen_resume()

    def on_screen_suspend(self) -> None:
        """Programs are asked for only while this page shows them: that costs the job something."""
        self.scene.watch_programs(False)

    def draw_body(self, snapshot: Snapshot) -> None:
        device = self.scene.device
        if device is None:
            self.lines.show([self.look.line(("No device on this host", "warn"))])
            return
        if device.owners and self.scene.process_key not in device.owners:
            self.scene.process_key = device.owners[0]  # whose job the job page is to show
        self._draw_device(snapshot, device)

    def _draw_device(self, s: Snapshot, d: Device) -> None:
        look, width, height = self.look, self.size.width, max(0, self.size.height - AROUND)
        graphs = DeviceGraphs(self.scene, s, d, self.span_s(s))
        head, text = title(look, s, d, width), graphs.missing()
        missing = look.wrapped(text, width, "dim")[:MOST_MISSING] if text else []
        room = max(0, height - len(head) - len(missing) - 1)
        packed = _packed(look, s, d, width, room, is_past=self.scene.back_s > 0)
        facts = blocks.drawn(look, packed, width)
        pictures = graphs.lines(width, _graph_lines(len(graphs.drawn), room, len(facts)))
        page = room - len(pictures)
        self.top = min(self.top, max(0, len(facts) - page))
        self.screen_lines = max(1, page)
        between = _between(look, len(facts) - page - self.top, self.top, width)
        lines = [*head, *pictures, *missing, between, *facts[self.top : self.top + page]]
        self.lines.show(lines[:height])

    def action_step(self, step: int) -> None:
        """Show the device that many steps away."""
        device, s = self.scene.device, self.scene.snapshot
        if device is not None and s is not None:
            self.scene.device_key = stepped([d.key for d in s.devices], device.key, step)
            self.draw()


def _graph_lines(count: int, room: int, facts: int) -> int:
    """Lines for graphs: what the facts leave over, and a part of the page in any case."""
    if not count or room < GRAPHS_FROM:
        return 0
    return max(room - facts, min(LEAST_GRAPHS, room // 2))


def _packed(
    look: Look, s: Snapshot, d: Device, width: int, room: int, *, is_past: bool
) -> list[list[Block]]:
    """The facts in columns: wide ones, with their sources, if that does not take too much room."""
    chip = rates(look, s, d)
    roof = roofline_block(look, roofline(s, d), roomy=room >= ROOMY)
    facts = DeviceFacts(look, s, d, is_past=is_past).blocks()
    runs, net = programs(look, s, d), network(look, s)
    all_blocks = [b for b in (*facts[:3], chip, *facts[3:], runs, roof, net) if b is not None]
    count = len(all_blocks)
    wide = blocks.packed(all_blocks, blocks.fitting(count, width, blocks.WIDE))
    if blocks.height_of(wide) <= room * MOST_FACTS:
        return wide
    return blocks.packed(all_blocks, blocks.fitting(count, width))


def _between(look: Look, below: int, above: int, width: int) -> Row:
    """How many lines of facts are out of sight, at the right."""
    g = look.glyphs
    parts = [f"{g.up} {above}"] if above > 0 else []
    parts += [f"{g.down} {below} more: PgDn"] if below > 0 else []
    return look.cell(" ".join(parts), width, "dim", right=True)


MOST_OWNERS = 2


def title(look: Look, s: Snapshot, d: Device, width: int) -> list[Row]:
    """A line of names, a line for each owner, and a line for each fault."""
    count = len(s.devices)
    place = next((n for n, other in enumerate(s.devices, 1) if other.key == d.key), 0)
    dot = f" {look.glyphs.dot} "
    names = look.line(
        (d.name, "bold"), (f"  {place} of {count}  ", "dim"), (dot.join(_names(s, d)), "plain")
    )
    error = look.wrapped(d.error, width, "bad", "! ") if d.error else []
    # The lines of the owners have the verdict: it needs only what to do.
    drawn = {code: below_verdict for code in OF_VERDICT}
    of_device = Concerns(s).of_device(d)
    notices = [row for n in of_device for row in drawn.get(n.code, notice_rows)(look, n, width)]
    return [names, *_owners(look, s, d), *error, *notices]


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
