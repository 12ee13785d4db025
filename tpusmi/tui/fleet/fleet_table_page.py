"""The pages with a table of jobs, slices or hosts, or all their chips as a heat map."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tpusmi.fleet.groups.fleet_filter import problem
from tpusmi.fleet.groups.group_members import GROUPINGS
from tpusmi.fleet.report.group_columns import WORST
from tpusmi.model import Notice
from tpusmi.tui.base_page import CursorKeys
from tpusmi.tui.draw.item_list import ItemList
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Row
from tpusmi.tui.draw.prompt import Prompt
from tpusmi.tui.draw.sorting import Sorting
from tpusmi.tui.draw.table import Grid
from tpusmi.tui.fleet import fleet_chrome, fleet_columns, fleet_notices
from tpusmi.tui.fleet.fleet_heat import FleetHeat
from tpusmi.tui.fleet.fleet_page import FleetPage
from tpusmi.tui.fleet.fleet_rows import FleetRow, part_of
from tpusmi.tui.fleet.fleet_scene import FleetScene, Scope
from tpusmi.tui.fleet_keys import TABLE

READING = "reading {} …"
TOTALS_FROM = 12
"""Screens with at least this many lines have one with totals."""
STEP_S = 60
"""How far the arrow keys go through time."""
NOTICES_SHARE, NOTICES_MOST = 5, 8
"""Notices get a fifth of the screen, and at most so many lines."""


class FleetTablePage(CursorKeys, FleetPage):
    """A table with a cursor, and a heat map in its place."""

    KEYS = TABLE
    BINDINGS = [*TABLE]  # noqa: RUF012  # Textual's name and type
    NAME = "hosts"
    prompt: Prompt

    def __init__(self, scene: FleetScene, scope: Scope, heat: bool = False) -> None:
        super().__init__(scene)
        look = scene.look
        self.scope = scope
        self.totals, self.notices = Lines(look, id="totals"), Lines(look, id="notices")
        self.prompt = Prompt(look, "prompt", problem)
        self.tables: dict[str, Grid[FleetRow]] = {}
        self.sortings: dict[str, Sorting[FleetRow]] = {}
        for kind in GROUPINGS:
            columns = fleet_columns.drawn(look, kind)
            self.tables[kind] = Grid(look, columns, id=f"table-{kind}")
            sorting = self.sortings[kind] = Sorting(columns, WORST, fleet_columns.letters(kind))
            sorting.title, sorting.reversed = fleet_columns.at_start(kind, scene.options.sort)
        self.heat = FleetHeat(scene)
        self.is_heat = heat
        self._heights: tuple[int, ...] = ()
        self._sorted: tuple[list[FleetRow], tuple[str, bool], list[FleetRow]] | None = None
        self._noticed: tuple[list[FleetRow], list[Notice]] | None = None

    # -- what it is about

    @property
    def by(self) -> str:
        """What a row is."""
        return "host"

    @property
    def page_title(self) -> str:
        return self.scope.title

    @property
    def grid(self) -> Grid[FleetRow]:
        """The table that is shown, or would be without the heat map."""
        return self.tables[self.by]

    @property
    def sorting(self) -> Sorting[FleetRow]:
        """How that table is sorted."""
        return self.sortings[self.by]

    @property
    def rows(self) -> list[FleetRow]:
        """The rows in their order: the same list as long as they are the same."""
        rows, sorting = self.scene.rows(self.by, self.scope), self.sorting
        order = sorting.title, sorting.reversed
        if self._sorted is None or self._sorted[0] is not rows or self._sorted[1] != order:
            self._sorted = rows, order, sorting.sorted(rows)
        return self._sorted[2]

    @property
    def row(self) -> FleetRow | None:
        """The row under the cursor; None without one."""
        key = self.grid.cursor
        return next((r for r in self.grid.items if r.key == key), None)

    @property
    def host_name(self) -> str:
        if self.is_heat:
            host = self.scene.host(self.heat.host_key)
            return "" if host is None else host.name
        host = None if self.row is None else self.row.group.host
        return "" if host is None else host.name

    def copied(self) -> str:
        row = self.row
        return super().copied() or ("" if row is None else row.group.name)

    @property
    def current_list(self) -> ItemList[Any]:
        return self.heat if self.is_heat else self.grid

    # -- drawing

    def body(self) -> Iterable[Lines]:
        return (self.totals, self.notices, *self.tables.values(), self.heat, self.prompt)

    def draw_shown(self) -> None:
        scene, (width, height) = self.scene, self.size
        if scene.snapshot is None:
            self._draw_before(width, height)
            return
        if not self.typing:
            self.prompt.show_filter(scene.filter)
        total, took_s = scene.group(self.scope), scene.snapshot.took_s
        self.totals.show(
            [] if total is None else [fleet_chrome.totals(self.look, total, took_s, width)]
        )
        notices = self._notice_lines(width, height)
        self._resize(height, len(notices))
        self.notices.show(notices)
        rows = self.rows
        if self.is_heat:
            self.heat.show_rows(rows)
        else:
            self._draw_table(rows)

    def _draw_before(self, width: int, height: int) -> None:
        """There is nothing to show yet: who is asked, or why there is no answer."""
        text = self.scene.error or READING.format(self.scene.label)
        style = "warn" if self.scene.error else "plain"
        self._resize(height, height - 2)
        self.notices.show(self.look.wrapped(text, width, style))

    def _draw_table(self, rows: list[FleetRow]) -> None:
        grid, sorting = self.grid, self.sorting
        keys = {row.key for row in rows}
        if grid.cursor not in keys:
            # The row is gone, or nothing was chosen yet.
            at = min(grid.index or 0, len(rows) - 1)
            grid.cursor = rows[at].key if rows else None
        grid.sorted_by = sorting.title, sorting.falls
        grid.warned = {row.key for row in rows if row.group.notices}
        grid.note = "" if rows else self._nothing()
        grid.show_items(rows)

    def _nothing(self) -> str:
        if self.scene.filter:
            return "no host matches the filter"
        return "none of its hosts is in the answer now" if self.scope.by else "no host"

    def _notice_lines(self, width: int, height: int) -> list[Row]:
        rows = self.rows
        if self._noticed is None or self._noticed[0] is not rows:
            hosts = [part_of(m) for row in rows for m in row.group.members if m.notices]
            slow = {x.host for row in rows for x in row.group.stragglers}
            self._noticed = rows, fleet_notices.of_fleet(hosts, slow)
        most = min(NOTICES_MOST, height // NOTICES_SHARE)
        sentences = fleet_chrome.wrong(self.scene)
        return fleet_chrome.notice_lines(self.look, sentences, self._noticed[1], width, most)

    def _resize(self, height: int, notices: int) -> None:
        """Give each part its lines."""
        is_before = self.scene.snapshot is None
        totals = int(height >= TOTALS_FROM and not is_before)
        filtering = int((self.typing or bool(self.scene.filter)) and not is_before)
        filtering *= self.prompt.wanted_lines if self.typing else 1
        body = max(0, height - 2 - totals - notices - filtering)
        tables = (body if kind == self.by and not self.is_heat else 0 for kind in GROUPINGS)
        heights = (totals, notices, *tables, body if self.is_heat else 0, filtering)
        if heights == self._heights:
            return
        self._heights = heights
        for part, count in zip(self.body(), heights, strict=True):
            part.display = count > 0
            part.styles.height = count

    # -- keys

    def step_back(self) -> bool:
        if self.is_heat:
            self.action_view("full")
        elif self.scene.filter:
            self.scene.filter = ""
            self.draw()
        else:
            return False
        return True

    def action_across(self, step: int) -> None:
        """Move the cursor of the heat map sideways; in a table, go through time."""
        if self.is_heat:
            self.current_list.sideways(step)
        else:
            self.app.action_travel(-STEP_S * step)  # type: ignore[attr-defined]

    def action_enter(self) -> None:
        """Open the selected row or chip."""
        row, app = self.row, self.app
        if self.is_heat:
            app.open_host(self.heat.host_key, self._host_keys())  # type: ignore[attr-defined]
        elif row is not None and row.group.by == "host":
            app.open_host(row.key, self._host_keys())  # type: ignore[attr-defined]
        elif row is not None:
            g = row.group
            title = row.title if g.name.startswith("no ") else f"{g.by} {row.title}"
            app.open_hosts(Scope(by=g.by, key=g.key, title=title))  # type: ignore[attr-defined]

    def _host_keys(self) -> list[str]:
        """The hosts in their order, each once."""
        return list(dict.fromkeys(m.host.key for row in self.rows for m in row.group.members))

    def action_topology(self) -> None:
        """Show the slice of the selected row as a torus."""
        host = self.scene.host(self.heat.host_key) if self.is_heat else None
        row = self.row
        if host is None and row is not None:
            hosts = [m.host for m in row.group.members]
            host = next((h for h in hosts if h.slice), hosts[0])
        if host is not None:
            self.app.open_topology(host)  # type: ignore[attr-defined]

    def action_view(self, view: str | int) -> None:
        """Show the table or the heat map."""
        self.is_heat = not self.is_heat if isinstance(view, int) else view == "heat"
        self.draw()

    def action_graph(self, step: int) -> None:
        """Show the next quantity in the heat map."""
        self.scene.next_quantity(step)
        self.app.say(f"Heat map: {self.scene.quantity.title}")  # type: ignore[attr-defined]
        self.draw()

    def action_sort(self, step: int) -> None:
        """Sort by the column that many steps further on."""
        self.sorting.step(step)
        self.draw()

    def action_reverse(self) -> None:
        """Reverse the sort order."""
        self.sorting.choose(self.sorting.title)
        self.draw()

    def action_order(self) -> None:
        """Sort by the column of the next key."""
        self.typing = True
        self.prompt.ask_order(fleet_columns.letters(self.by))
        self.draw()

    def on_grid_titled(self, message: Grid.Titled) -> None:
        self.sorting.choose(message.title)
        self.draw()

    def on_item_list_opened(self) -> None:
        self.action_enter()

    # -- the line

    def action_filter(self) -> None:
        """Type a filter."""
        self.typing = True
        self.draw()
        self.prompt.start(self.scene.filter)

    def on_prompt_typed(self, message: Prompt.Typed) -> None:
        self.typing = not message.done
        self.scene.filter = message.text
        self.draw()

    def on_prompt_answered(self, message: Prompt.Answered) -> None:
        self.typing = False
        if message.key and not self.sorting.choose_letter(message.key):
            self.app.say(f"No column has the letter {message.key!r}")  # type: ignore[attr-defined]
        self.draw()
