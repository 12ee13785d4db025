"""The command palette: every key's action, found by typing a part of its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.events import Click, Key, Paste

from tpusmi.tui.draw.lines import EDGES, MARGIN, BoxScreen
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.prompt import TypedText
from tpusmi.tui.keymap import in_ascii
from tpusmi.tui.keys import key, key_names

WIDEST = 72
MOST_LINES = 16
_ABOVE = 3
"""Lines of the box above the first command: its edge, the prompt and a blank line."""


class Command(NamedTuple):
    """A line of the palette."""

    binding: Binding
    text: str
    searched: str
    """Every name of it, in small letters."""
    keys: str


class PaletteScreen(BoxScreen["Binding | None"]):
    """A box over the page; returns the binding of the chosen command."""

    CSS: ClassVar[str] = (
        "PaletteScreen { align: center top; } #palette { height: 1; width: 1; margin-top: 2; }"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        key("down,tab", "move(1)", "Down", "palette-down", "Next command"),
        key("up,shift+tab", "move(-1)", "Up", "palette-up", "Previous command"),
        key("pagedown", "move(10)", "Page down", "palette-page-down", "Ten commands down"),
        key("pageup", "move(-10)", "Page up", "palette-page-up", "Ten commands up"),
    ]

    def __init__(self, look: Look, bindings: Sequence[Binding]) -> None:
        super().__init__(look, "palette")
        self._commands = commands_of(bindings)
        self._matches = self._commands
        self._at = 0
        self._typed = TypedText()

    def on_key(self, event: Key) -> None:
        """Typed text is searched for, Enter runs the selected command, Esc closes the box."""
        if not self.is_current:
            return  # a key that came after the one that closed it
        event.stop()
        if event.key == "escape" or (event.key == "enter" and not self._matches):
            self.dismiss(None)
        elif event.key == "enter":
            self.dismiss(self._matches[self._at].binding)
        elif self._typed.take(event):
            self._search()

    def on_paste(self, event: Paste) -> None:
        """Pasted text is searched for like typed text."""
        if self._typed.take(event):
            self._search()

    def on_click(self, event: Click) -> None:
        """A click on a command runs it; a click elsewhere closes the box."""
        if not self.is_current:
            return
        line = event.screen_y - self._box.region.y - _ABOVE + self._top
        inside = self._box.region.contains(event.screen_x, event.screen_y)
        if not inside:
            self.dismiss(None)
        elif self._top <= line < len(self._matches):
            self.dismiss(self._matches[line].binding)

    def action_move(self, rows: int) -> None:
        """Move the selection by that many commands."""
        self._at = min(max(self._at + rows, 0), max(0, len(self._matches) - 1))
        self._draw()

    def _search(self) -> None:
        words = self._typed.text.casefold().split()
        self._at = 0
        matches = [c for c in self._commands if all(word in c.searched for word in words)]
        first = tuple(words[:1])
        # A command with that name comes before one that only mentions it.
        self._matches = sorted(matches, key=lambda c: not c.searched.startswith(first))
        self._draw()

    def _draw(self) -> None:
        width = min(self.size.width, WIDEST)
        inner = max(0, width - MARGIN)
        room = max(0, min(MOST_LINES, self.size.height - EDGES - 4))
        self._top = min(max(self._top, self._at - room + 1, 0), self._at)
        visible = self._matches[self._top : self._top + room]
        lines: list[Row] = [self._typed.row(self._look, ": ", inner), ()]
        for n, command in enumerate(visible):
            style = "selected" if self._top + n == self._at else "plain"
            keys = in_ascii(command.keys) if self._look.only_ascii else command.keys
            room_for_text = max(0, inner - len(keys) - 1)
            cell = self._look.fitted(command.text, room_for_text) + " " + keys
            lines.append(self._look.cell(cell, inner, style))
        if not visible:
            lines.append(self._look.line(("No matching command", "warn")))
        self._show(lines, width, more=self._top + room < len(self._matches))


def commands_of(bindings: Sequence[Binding]) -> list[Command]:
    """Each action once: the text of its first binding, and the keys of all of them."""
    by_action: dict[str, list[Binding]] = {}
    for b in bindings:
        if b.id != "palette":
            by_action.setdefault(b.action, []).append(b)
    return [_command(same) for same in by_action.values()]


def _command(same: Sequence[Binding]) -> Command:
    texts = [_text(b) for b in same]
    return Command(
        binding=same[0],
        text=texts[0],
        searched=" ".join(texts).casefold(),
        keys=" ".join(name for b in same for name in key_names(b)),
    )


def _text(b: Binding) -> str:
    """What it does, after its name if it does not begin with that."""
    is_named = b.tooltip.startswith(b.description)
    return b.tooltip if is_named else f"{b.description}: {b.tooltip}"
