"""xprof's pages as tables of Python values. Pure; trusts nothing in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

ROWS_MOST, COLUMNS_MOST, TABLES_MOST = 200_000, 200, 50
NUMBER_TEXT_MOST = 64
SMALLEST, LARGEST = 1e-100, 1e30
"""What is nearer to 0 is 0: xprof begins its search for a maximum with the smallest double. No
number above the largest is one.
"""


class PageTable(NamedTuple):
    """One table of a page."""

    columns: frozenset[str]
    """The ids of its columns, which differ from one version of xprof to the next."""
    rows: tuple[Mapping[str, Any], ...]
    """The value of each column by its id."""
    properties: Mapping[str, Any]


def tables(page: Any) -> list[PageTable]:
    """The tables of a page; those that are malformed are left out."""
    candidates = page if isinstance(page, list) else [page]
    return [t for t in map(_table, candidates[:TABLES_MOST]) if t is not None]


def with_column(page: Any, *columns: str) -> PageTable | None:
    """The first table of a page that has all these columns; None when none has."""
    return next((t for t in tables(page) if t.columns.issuperset(columns)), None)


def property_of(page: Any, name: str) -> Any:
    """That property, from the first table that has it; None when none has."""
    return next((t.properties[name] for t in tables(page) if name in t.properties), None)


def number(value: Any) -> float | None:
    """A number: of a number, or of a text such as `15.7%`. None for anything else."""
    if isinstance(value, str) and len(value) <= NUMBER_TEXT_MOST:
        value = value.strip().removesuffix("%")
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        result = float(value)
    except (ValueError, OverflowError):
        return None
    if not abs(result) <= LARGEST:  # nor if it is not a number
        return None
    return 0.0 if abs(result) < SMALLEST else result


def measured(value: Any) -> float | None:
    """A number above 0, else None: xprof prints 0 for what it has not measured."""
    result = number(value)
    return result if result is not None and result > 0 else None


def scaled(value: Any, unit: float) -> float | None:
    """The same in our own unit: `unit` is how much of it the page's is."""
    result = measured(value)
    return None if result is None else result * unit


def amount(value: Any) -> float:
    """A number, at least 0; 0 for anything else."""
    return max(0.0, number(value) or 0.0)


def count(value: Any) -> int:
    """A whole number, at least 0; 0 for anything else."""
    result = number(value)
    return int(result) if result is not None and 0 <= result < 2**63 else 0


def members(value: Any, *path: str) -> Any:
    """The member at the end of that path of objects; None when there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list."""
    items: Iterable[Any] = value if isinstance(value, list) else ()
    return (item for item in items if isinstance(item, dict))


def _table(table: Any) -> PageTable | None:
    if not isinstance(table, dict) or not isinstance(table.get("cols"), list):
        return None
    columns = [str(c.get("id")) for c in objects(table["cols"][:COLUMNS_MOST])]
    properties = table.get("p")
    return PageTable(
        columns=frozenset(columns),
        rows=tuple(_rows(columns, table.get("rows"))),
        properties=properties if isinstance(properties, dict) else {},
    )


def _rows(columns: list[str], rows: Any) -> Iterator[Mapping[str, Any]]:
    for row in objects(rows[:ROWS_MOST] if isinstance(rows, list) else None):
        cells = row.get("c")
        if isinstance(cells, list):
            values = [c.get("v") if isinstance(c, dict) else None for c in cells]
            yield dict(zip(columns, values, strict=False))
