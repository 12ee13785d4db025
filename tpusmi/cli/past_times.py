"""Times in the past, as a user writes them: those of promtool's `--time`, and `5m` ago."""

from __future__ import annotations

import math
import re
import time
from datetime import datetime, timezone

from tpusmi.text import clean

UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
AHEAD_S = 60.0
"""How far the clock may be ahead from which a time was copied."""
CHARACTERS_MOST = 40
_AGO = re.compile(r"(?:[0-9]{1,9}[smhdw])+", re.ASCII)
_PART = re.compile(r"([0-9]{1,9})([smhdw])", re.ASCII)
_UNIX = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", re.ASCII)
_DATE = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)


def unix_time(text: str, now_s: float | None = None) -> float:
    """The time as Unix time. Raises ValueError with a sentence."""
    now_s = time.time() if now_s is None else now_s
    word = text.strip()[: CHARACTERS_MOST + 1]
    name = clean(word, CHARACTERS_MOST)
    at_s = _read(word, now_s)
    if at_s is None:
        raise ValueError(
            f"{name} is not a time: write 2026-07-28T09:30:00Z, Unix seconds, or 5m or 2h30m ago"
        )
    if at_s > now_s + AHEAD_S:
        raise ValueError(f"{name} is in the future")
    if at_s <= 0:
        raise ValueError(f"{name} is before 1970")
    return at_s


def _read(word: str, now_s: float) -> float | None:
    """None for a text that names no time."""
    word_ago = word.removesuffix("ago").rstrip()
    if _AGO.fullmatch(word_ago):
        return now_s - math.fsum(int(n) * UNITS_S[unit] for n, unit in _PART.findall(word_ago))
    if _UNIX.fullmatch(word):
        return float(word)
    return _of_date(word)


def _of_date(word: str) -> float | None:
    """That of RFC 3339; without an offset it is local time."""
    match = _DATE.fullmatch(word)
    if match is None:
        return None
    day, clock, fraction, offset = match.groups()
    zone = {None: "", "Z": "+00:00", "z": "+00:00"}.get(offset, offset)
    try:
        at = datetime.fromisoformat(f"{day}T{clock}{zone}")
        whole_s = at.astimezone(timezone.utc).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return whole_s + float(f"0.{fraction or 0}")
