"""Labels as texts, numbers and words: checked, cleaned and cut. None for all that is not right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tpusmi.model.torus import Wraps
from tpusmi.text import clean_or_none, whole_number

TEXT_MOST = 256
"""As an exporter cuts its labels."""
NAME_MOST = 64
"""Names of jobs, users, devices, links and codes: a fleet has many of them."""
PID_MOST = 1 << 31
NUMBER_MOST = 1 << 20
"""The largest number of a chip, a worker, a process of a job, or a place in a slice."""
_TOPOLOGY = re.compile(r"\d{1,4}(?:x\d{1,4}){1,3}")
_WRAPS = re.compile(r"(?:true|false)(?:,(?:true|false)){2}")
_COORDS = re.compile(r"\d{1,6}(?:,\d{1,6}){0,3}")


def text(labels: Mapping[str, str], name: str, most: int = TEXT_MOST) -> str | None:
    """The label as clean text; None without one."""
    return clean_or_none(labels.get(name), most)


def number(value: str | None, most: int = NUMBER_MOST) -> int | None:
    """The number from 0 to `most` that a label says."""
    whole = whole_number(value) if isinstance(value, str) else None
    return whole if whole is not None and whole <= most else None


def word(value: str | None, words: Iterable[str]) -> str | None:
    """The word, if it is one of these."""
    return next((str(w) for w in words if w == value), None)


def coords(value: str | None) -> tuple[int, ...] | None:
    """The place of a device: `1,0,2`."""
    if not isinstance(value, str) or _COORDS.fullmatch(value) is None:
        return None
    return tuple(map(int, value.split(",")))


def wraps(value: str | None) -> Wraps | None:
    """Whether the ends of each axis are joined: `true,true,false`."""
    if not isinstance(value, str) or _WRAPS.fullmatch(value) is None:
        return None
    x, y, z = (flag == "true" for flag in value.split(","))
    return x, y, z


def topology(value: str | None) -> str | None:
    """The size of a slice: `4x4x8`."""
    return value if isinstance(value, str) and _TOPOLOGY.fullmatch(value) else None
