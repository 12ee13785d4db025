"""What libtpu's SDK prints for each metric, as readings, latencies and links. Pure; not one of its
strings is trusted.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tpusmi.model import (
    LIBTPU_SDK,
    SDK_SERVER,
    Latency,
    Link,
    Number,
    Percentiles,
    Reading,
    RowKey,
    within,
)
from tpusmi.sources.libtpu.decode import DEVICES_MOST, LABELS_MOST
from tpusmi.sources.libtpu.names import (
    EXECUTION,
    GAUGE,
    LATENCY,
    LINKS,
    ORDINAL,
    THROTTLE,
    VALUE_MOST,
    Name,
    sane,
)
from tpusmi.text import clean

ITEMS_MOST = 4096
ITEM_LENGTH_MOST = 256
NO_CHIP = -1
"""Of a link whose name does not tell which chip of the host it is of."""
HEALTH_MOST = 10
THROTTLE_STEP_PERCENT = 10.0
DISTRIBUTION = ("mean", "p50", "p90", "p95", "p999")

_CORE = r"(?:tpu_core_type_)?tensor_?core"
_ORDINAL = rf"(?:[0-9]+[-_])?(?:{_CORE}[-_])?([0-9]{{1,9}})(?:[-_]{_CORE})?"
"""libtpu joins attributes as its server sends them: `8-tensorcore`, `tensorcore-8`; its manual says
`tensorcore_8`."""
_OTHER_CORE = r"[0-9]+[-_][a-z].*|[a-z].*[-_][0-9]+"
_CHIP = r"(?:tray([0-9]{1,9})\.)?chip([0-9]{1,9})(?:\..*)?"
_TRAY_CHIP_SCORE = r"([0-9]{1,9})-([0-9]{1,9})\s*:\s*([0-9]{1,9})"
_DEVICE_SCORE = r"([0-9]{1,9})-([0-9]{1,9})"
_SIZE = r"[0-9]+\s*[KMGT]?i?B\+?"
_NUMBER = r"[+-]?[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?"

Row = tuple[int, int]
"""Tray and chip."""


class Parsed(NamedTuple):
    """What one metric said."""

    readings: tuple[Reading, ...] = ()
    latencies: tuple[Latency, ...] = ()
    links: tuple[Link, ...] = ()
    senseless: int = 0
    """Of its strings that make no sense."""


def parse(name: Name, data: object, at_s: float) -> Parsed:
    """What the strings of a metric's `data()` mean; empty when no program is loaded."""
    if not isinstance(data, Sequence) or isinstance(data, (str, bytes)):
        return Parsed(senseless=1)
    most = ITEMS_MOST if name.shape in (LATENCY, LINKS) else DEVICES_MOST
    items = [_text(item) for item in data[:most]]
    found = _PARSERS[name.shape](name, items, at_s)
    return found._replace(senseless=found.senseless + len(data) - len(items))


def _gauge(name: Name, items: list[str], at_s: float) -> Parsed:
    """`12.50`, `12.50%`, `33550229504`: one for each device or chip, in its order."""
    values = [sane(name.metric, number(text.removesuffix("%"))) for text in items]
    # 0 bytes of memory: the runtime still starts.
    is_starting = [name.metric == "hbm_limit_bytes" and value == 0 for value in values]
    rows = [(i, v) for i, v in enumerate(values) if v is not None and not is_starting[i]]
    return Parsed(
        tuple(_reading(name, name.metric, row, value, at_s) for row, value in rows),
        senseless=values.count(None),
    )


def _ordinals(name: Name, items: list[str], at_s: float) -> Parsed:
    """`tensorcore_0: 10`."""
    found: dict[int, Reading] = {}
    senseless = 0
    for text in items:
        label, _, told = text.rpartition(":")
        if _is_of_other_core(label):
            continue
        row, value = ordinal(label), sane(name.metric, number(told))
        if row is None or value is None:
            senseless += 1
        else:
            found.setdefault(row, _reading(name, name.metric, row, value, at_s))
    return Parsed(tuple(found.values()), senseless=senseless)


def _executions(name: Name, items: list[str], at_s: float) -> Parsed:
    """`tensorcore_0, mean, p50, p90, p95, p999`."""
    found: dict[int, tuple[Reading, ...]] = {}
    senseless = 0
    for text in items:
        label, values = _distribution(text)
        if _is_of_other_core(label):
            continue
        row = ordinal(label)
        readings = tuple(
            _reading(name, f"{name.metric}.{part}", row, value, at_s)
            for part, value in zip(DISTRIBUTION, values, strict=True)
            if row is not None and value is not None
        )
        if row is None or not readings:
            senseless += 1
        else:
            found.setdefault(row, readings)
    return Parsed(tuple(r for readings in found.values() for r in readings), senseless=senseless)


def _latencies(name: Name, items: list[str], at_s: float) -> Parsed:
    """`8MB+, mean, p50, p90, p95, p999`; without the size where there is only one."""
    found: dict[str, Latency] = {}
    senseless = 0
    for text in items:
        printed, values = _distribution(text)
        told = label_of(printed)
        if all(value is None for value in values):
            senseless += 1
        elif len(found) < LABELS_MOST:
            percentiles = Percentiles(None, *values)
            found.setdefault(told, Latency(name.metric, told, percentiles, at_s, LIBTPU_SDK, None))
    return Parsed(latencies=tuple(found.values()), senseless=senseless)


def _links(name: Name, items: list[str], at_s: float) -> Parsed:
    """`tray1.chip3.ici0.int: 0`."""
    found: dict[str, tuple[Row, int]] = {}
    senseless = 0
    for text in items:
        link, _, told = text.rpartition(":")
        link = clean(link, 64)
        chip = re.fullmatch(_CHIP, link, re.IGNORECASE)
        health = number(told)
        if chip is None or not isinstance(health, int) or not 0 <= health <= HEALTH_MOST:
            senseless += 1
        else:
            found.setdefault(link, ((int(chip[1] or 0), int(chip[2])), health))
    chips = _places({row for row, _ in found.values()})
    links = tuple(
        Link(chips.get(row, NO_CHIP), link, health) for link, (row, health) in found.items()
    )
    return Parsed(links=links, senseless=senseless)


def _throttles(name: Name, items: list[str], at_s: float) -> Parsed:
    """`1-5: 3`, tray, chip and score, as libtpu prints it; `5-3`, device and score, as its manual
    says.
    """
    trays: dict[Row, int] = {}
    devices: dict[int, int] = {}
    senseless = 0
    for text in items:
        if printed := re.fullmatch(_TRAY_CHIP_SCORE, text):
            scores = trays.setdefault((int(printed[1]), int(printed[2])), int(printed[3]))
        elif printed := re.fullmatch(_DEVICE_SCORE, text):
            scores = devices.setdefault(int(printed[1]), int(printed[2]))
        else:
            scores = -1
        senseless += not 0 <= scores <= HEALTH_MOST
    rows = _places(set(trays))
    told = {**devices, **{rows[tray]: score for tray, score in trays.items() if tray in rows}}
    readings = (
        _reading(name, name.metric, row, THROTTLE_STEP_PERCENT * score, at_s)
        for row, score in told.items()
        if score <= HEALTH_MOST
    )
    return Parsed(tuple(readings), senseless=senseless)


_PARSERS: dict[str, Callable[[Name, list[str], float], Parsed]] = {
    GAUGE: _gauge,
    ORDINAL: _ordinals,
    EXECUTION: _executions,
    LATENCY: _latencies,
    LINKS: _links,
    THROTTLE: _throttles,
}


def number(text: str) -> Number | None:
    """The number in a text: whole where it is printed so; None when it is none, or not finite."""
    text = text.strip()
    if re.fullmatch(r"[+-]?[0-9]{1,30}", text):
        return int(text)
    if not re.fullmatch(_NUMBER, text, re.IGNORECASE):
        return None
    value = float(text)
    return value if abs(value) < float("inf") else None


def ordinal(label: str) -> int | None:
    """Which device a label is about; None when it does not say."""
    found = re.fullmatch(_ORDINAL, label.strip(), re.IGNORECASE)
    return int(found[1]) if found else None


def label_of(printed: str) -> str:
    """What a distribution is about, its size first: `8MB+`, `2MB+-ALL_REDUCE`; may be empty."""
    parts = [part for part in printed.split("-") if part.lower() not in ("grpc", "unknown", "")]
    parts.sort(key=lambda part: re.fullmatch(_SIZE, part) is None)
    return clean("-".join(parts), 64)


def _is_of_other_core(label: str) -> bool:
    """True for a row about a SparseCore, say: not ours to read, and not a mistake."""
    text = label.strip().lower()
    return ordinal(text) is None and re.fullmatch(_OTHER_CORE, text) is not None


def _distribution(text: str) -> tuple[str, tuple[Number | None, ...]]:
    """The label in front, which may be empty, and five numbers; all None when there are fewer."""
    parts = text.rsplit(",", len(DISTRIBUTION))
    if len(parts) < len(DISTRIBUTION):
        return "", (None,) * len(DISTRIBUTION)
    label = "" if len(parts) == len(DISTRIBUTION) else parts.pop(0)
    mean, *rest = (within(number(part), VALUE_MOST) for part in parts)
    return label.strip(), (mean or None, *rest)  # a mean of 0 is one that was not told


def _places(rows: set[Row]) -> dict[Row, int]:
    """Which chip of the host each is. They are numbered on their tray, from 0 or 1: when none is
    missing, by their order. Else by their number, unless that is one of several trays.
    """
    trays: dict[int, list[int]] = {}
    for tray, chip in sorted(rows):
        trays.setdefault(tray, []).append(chip)
    first = min((chip for _, chip in rows), default=0)
    size = max(map(len, trays.values()), default=0)
    full = [*range(first, first + size)]
    if first in (0, 1) and all(chips == full for chips in trays.values()):
        return {row: rank for rank, row in enumerate(sorted(rows))}
    return {(tray, chip): chip for tray, chip in rows} if len(trays) == 1 else {}


def _reading(name: Name, metric: str, row: int, value: Number, at_s: float) -> Reading:
    return Reading(metric, RowKey(SDK_SERVER, row), value, at_s, LIBTPU_SDK, name.fresh_s)


def _text(item: object) -> str:
    """An item as the SDK would print it: some releases may give numbers or lists."""
    if isinstance(item, (list, tuple)):
        item = ", ".join(str(part)[:ITEM_LENGTH_MOST] for part in item[:8])
    is_plain = isinstance(item, (str, int, float)) and not isinstance(item, bool)
    return str(item)[:ITEM_LENGTH_MOST].strip() if is_plain else ""
