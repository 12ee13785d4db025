"""Comparisons in a filter, such as `mxu<30`: columns by their titles, with a number and a unit."""

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from tpusmi.model import DEVICE, METRICS, PROCESS, Process
from tpusmi.nearest import nearest
from tpusmi.report import rows
from tpusmi.report.columns import DEVICE_COLUMNS, PROCESS_COLUMNS, ColumnSpec
from tpusmi.report.rows import IndexedSnapshot

WORD_MOST = 80
"""Characters of the longest word that can be a comparison."""
HBM = "hbm"
"""Memory in use on a device, in percent of its limit."""
_WORD = re.compile(r"([a-z][a-z0-9/ ]{0,15})(<=|>=|<|>)(.{0,40})")
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{0,9})?)\s?([a-zµ%/]{0,4})")
_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_KIB = 1024.0
# fmt: off
_FACTORS = {
    "s": {"": 1.0, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0,
          "h": 3600.0, "d": 86400.0},
    "bytes": {"b": 1.0, "k": _KIB, "kib": _KIB, "m": _KIB**2, "mib": _KIB**2,
              "g": _KIB**3, "gib": _KIB**3, "t": _KIB**4, "tib": _KIB**4},
    "percent": {"": 1.0, "%": 1.0},
    "count": {"": 1.0},
    "1/s": {"": 1.0, "/s": 1.0},
}
# fmt: on
_EXAMPLES = {"s": "0.5s, 90ms, 5min", "bytes": "10GiB, 500MiB", "percent": "30 or 30%"}
_UNITS = {
    **{m.title: m.unit for scope in (DEVICE, PROCESS) for m in METRICS if m.scope == scope},
    "MEMORY": "bytes", "RSS": "bytes", "CPU": "percent", "TIME": "s", "AGE": "s",
}  # fmt: skip


class ComparisonError(ValueError):
    """What is wrong with a comparison, in a few words."""


class Comparison(NamedTuple):
    """One comparison of a filter."""

    name: str
    """The title of a column in small letters, or HBM."""
    compare: Callable[[float, float], bool]
    number: float
    """In the unit of the column: bytes, seconds, percent."""

    def holds(self, values: Collection[float]) -> bool:
        """True if it holds for one of the values; without a known value it does not."""
        return any(self.compare(value, self.number) for value in values)


def _comparable(columns: Collection[ColumnSpec]) -> dict[str, ColumnSpec]:
    return {c.title.casefold(): c for c in columns if c.title in _UNITS and c.get is not None}


_OF_PROCESS, _OF_DEVICE = _comparable(PROCESS_COLUMNS), _comparable(DEVICE_COLUMNS)
NAMES = (*dict.fromkeys((*_OF_PROCESS, *_OF_DEVICE)), HBM)
"""What can be compared: titles of columns in small letters."""


def comparison(word: str, units: Mapping[str, str] | None = None) -> Comparison | None:
    """The comparison that a word is; None for other text. `units` are those of what can be
    compared, the columns of a host without it. Raises ComparisonError for one that is not complete
    or not right.
    """
    units = _UNITS_OF_COLUMNS if units is None else units
    match = _WORD.fullmatch(word.casefold()[: WORD_MOST + 1])
    if match is None:
        return None
    name, sign, text = match.groups()
    if name not in units:
        near = nearest(name, [*units])
        hint = f"; did you mean {near}?" if near else f"; columns are {', '.join(units)}"
        raise ComparisonError(f"no column {name}{hint}")
    return Comparison(name, _OPERATORS[sign], _number(name + sign, units[name], text))


def _unit(name: str) -> str:
    column = _OF_PROCESS.get(name) or _OF_DEVICE.get(name)
    return "percent" if column is None else _UNITS[column.title]


_UNITS_OF_COLUMNS = {name: _unit(name) for name in NAMES}


def _number(before: str, unit: str, text: str) -> float:
    example = _EXAMPLES.get(unit, "3")
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ComparisonError(f"{before} needs a number: {example}")
    factor = _FACTORS[unit].get(match[2])
    if factor is None and (match[2] or float(match[1])):
        raise ComparisonError(f"{before} needs a unit: {example}")
    return float(match[1]) * (factor or 1.0)


def values(at: IndexedSnapshot, p: Process, name: str) -> list[float]:
    """The known values of that column: the process's own, or one for each of its devices."""
    if name in _OF_PROCESS:
        return [*_orders(at, _OF_PROCESS[name], [p])]
    devices = at.devices_of(p.key)
    if name == HBM:
        shares = (rows.memory(at.snapshot, d).share for d in devices)
        return [100 * share for share in shares if share is not None]
    return [*_orders(at, _OF_DEVICE[name], devices)]


def _orders(at: IndexedSnapshot, column: ColumnSpec, items: Collection[object]) -> Iterator[float]:
    for item in items:
        order = None if column.get is None else column.get(at, item).order
        if isinstance(order, int | float):
            yield order
