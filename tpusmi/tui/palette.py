"""The command palette: every key's action by its name, found by typing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click, Key, Paste
from textual.screen import ModalScreen

from tpusmi.tui.draw.lines import EDGES, MARGIN, Lines, framed
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.keys import key, key_names

WIDEST = 72
MOST_LINES = 16
_ABOVE = 3
"""Lines of the box above the first command: its edge, the prompt and a blank one."""


class PaletteScreen(ModalScreen["Binding | None"]):
    """A box over the page; gives the binding whose action is wanted."""

    CSS: ClassVar[str] = (
        "PaletteScreen { align: center top; } #palette { height: 1; width: 1; margin-top: 2; }"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        key("down,tab", "move(1)", "Down", "palette-down", "The next command"),
        key("up,shift+tab", "move(-1)", "Up", "palette-up", "The command before"),
        key("pagedown", "move(10)", "Page down", "palette-page-down", "Ten commands on"),
        key("pageup", "move(-10)", "Page up", "palette-page-up", "Ten commands back"),
    ]

    def __init__(self, look: Look, bindings: Sequence[Binding]) -> None:
        super().__init__()
        self._look = look
        self._every = _commands(bindings)
        self._found = self._every
        self._at = 0
        self._top = 0
        self._box = Lines(look, id="palette")
        self._typed = ""

    def compose(self) -> ComposeResult:
        yield self._box

    def on_resize(self) -> None:
        self._draw()

    def on_key(self, event: Key) -> None:
        """Text is searched for, Enter runs what is chosen, Esc closes."""
        if not self.is_current:
            return  # a key that came after the one that closed it
        event.stop()
        if event.key == "escape" or (event.key == "enter" and not self._found):
            self.dismiss(None)
        elif event.key == "enter":
            self.dismiss(self._found[self._at][0])
        elif event.key == "backspace":
            self._search(self._typed[:-1])
        elif event.is_printable and event.character:
            self._search(self._typed + event.character)

    def on_paste(self, event: Paste) -> None:
        """Pasted text is typed text."""
        self._search(self._typed + " ".join(event.text.split()))

    def on_click(self, event: Click) -> None:
        """On a command it is run, elsewhere the box is closed."""
        if not self.is_current:
            return
        line = event.screen_y - self._box.region.y - _ABOVE + self._top
        inside = self._box.region.contains(event.screen_x, event.screen_y)
        if not inside:
            self.dismiss(None)
        elif self._top <= line < len(self._found):
            self.dismiss(self._found[line][0])

    def action_move(self, rows: int) -> None:
        """Choose a command further on."""
        self._at = min(max(self._at + rows, 0), max(0, len(self._found) - 1))
        self._draw()

    def _search(self, text: str) -> None:
        words = text.casefold().split()
        self._typed, self._at = text, 0
        found = [c for c in self._every if all(word in c[1].casefold() for word in words)]
        # What is called that comes before what only speaks of it.
        self._found = sorted(found, key=lambda c: not c[1].casefold().startswith(tuple(words[:1])))
        self._draw()

    def _draw(self) -> None:
        width = min(self.size.width, WIDEST)
        inner = max(0, width - MARGIN)
        room = max(0, min(MOST_LINES, self.size.height - EDGES - 4))
        self._top = min(max(self._top, self._at - room + 1, 0), self._at)
        shown = self._found[self._top : self._top + room]
        typed = self._look.line((": ", "title"), (self._typed, "bold"), (" ", "key"))
        lines: list[Row] = [typed, ()]
        for n, (binding, text) in enumerate(shown):
            names = " ".join(key_names(binding))
            style = "selected" if self._top + n == self._at else "plain"
            room_for_text = max(0, inner - len(names) - 1)
            cell = self._look.fitted(text, room_for_text) + " " + names
            lines.append(self._look.cell(cell, inner, style))
        if not shown:
            lines.append(self._look.line(("No command is called that.", "warn")))
        self._box.styles.width, self._box.styles.height = width, len(lines) + EDGES
        more = self._top + room < len(self._found)
        self._box.show(framed(self._look, lines, width, more=more))


def _commands(bindings: Sequence[Binding]) -> list[tuple[Binding, str]]:
    """Each binding with its name and what it does."""
    return [(b, f"{b.description}: {b.tooltip}") for b in bindings if b.id != "palette"]
