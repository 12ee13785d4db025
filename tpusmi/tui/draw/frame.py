"""The frame around a page that lies over the dashboard. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from tpusmi.tui.draw.look import Look, Row

MARGIN = 4
"""Columns that the frame takes: a side and a blank at the left and at the right."""
EDGES = 2
"""Lines that it takes."""


def framed(look: Look, lines: Sequence[Row], width: int, *, more: bool = False) -> list[Row]:
    """The lines in a frame `width` columns wide, cut at its sides; `more` says that lines follow
    which there is no room for.
    """
    left, across, right, down, left_below, right_below = [*look.glyphs.frame]
    inner = max(0, width - 2)
    side = look.line((down, "title"))
    rows = [look.line((left + across * inner + right, "title"))]
    for line in lines:
        padded = Strip((*look.line((" ", "plain")), *line)).adjust_cell_length(max(0, inner - 1))
        rows.append((*side, *padded, *look.line((" " * min(inner, 1), "plain")), *side))
    note = f" {look.glyphs.down} more " if more else ""
    below = (note + across).rjust(inner, across) if len(note) < inner else across * inner
    return [*rows, look.line((left_below + below + right_below, "title"))]
