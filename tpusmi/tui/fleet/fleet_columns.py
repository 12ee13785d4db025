"""How the columns of the tables of a fleet are drawn, and by which of them a table is sorted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpusmi.fleet.fleet_figures import HostState
from tpusmi.fleet.groups.fleet_groups import FleetGroup
from tpusmi.fleet.groups.fleet_orders import natural
from tpusmi.fleet.report.group_columns import NAME, STATE, WORST, GroupColumn, of_kind
from tpusmi.report import words
from tpusmi.tui.draw.look import Look, Row, fill_style
from tpusmi.tui.draw.table import Column, marked
from tpusmi.tui.fleet.fleet_rows import FleetRow

ORDER_TITLES = {
    "worst": (WORST, False),
    "problems": (WORST, False),
    "name": (NAME, False),
    "hosts": ("HOSTS", False),
    "chips": ("CHIPS", False),
    "memory": ("HBM", False),
    "mxu": ("MXU", True),
    "duty": ("DUTY", True),
    "bandwidth": ("BW", True),
    "idle": ("IDLE", False),
    "step": ("STEP", False),
}
"""The column of each order of `fleet_orders`, and whether the smallest is first in it."""


def letters(kind: str) -> dict[str, str]:
    """Titles of the columns of a table by the key after `o`."""
    return {c.letter: c.title for c in of_kind(kind)}


def at_start(kind: str, order: str) -> tuple[str, bool]:
    """Title of the column that a table is sorted by in an order of `fleet_orders`, and whether in
    reverse: by the worst for an order that this kind of row does not have.
    """
    title, is_reversed = ORDER_TITLES.get(order, (WORST, False))
    title = kind.upper() if title == NAME else title
    has_it = title in {c.title for c in of_kind(kind)}
    return (title, is_reversed) if has_it else (WORST, False)


def drawn(look: Look, kind: str) -> list[Column[FleetRow]]:
    """The columns of a table of jobs, slices or hosts."""
    return [_column(look, c) for c in of_kind(kind)]


def _column(look: Look, c: GroupColumn) -> Column[FleetRow]:
    def draw(row: FleetRow, width: int) -> Row:
        if c.is_share and width > c.width + 4:
            return _with_bar(look, c, row, width)
        return look.cell(_shown(c, row, width), width, _style(c, row), right=c.right)

    grows = bool(c.most) and not c.is_share
    return Column(
        title=c.title,
        draw=draw,
        width=c.width,
        rank=c.rank,
        most=c.most,
        right=c.right,
        text=(lambda row: _shown(c, row, c.most)) if grows else None,
        sort=_order(c),
        falls=c.falls,
        spare=c.spare,
        known=(lambda row: _text(c, row) not in (words.UNKNOWN, " ")) if c.optional else None,
        least_more=5 if c.is_share else 0,
        sure=c.sure,
    )


def _is_name(c: GroupColumn) -> bool:
    return c.rank == 0


def _order(c: GroupColumn) -> Callable[[FleetRow], Any]:
    """What rows are sorted by."""
    if _is_name(c):
        return lambda row: natural(row.title)
    return lambda row: c.order(_of(c, row))


def _of(c: GroupColumn, row: FleetRow) -> FleetGroup:
    """What the column is about: numbers may be the last ones."""
    return row.figures if c.is_number else row.group


def _text(c: GroupColumn, row: FleetRow) -> str:
    return row.title if _is_name(c) else c.text(_of(c, row))


def _shown(c: GroupColumn, row: FleetRow, width: int) -> str:
    text = _text(c, row)
    is_old = c.is_number and row.is_old and text != words.UNKNOWN
    return marked(text, width) if is_old else text


def _style(c: GroupColumn, row: FleetRow) -> str:
    if c.title == STATE:
        return state_style(row)
    if c.title == WORST or (c.title == "IDLE" and row.figures.idle_held_chips.value):
        return "warn"
    if _is_name(c):
        return "bold"
    return "dim" if row.is_old else "plain"


def state_style(row: FleetRow) -> str:
    """The style of its state: that of its worst host."""
    if row.group.in_state(HostState.DOWN):
        return "bad"
    is_odd = row.group.in_state(HostState.OLD) or row.group.unreported_hosts
    return "warn" if is_odd else "plain"


def _with_bar(look: Look, c: GroupColumn, row: FleetRow, width: int) -> Row:
    number = look.cell(_shown(c, row, c.width), c.width, _style(c, row), right=True)
    percent = None if row.is_old else c.order(_of(c, row))
    room = width - c.width - 1
    if percent is None:
        return (*look.cell("", room + 1, "plain"), *number)
    style = fill_style(percent / 100) if c.title == "HBM" else "graph"
    return (*look.bar(percent / 100, None, room, style), *look.line((" ", "plain")), *number)
