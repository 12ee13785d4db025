"""A full screen of the dashboard: header, what it is about, footer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.geometry import Size
from textual.screen import Screen

from tpusmi.model import Process, Snapshot
from tpusmi.tui import chrome
from tpusmi.tui.draw.graphs import Drawn
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.prompt import Prompt
from tpusmi.tui.keymap import remapped
from tpusmi.tui.keys import FIRST, LAST, offered
from tpusmi.tui.scene import Scene
from tpusmi.tui.span import Fit, in_words, next_choice


class Page(Screen[None]):
    """Draws the moment that the scene shows. What a page adds is `body` and `draw_body`."""

    KEYS: ClassVar[list[Binding]] = []
    """Its own keys, beside those of every page."""
    NAME: ClassVar[str] = ""
    prompt: Prompt | None = None
    """The line in which a filter is typed, on a page that has one."""

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self.scene, self.look = scene, scene.look
        self.header, self.footer = Lines(scene.look, id="header"), Lines(scene.look, id="footer")
        self.typing = False
        """A filter is being typed: every key is text."""
        self._drawn_for: Size | None = None
        self._fit = Fit()

    def body(self) -> Iterable[Lines]:
        """The parts between header and footer, top to bottom."""
        raise NotImplementedError

    def draw_body(self, snapshot: Snapshot) -> None:
        """Draw them."""
        raise NotImplementedError

    def graphed(self, snapshot: Snapshot) -> tuple[object, Iterable[Drawn]]:
        """The one thing that its graphs are about, and what each is of."""
        return None, ()

    @property
    def targets(self) -> tuple[Process, ...]:
        """The processes that are meant when one is to be ended."""
        process = self.scene.process
        return () if process is None else (process,)

    def answered(self) -> None:
        """The end of those that were meant has begun."""

    @property
    def bindings(self) -> list[Binding]:
        """The keys that work here: for the footer and the help."""
        options = self.scene.options
        may_end = options.host is not None
        every = [*offered(FIRST, may_end), *self.KEYS, *offered(LAST, may_end)]
        return remapped(every, options.keys)

    def compose(self) -> ComposeResult:
        yield self.header
        yield from self.body()
        yield self.footer

    def on_resize(self) -> None:
        # Of a terminal that tells no size Textual has two ideas in turn: no drawing for those.
        if self.app.size != self._drawn_for:
            self._drawn_for = self.app.size
            self.call_later(self.draw)

    def on_screen_resume(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Draw all of it."""
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
        """Draw the last line: the keys, or what one of them has just done."""
        width = self.size.width
        if self.scene.said:
            self.footer.show([self.look.cell(self.scene.said, width, "good")])
        else:
            self.footer.show([chrome.footer(self.look, self.bindings, width)])

    def copied(self) -> str:
        """What is copied of the selection; empty for nothing."""
        process = self.scene.process
        return "" if process is None else str(process.pid)

    def span_s(self, snapshot: Snapshot) -> int:
        """How far back its graphs go."""
        thing, drawn = self.graphed(snapshot)
        first_s = self.scene.graphs.first_s(drawn, snapshot.at_s)
        fitting_s = self._fit.span_s(thing, first_s, snapshot.at_s)
        return self.scene.span_s or fitting_s

    def change_span(self) -> None:
        """Let all graphs go back as far as the next choice says."""
        scene = self.scene
        if scene.snapshot is not None:
            scene.span_s = next_choice(scene.span_s, self.span_s(scene.snapshot))
            self.app.say(f"Graphs show {in_words(scene.span_s)}")  # type: ignore[attr-defined]
            self.draw()

    def step_back(self) -> bool:
        """Undo one choice; False when there is none, and the page is to be left."""
        return False
