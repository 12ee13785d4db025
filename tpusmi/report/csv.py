"""Chosen fields as CSV, the way nvidia-smi prints it."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.model import Device, Process, Snapshot
from tpusmi.report.fields import Field, FieldValue

MISSING = "[N/A]"


class Layout(NamedTuple):
    """`--format=csv[,noheader][,nounits]`."""

    header: bool = True
    units: bool = True


class QueryError(ValueError):
    """A query or format that cannot be answered, with the reason in a sentence."""


def parse_query(text: str, fields: dict[str, Field]) -> list[tuple[str, Field]]:
    """The fields named in `a,b,c`, each under the name it was asked by. Raises QueryError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in fields]
    if unknown or not names:
        raise QueryError(f'Field "{unknown[0] if unknown else ""}" is not a valid field to query.')
    return [(name, fields[name]) for name in names]


def parse_format(text: str) -> Layout:
    """The layout named by `csv[,noheader][,nounits]`. Raises QueryError."""
    words = [word.strip() for word in text.split(",")]
    unknown = [w for w in words if w not in ("csv", "noheader", "nounits")]
    if unknown or "csv" not in words:
        raise QueryError(f'format "{text}" is not csv[,noheader][,nounits]')
    return Layout("noheader" not in words, "nounits" not in words)


def header(columns: Sequence[tuple[str, Field]], layout: Layout) -> str:
    """The first line: names with their units."""
    return ", ".join(f"{n} [{f.unit}]" if f.unit and layout.units else n for n, f in columns) + "\n"


def rows(
    s: Snapshot,
    of: Sequence[Device | Process],
    columns: Sequence[tuple[str, Field]],
    layout: Layout,
) -> str:
    """One line per device or process."""
    lines = (", ".join(_cell(f.of(s, row), f.unit, layout) for _, f in columns) for row in of)
    return "".join(line + "\n" for line in lines)


def _cell(value: FieldValue, unit: str, layout: Layout) -> str:
    if value is None:
        return MISSING
    text = f"{value:.6g}" if isinstance(value, float) else str(value).replace(",", ";")
    return f"{text} {unit}" if unit and layout.units else text
