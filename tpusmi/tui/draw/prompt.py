"""The line in which a filter is typed, or a question is answered with one key.

Textual's Input is not used: it gets keys only once it has the focus, which is too late for a fast
hand (see `Dashboard.on_event`), and its blinking cursor repaints a screen that stands still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.cells import cell_len
from textual.events import Event, Key, Paste
from textual.message import Message

from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Look, Row, width_of

FILTER, USER = "Filter", "User"
LONGEST = 1000
"""Characters of the line: it is read again for every process at every key. More are not taken."""


class TypedText:
    """A line of text with a cursor, edited with the usual keys of terminals."""

    def __init__(self, text: str = "") -> None:
        self.text, self.cursor = text, len(text)

    def take(self, event: Event) -> bool:
        """Edit the text; False for an event that edits nothing."""
        if isinstance(event, Paste):
            self._insert(" ".join(event.text[:LONGEST].split()))
        elif not isinstance(event, Key):
            return False
        elif event.key in _EDITS:
            start, end = _EDITS[event.key](self.text, self.cursor)
            self.text, self.cursor = self.text[:start] + self.text[end:], start
        elif event.key in _MOVES:
            self.cursor = _MOVES[event.key](self.text, self.cursor)
        elif event.is_printable and event.character:
            self._insert(event.character)
        else:
            return False
        return True

    def row(self, look: Look, label: str, width: int) -> Row:
        """The text behind its label, with the cursor in sight."""
        before, after = self.text[: self.cursor], self.text[self.cursor + 1 :]
        before = before[max(0, len(before) + len(label) + 1 - max(width, 1)) :]
        under = self.text[self.cursor : self.cursor + 1] or " "
        return look.line((label, "title"), (before, "bold"), (under, "key"), (after, "bold"))

    def _insert(self, text: str) -> None:
        text = text[: max(0, LONGEST - len(self.text))]
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)


def _word_left(text: str, at: int) -> int:
    before = text[:at].rstrip()
    return before.rfind(" ") + 1


def _word_right(text: str, at: int) -> int:
    after = text[at:]
    start = len(after) - len(after.lstrip())
    end = after.find(" ", start)
    return len(text) if end < 0 else at + end


# fmt: off
_MOVES: dict[str, Callable[[str, int], int]] = {
    **dict.fromkeys(("left", "ctrl+b"), lambda text, at: max(0, at - 1)),
    **dict.fromkeys(("right", "ctrl+f"), lambda text, at: min(len(text), at + 1)),
    **dict.fromkeys(("home", "ctrl+a"), lambda text, at: 0),
    **dict.fromkeys(("end", "ctrl+e"), lambda text, at: len(text)),
    **dict.fromkeys(("ctrl+left", "alt+b"), _word_left),
    **dict.fromkeys(("ctrl+right", "alt+f"), _word_right),
}
"""Where the cursor goes."""
_EDITS: dict[str, Callable[[str, int], tuple[int, int]]] = {
    "backspace": lambda text, at: (max(0, at - 1), at),
    **dict.fromkeys(("delete", "ctrl+d"), lambda text, at: (at, at + 1)),
    **dict.fromkeys(("ctrl+w", "alt+backspace"), lambda text, at: (_word_left(text, at), at)),
    "ctrl+u": lambda text, at: (0, at),
    "ctrl+k": lambda text, at: (at, len(text)),
}
"""What is deleted: from where, to where."""
# fmt: on


class Prompt(Lines):
    """One line of text. It takes effect as it is typed; Enter keeps it and Esc drops it."""

    @dataclass
    class Typed(Message):
        """The text has changed. `done` when the typing is over."""

        text: str
        label: str
        done: bool = False

    @dataclass
    class Answered(Message):
        """The question was answered with this key; empty for Esc."""

        key: str

    def __init__(
        self, look: Look, id: str, problem: Callable[[str], str] = lambda text: ""
    ) -> None:
        super().__init__(look, id=id)
        self._problem = problem
        """What is wrong with a filter; empty if nothing is."""
        self._typed = TypedText()
        self._label = FILTER
        self._asks = False
        self.is_open = False
        """Keys are for this line."""
        self.wanted_lines = 1
        """Lines that a question needs."""

    def start(self, text: str, label: str = FILTER) -> None:
        """Begin typing, after `text`."""
        self._label, self._asks, self.is_open, self.wanted_lines = label, False, True, 1
        self._typed = TypedText(text)
        self._report()

    def ask(self, *question: Row) -> None:
        """Show the question, and answer it with the next key."""
        self._asks = self.is_open = True
        self.wanted_lines = len(question)
        self.show(question)

    def ask_order(self, columns: Mapping[str, str]) -> None:
        """Ask by which column to sort: titles by the keys that choose them."""
        words = [("key", letter, title) for letter, title in columns.items()]
        parts = [*words, ("dim", "capital:", "reversed"), ("dim", "Esc:", "cancel")]
        lines: list[list[tuple[str, str]]] = [[("Sort", "title")]]
        width, used = self.screen.size.width, len("Sort")
        for style, before, text in parts:
            room = cell_len(f"  {before} {text}")
            if used + room > width:
                lines.append([])
                used = 0
            gap = "  " if lines[-1] else ""
            rest = "dim" if style == "dim" else "plain"
            lines[-1] += [(gap, "plain"), (before, style), (f" {text}", rest)]
            used += room - len("  ") + len(gap)
        self.ask(*(self.look.line(*line) for line in lines))

    def take(self, event: Event) -> None:
        """Handle a key or a paste while the line is open."""
        if self._asks:
            if isinstance(event, Key):
                self.is_open = False
                self._post(self.Answered("" if event.key == "escape" else event.character or " "))
        elif isinstance(event, Key) and event.key in ("enter", "escape"):
            self.is_open = False
            text = self._typed.text if event.key == "enter" else ""
            self._post(self.Typed(text, self._label, done=True))
        elif self._typed.take(event):
            self._report()

    def _report(self) -> None:
        text, width = self._typed.text, self.screen.size.width
        note = self._note(text) if self._label == FILTER else ()
        room = max(width - width_of(note), width // 2)
        self.show([(*self._typed.row(self.look, f"{self._label}: ", room), *note)])
        self._post(self.Typed(self._typed.text, self._label))

    def _post(self, message: Message) -> None:
        # Right to the screen, and not by way of this widget: a hasty next key goes there as well,
        # and must find done what was typed before it.
        self.screen.post_message(message)

    def show_filter(self, text: str) -> None:
        """Show the filter while it is not being typed."""
        line = self.look.line((f"{FILTER}: ", "title"), (text, "bold"), ("  Esc: show all", "dim"))
        self.show([(*line, *self._note(text))])

    def _note(self, text: str) -> Row:
        problem = self._problem(text)
        return self.look.line(("  ! ", "bad"), (problem, "warn")) if problem else ()
