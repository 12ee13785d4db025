"""The pages of the dashboard: header, what the page is about, footer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.geometry import Size
from textual.screen import Screen

from tpusmi.model import Process, Snapshot
from tpusmi.text import counted
from tpusmi.tui import chrome
from tpusmi.tui.draw.graphs import Drawn
from tpusmi.tui.draw.item_list import ItemList
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.prompt import Prompt
from tpusmi.tui.keymap import remapped
from tpusmi.tui.keys import FIRST, LAST, key, offered
from tpusmi.tui.scene import Scene


class Page(Screen[None]):
    """A full screen of the shown moment. A page adds `body` and `draw_body`."""

    KEYS: ClassVar[list[Binding]] = []
    """Its own keys, beside the keys of every page."""
    NAME: ClassVar[str] = ""
    prompt: Prompt | None = None
    """The line in which a filter is typed, if the page has one."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self.scene, self.look = scene, scene.look
        self.header, self.footer = Lines(scene.look, id="header"), Lines(scene.look, id="footer")
        self.typing = False
        """A filter is being typed: every key is text."""
        self._drawn_for: Size | None = None
        self._fit = Fit()

    def body(self) -> Iterable[Lines]:
        """The widgets between header and footer, top to bottom."""
        raise NotImplementedError

    def draw_body(self, snapshot: Snapshot) -> None:
        """Draw those widgets."""
        raise NotImplementedError

    def graphed(self, snapshot: Snapshot) -> tuple[object, Iterable[Drawn]]:
        """The thing that the graphs are about, and the subjects and metric of each graph."""
        return None, ()

    @property
    def targets(self) -> tuple[Process, ...]:
        """The processes that a key for ending applies to."""
        process = self.scene.process
        return () if process is None else (process,)

    def answered(self) -> None:
        """Called once the targets are being ended."""

    @property
    def bindings(self) -> list[Binding]:
        """The keys that work on this page, for the footer and the help."""
        options = self.scene.options
        keys = offered([*FIRST, *self.KEYS, *LAST], options.host is not None)
        return remapped(keys, options.keys)

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
        if self.scene.snapshot is not None:
            self.draw_body(self.scene.snapshot)

    def draw_header(self) -> None:
        """Draw the top line."""
        self.header.show([chrome.header(self.scene, self.NAME, self.size.width)])

    def draw_footer(self) -> None:
        """Draw the last line: the keys, or the message about the last one."""
        width = self.size.width
        if self.scene.message:
            self.footer.show([self.look.cell(self.scene.message, width, "good")])
        else:
            self.footer.show([chrome.footer(self.look, self.bindings, width)])

    def copied(self) -> str:
        """The text to copy for the selection; empty for none."""
        process = self.scene.process
        return "" if process is None else str(process.pid)

    def span_s(self, snapshot: Snapshot) -> int:
        """How far back the graphs go."""
        thing, drawn = self.graphed(snapshot)
        first_s = self.scene.graphs.first_s(drawn, snapshot.at_s)
        fitting_s = self._fit.span_s(thing, first_s, snapshot.at_s)
        return self.scene.span_s or fitting_s

    def change_span(self) -> None:
        """Give all graphs the next span."""
        scene = self.scene
        if scene.snapshot is not None:
            scene.span_s = next_choice(scene.span_s, self.span_s(scene.snapshot))
            self.app.say(f"Graphs show {in_words(scene.span_s)}")  # type: ignore[attr-defined]
            self.draw()

    def sideways(self, step: int) -> bool:
        """Move the cursor of a heat map by that many cells; False where there is none."""
        return False

    def step_back(self) -> bool:
        """Undo one choice; False if there is none, so that the page is left."""
        return False


AROUND = 2
"""Lines of the header and the footer."""
WHEEL_LINES = 3
FAR = 1_000_000
"""More lines than any page has."""

Choice = TypeVar("Choice")


def scroll_keys(name: str, thing: str) -> list[Binding]:
    """The keys of a scrolling page."""
    return [
        key("tab,down", "step(1)", "Next", f"{name}-next", f"Next {thing}", "Tab"),
        key("shift+tab,up", "step(-1)", "Before", f"{name}-before", f"Previous {thing}"),
        key("pagedown", "scroll(1)", "Further", f"{name}-down", "Scroll the page down"),
        key("pageup", "scroll(-1)", "Back", f"{name}-up", "Scroll the page up"),
        key("home", "jump(0)", "Top", f"{name}-top", "Scroll to the top of the page"),
        key("end", "jump(1)", "Bottom", f"{name}-bottom", "Scroll to the end of the page"),
    ]


class ScrollPage(Page):
    """A page that scrolls, about one of several things. Its `draw_body` clamps `top`, the first
    visible line, and sets `screen_lines`, the lines of a screen.
    """

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.lines = Lines(self.look, id=self.NAME)
        self.top, self.screen_lines = 0, 1

    def body(self) -> Iterable[Lines]:
        self.lines.styles.height = "1fr"
        return (self.lines,)

    def on_mouse_scroll_down(self) -> None:
        self._scroll(WHEEL_LINES)

    def on_mouse_scroll_up(self) -> None:
        self._scroll(-WHEEL_LINES)

    def action_scroll(self, screens: int) -> None:
        """Scroll by that many screens."""
        self._scroll(screens * self.screen_lines)

    def action_jump(self, end: int) -> None:
        """Scroll to the top or the bottom."""
        self._scroll(FAR if end else -FAR)

    def _scroll(self, lines: int) -> None:
        self.top = max(0, self.top + lines)
        self.draw()


class ListPage(Page):
    """A page with a table or a tree that has a cursor, and a filter."""

    prompt: Prompt

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


def stepped(choices: Sequence[Choice], chosen: object, step: int) -> Choice:
    """The choice that many steps further on, from the last to the first; the first if the chosen
    one is gone. There must be at least one.
    """
    at = choices.index(chosen) + step if chosen in choices else 0
    return choices[at % len(choices)]


SPANS_S = (60, 120, 300, 600)
CHOICES = (None, *reversed(SPANS_S))
"""What the user can choose; None is the shortest span that has all values."""


def shortest(seconds: float) -> int:
    """The shortest span of at least that many seconds, or the longest span."""
    return next((span_s for span_s in SPANS_S if seconds <= span_s), SPANS_S[-1])


def next_choice(chosen_s: int | None, shown_s: int) -> int | None:
    """The next choice that shows another span; None, the first choice, after the last one."""
    after = CHOICES[CHOICES.index(chosen_s) + 1 :]
    return next((choice for choice in after if choice != shown_s), None)


def in_words(chosen_s: int | None) -> str:
    """`5 minutes`, or for None that the span is as long as there are values."""
    if chosen_s is None:
        return f"all data, up to {SPANS_S[-1] // 60} minutes"
    return counted(chosen_s // 60, "minute")


class Fit:
    """The shortest span that has all values of one thing.

    For the same thing it only grows: a look back changes no scale. It starts again for another
    thing, and when none of the values drawn before is left.
    """

    def __init__(self) -> None:
        self._thing: object = None
        self._span_s = SPANS_S[0]
        self._until_s = -inf

    def span_s(self, thing: object, first_s: int | None, at_s: float) -> int:
        """The span of graphs that end at `at_s`. `first_s` is the second of its oldest value, or
        None.
        """
        if first_s is None:
            return self._span_s if thing == self._thing else SPANS_S[0]
        needed_s = shortest(int(at_s) - first_s + 1)
        if thing != self._thing or first_s > self._until_s:
            self._thing, self._span_s, self._until_s = thing, needed_s, at_s
        self._span_s = max(self._span_s, needed_s)
        self._until_s = max(self._until_s, at_s)
        return self._span_s
