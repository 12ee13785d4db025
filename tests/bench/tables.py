"""CPU time of a tick of our Grid and of Textual's DataTable: why the dashboard has its own tables.

    python tests/bench/tables.py

One column of 12 changes in each of 256 rows, on a screen of 160x50. It prints; it never asserts.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from textual.app import App, ComposeResult
from textual.widgets import DataTable

from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.table import Column, Grid

ROWS, COLUMNS, CHANGING, WIDTH, TICKS = 256, 12, 5, 8, 30


class Item(NamedTuple):
    """A row at one tick."""

    key: int
    tick: int

    def text(self, column: int) -> str:
        """The cell of a column."""
        number = self.key * 7 + column * 13 + self.tick * (column == CHANGING)
        return f"{number % 1000:>{WIDTH}}"


class WithDataTable(App[None]):
    """Textual's own table."""

    def compose(self) -> ComposeResult:
        yield DataTable()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        self._keys = [table.add_column(f"C{n}", width=WIDTH) for n in range(COLUMNS)]
        for row in range(ROWS):
            table.add_row(*(Item(row, 0).text(n) for n in range(COLUMNS)), key=str(row))

    def tick(self, tick: int) -> None:
        """Update the changed cells."""
        table = self.query_one(DataTable)
        for row in range(ROWS):
            table.update_cell(str(row), self._keys[CHANGING], Item(row, tick).text(CHANGING))


class WithGrid(App[None]):
    """The dashboard's table."""

    CSS = "Lines { height: 1fr; width: 100%; }"

    def compose(self) -> ComposeResult:
        look = Look()

        def column(number: int) -> Column[Item]:
            def draw(item: Item, width: int) -> Row:
                return look.cell(item.text(number), width)

            return Column(f"C{number}", draw, WIDTH)

        self._grid = Grid(look, [column(n) for n in range(COLUMNS)], "grid")
        yield self._grid

    def tick(self, tick: int) -> None:
        """Show all items as they are now."""
        self._grid.show_items([Item(row, tick) for row in range(ROWS)])


async def cost_ms(app: WithDataTable | WithGrid) -> float:
    """CPU milliseconds of a tick, drawing included."""
    async with app.run_test(size=(160, 50)) as pilot:
        app.tick(1)
        await pilot.pause()
        started_s = time.process_time()
        for tick in range(2, 2 + TICKS):
            app.tick(tick)
            await pilot.pause(0.05)
        return (time.process_time() - started_s) / TICKS * 1000


if __name__ == "__main__":
    for table in (WithDataTable, WithGrid):
        costs = ", ".join(f"{asyncio.run(cost_ms(table())):.1f} ms" for _ in range(3))
        print(f"{table.__name__:<14} {costs}")
