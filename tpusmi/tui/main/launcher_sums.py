"""What the processes under a launcher have together: only where it is known of all of them."""

from __future__ import annotations

from tpusmi.report import words
from tpusmi.report.family import Branch
from tpusmi.report.rows import IndexedSnapshot, memory_of_process


def sum_text(at: IndexedSnapshot | None, launcher: Branch, title: str) -> str:
    """The sum in the column of that title; empty without one."""
    if at is None or not launcher.below:
        return ""
    return {"MEMORY": _memory, "DEVICES": _devices}.get(title, _nothing)(at, launcher)


def _memory(at: IndexedSnapshot, launcher: Branch) -> str:
    parts = [memory_of_process(at.snapshot, p) for p in launcher.below]
    values = [value.value for value, _ in parts if value is not None and not value.stale]
    notes = {note for _, note in parts}
    if len(values) < len(parts) or len(notes) > 1:
        return ""
    return words.size(sum(values)) + notes.pop()


def _devices(at: IndexedSnapshot, launcher: Branch) -> str:
    of_each = [[d.number for d in at.devices_of(p.key)] for p in launcher.below]
    return words.ranges([n for numbers in of_each for n in numbers]) if all(of_each) else ""


def _nothing(at: IndexedSnapshot, launcher: Branch) -> str:
    return ""
