"""The static facts of a job's segment, checked: JSON from a stranger becomes the model's nouns, or
nothing.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from collections.abc import Iterable
from typing import Any, NamedTuple

from tpusmi.model import (
    PROCESS_FACTS,
    Allocation,
    Device,
    DeviceKey,
    Notice,
    ProcessKey,
    Site,
)
from tpusmi.text import clean, command_line

NOTICES_MOST = 8


class JobFacts(NamedTuple):
    """What a job said of itself."""

    command: str
    known: dict[str, Any]
    devices: tuple[Device, ...]
    notices: tuple[Notice, ...]


def parsed(facts: dict[str, Any], key: ProcessKey, devices: int) -> JobFacts:
    """The facts of a job with that many devices. What has the wrong type counts as not said."""
    known = {name: _word(facts.get(name)) for name in PROCESS_FACTS}
    rows = _list(facts.get("devices"))
    errors = _list(facts.get("errors"))
    found = tuple(
        _device(key, i, _at(rows, i), _at(errors, i), known["platform"]) for i in range(devices)
    )
    warnings = _list(facts.get("warnings"))[:NOTICES_MOST]
    notices = tuple(n for n in (_notice(w, key.pid) for w in warnings) if n is not None)
    functions = _list(facts.get("recompiled"))[:NOTICES_MOST]
    names = (clean(name, 80) for name in functions if isinstance(name, str))
    known["recompiled"] = ", ".join(names) or None
    return JobFacts(_command(facts.get("argv")), known, found, notices)


def clean_site(site: Site) -> Site:
    """The site with text that is safe to show."""
    return Site(*_clean_place(*site[:4]), *site[4:])


def clean_allocations(found: Iterable[Allocation]) -> tuple[Allocation, ...]:
    """The allocations with text that is safe to show; most share a place with others."""
    known: dict[tuple[str, str, int, str], tuple[str, str, int, str]] = {}
    cleaned = []
    for a in found:
        place = a[:4]
        if place not in known:
            known[place] = _clean_place(*place)
        cleaned.append(Allocation(*known[place], *a[4:]))
    return tuple(cleaned)


def _clean_place(function: str, file: str, line: int, kind: str) -> tuple[str, str, int, str]:
    return clean(function, 200), clean(file, 400), line, clean(kind, 40)


def _command(argv: Any) -> str:
    return command_line(word for word in _list(argv) if isinstance(word, str))


def _device(key: ProcessKey, index: int, row: Any, error: Any, platform: Any) -> Device:
    row = row if isinstance(row, dict) else {}
    coords = row.get("coords")
    sound = isinstance(coords, list) and len(coords) <= 8 and None not in map(_number, coords)
    return Device(
        DeviceKey(key, index),
        index,
        _number(row.get("id")),
        platform if isinstance(platform, str) else None,
        clean(row["kind"], 80) if isinstance(row.get("kind"), str) else None,
        tuple(coords) if sound and coords is not None else None,
        _number(row.get("core_on_chip")),
        error=clean(error, 200) if isinstance(error, str) else None,
    )


def _notice(row: Any, pid: int) -> Notice | None:
    if not isinstance(row, dict):
        return None
    code, message = row.get("code"), row.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        return None
    return Notice(clean(code, 40), clean(message, 300), pid)


def _word(value: Any) -> str | int | None:
    if isinstance(value, str):
        return clean(value, 120)
    return _number(value)


def _number(value: Any) -> int | None:
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53
        else None
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _at(rows: list[Any], index: int) -> Any:
    return rows[index] if index < len(rows) else None
