"""The line in which a filter is typed, or a question is answered with one key."""

from __future__ import annotations

from textual.events import Event, Key, Paste
from textual.message import Message

from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Look, Row

FILTER, USER = "Filter", "User"


class Prompt(Lines):
    """One line of text; what is typed takes effect at once, Enter keeps it and Esc drops it."""

    class Typed(Message):
        """The text is another one. `done` when the typing is over."""

        def __init__(self, text: str, done: bool = False, label: str = FILTER) -> None:
            super().__init__()
            self.text, self.done, self.label = text, done, label

    class Answered(Message):
        """The question has got this key; empty for Esc."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, look: Look, id: str) -> None:
        super().__init__(look, id=id)
        self._typed = ""
        self._label = FILTER
        self._asks = False
        self.is_open = False
        """Keys are for this line."""

    def start(self, text: str, label: str = FILTER) -> None:
        """Begin typing, after `text`."""
        self._label, self._asks, self.is_open = label, False, True
        self._take(text)

    def ask(self, question: Row) -> None:
        """Show the question, and answer it with the next key."""
        self._asks = self.is_open = True
        self.show([question])

    def take(self, event: Event) -> None:
        """A key or a paste while the line is open."""
        if self._asks:
            if isinstance(event, Key):
                self.is_open = False
                self._tell(self.Answered("" if event.key == "escape" else event.character or " "))
        elif isinstance(event, Paste):
            self._take(self._typed + " ".join(event.text.split()))
        elif isinstance(event, Key):
            self._press(event)

    def _press(self, key: Key) -> None:
        if key.key in ("enter", "escape"):
            self.is_open = False
            self._typed = self._typed if key.key == "enter" else ""
            self._tell(self.Typed(self._typed, done=True, label=self._label))
        elif key.key == "backspace":
            self._take(self._typed[:-1])
        elif key.key == "ctrl+u":
            self._take("")
        elif key.is_printable and key.character:
            self._take(self._typed + key.character)

    def _take(self, text: str) -> None:
        self._typed = text
        self.show_text(text, typing=True)
        self._tell(self.Typed(text, label=self._label))

    def _tell(self, message: Message) -> None:
        # Right to the screen, and not by way of this widget: a hasty next key goes there, too, and
        # must find done what was typed before it.
        self.screen.post_message(message)

    def show_text(self, text: str, typing: bool) -> None:
        """Show the filter; with a cursor while it is typed."""
        cursor = (" ", "key") if typing else ("  Esc shows all", "dim")
        label = self._label if typing else FILTER
        self.show([self.look.line((f"{label}: ", "title"), (text, "bold"), cursor)])
