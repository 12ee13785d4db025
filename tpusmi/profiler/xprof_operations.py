"""The operations of a trace, and where its time went, from xprof's tables. Pure."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tpusmi.profiler.xprof_tables import (
    amount,
    count,
    measured,
    members,
    objects,
    scaled,
    with_column,
)
from tpusmi.text import clean, clean_or_none
from tpusmi.trace.figures import Operation, TimeShares
from tpusmi.trace.operation_facts import (
    COLLECTIVES,
    COMPUTE,
    CUSTOM,
    HOST,
    INFEED,
    OUTFEED,
    share_of,
)
from tpusmi.trace.rates import believed, of_peak

GIGA, GIB = 1e9, 2**30
MICRO = 1e-6
NAME_MOST, SOURCE_MOST = 300, 300


class PageOperations(NamedTuple):
    """What the table of operations shows."""

    operations: tuple[Operation, ...]
    shares: TimeShares
    uncounted_percent: float
    """Share of the busy time in custom calls whose FLOPs xprof does not count."""
    overcounted_percent: float
    """Share of the busy time in operations that declare more FLOPs than a core can do."""
    has_infeed: bool


class Peaks(NamedTuple):
    """What one core can do."""

    flops_per_s: float | None
    hbm_bytes_per_s: float | None


def operations_of(
    pages: Mapping[str, Any], peaks: Peaks, idle_percent: float | None
) -> PageOperations | None:
    """The operations, most self time first; None when the pages have none."""
    programs = _programs(pages.get("op_profile"))
    rows = [_operation(row, programs, peaks) for row in _rows(pages)]
    if not rows:
        return None
    kinds = [_kind(row) for row in _rows(pages)]
    uncounted = [op for op in rows if _is_uncounted(op)]
    return PageOperations(
        operations=tuple(sorted(rows, key=lambda op: -op.self_s)),
        shares=_shares(rows, kinds, idle_percent),
        uncounted_percent=_part(uncounted, rows),
        overcounted_percent=_part([op for op in rows if _is_above(op, peaks)], rows),
        has_infeed=INFEED in kinds,
    )


def idle_percent(pages: Mapping[str, Any]) -> float | None:
    """Share of the captured time of all cores without an operation; None when not stated, or where
    xprof sees no operation at all: it calls all time idle then.
    """
    page = pages.get("op_profile")
    whole = measured(members(page, "byProgram", "metrics", "rawTime"))
    children = {str(c.get("name")): c for c in objects(members(page, "byProgram", "children"))}
    idle = amount(members(children.pop("IDLE", None), "metrics", "rawTime"))
    return 100 * min(1.0, idle / whole) if whole is not None and children else None


def _rows(pages: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    table = with_column(pages.get("hlo_stats"), "hlo_op_name", "total_self_time")
    return (row for row in (table.rows if table else ()) if row.get("hlo_op_name") != "IDLE")


def _programs(page: Any) -> dict[str, str]:
    """Names of programs by their ids: xprof calls one `jit_step(1234)`."""
    names = {}
    for child in objects(members(page, "byProgram", "children")):
        name, parenthesis, number_ = str(child.get("name"))[:NAME_MOST].rpartition("(")
        if parenthesis and number_.endswith(")"):
            names[number_[:-1]] = name
    return names


def _operation(row: Mapping[str, Any], programs: Mapping[str, str], peaks: Peaks) -> Operation:
    flops = scaled(row.get("normalized_flop_rate", row.get("model_flop_rate")), GIGA)
    bytes_per_s = scaled(row.get("hbm_bw", row.get("measured_memory_bw")), GIB)
    mxu = of_peak(flops, peaks.flops_per_s)
    bandwidth = of_peak(bytes_per_s, peaks.hbm_bytes_per_s)
    framework_name = clean_or_none(row.get("tf_op_name"), NAME_MOST)
    return Operation(
        name=clean_or_none(row.get("hlo_op_name"), NAME_MOST) or "?",
        category=clean_or_none(row.get("category"), NAME_MOST),
        program=programs.get(str(row.get("program_id"))),
        framework_name=framework_name.rstrip(":") if framework_name else None,
        source=_source(row.get("source_info")),
        runs=count(row.get("occurrences")),
        self_s=amount(row.get("total_self_time")) * MICRO,
        self_percent=amount(row.get("total_self_time_percent")),
        flops_per_s=flops,
        mxu_percent=mxu,
        hbm_bytes_per_s=None if bytes_per_s and bandwidth is None else bytes_per_s,
        hbm_bandwidth_percent=bandwidth,
        bound_by=_bound_by(row.get("bound_by")),
    )


def _bound_by(value: Any) -> str | None:
    text = clean_or_none(value, NAME_MOST)
    return None if text in ("Unknown", "No") else text


def _source(value: Any) -> str | None:
    """File and line: newer versions of xprof put them into a bit of HTML."""
    if not isinstance(value, str):
        return None
    text = value.rpartition("</")[0] or value
    text = text.rpartition(">")[2] if text.startswith("<") else text
    return clean(html.unescape(text), SOURCE_MOST) or None


def _kind(row: Mapping[str, Any]) -> str:
    """What an operation does with its time."""
    category, name = (str(row.get(key))[:NAME_MOST] for key in ("category", "hlo_op_name"))
    text = row.get("hlo_op_expression")
    return share_of(category.lower(), name.lower(), text if isinstance(text, str) else "")


def _shares(rows: Sequence[Operation], kinds: Sequence[str], idle: float | None) -> TimeShares:
    """Operations that are not in the table are small, and count as computing."""
    sums = dict.fromkeys((COLLECTIVES, INFEED, OUTFEED, HOST, COMPUTE), 0.0)
    for row, kind in zip(rows, kinds, strict=True):
        sums[kind] += row.self_percent
    if idle is None:
        idle = max(0.0, 100 - sum(sums.values()))
    sums[COMPUTE] = 0.0
    return TimeShares(
        compute_percent=max(0.0, 100 - idle - sum(sums.values())),
        collectives_percent=sums[COLLECTIVES],
        infeed_percent=sums[INFEED],
        outfeed_percent=sums[OUTFEED],
        host_percent=sums[HOST],
        idle_percent=idle,
    )


def _part(some: Sequence[Operation], rows: Sequence[Operation]) -> float:
    """Their share of the busy time, in percent."""
    busy = sum(op.self_percent for op in rows)
    return 100 * sum(op.self_percent for op in some) / busy if busy else 0.0


def _is_uncounted(op: Operation) -> bool:
    return op.category == CUSTOM and op.flops_per_s is None


def _is_above(op: Operation, peaks: Peaks) -> bool:
    return believed(op.flops_per_s, peaks.flops_per_s) != op.flops_per_s
