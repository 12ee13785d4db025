"""The slices of a snapshot as tables of HTML: a row for each host, of very many the worst."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpusmi.model.slice_hosts import Slice
from tpusmi.report import slice_table
from tpusmi.report.columns import ColumnSpec
from tpusmi.report.markup import OLD, Markup, tag
from tpusmi.report.text_grid import fitting
from tpusmi.text import counted

TEXT_ROOM = 24
"""The most characters of a text, as the style has them."""


def slices(of: Iterable[Slice], room: int) -> Iterator[Markup]:
    """A headline and a table for each, in that many characters; gray where a host is silent."""
    for x in of:
        yield from _slice(x, room)


def _slice(x: Slice, room: int) -> Iterator[Markup]:
    columns, hosts = slice_table.rows_of(x)
    visible = slice_table.worst(hosts, slice_table.PLAIN_MOST)
    needs = [
        _need(column, [column.title, *(row.cells[n] for row in visible)])
        for n, column in enumerate(columns)
    ]
    kept = fitting(columns, needs, room, gap=2)
    titles = tag("tr", *(tag("th", columns[n].title, class_=_side(columns[n])) for n in kept))
    rows = (
        tag(
            "tr",
            *(_cell(columns[n], row.cells[n]) for n in kept),
            class_=OLD if row.host.is_old else "",
        )
        for row in visible
    )
    yield tag("div", tag("b", slice_table.headline(x)))
    yield tag("table", titles, *rows)
    if len(visible) < len(hosts):
        yield tag("div", f"and {counted(len(hosts) - len(visible), 'more host')}")


def _need(column: ColumnSpec, texts: list[str]) -> int:
    longest = max(map(len, texts))
    return longest if column.right else min(longest, TEXT_ROOM)


def _cell(column: ColumnSpec, text: str) -> Markup:
    return tag("td", text, class_=_side(column), title=text if len(text) > TEXT_ROOM else "")


def _side(column: ColumnSpec) -> str:
    return "" if column.right else "l"
