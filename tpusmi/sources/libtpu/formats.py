"""The strings that libtpu's SDK prints for each metric, as readings, latencies and links. Pure;
trusts none of them.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

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
from tpusmi.sources.libtpu.names import VALUE_MOST, Name, Shape, sane
from tpusmi.text import clean

ITEMS_MOST = 4096
ITEM_LENGTH_MOST = 256
DIGITS_MOST = 30
NO_CHIP = -1
"""The chip of a link whose name does not say which chip it belongs to."""
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


Key = TypeVar("Key")
Item = TypeVar("Item")


class Parsed(NamedTuple):
    """The values of one metric."""

    readings: tuple[Reading, ...] = ()
    latencies: tuple[Latency, ...] = ()
    links: tuple[Link, ...] = ()
    senseless: int = 0
    """How many strings make no sense."""

    @property
    def has_values(self) -> bool:
        """False where no program is loaded."""
        return bool(self.readings or self.latencies or self.links)


def parse(name: Name, data: object, at_s: float) -> Parsed:
    """The values in a metric's `data()`; empty when no program is loaded."""
    if not isinstance(data, Sequence) or isinstance(data, (str, bytes)):
        return Parsed(senseless=1)
    most = ITEMS_MOST if name.shape in (Shape.LATENCY, Shape.LINKS) else DEVICES_MOST
    items = [_text(item) for item in data[:most]]
    parsed = _PARSERS[name.shape](name, items, at_s)
    return parsed._replace(senseless=parsed.senseless + len(data) - len(items))


def _first_of_each(
    items: list[str], read: Callable[[str], tuple[Key, Item] | None]
) -> tuple[dict[Key, Item], int]:
    """The item in each string under its key, the first of a key; and how many make no sense."""
    pairs = [read(text) for text in items]
    first: dict[Key, Item] = {}
    for pair in pairs:
        if pair is not None:
            first.setdefault(*pair)
    return first, pairs.count(None)


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

    def read(text: str) -> tuple[int, Reading] | None:
        label, _, value_text = text.rpartition(":")
        row, value = ordinal(label), sane(name.metric, number(value_text))
        if row is None or value is None:
            return None
        return row, _reading(name, name.metric, row, value, at_s)

    ours = [text for text in items if not _is_of_other_core(text.rpartition(":")[0])]
    readings, senseless = _first_of_each(ours, read)
    return Parsed(tuple(readings.values()), senseless=senseless)


def _executions(name: Name, items: list[str], at_s: float) -> Parsed:
    """`tensorcore_0, mean, p50, p90, p95, p999`."""

    def read(text: str) -> tuple[int, tuple[Reading, ...]] | None:
        label, values = _distribution(text)
        row = ordinal(label)
        if row is None or all(value is None for value in values):
            return None
        return row, tuple(
            _reading(name, f"{name.metric}.{part}", row, value, at_s)
            for part, value in zip(DISTRIBUTION, values, strict=True)
            if value is not None
        )

    ours = [text for text in items if not _is_of_other_core(_distribution(text)[0])]
    rows, senseless = _first_of_each(ours, read)
    return Parsed(tuple(r for readings in rows.values() for r in readings), senseless=senseless)


def _latencies(name: Name, items: list[str], at_s: float) -> Parsed:
    """`8MB+, mean, p50, p90, p95, p999`; without the size where there is only one."""

    def read(text: str) -> tuple[str, Latency] | None:
        printed, values = _distribution(text)
        if all(value is None for value in values):
            return None
        label, numbers = label_of(printed), Percentiles._make((None, *values))
        return label, Latency(name.metric, label, numbers, at_s, source=LIBTPU_SDK, process=None)

    latencies, senseless = _first_of_each(items, read)
    return Parsed(latencies=tuple(latencies.values())[:LABELS_MOST], senseless=senseless)


def _links(name: Name, items: list[str], at_s: float) -> Parsed:
    """`tray1.chip3.ici0.int: 0`."""

    def read(text: str) -> tuple[str, tuple[Row, int]] | None:
        link, _, health_text = text.rpartition(":")
        link, health = clean(link, 64), number(health_text)
        chip = re.fullmatch(_CHIP, link, re.IGNORECASE)
        if chip is None or not isinstance(health, int) or not 0 <= health <= HEALTH_MOST:
            return None
        return link, ((int(chip[1] or 0), int(chip[2])), health)

    by_name, senseless = _first_of_each(items, read)
    chips = _places({row for row, _ in by_name.values()})
    links = (Link(chips.get(row, NO_CHIP), link, health) for link, (row, health) in by_name.items())
    return Parsed(links=tuple(links), senseless=senseless)


def _throttles(name: Name, items: list[str], at_s: float) -> Parsed:
    """`1-5: 3` (tray, chip, score), as libtpu prints; `5-3` (device, score), as its manual says."""
    trays: dict[Row, int] = {}
    devices: dict[int, int] = {}
    senseless = 0
    for text in items:
        if printed := re.fullmatch(_TRAY_CHIP_SCORE, text):
            score = trays.setdefault((int(printed[1]), int(printed[2])), int(printed[3]))
        elif printed := re.fullmatch(_DEVICE_SCORE, text):
            score = devices.setdefault(int(printed[1]), int(printed[2]))
        else:
            score = -1
        senseless += not 0 <= score <= HEALTH_MOST
    rows = _places(set(trays))
    scores = {**devices, **{rows[tray]: score for tray, score in trays.items() if tray in rows}}
    readings = (
        _reading(name, name.metric, row, THROTTLE_STEP_PERCENT * score, at_s)
        for row, score in scores.items()
        if score <= HEALTH_MOST
    )
    return Parsed(tuple(readings), senseless=senseless)


_PARSERS: dict[Shape, Callable[[Name, list[str], float], Parsed]] = {
    Shape.GAUGE: _gauge,
    Shape.ORDINAL: _ordinals,
    Shape.EXECUTION: _executions,
    Shape.LATENCY: _latencies,
    Shape.LINKS: _links,
    Shape.THROTTLE: _throttles,
}


def number(text: str) -> Number | None:
    """The finite number in a text, an int where it is printed as one; None for anything else."""
    text = text.strip()
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MOST:
        return int(text)
    if not re.fullmatch(_NUMBER, text, re.IGNORECASE):
        return None
    value = float(text)
    return value if abs(value) < float("inf") else None


def ordinal(label: str) -> int | None:
    """Which device a label is about; None when it does not say."""
    match = re.fullmatch(_ORDINAL, label.strip(), re.IGNORECASE)
    return int(match[1]) if match else None


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
    return label.strip(), (mean or None, *rest)  # a mean of 0 was not measured


def _places(rows: set[Row]) -> dict[Row, int]:
    """The index on the host of each chip. Chips are numbered on their tray, from 0 or 1: when none
    is missing, their order counts; else their number, but only where there is a single tray.
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
    key = RowKey(SDK_SERVER, row)
    return Reading(metric, key, value, at_s, source=LIBTPU_SDK, fresh_s=name.fresh_s)


def _text(item: object) -> str:
    """An item as the SDK would print it: some releases may give numbers or lists."""
    if isinstance(item, (list, tuple)):
        item = ", ".join(str(part)[:ITEM_LENGTH_MOST] for part in item[:8])
    is_plain = isinstance(item, (str, int, float)) and not isinstance(item, bool)
    return str(item)[:ITEM_LENGTH_MOST].strip() if is_plain else ""
