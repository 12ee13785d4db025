"""A page about one of several things: it scrolls."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from textual.binding import Binding

from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.keys import key
from tpusmi.tui.page import Page
from tpusmi.tui.scene import Scene

WHEEL_LINES = 3
FAR = 1_000_000
"""Lines further down than any page has."""

Key = TypeVar("Key", bound=Hashable)


def sheet_keys(name: str, thing: str) -> list[Binding]:
    """The keys of such a page."""
    step = f"The next {thing}, or the one before"
    scroll = "Scroll what does not fit"
    return [
        key("tab,down", "step(1)", "Next", f"{name}-next", step, "Tab"),
        key("shift+tab,up", "step(-1)", "Before", f"{name}-before", step),
        key("pagedown", "scroll(1)", "Further", f"{name}-down", scroll),
        key("pageup", "scroll(-1)", "Back", f"{name}-up", scroll),
        key("home", "jump(0)", "Top", f"{name}-top", scroll),
        key("end", "jump(1)", "Bottom", f"{name}-bottom", scroll),
    ]


class Sheet(Page):
    """What is drawn clamps `top`, the first line in sight, and says how long a screen is."""

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
        """Scroll by so many screens."""
        self._scroll(screens * self.screen_lines)

    def action_jump(self, end: int) -> None:
        """Scroll to the top, or to the bottom."""
        self._scroll(FAR if end else -FAR)

    def _scroll(self, lines: int) -> None:
        self.top = max(0, self.top + lines)
        self.draw()


def stepped(keys: Sequence[Key], chosen: Key | None, step: int) -> Key | None:
    """The key that many further on, from the last to the first; the first when the chosen one is
    gone, and None of none.
    """
    if not keys:
        return None
    return keys[(keys.index(chosen) + step) % len(keys)] if chosen in keys else keys[0]
