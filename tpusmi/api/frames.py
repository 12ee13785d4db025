"""A snapshot as a table of pandas: tidy, one row for each thing, one column for each number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tpusmi.api.item import meant
from tpusmi.api.kinds import annotated, object_kinds
from tpusmi.model.jsonobject import JsonObject

if TYPE_CHECKING:
    import pandas

KINDS = {
    "devices": "Device",
    "processes": "Process",
    "sites": "Site",
    "chips": "Chip",
    "warnings": "Notice",
    "sources": "Source",
}
"""The class of the rows of each table."""
TYPES = {"int": "Int64", "float": "Float64", "bool": "boolean", "str": "string"}
"""The types of pandas by Python's, all of which know a missing value; `object` for the others."""


def frame(plain: dict[str, Any], rows: str) -> pandas.DataFrame:
    """The table of these rows of an object of `tpusmi --json`."""
    if not isinstance(rows, str):
        raise TypeError(f'to_pandas("devices") takes the name of the rows, not {rows!r}')
    if rows not in KINDS:
        raise ValueError(f"to_pandas() has no rows {rows!r}{meant(rows, KINDS)}")
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas() needs pandas: pip install pandas") from None
    items = _sites(plain) if rows == "sites" else plain[rows]
    when = pandas.Series([plain["host"]["time"]] * len(items), dtype="datetime64[ns, UTC]")
    host = pandas.array([plain["host"]["name"]] * len(items), dtype="string")
    columns = dict(_columns(object_kinds()[KINDS[rows]].keys))
    if rows == "sites":
        columns = {"pid": "Int64", **columns}
    return pandas.DataFrame(
        {"time": when, "host": host}
        | {
            name: pandas.Series([_at(item, name) for item in items], dtype=kind)
            for name, kind in columns.items()
        }
    )


def _columns(kind: JsonObject) -> Iterator[tuple[str, str]]:
    """The names of plain values and their types in pandas; a list of them is one value."""
    for key in kind.keys:
        if not isinstance(key.kind, JsonObject):
            annotation = annotated(key.kind).removesuffix(" | None")
            if not annotation.startswith("dict"):
                word = "str" if annotation.startswith("Literal") else annotation
                yield key.name, "object" if key.is_list else TYPES.get(word, "object")
    for m in kind.metrics:
        yield m.name, "Int64" if m.is_integer else "Float64"


def _sites(plain: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of code of all processes, each with the pid."""
    profiles = [(p["pid"], p["memory_profile"]) for p in plain["processes"]]
    return [
        {"pid": pid, **site} for pid, profile in profiles if profile for site in profile["sites"]
    ]


def _at(item: dict[str, Any], name: str) -> Any:
    whole, _, part = name.partition(".")
    value = item[whole][part] if part else item[whole]
    return tuple(value) if isinstance(value, list) else value
