"""What this process says of itself to the others of its job, from its newest sample. Pure."""

from __future__ import annotations

import os
import socket
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from tpusmi.text import clean
from tpusmi.wire import identity
from tpusmi.wire.layout import DEVICE_FIELDS, PREFIX_FIELDS, PROCESS_FIELDS
from tpusmi.wire.slice_summary import (
    CODE_MOST,
    DEVICES_MOST,
    KIND_MOST,
    NAME_MOST,
    WARNINGS_MOST,
    Head,
    short,
    summary,
    whole,
)

COORDINATES_MOST = 4


def text_of(
    head: Head, values: Sequence[float], sample_age_s: float, facts: Mapping[str, Any]
) -> str:
    """The summary, from the doubles of a slot of that age and the facts of the segment."""
    start = len(PREFIX_FIELDS)
    process = dict(zip(PROCESS_FIELDS, values[start:], strict=False))
    start += len(PROCESS_FIELDS)
    width = len(DEVICE_FIELDS)
    places = range(start, len(values), width)[:DEVICES_MOST]
    devices = [dict(zip(DEVICE_FIELDS, values[i : i + width], strict=True)) for i in places]
    listed = facts.get("devices") or []
    warnings = [str(w.get("code", "")) for w in [*(facts.get("warnings") or [])]]
    rest = (
        clean(socket.gethostname(), NAME_MOST),
        clean(str(facts.get("device_kind") or ""), KIND_MOST) or None,
        whole(process["phase"]),
        whole(process["steps"]),
        short(process["step_time_s.mean"]),
        short(process["since_last_step_s"]),
        short(process["mfu_percent"]),
        short(sample_age_s),
        [code[:CODE_MOST] for code in warnings[:WARNINGS_MOST]],
        _limit([whole(d["hbm_limit_bytes"]) for d in devices]),
    )
    rows = [_device(d, listed[i] if i < len(listed) else {}) for i, d in enumerate(devices)]
    return summary(head, rest, rows, _more(listed))


def interval_of(values: Sequence[float]) -> float:
    """Seconds between two samples, as the sample says; 0 where it does not."""
    interval_s = values[len(PREFIX_FIELDS) + PROCESS_FIELDS.index("interval_s")]
    return interval_s if interval_s > 0 else 0.0


def _more(listed: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The slice that all devices are in, and their number; nothing where neither tells anything."""
    slices = {d.get("slice_index") for d in listed}
    own = [*slices] if len(slices) == 1 and None not in slices else []
    return [*(own or [None]), len(listed)] if len(listed) > DEVICES_MOST else own


def _limit(limits: list[int | None]) -> Any:
    """One number where all are the same."""
    return limits[0] if len(set(limits)) == 1 else limits


def _device(values: Mapping[str, float], facts: Mapping[str, Any]) -> list[Any]:
    coords = facts.get("coords")
    return [
        whole(values["hbm_used_bytes"]),
        None,  # the matrix unit: only libtpu's SDK has it, which no agent loads into a job
        short(values["duty_cycle_percent"]),
        short(values["idle_s"]),
        facts.get("id"),
        coords[:COORDINATES_MOST] if isinstance(coords, list) else None,
        facts.get("core_on_chip"),
    ]


def place_of(directory: str) -> int:
    """A number for the segments that one viewer finds in one directory: another on another host, in
    a container with its own /dev/shm, and for another user. 0 where that is unknown.
    """
    try:
        status = os.stat(directory)
    except OSError:
        return 0
    key = f"{identity.boot_id('/proc').hex()} {status.st_dev} {status.st_ino}"
    return zlib.crc32(key.encode()) or 1
