"""The help page, made from the bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import ClassVar

from textual.binding import Binding, BindingType

from tpusmi.report import rows, words
from tpusmi.report.columns import DEVICE_COLUMNS, PROCESS_COLUMNS
from tpusmi.tui.draw.lines import EDGES, MARGIN, BoxScreen
from tpusmi.tui.draw.look import SIMULATED, Look, Row, width_of
from tpusmi.tui.keys import key, key_names
from tpusmi.tui.process.process_facts import LETTERS, SILENT, STALE, STOPPED, SUSPECT
from tpusmi.tui.process.process_facts import UNKNOWN as UNKNOWN_PHASE

UNLIMITED = 1000
"""Columns of a line: wider than any text here."""
RIGHT_MOST = 72
"""Columns of the text beside the keys."""
_OF_MEMORY = (
    ("SHARE", "Share of all live arrays."),
    ("RATE", "Growth per minute, over the last five minutes, on all devices."),
    ("CHANGE +/-", "Bytes and arrays: change since the mark."),
)


class HelpScreen(BoxScreen[None]):
    """A box over the dashboard that lists the keys."""

    CSS: ClassVar[str] = "HelpScreen { align: center middle; } #help { height: 1; width: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape,q,question_mark,h,f1,enter", "dismiss", "Close", "close", "Close this page"),
        key("down", "scroll(1)", "Down", "help-down", "Further down"),
        key("up", "scroll(-1)", "Up", "help-up", "Further up"),
        Binding("pagedown,space", "scroll(10)", "Page down", id="help-page-down"),
        Binding("pageup", "scroll(-10)", "Page up", id="help-page-up"),
        Binding("end", "scroll(999)", "End", id="help-end"),
        Binding("home", "scroll(-999)", "Top", id="help-top"),
    ]

    def __init__(self, look: Look, bindings: Iterable[Binding], simulated: bool) -> None:
        super().__init__(look, "help")
        self._keys_of, self._simulated = [*bindings], simulated
        keys = _keys(look, self._keys_of, simulated, UNLIMITED)
        self._wide = side_by_side(look, keys, _rest(look, RIGHT_MOST))

    def _draw(self) -> None:
        text, room = self._wide, self.size.width - MARGIN
        if max(map(width_of, text)) > room:
            text = help_lines(self._look, self._keys_of, self._simulated, room)
        width = min(max(map(width_of, text)) + MARGIN, self.size.width)
        room = min(len(text), max(0, self.size.height - EDGES))
        self._top = min(max(self._top, 0), len(text) - room)
        below = self._top + room
        self._show(text[self._top : below], width, more=below < len(text))


def help_lines(
    look: Look, bindings: Iterable[Binding], simulated: bool, width: int = UNLIMITED
) -> list[Row]:
    """Each key, then what the letters, marks and columns mean, in lines of that width."""
    return [*_keys(look, bindings, simulated, width), (), *_rest(look, width)]


def _rest(look: Look, width: int) -> list[Row]:
    """What the marks and the columns mean."""
    tables = (
        ("devices", [(c.title, c.help) for c in DEVICE_COLUMNS]),
        ("processes", [(c.title, c.help) for c in PROCESS_COLUMNS]),
        ("the memory page", _OF_MEMORY),
    )
    columns = (_columns(look, name, entries, width) for name, entries in tables)
    return [*_marks(look, width), *chain.from_iterable(columns)]


def side_by_side(look: Look, left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    """Two texts as two columns."""
    width = max(map(width_of, left)) + 3
    rows = []
    for a, b in zip_longest(left, right, fillvalue=()):
        gap = look.line((" " * (width - width_of(a)), "plain")) if b else ()
        rows.append((*a, *gap, *b))
    return rows


def _keys(look: Look, bindings: Iterable[Binding], simulated: bool, width: int) -> list[Row]:
    keys: dict[str, list[str]] = {}
    for b in bindings:
        keys.setdefault(b.tooltip, []).extend(key_names(b))
    title = look.line(("Keys", "head"), ("  ", "plain"), (SIMULATED if simulated else "", "loud"))
    return [title, *_entries(look, [(" ".join(n), text) for text, n in keys.items()], width)]


def _entries(look: Look, entries: Sequence[tuple[str, str]], width: int) -> Iterator[Row]:
    """Texts after their names, which have a column of their own."""
    widest = max(len(name) for name, _ in entries)
    for name, text in entries:
        first, *more = look.wrapped(text, width - widest - 2, "plain")
        yield (*look.line((f"{name:>{widest}}  ", "title")), *first)
        yield from ((*look.line((" " * (widest + 2), "plain")), *line) for line in more)


def _marks(look: Look, width: int) -> list[Row]:
    letters = "  ".join(f"{letter} {phase}" for phase, letter in LETTERS.items())
    texts = (
        letters,
        f"{UNKNOWN_PHASE} unknown: it has no agent, or is not verified",
        f"{STALE} left over (stale): holds the TPU and will do no more work",
        f"{SUSPECT} may be left over: its details show the evidence for and against",
        f"{STOPPED} stopped: by SIGSTOP, Ctrl-Z or a debugger",
        f"{SILENT} silent: alive, but its agent stopped writing",
        f"{words.NOT_VERIFIED}: only a file claims that this process exists",
        f"{words.UNKNOWN} not measured; gray: old, of a job that ended, or not verified",
        rows.DITTO_LEGEND,
        "~ = nominal size for this chip type",
    )
    lines = (line for text in texts for line in look.wrapped(text, width, "plain"))
    return [look.line(("Marks", "head")), *lines]


def _columns(
    look: Look, table: str, entries: Sequence[tuple[str, str]], width: int
) -> Iterator[Row]:
    yield from ((), look.line((f"Columns of {table}", "head")))
    yield from _entries(look, entries, width)
