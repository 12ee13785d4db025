"""How the device page shares its lines: who it is, graphs, and facts in columns. Pure."""

from __future__ import annotations

from typing import NamedTuple

from textual.geometry import Size

from tpusmi.merge.roofline import roofline
from tpusmi.model import Device, Snapshot
from tpusmi.tui.device import roofline_plot
from tpusmi.tui.device.facts import DeviceFacts
from tpusmi.tui.device.graphs import DeviceGraphs
from tpusmi.tui.device.rates import rates
from tpusmi.tui.device.title import title
from tpusmi.tui.draw import blocks
from tpusmi.tui.draw.blocks import Block
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.scene import Scene

GRAPHS_FROM = 16
"""Lines below the title from which on there are graphs."""
LEAST_GRAPHS = 9
ROOMY = 36
"""From so many lines on there is a plot of the roofline."""
MOST_MISSING = 2
"""Lines about what nobody measures."""
MOST_FACTS = 0.45
"""Facts take wide columns as long as they fill no more of the page than that."""


class Drawn(NamedTuple):
    """The page, and how far its facts can be scrolled."""

    rows: list[Row]
    scrolled: int
    page: int
    """Lines of facts that are visible."""


def draw(scene: Scene, s: Snapshot, d: Device, span_s: int, scrolled: int, size: Size) -> Drawn:
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
    return Drawn(shown[:height], scrolled, max(1, page))


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
    roof = roofline_plot.block(look, roofline(s, d), roomy=room >= ROOMY)
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
