"""What every page is, of a host and of a fleet: a header, a body, a footer with keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.geometry import Size
from textual.screen import Screen

from tpusmi.tui.base_scene import BaseScene
from tpusmi.tui.draw.item_list import ItemList
from tpusmi.tui.draw.lines import Lines, with_more
from tpusmi.tui.draw.look import Row
from tpusmi.tui.draw.prompt import Prompt
from tpusmi.tui.keys import footer

WHEEL_LINES = 3
FAR = 1_000_000
"""More lines than any page has."""


class BasePage(Screen[None]):
    """A full screen. A page adds `body`, `draw_shown` and `draw_header`."""

    KEYS: ClassVar[list[Binding]] = []
    """Its own keys, beside the keys of every page."""
    NAME: ClassVar[str] = ""
    prompt: Prompt | None = None
    """The line in which a filter is typed, if the page has one."""
    scene: BaseScene

    def __init__(self, scene: BaseScene) -> None:
        super().__init__()
        self.look = scene.look
        self.header, self.footer = Lines(scene.look, id="header"), Lines(scene.look, id="footer")
        self.typing = False
        """A filter is being typed: every key is text."""
        self._drawn_for: Size | None = None

    def body(self) -> Iterable[Lines]:
        """The widgets between header and footer, top to bottom."""
        raise NotImplementedError

    def draw_shown(self) -> None:
        """Draw those widgets."""
        raise NotImplementedError

    def draw_header(self) -> None:
        """Draw the top line."""
        raise NotImplementedError

    @property
    def bindings(self) -> list[Binding]:
        """The keys that work on this page, for the footer and the help."""
        raise NotImplementedError

    def copied(self) -> str:
        """The text to copy for the selection; empty for none."""
        return ""

    def change_span(self) -> None:
        """Give all graphs the next span."""

    def step_back(self) -> bool:
        """Undo one choice; False if there is none, so that the page is left."""
        return False

    def compose(self) -> ComposeResult:
        yield self.header
        yield from self.body()
        yield self.footer

    def on_resize(self) -> None:
        # Textual reports two sizes in turn for a terminal of unknown size: no drawing for those.
        if self.app.size != self._drawn_for:
            self._drawn_for = self.app.size
            self.call_later(self.draw)

    def on_screen_resume(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Draw the whole page."""
        if not self.is_mounted or not self.size.width:
            return
        self.draw_header()
        self.draw_footer()
        self.draw_shown()

    def draw_footer(self) -> None:
        """Draw the last line: the keys, or the message about the last one."""
        width = self.size.width
        if self.scene.message:
            self.footer.show([self.look.cell(self.scene.message, width, "good")])
        else:
            keys = footer(self.bindings, width, only_ascii=self.look.only_ascii)
            self.footer.show([self.look.line(*keys)])


class ScrollingPage(BasePage):
    """A page of lines that scroll. Its `draw_shown` uses `in_view`, or clamps `top` and sets
    `screen_lines` itself.
    """

    def __init__(self, scene: BaseScene) -> None:
        super().__init__(scene)
        self.lines = Lines(scene.look, id=self.NAME)
        self.top = 0
        """The first visible line."""
        self.screen_lines = 1
        """How many a key scrolls by."""

    def body(self) -> Iterable[Lines]:
        self.lines.styles.height = "1fr"
        return (self.lines,)

    def in_view(self, rows: Sequence[Row], room: int, what: str = "lines") -> list[Row]:
        """Those of the lines that are visible in that many; the last says how many more follow."""
        self.screen_lines = max(1, room - 1)  # a line of the screen before stays
        self.top = min(self.top, max(0, len(rows) - room))
        end = self.top + room
        return with_more(self.look, rows[self.top : end], len(rows) - end, what)

    def on_mouse_scroll_down(self) -> None:
        self.scroll_lines(WHEEL_LINES)

    def on_mouse_scroll_up(self) -> None:
        self.scroll_lines(-WHEEL_LINES)

    def action_scroll(self, screens: int) -> None:
        """Scroll by that many screens."""
        self.scroll_lines(screens * self.screen_lines)

    def action_line(self, lines: int) -> None:
        """Scroll by that many lines."""
        self.scroll_lines(lines)

    def action_jump(self, end: int) -> None:
        """Scroll to the top or the bottom."""
        self.scroll_lines(FAR if end else -FAR)

    def scroll_lines(self, lines: int) -> None:
        """Scroll by that many lines, and draw."""
        self.top = max(0, self.top + lines)
        self.draw()


class CursorKeys:
    """What the keys of a cursor do, on a page with a list."""

    @property
    def current_list(self) -> ItemList[Any]:
        """The list that has the cursor."""
        raise NotImplementedError

    def action_move(self, rows: int) -> None:
        """Move the cursor by that many rows."""
        self.current_list.move(rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by that many pages."""
        self.current_list.move(pages * self.current_list.page)

    def action_jump(self, index: int) -> None:
        """Move the cursor to the first or the last row."""
        if items := self.current_list.items:
            self.current_list.move_to(index % len(items))
