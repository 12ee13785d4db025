"""The pages of the dashboard: header, what the page is about, footer."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from textual.binding import Binding

from tpusmi.model import Process, Snapshot
from tpusmi.text import counted
from tpusmi.tui import chrome
from tpusmi.tui.base_page import BasePage, CursorKeys, ScrollingPage
from tpusmi.tui.draw.graphs import Drawn
from tpusmi.tui.draw.prompt import Prompt
from tpusmi.tui.draw.sorting import stepped
from tpusmi.tui.keymap import remapped
from tpusmi.tui.keys import FIRST, LAST, beside, key, offered
from tpusmi.tui.scene import Scene

__all__ = [
    "AROUND",
    "NO_PAST",
    "ListPage",
    "Page",
    "ScrollPage",
    "paging_keys",
    "scroll_keys",
    "stepped",
]

NO_PAST = "The past of other hosts is not kept: n returns to now."


class Page(BasePage):
    """A page of the shown moment of a host. It adds `body` and `draw_body`."""

    scene: Scene

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.scene = scene
        self._fit = Fit()

    def draw_body(self, snapshot: Snapshot) -> None:
        """Draw the widgets between header and footer."""
        raise NotImplementedError

    def draw_shown(self) -> None:
        if self.scene.snapshot is not None:
            self.draw_body(self.scene.snapshot)

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
        options = self.scene.options
        keys = beside([*FIRST, *self.KEYS, *LAST], self.KEYS)
        keys = offered(keys, options.host is not None)
        return remapped(keys, options.keys)

    def draw_header(self) -> None:
        self.header.show([chrome.header(self.scene, self.NAME, self.size.width)])

    def copied(self) -> str:
        process = self.scene.process
        return "" if process is None else str(process.pid)

    def span_s(self, snapshot: Snapshot) -> int:
        """How far back the graphs go."""
        thing, drawn = self.graphed(snapshot)
        first_s = self.scene.graphs.first_s(drawn, snapshot.at_s)
        fitting_s = self._fit.span_s(thing, first_s, snapshot.at_s)
        return self.scene.span_s or fitting_s

    def change_span(self) -> None:
        scene = self.scene
        if scene.snapshot is not None:
            scene.span_s = next_choice(scene.span_s, self.span_s(scene.snapshot))
            self.app.say(f"Graphs show {in_words(scene.span_s)}")  # type: ignore[attr-defined]
            self.draw()

    def sideways(self, step: int) -> bool:
        """Move the cursor of a heat map by that many cells; False where there is none."""
        return False


AROUND = 2
"""Lines of the header and the footer."""


def scroll_keys(name: str, thing: str) -> list[Binding]:
    """The keys of a scrolling page."""
    return [
        key("tab,down", "step(1)", "Next", f"{name}-next", f"Next {thing}", "Tab"),
        key("shift+tab,up", "step(-1)", "Before", f"{name}-before", f"Previous {thing}"),
        *paging_keys(name),
    ]


def paging_keys(name: str) -> list[Binding]:
    """Those of them that scroll."""
    return [
        key("pagedown", "scroll(1)", "Further", f"{name}-down", "Scroll the page down"),
        key("pageup", "scroll(-1)", "Back", f"{name}-up", "Scroll the page up"),
        key("home", "jump(0)", "Top", f"{name}-top", "Scroll to the top of the page"),
        key("end", "jump(1)", "Bottom", f"{name}-bottom", "Scroll to the end of the page"),
    ]


class ScrollPage(ScrollingPage, Page):
    """A page that scrolls, about one of several things."""


class ListPage(CursorKeys, Page):
    """A page with a table or a tree that has a cursor, and a filter."""

    prompt: Prompt


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
