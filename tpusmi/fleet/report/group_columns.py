"""The columns of jobs, slices and hosts, each declared once: the dashboard has all of them, and the
plain table most. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tpusmi.fleet.groups.fleet_groups import MEMORY_PERCENT, FleetGroup
from tpusmi.fleet.groups.fleet_orders import natural, severity
from tpusmi.fleet.groups.group_members import GROUPINGS, HOST, JOB, SLICE
from tpusmi.fleet.groups.slice_wide import STRAGGLER
from tpusmi.fleet.groups.totals import Total
from tpusmi.fleet.report.group_states import NOT_LIVE, hosts_text, state_text
from tpusmi.report import words

NAME, STATE, WORST = "NAME", "STATE", "PROBLEMS"
"""WORST is the column by which the worst row is first."""
_BAR = 12
"""The widest bar in a cell."""


class GroupColumn(NamedTuple):
    """A column of jobs, slices and hosts."""

    title: str
    help: str
    text: Callable[[FleetGroup], str]
    width: int
    """The least that the dashboard gives it."""
    rank: int
    """Columns of the highest rank go first where there is no room."""
    order: Callable[[FleetGroup], Any]
    """What rows are sorted by; None where it is unknown."""
    letter: str = ""
    """The key after `o` that sorts by it."""
    right: bool = True
    falls: bool = True
    """The largest comes first in a table that is sorted by it."""
    most: int = 0
    """In the dashboard it is as wide as its longest text, up to this."""
    spare: int = 0
    """It is left out unless this much room is left besides."""
    only: tuple[str, ...] = GROUPINGS
    """The groupings that have it."""
    optional: bool = False
    """It appears only where some row has something to show in it."""
    sure: int = 0
    """The columns of its longest text that it has before others are left out; 0 for all."""
    is_number: bool = True
    """It is of the numbers of its hosts: an old one is in parentheses."""
    is_share: bool = False
    """What it is sorted by are percents that are drawn as a bar where there is room."""


# -- how figures become cells


def at_least(total: Total) -> str:
    """`≥` before a sum of which some parts are unknown."""
    return "≥" if total.of_some else ""


def sum_text(total: Total) -> str:
    """The sum; `≥12` where it is that of only some."""
    if total.is_unknown:
        return words.UNKNOWN
    return at_least(total) + words.count(total.value)


def memory_text(g: FleetGroup) -> str:
    """Memory in use of the limit, both of the same devices."""
    used, limit = g.hbm_used_bytes, g.hbm_limit_bytes
    if limit.known and used.known != limit.known:
        # The limit of all, and the use of some, would look as if there were room.
        return words.UNKNOWN
    return at_least(used) + words.size_pair(used.value, limit.value)


def mean_text(g: FleetGroup, metric: str) -> str:
    """A mean over its devices, in percent."""
    return words.percent(g.means[metric].value)


def problems_text(g: FleetGroup, slow: Mapping[str, int]) -> str:
    """Slow hosts, then codes of notices, the most frequent first: `slow, throttled 3, ici_link`.
    The notice of their slice about slow hosts says the same once more.
    """
    notices = {code: n for code, n in g.notices.items() if not slow or code != STRAGGLER}
    counts = {**slow, **notices}
    return ", ".join(f"{name} {n}" if n > 1 else name for name, n in counts.items()) or " "


def _problems(g: FleetGroup) -> str:
    return problems_text(g, {"slow": len(g.stragglers)} if g.stragglers else {})


def _first(names: Sequence[str]) -> str:
    more = f"+{len(names) - 1}" if len(names) > 1 else ""
    return names[0] + more if names else words.UNKNOWN


def _slowest(g: FleetGroup) -> Sequence[str]:
    return [straggler.name for straggler in g.stragglers]


def _worker(g: FleetGroup) -> int | None:
    return None if g.host is None else g.host.worker


def _age_s(g: FleetGroup) -> float | None:
    ages = (m.host.age_s for m in g.members if m.host.age_s is not None)
    return max(ages, default=None)


# -- kinds of columns


def _share(title: str, help: str, metric: str, width: int, rank: int, **more: Any) -> GroupColumn:
    return GroupColumn(
        title, help, lambda g: mean_text(g, metric), width, rank,
        lambda g: g.means[metric].value, **more,
    )  # fmt: skip


def _sum(title: str, help: str, get: Callable[[FleetGroup], Total], **more: Any) -> GroupColumn:
    return GroupColumn(
        title, help, lambda g: sum_text(get(g)), order=lambda g: get(g).value, most=7, **more
    )


def _names(
    title: str, help: str, get: Callable[[FleetGroup], Sequence[str]], **more: Any
) -> GroupColumn:
    return GroupColumn(
        title, help, lambda g: _first(get(g)), order=lambda g: get(g) or None,
        right=False, falls=False, optional=True, is_number=False, **more,
    )  # fmt: skip


_BARS = {"most": 6 + 1 + _BAR, "is_share": True}
# fmt: off
COLUMNS = (
    GroupColumn(NAME, "The job, slice or host.", lambda g: g.name, 10, 0,
        lambda g: natural(g.name), letter="n", right=False, falls=False, most=28,
        is_number=False),
    GroupColumn(STATE, "live; old, as its numbers are; or down: its exporter does not answer.",
        state_text, 7, 1, lambda g: [g.in_state(s) for s in NOT_LIVE], letter="s", right=False,
        most=15, is_number=False),
    GroupColumn("HOSTS", "Live hosts, of all.", hosts_text, 5, 4, lambda g: g.hosts, letter="h",
        most=9, only=(JOB, SLICE), is_number=False),
    _sum("CHIPS", "Chips.", lambda g: g.chips, width=5, rank=9, letter="c"),
    GroupColumn("MEMORY", "HBM in use of the limit, of all its devices.", memory_text, 15, 7,
        lambda g: g.hbm_used_bytes.value, letter="g", most=19),
    _share("HBM", "Mean over its devices: HBM in use, of the limit.", MEMORY_PERCENT, 6, 2,
        letter="p", **_BARS),
    GroupColumn("FULLEST", "HBM in use on its fullest device.",
        lambda g: words.percent(g.fullest_percent), 7, 12, lambda g: g.fullest_percent, letter="f",
        spare=8),
    _share("MXU", "Mean over its devices: share of the peak matrix throughput.",
        "tensorcore_utilization_percent", 6, 3, letter="x", **_BARS),
    _share("DUTY", "Mean over its devices: share of the time that they were busy.",
        "duty_cycle_percent", 6, 6, letter="d", **_BARS),
    _share("BW", "Mean over its devices: share of the peak HBM bandwidth.",
        "hbm_bandwidth_utilization_percent", 6, 13, letter="b", spare=8, optional=True),
    _sum("IDLE", "Chips that a process holds, and that were idle for 15 minutes or more.",
        lambda g: g.idle_held_chips, width=4, rank=8, letter="i"),
    GroupColumn("STEP", "Time of a step: the median of its processes.",
        lambda g: words.duration(g.step_time_s), 7, 10, lambda g: g.step_time_s, letter="t",
        most=9, optional=True),
    _names("SLOW HOST", "The slowest of the hosts that the others wait for.", _slowest,
        width=9, rank=17, letter="z", most=24, only=(JOB, SLICE), spare=8),
    _names("JOB", "Its job; +1: and another one.", lambda g: g.jobs, width=6, rank=11, letter="j",
        most=20, only=(SLICE, HOST)),
    _names("USER", "The user who runs it.", lambda g: g.users, width=4, rank=16, letter="u",
        most=12, spare=8),
    _names("SLICE", "Its slice.", lambda g: g.slices, width=6, rank=15, letter="l", most=20,
        only=(JOB, HOST)),
    GroupColumn("WORKER", "Its number in the slice.",
        lambda g: words.UNKNOWN if (n := _worker(g)) is None else str(n), 6, 18, _worker,
        letter="w", falls=False, only=(HOST,), optional=True, is_number=False, spare=8),
    GroupColumn("AGE", "Age of its oldest numbers.", lambda g: words.elapsed(_age_s(g)), 6, 10,
        _age_s, letter="a", is_number=False, most=7),
    GroupColumn(WORST, "Codes of its notices, and how many. Sorted by it, the worst are first.",
        _problems, 19, 5, severity, letter="o", right=False, most=60, sure=24, is_number=False),
)
# fmt: on


def of_kind(kind: str) -> list[GroupColumn]:
    """The columns of a table of jobs, slices or hosts; the first has the name of its kind."""
    return [
        c._replace(title=kind.upper()) if c.title == NAME else c
        for c in COLUMNS
        if kind in c.only and c.title != kind.upper()
    ]
