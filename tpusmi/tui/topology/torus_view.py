"""The torus of a slice as lines that scroll, with a cursor on one of its chips."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.model import DeviceKey
from tpusmi.model.torus import Torus, TorusChip
from tpusmi.report.concerns import MARK, SILENT, STRAGGLES, marks_in_words
from tpusmi.report.quantities import Quantity
from tpusmi.tui.draw.heat_map import HeatStyle
from tpusmi.tui.draw.lines import with_more
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.topology import planes
from tpusmi.tui.topology.chip_moves import nearest, step_to
from tpusmi.tui.topology.planes import Drawing

AROUND_CURSOR = 3
"""The lines above the cursor that stay visible, and those from it on; fewer on a small screen."""
ABOUT_LINES = 3
"""The chip under the cursor: its name, and its figures."""
FOOT_LINES = ABOUT_LINES + 1
"""The scale of colors is below them."""
MEANINGS = {STRAGGLES: "the others wait for it", MARK: "a warning"}


class TorusView:
    """Draws one torus at a time."""

    def __init__(self, look: Look, silent: str = "silent") -> None:
        """`silent` is the word for a host that does not report."""
        self._look = look
        self._heat, self._silent = HeatStyle(look), silent
        self._meanings = {**MEANINGS, SILENT: f"is {silent}"}
        self._drawing = Drawing([], {}, 1)
        self._follows = True
        """The next drawing brings the cursor into view."""
        self.key: object = None
        """The chip under the cursor."""
        self.top = 0
        """The first line of the planes that is visible."""
        self.screen_lines = 1
        """Lines of them that are visible."""
        self._torus: Torus | None = None

    @property
    def chip(self) -> TorusChip | None:
        """The chip under the cursor; None without one."""
        chips = () if self._torus is None else self._torus.chips
        return next((chip for chip in chips if chip.key == self.key), None)

    def lines(
        self,
        torus: Torus,
        head: str,
        quantity: Quantity,
        size: tuple[int, int],
        tail: Sequence[Row] = (),
    ) -> list[Row]:
        """The torus below its title, above the chip under the cursor and the scale of colors."""
        width, height = size
        self._torus = torus
        if torus.chips and self.chip is None:
            self.key = self._first(torus)
        top = [self._look.cell(head, width, "title")]
        room = max(0, height - len(top) - (FOOT_LINES if torus.chips else 0))
        tail = self._tail(torus, width, tail)
        least = len(tail) if len(tail) < room // 2 else 0
        self._drawing = planes.drawn(self._look, torus, width, room - least, self.key)
        planes_end = len(self._drawing.rows)
        self._clamp(planes_end + len(tail), room)
        visible = [
            *self._drawing.rows[self.top : self.top + room],
            *tail[max(0, self.top - planes_end) : max(0, self.top + room - planes_end)],
        ]
        if len(visible) > 1:
            below = planes_end + len(tail) - self.top - len(visible)
            visible = with_more(self._look, visible, below)
        visible += [()] * (room - len(visible))
        foot = self._foot(torus, quantity, width) if torus.chips else []
        return [*top, *visible, *foot][:height]

    @staticmethod
    def _first(torus: Torus) -> object:
        """The first chip with a page of its own, else the first one."""
        keys = [chip.key for chip in torus.chips]
        return next((key for key in keys if isinstance(key, DeviceKey)), keys[0])

    def scroll_to_cursor(self) -> None:
        """Let the next drawing bring the cursor into view."""
        self._follows = True

    def step(self, across: int, down: int) -> bool:
        """Move the cursor to a neighbor on the screen; False if there is none."""
        return self._choose(step_to(self._drawing.spots, self.key, across, down))

    def click(self, line: int, x: int) -> bool:
        """Move the cursor to the chip there, counted from the title; False if there is none."""
        at = line - 1 + self.top, x
        return self._choose(nearest(self._drawing.spots, at, self._drawing.chip_width))

    def _choose(self, key: object) -> bool:
        if key is None:
            return False
        self.key, self._follows = key, True
        return True

    def _tail(self, torus: Torus, width: int, more: Sequence[Row]) -> list[Row]:
        """Below the planes: what links look like, and what is missing."""
        look = self._look
        return [*planes.legend(look, torus, width), *planes.notes(look, torus, width), *more]

    def _clamp(self, lines: int, room: int) -> None:
        """Scroll no further than to the end, and to the cursor if it has moved."""
        self.screen_lines = max(1, room - 1)
        spot = self._drawing.spots.get(self.key)
        if self._follows and spot is not None:
            from_it = min(AROUND_CURSOR, room // 2 + 1)  # the last line may say how many follow
            above = min(AROUND_CURSOR, max(0, room - from_it))
            least, most = spot[0] + from_it - room, max(0, spot[0] - above)
            self.top = min(max(self.top, least), most)
        self._follows = False
        self.top = min(self.top, max(0, lines - room))

    def _foot(self, torus: Torus, quantity: Quantity, width: int) -> list[Row]:
        """The chip under the cursor, the scale of colors, and what the marks mean."""
        cell_width = self._drawing.chip_width
        meanings = marks_in_words((chip.mark for chip in torus.chips), self._silent)
        titles = quantity.torus_titles
        scale = self._heat.legend(titles, width, marks=meanings, cell_width=cell_width)
        return [*self._about(width), scale]

    def _about(self, width: int) -> list[Row]:
        """The chip under the cursor, in as many lines for each chip."""
        chip, look = self.chip, self._look
        if chip is None:
            return [()] * ABOUT_LINES
        place, meaning = ",".join(map(str, chip.coords)), self._meanings.get(chip.mark)
        name = look.line(
            (f"{chip.name} ({place})  {chip.host}", "bold"),
            (f"  {chip.mark} {meaning}" if meaning else "", "bad"),
        )
        facts = look.wrapped(chip.facts, width, "plain")[: ABOUT_LINES - 1]
        return [name, *facts, *[()] * (ABOUT_LINES - 1 - len(facts))]
