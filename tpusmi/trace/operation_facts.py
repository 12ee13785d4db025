"""What a trace says about one operation of a program, and what kind of time it takes."""

from __future__ import annotations

import re
from typing import NamedTuple

from tpusmi.text import clean, clean_or_none
from tpusmi.trace.messages import NotATraceError, fields
from tpusmi.trace.xspace import StatValue, XEventMetadata

COMPUTE, COLLECTIVES, INFEED, OUTFEED, HOST = "compute", "collectives", "infeed", "outfeed", "host"
UNNAMED = "(unnamed)"
NAME_MOST, PATH_MOST = 200, 400
"""Characters of a name that are kept."""
OFF_DUTY = frozenset(
    ("infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done")
)
"""Categories in which a device waits for its host: xprof leaves them out of the duty cycle."""
WRAPPERS = frozenset(("while", "conditional", "call"))
"""Categories of operations that only run others: their FLOPs are those of the others."""
CUSTOM = "custom-call"
"""The category of kernels written by hand: with 0 FLOPs or bytes, those are not counted."""
_COLLECTIVES = (
    "all-reduce", "all-gather", "all-to-all", "ragged-all-to-all", "reduce-scatter", "collective",
    "async-collective",
)  # fmt: skip
_EXCHANGES = ("send", "recv")
_HOST_MEMORY = "S(5)"
"""The memory space of the host in the text of an operation's shapes."""
_HLO_NAME = re.compile(r"%?([\w.-]{1,200}) = ")
_HBM = 1


class OperationKey(NamedTuple):
    """What tells one operation of a CPU or a GPU from the others."""

    program: str
    program_id: int | None
    name: str
    kernel: str = ""
    path: str = ""


class OperationFacts(NamedTuple):
    """One operation, as its metadata describes it."""

    name: str
    category: str | None
    program_id: int | None
    program: str | None
    """Its name, where the operation itself says it; on a TPU the line of the programs does."""
    framework_name: str | None
    source: str | None
    flops: float | None
    """FLOPs of one run; None when the trace does not say."""
    hbm_bytes: float | None
    share: str
    """Which of the shares its time belongs to."""
    is_custom: bool
    """Written by hand, such as in Pallas: XLA does not count its FLOPs."""


def facts_of(kind: XEventMetadata) -> OperationFacts:
    """The facts in an event's metadata."""
    stats = kind.stats
    name = clean(kind.display_name, NAME_MOST) or hlo_name(kind.name) or UNNAMED
    category = clean_or_none(stats.get("hlo_category"), NAME_MOST)
    is_wrapper, is_custom = category in WRAPPERS, category == CUSTOM
    amounts = _amount(stats.get("flops")), _hbm_bytes(stats)
    flops, hbm_bytes = (None if is_wrapper or (is_custom and not a) else a for a in amounts)
    program = stats.get("program_id")
    return OperationFacts(
        name=name,
        category=category,
        program_id=program & (1 << 64) - 1 if isinstance(program, int) else None,
        program=None,
        framework_name=framework_name(stats.get("tf_op")),
        source=clean_or_none(stats.get("source"), PATH_MOST),
        flops=flops,
        hbm_bytes=hbm_bytes,
        share=share_of(category or "", name, kind.name),
        is_custom=is_custom,
    )


def hlo_name(text: str) -> str:
    """`fusion.12` for `%fusion.12 = f32[8]{0} fusion(…)`."""
    match = _HLO_NAME.match(text)
    return match[1] if match else clean(text, NAME_MOST)


def framework_name(value: StatValue | None) -> str | None:
    """The path in JAX, without the type behind its colon; None without one."""
    path = clean_or_none(value, PATH_MOST)
    return None if path is None else path.rpartition(":")[0] or path.rstrip(":") or None


def share_of(category: str, name: str, text: str = "") -> str:
    """Which of the shares the time of an operation belongs to."""
    if category in ("infeed", "outfeed"):
        return INFEED if category == "infeed" else OUTFEED
    if category.startswith("host ") or (_HOST_MEMORY in text and _is_copy(category, name)):
        return HOST
    if any(word in category or name.startswith(word) for word in _COLLECTIVES):
        return COLLECTIVES
    return COLLECTIVES if (category or name).startswith(_EXCHANGES) else COMPUTE


def _is_copy(category: str, name: str) -> bool:
    return category.startswith(("copy", "async")) or name.startswith("copy")


def _hbm_bytes(stats: dict[str, StatValue]) -> float | None:
    """Bytes to and from HBM in one run; of all memories when the trace does not split them, and
    None when its split is empty although bytes are moved.
    """
    parts, moved = stats.get("memory_access_breakdown"), _amount(stats.get("bytes_accessed"))
    if not isinstance(parts, bytes):
        return moved
    if not parts and moved:
        return None
    try:
        return float(sum(_accessed(part) for _, _, part in fields(parts)))
    except NotATraceError:
        return None


def _accessed(part: int | bytes) -> int:
    """The bytes of one part of the breakdown, if it is HBM."""
    members = {n: value for n, _, value in fields(part)} if isinstance(part, bytes) else {}
    space, size = members.get(2), members.get(3)
    return size if space == _HBM and isinstance(size, int) else 0


def _amount(value: StatValue | None) -> float | None:
    is_number = isinstance(value, (int, float)) and 0 <= value < 1e30
    return float(value) if is_number else None  # type: ignore[arg-type]
