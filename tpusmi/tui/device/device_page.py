"""The device page: one device, its history, and everything measured of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from textual.geometry import Size

from tpusmi.merge.roofline import roofline
from tpusmi.model import Device, Process, Snapshot
from tpusmi.tui.device.chip_limits import rates, roofline_block
from tpusmi.tui.device.device_facts import DeviceFacts
from tpusmi.tui.device.device_graphs import DeviceGraphs
from tpusmi.tui.device.device_title import title
from tpusmi.tui.draw import blocks
from tpusmi.tui.draw.blocks import Block
from tpusmi.tui.draw.graphs import GRAPHED, Drawn, filed
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.page import AROUND, Sheet, sheet_keys, stepped
from tpusmi.tui.scene import Scene

KEYS = sheet_keys("device", "device")


class DevicePage(Sheet):
    """One device."""

    NAME = "device"
    KEYS = KEYS
    BINDINGS = [*KEYS]  # noqa: RUF012  # Textual's name and type

    @property
    def targets(self) -> tuple[Process, ...]:
        """Who has the device, and not who was chosen elsewhere."""
        return self.scene.owners

    def graphed(self, snapshot: Snapshot) -> tuple[object, Iterable[Drawn]]:
        """The device goes by its number: it gets another key when a job's agent tells of it."""
        device = self.scene.device
        if device is None:
            return None, ()
        return device.index, ((filed(snapshot, device, name), name) for name in GRAPHED)

    def draw_body(self, snapshot: Snapshot) -> None:
        device = self.scene.device
        if device is None:
            self.lines.show([self.look.line(("There is no device on this host.", "warn"))])
            return
        if device.owners and self.scene.process_key not in device.owners:
            self.scene.process_key = device.owners[0]  # whose job the job page is to show
        size = Size(self.size.width, max(0, self.size.height - AROUND))
        found = draw(self.scene, snapshot, device, self.span_s(snapshot), self.top, size)
        self.top, self.screen_lines = found.scrolled, found.page
        self.lines.show(found.rows)

    def action_step(self, step: int) -> None:
        """Show the device that many further on."""
        device, s = self.scene.device, self.scene.snapshot
        if device is not None and s is not None:
            self.scene.device_key = stepped([d.key for d in s.devices], device.key, step)
            self.draw()


GRAPHS_FROM = 16
"""Lines below the title from which on there are graphs."""
LEAST_GRAPHS = 9
ROOMY = 36
"""From so many lines on there is a plot of the roofline."""
MOST_MISSING = 2
"""Lines about what nobody measures."""
MOST_FACTS = 0.45
"""Facts take wide columns as long as they fill no more of the page than that."""


class DeviceView(NamedTuple):
    """The page, and how far its facts can be scrolled."""

    rows: list[Row]
    scrolled: int
    page: int
    """Lines of facts that are visible."""


def draw(
    scene: Scene, s: Snapshot, d: Device, span_s: int, scrolled: int, size: Size
) -> DeviceView:
    """All lines of the page, `scrolled` lines of facts further down."""
    look, (width, height) = scene.look, size
    graphs = DeviceGraphs(scene, s, d, span_s)
    head = title(look, s, d, width)
    missing = _missing(look, graphs.missing(), width)
    room = max(0, height - len(head) - len(missing) - 1)
    packed = _packed(look, s, d, width, room, is_past=scene.back_s > 0)
    facts = blocks.drawn(look, packed, width)
    pictures = graphs.lines(width, _graph_lines(graphs.count, room, len(facts)))
    page = room - len(pictures)
    scrolled = min(max(scrolled, 0), max(0, len(facts) - page))
    between = _between(look, len(facts) - page - scrolled, scrolled, width)
    shown = [*head, *pictures, *missing, between, *facts[scrolled : scrolled + page]]
    return DeviceView(shown[:height], scrolled, max(1, page))


def _graph_lines(count: int, room: int, facts: int) -> int:
    """Graphs get what the facts leave over, and a part of the page in any case."""
    if not count or room < GRAPHS_FROM:
        return 0
    return max(room - facts, min(LEAST_GRAPHS, room // 2))


def _packed(
    look: Look, s: Snapshot, d: Device, width: int, room: int, *, is_past: bool
) -> list[list[Block]]:
    """The facts in columns: in wide ones, with their sources, if that does not take too much."""
    chip = rates(look, s, d)
    roof = roofline_block(look, roofline(s, d), roomy=room >= ROOMY)
    told = DeviceFacts(look, s, d, is_past=is_past).blocks()
    found = [*told[:3], *(b for b in (chip,) if b), *told[3:], *(b for b in (roof,) if b)]
    wide = blocks.packed(found, blocks.fitting(len(found), width, blocks.WIDE))
    if blocks.height_of(wide) <= room * MOST_FACTS:
        return wide
    return blocks.packed(found, blocks.fitting(len(found), width))


def _missing(look: Look, text: str, width: int) -> list[Row]:
    """What is not drawn above."""
    lines = look.wrapped(text, width, "dim") if text else []
    return lines[:MOST_MISSING]


def _between(look: Look, below: int, above: int, width: int) -> Row:
    """How many lines of facts do not fit, at the right."""
    g = look.glyphs
    parts = [f"{g.up} {above}"] if above > 0 else []
    parts += [f"{g.down} {below} more: PgDn"] if below > 0 else []
    return look.cell(" ".join(parts), width, "dim", right=True)
