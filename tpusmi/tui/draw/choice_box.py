"""A box over the page that asks for one of several choices, side by side below its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from textual.binding import Binding
from textual.events import Click, MouseScrollDown, MouseScrollUp

from tpusmi.tui.draw.lines import EDGES, MARGIN, Answer, BoxScreen
from tpusmi.tui.draw.look import Look, Row, width_of

CANCEL = "Cancel"
WIDEST = 84
ROOMY = 64
"""Screens of this width show some of the dashboard on both sides of the box."""
_LEAST_BODY = 3
"""Lines of the text that stay visible on the smallest screen."""


def choice_key(keys: str, action: str, label: str, id: str) -> Binding:
    """A key of such a box."""
    return Binding(keys, action, label, id=f"ask-{id}", tooltip=label)


STEPPING = (
    choice_key("left,shift+tab", "step(-1)", "Previous choice", "left"),
    choice_key("right,tab", "step(1)", "Next choice", "right"),
)
CONFIRMING = (
    choice_key("enter,space", "confirm", "Confirm the choice", "confirm"),
    choice_key("escape,n,q", "cancel", "Do nothing", "cancel"),
    choice_key("down,pagedown", "scroll(1)", "Scroll down", "down"),
    choice_key("up,pageup", "scroll(-1)", "Scroll up", "up"),
)
"""Keys of every such box, before and after those of its choices."""


class _Button(NamedTuple):
    choice: str
    text: str
    start: int
    """Its first column, counted from the first button."""


class ChoiceBox(BoxScreen[Answer]):
    """Asks for a choice; closes with the answer that the choice stands for."""

    HINT = ""
    """How to choose, for the last line."""

    def __init__(self, look: Look, id: str, choices: Sequence[str], choice: str) -> None:
        super().__init__(look, id)
        self._choices = tuple(choices)
        self._choice = choice if choice in self._choices else CANCEL
        self._buttons: Sequence[_Button] = ()
        self._buttons_y = 0
        """The line of the buttons in the box."""

    # -- for subclasses

    def _answer(self, choice: str) -> Answer:
        """The answer that a choice stands for."""
        raise NotImplementedError

    def _about(self, width: int) -> list[Row]:
        """The text, which scrolls where the screen is too small."""
        raise NotImplementedError

    def _consequence(self, choice: str, width: int) -> list[Row]:
        """What happens with that choice."""
        raise NotImplementedError

    # -- keys

    def on_click(self, event: Click) -> None:
        """A click on a choice chooses and confirms it."""
        x = event.screen_x - self._box.region.x - MARGIN // 2
        y = event.screen_y - self._box.region.y
        for button in self._buttons if y == self._buttons_y else ():
            if button.start <= x < button.start + len(button.text):
                self._choice = button.choice
                self.action_confirm()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        self.action_scroll(1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        self.action_scroll(-1)

    def action_step(self, step: int) -> None:
        """Choose the next button, or the previous one; after the last comes the first."""
        at = self._choices.index(self._choice)
        self.action_choose(self._choices[(at + step) % len(self._choices)])

    def action_choose(self, choice: str) -> None:
        """Choose a button, and wait for a confirmation."""
        if choice in self._choices:
            self._choice = choice
            self._draw()

    def action_confirm(self) -> None:
        """Close with the answer of the choice."""
        self.dismiss(self._answer(self._choice))

    def action_cancel(self) -> None:
        """Close, and do nothing."""
        self.dismiss(self._answer(CANCEL))

    # -- drawing

    def _draw(self) -> None:
        across = self.size.width
        most = max(0, min(across - MARGIN if across >= ROOMY else across, WIDEST) - MARGIN)
        lines = max(0, self.size.height - EDGES)
        self._buttons = list(self._laid_out(most))
        about, consequences = self._about(most), self._consequences(most)
        below = self._below(consequences[self._choice], lines - len(about), lines)
        room = max(0, lines - len(below))
        self._top = min(max(self._top, 0), max(0, len(about) - room))
        visible = about[self._top : self._top + room]
        rows = [*visible, *below][:lines]
        self._buttons_y = len(visible) + below.index(self._line_of_buttons()) + 1
        # As wide as the widest line of all choices: the box keeps its size while one chooses.
        widest = max(map(width_of, chain(about, below, *consequences.values())))
        width = min(widest, most) + MARGIN
        self._show(rows, width, more=self._top + room < len(about))

    def _below(self, happens: list[Row], spare: int, lines: int) -> list[Row]:
        """The lines that do not scroll: the choices, and what would be done if there is room."""
        buttons = self._line_of_buttons()
        keys = self.HINT if happens else "Esc closes"
        gap: list[Row] = [()] if happens else []
        spaced = [(), *happens, *gap, buttons, self._look.line((keys, "dim"))]
        if len(spaced) <= spare:
            return spaced
        tight = [*happens, buttons]
        return tight if lines - len(tight) >= _LEAST_BODY else [buttons]

    def _consequences(self, width: int) -> dict[str, list[Row]]:
        """What happens with each choice, in the same number of lines for all."""
        if len(self._choices) == 1:
            return {CANCEL: []}
        texts = {c: self._consequence(c, width) for c in self._choices}
        most = max(map(len, texts.values()))
        return {c: [*lines, *[()] * (most - len(lines))] for c, lines in texts.items()}

    def _laid_out(self, width: int) -> Iterator[_Button]:
        """The choices side by side; the chosen one has another shape, not only another color."""
        texts = [f" [{c}] " for c in self._choices]
        if sum(map(len, texts)) > width:
            texts = [text.replace("SIG", "") for text in texts]
        starts = accumulate(map(len, texts), initial=0)
        for choice, text, start in zip(self._choices, texts, starts, strict=False):
            chosen = choice == self._choice
            yield _Button(choice, f">{text[1:-1]}<" if chosen else text, start)

    def _line_of_buttons(self) -> Row:
        return self._look.line(
            *((b.text, "selected" if b.choice == self._choice else "plain") for b in self._buttons)
        )
