"""What the device table and the process table have in common: cells with a value and its age."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from tpusmi.model import Snapshot, Value
from tpusmi.report import words
from tpusmi.tui.draw.columns import Item
from tpusmi.tui.draw.look import Look, Row


class Cells(Generic[Item]):
    """Draws cells of devices or processes from the snapshot it was given last."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.snapshot: Snapshot | None = None

    def value(self, name: str, item: Item) -> Value | None:
        """The value of that metric and its witness."""
        if self.snapshot is None or item.key is None:
            return None
        return self.snapshot.values.get((item.key, name))

    def style(self, item: Item, *values: Value | None) -> str:
        """Grey for what is old, and for what is gone."""
        return "dim" if any(v is not None and v.stale for v in values) else "plain"

    def number(self, name: str, read: Callable[[float | None], str]) -> Callable[[Item, int], Row]:
        """How to draw the cells of a column of numbers."""

        def draw(item: Item, width: int) -> Row:
            v = self.value(name, item)
            text = marked(read(None if v is None else v.value), v)
            return self.look.cell(text, width, self.style(item, v), right=True)

        return draw

    def plain(
        self, read: Callable[[Item], str], *, right: bool = False
    ) -> Callable[[Item, int], Row]:
        """How to draw the cells of a column of texts."""

        def draw(item: Item, width: int) -> Row:
            text = read(item) or words.UNKNOWN
            return self.look.cell(text, width, self.style(item), right=right)

        return draw


def marked(text: str, v: Value | None) -> str:
    """An old value in parentheses, for those who do not see that it is grey: `(53%)`."""
    return text if v is None or not v.stale else f"({text.replace(' ', '')})"


def age(seconds: float) -> str:
    """How long ago, in the largest whole unit: `0s`, `59s`, `59m`, `23h`, `9d`."""
    for unit, size_s in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size_s:
            return f"{int(seconds // size_s)}{unit}"
    return f"{max(0, int(seconds))}s"
