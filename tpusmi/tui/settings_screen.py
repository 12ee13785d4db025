"""The dialog in which panels, columns and the theme are chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from textual.binding import BindingType
from textual.events import Click

from tpusmi.tui.draw.lines import EDGES, MARGIN, BoxScreen
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.keys import key

WIDEST = 76
NAME_WIDTH = 10
ABOVE = 2
"""Lines above the first choice: the edge and the keys."""


class Choice(NamedTuple):
    """A line that Space changes."""

    section: str
    name: str
    text: str
    state: Callable[[], bool | str]
    """Whether it is shown; or its value, of several."""
    change: Callable[[], object]


class SettingsScreen(BoxScreen[None]):
    """A box over the page, which changes as the user chooses."""

    CSS: ClassVar[str] = (
        "SettingsScreen { align: center middle; background: transparent; }"
        " #settings { height: 1; width: 1; }"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape,q,f2,l", "dismiss", "Close", "settings-close", "Close"),
        key("down,tab", "move(1)", "Down", "settings-down", "Next choice"),
        key("up,shift+tab", "move(-1)", "Up", "settings-up", "Previous choice"),
        key("pagedown", "move(10)", "Page down", "settings-page-down", "Ten choices down"),
        key("pageup", "move(-10)", "Page up", "settings-page-up", "Ten choices up"),
        key("home", "move(-999)", "First", "settings-home", "First choice"),
        key("end", "move(999)", "Last", "settings-end", "Last choice"),
        key("space,enter", "change", "Change", "settings-toggle", "Show / hide, or the next theme"),
        key("f12", "save", "Save", "settings-save", "Save in the settings file"),
    ]

    def __init__(
        self, look: Look, choices: Sequence[Choice], first: int, save: Callable[[], object]
    ) -> None:
        super().__init__(look, "settings")
        self._choices, self._at, self._save = choices, first, save

    def action_move(self, rows: int) -> None:
        """Move the selection by that many choices."""
        self._at = min(max(self._at + rows, 0), len(self._choices) - 1)
        self._draw()

    def action_change(self) -> None:
        """Change the selected choice."""
        self._choices[self._at].change()
        self._draw()

    def action_save(self) -> None:
        """Save all settings and close."""
        self.dismiss(None)
        self._save()

    def on_click(self, event: Click) -> None:
        """A click on a choice changes it; a click elsewhere closes the box."""
        if not self.is_current:
            return
        if not self._box.region.contains(event.screen_x, event.screen_y):
            self.dismiss(None)
            return
        line = event.screen_y - self._box.region.y - ABOVE
        numbers = [n for n, _ in self._lines(0)][self._top :]
        if 0 <= line < len(numbers) and numbers[line] is not None:
            self._at = numbers[line] or 0
            self.action_change()

    def _draw(self) -> None:
        width = min(self.size.width, WIDEST)
        lines = self._lines(max(0, width - MARGIN))
        room = max(1, self.size.height - EDGES - 1)
        place = next(n for n, (number, _) in enumerate(lines) if number == self._at)
        # The title above the first choice of a section comes into sight with it.
        above = place - 1 if place and lines[place - 1][0] is None else place
        self._top = min(max(self._top, place - room + 1, 0), above)
        visible = [row for _, row in lines[self._top : self._top + room]]
        keys = self._look.line(("Space", "key"), (" show / hide  ", "plain"))
        keys += self._look.line(("F12", "key"), (" save  ", "plain"))
        keys += self._look.line(("Esc", "key"), (" close", "plain"))
        self._show([keys, *visible], width, more=self._top + room < len(lines))

    def _lines(self, width: int) -> list[tuple[int | None, Row]]:
        """Every line with the index of its choice; None for the title of a section."""
        lines: list[tuple[int | None, Row]] = []
        section = ""
        for n, choice in enumerate(self._choices):
            if choice.section != section:
                section = choice.section
                lines.append((None, self._look.line((section, "head"))))
            state = choice.state()
            box = state if isinstance(state, str) else f"[{'x' if state else ' '}]"
            text = f"{box} {choice.name:<{NAME_WIDTH}} {choice.text}"
            style = "selected" if n == self._at else "plain"
            lines.append((n, self._look.cell(text, width, style)))
        return lines
