"""The help page: keys in groups, made from the bindings, then words, marks and columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import ClassVar

from textual.binding import Binding, BindingType

from tpusmi.tui.draw.lines import EDGES, MARGIN, BoxScreen
from tpusmi.tui.draw.look import SIMULATED, Look, Row, width_of
from tpusmi.tui.help_text import FILTERS, Section, columns_of, marks, sections, words_of
from tpusmi.tui.keymap import in_ascii
from tpusmi.tui.keys import key

GAP = 4
"""Blank columns between two columns of text."""
TWO_FROM, THREE_FROM = 76, 150
"""Widths that have room for two columns of text, and for three."""
COLUMN_MOST = 64
"""The greatest width of a column of text."""
NAME_MOST = 10
"""A longer name, such as many keys, takes some of the room for its text."""

Block = Sequence[Row]
"""Lines that stay together."""


class HelpScreen(BoxScreen[None]):
    """A box over the dashboard that lists the keys."""

    CSS: ClassVar[str] = "HelpScreen { align: center middle; } #help { height: 1; width: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape,q,question_mark,h,f1,enter", "dismiss", "Close", "close", "Close this page"),
        key("down", "scroll(1)", "Down", "help-down", "Further down"),
        key("up", "scroll(-1)", "Up", "help-up", "Further up"),
        key("pagedown,space", "page(1)", "Page down", "help-page-down", "Next page"),
        key("pageup", "page(-1)", "Page up", "help-page-up", "Previous page"),
        key("end", "scroll(999)", "End", "help-end", "End"),
        key("home", "scroll(-999)", "Top", "help-top", "Top"),
    ]

    def __init__(
        self,
        look: Look,
        bindings: Iterable[Binding],
        simulated: bool,
        page: str = "",
        below: Sequence[Section] | None = None,
    ) -> None:
        """`below` are the sections below the keys; None for those of a page of a host."""
        super().__init__(look, "help")
        self._below = _below(look, page) if below is None else below
        self._keys_of, self._simulated, self._page = [*bindings], simulated, page
        self._visible = 1

    def action_page(self, pages: int) -> None:
        """Move the text by that many screens."""
        self.action_scroll(pages * self._visible)

    def _draw(self) -> None:
        room = self.size.width - MARGIN
        text = _all_lines(self._look, self._keys_of, self._below, room)
        text = [self._title(), *text]
        width = min(max(map(width_of, text)) + MARGIN, self.size.width)
        self._visible = min(len(text), max(0, self.size.height - EDGES))
        self._top = min(max(self._top, 0), len(text) - self._visible)
        below = self._top + self._visible
        self._show(text[self._top : below], width, more=below < len(text))

    def _title(self) -> Row:
        return self._look.line(
            (SIMULATED if self._simulated else "", "loud"),
            (" " if self._simulated else "", "plain"),
            ("Help", "head"),
            (f" of the {self._page or 'main'} page", "plain"),
            ("  PgDn: words, marks, columns", "dim"),
        )


def help_lines(look: Look, bindings: Iterable[Binding], page: str, width: int) -> list[Row]:
    """Keys, then words, marks and the columns of that page, in lines of that width."""
    return _all_lines(look, bindings, _below(look, page), width)


def _below(look: Look, page: str) -> list[Section]:
    """Filters, words, marks and the columns of a page of a host."""
    filters = [FILTERS] if page == "" else []
    return [*filters, words_of(page), marks(look.glyphs), *columns_of(page)]


def _all_lines(
    look: Look, bindings: Iterable[Binding], below: Sequence[Section], width: int
) -> list[Row]:
    count = 1 if width < TWO_FROM else 2 if width < THREE_FROM else 3
    each = min(COLUMN_MOST, (width - GAP * (count - 1)) // count)
    keys = [[*_lines(look, section, each)] for section in _keys(look, bindings)]
    rest = [entry for section in below for entry in _blocks(look, section, each)]
    return [*in_columns(look, keys, count, each), (), *in_columns(look, rest, count, each)]


def _keys(look: Look, bindings: Iterable[Binding]) -> Iterator[Section]:
    for section in sections(bindings):
        texts = [
            (in_ascii(keys) if look.only_ascii else keys, text) for keys, text in section.entries
        ]
        yield section._replace(entries=tuple(texts))


def in_columns(look: Look, blocks: Sequence[Block], count: int, width: int) -> list[Row]:
    """The blocks in that many columns, top to bottom and left to right, as low as possible."""
    height = max(-(-sum(map(len, blocks)) // count), max(map(len, blocks), default=0))
    while len(columns := _filled(blocks, height)) > count:
        height += 1
    lines = []
    for cells in zip_longest(*columns, fillvalue=()):
        *before, last = cells
        line: list[Row] = [
            (*cell, *look.line((" " * (width + GAP - width_of(cell)), "plain"))) for cell in before
        ]
        lines.append(tuple(piece for cell in (*line, last) for piece in cell))
    return lines


def _filled(blocks: Sequence[Block], height: int) -> list[list[Row]]:
    """Columns of at most that height; the first rows of a column are not blank."""
    columns: list[list[Row]] = [[]]
    for block in blocks:
        if len(columns[-1]) + len(block) > height:
            columns.append([])
        columns[-1] += block
    return columns


def _lines(look: Look, section: Section, width: int) -> Iterator[Row]:
    for block in _blocks(look, section, width):
        yield from block


def _blocks(look: Look, section: Section, width: int) -> Iterator[Block]:
    """An entry after the other; the title is with the first."""
    longest = max((len(name) for name, _ in section.entries), default=0)
    widest = min(longest, NAME_MOST) if longest > NAME_MOST + 4 else longest
    title: tuple[Row, ...] = (look.line((section.title, "head")),)
    for name, text in section.entries:
        yield (*title, *_entry(look, name, text, widest, width))
        title = ()


def _entry(look: Look, name: str, text: str, widest: int, width: int) -> Iterator[Row]:
    """A text after its name. The lines that follow begin below its first."""
    if len(name) > widest and len(name) + 2 + len(text) > width:
        # No room beside the name: the text is below it.
        yield from look.wrapped(name, width, "title")
        yield from look.wrapped(text, width, "plain", " " * (widest + 2))
        return
    first, *more = look.wrapped(text, width - max(widest, len(name)) - 2, "plain")
    yield (*look.line((f"{name:<{widest}}  ", "title")), *first)
    yield from ((*look.line((" " * (widest + 2), "plain")), *line) for line in more)
