"""The line in which a filter is typed."""

from __future__ import annotations

from textual.events import Event, Key, Paste
from textual.message import Message

from tpusmi.tui.lines import Lines
from tpusmi.tui.look import Look


class Prompt(Lines):
    """One line of text; what is typed takes effect at once, Enter keeps it and Esc drops it."""

    class Typed(Message):
        """The text is another one. `done` when the typing is over."""

        def __init__(self, text: str, done: bool = False) -> None:
            super().__init__()
            self.text = text
            self.done = done

    def __init__(self, look: Look, id: str) -> None:
        super().__init__(look, id=id)
        self._typed = ""

    def start(self, text: str) -> None:
        """Begin typing, after `text`."""
        self._take(text)

    def take(self, event: Event) -> None:
        """A key or a paste while it is typed."""
        if isinstance(event, Paste):
            self._take(self._typed + " ".join(event.text.split()))
        elif isinstance(event, Key):
            self._press(event)

    def _press(self, key: Key) -> None:
        if key.key in ("enter", "escape"):
            self._typed = self._typed if key.key == "enter" else ""
            self.post_message(self.Typed(self._typed, done=True))
        elif key.key == "backspace":
            self._take(self._typed[:-1])
        elif key.key == "ctrl+u":
            self._take("")
        elif key.is_printable and key.character:
            self._take(self._typed + key.character)

    def _take(self, text: str) -> None:
        self._typed = text
        self.show_text(text, typing=True)
        self.post_message(self.Typed(text))

    def show_text(self, text: str, typing: bool) -> None:
        """Show the filter; with a cursor while it is typed."""
        cursor = (" ", "key") if typing else ("  Esc shows all", "dim")
        self.show([self.look.line(("Filter: ", "title"), (text, "bold"), cursor)])
