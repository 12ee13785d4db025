"""What the device table and the process table have in common: cells with a value and its age."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from tpusmi.model import Snapshot, Subject, Value
from tpusmi.report import words
from tpusmi.tui.look import Look, Row


class Keyed(Protocol):
    """A device or a process."""

    @property
    def key(self) -> Subject:
        """What its values are filed under."""


Thing = TypeVar("Thing", bound=Keyed)


class Cells(Generic[Thing]):
    """Draws cells of things from the snapshot it was given last."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.snapshot: Snapshot | None = None

    def value(self, name: str, thing: Thing) -> Value | None:
        """The value of that metric and its witness."""
        return None if self.snapshot is None else self.snapshot.values.get((thing.key, name))

    def style(self, thing: Thing, *values: Value | None) -> str:
        """Grey for what is old, and for things that are gone."""
        return "dim" if any(v is not None and v.stale for v in values) else "plain"

    def number(self, name: str, read: Callable[[float | None], str]) -> Callable[[Thing, int], Row]:
        """How to draw the cells of a column of numbers."""

        def draw(thing: Thing, width: int) -> Row:
            v = self.value(name, thing)
            text = read(None if v is None else v.value)
            return self.look.cell(text, width, self.style(thing, v), right=True)

        return draw

    def plain(self, read: Callable[[Thing], str]) -> Callable[[Thing, int], Row]:
        """How to draw the cells of a column of texts."""

        def draw(thing: Thing, width: int) -> Row:
            return self.look.cell(read(thing) or words.UNKNOWN, width, self.style(thing))

        return draw


def age(seconds: float) -> str:
    """How long ago, in the largest whole unit: `0s`, `59s`, `59m`, `23h`, `9d`."""
    for unit, size_s in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size_s:
            return f"{int(seconds // size_s)}{unit}"
    return f"{max(0, int(seconds))}s"
