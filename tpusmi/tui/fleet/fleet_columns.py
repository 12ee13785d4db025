"""The columns of the tables of a fleet, and how their cells are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tpusmi.fleet.fleet_figures import HostState
from tpusmi.fleet.groups.fleet_orders import natural
from tpusmi.fleet.groups.slice_wide import STRAGGLER
from tpusmi.fleet.report import group_states
from tpusmi.fleet.report.group_states import NOT_LIVE, state_text
from tpusmi.report import words
from tpusmi.tui.draw.look import Look, Row, fill_style
from tpusmi.tui.draw.table import Column, marked
from tpusmi.tui.fleet.fleet_rows import FleetRow

WORST = "PROBLEMS"
"""The column by which the worst row is first."""
_BAR = 12
"""The widest bar in a cell."""


class FleetColumn(NamedTuple):
    """A column of jobs, slices and hosts."""

    title: str
    help: str
    text: Callable[[FleetRow], str]
    width: int
    rank: int
    order: Callable[[FleetRow], Any]
    """What rows are sorted by; None where it is unknown."""
    letter: str = ""
    right: bool = True
    falls: bool = True
    most: int = 0
    spare: int = 0
    only: tuple[str, ...] = ("job", "slice", "host")
    """The kinds of rows that have it."""
    optional: bool = False
    sure: int = 0
    """The columns of its longest text that it has before others are left out; 0 for all."""
    is_number: bool = True
    """An old one is in parentheses."""
    share: Callable[[FleetRow], float | None] | None = None
    """Given for percents that is drawn as a bar where there is room."""


def hosts_text(row: FleetRow) -> str:
    """`62/64`: live of all."""
    return group_states.hosts_text(row.group)


def problems_text(row: FleetRow) -> str:
    """Slow hosts, then codes of notices, the most frequent first: `slow, throttled 3, ici_link`.
    The notice of their slice about them says the same once more.
    """
    slow = len(row.group.stragglers)
    notices = ((code, n) for code, n in row.group.notices.items() if not slow or code != STRAGGLER)
    counts = [*([("slow", slow)] if slow else []), *notices]
    return ", ".join(f"{name} {n}" if n > 1 else name for name, n in counts) or " "


def _memory_text(row: FleetRow) -> str:
    f = row.figures
    return words.size_pair(f.hbm_used_bytes.value, f.hbm_limit_bytes.value)


def _mean(metric: str) -> Callable[[FleetRow], float | None]:
    return lambda row: row.figures.means[metric].value


def _mean_text(metric: str) -> Callable[[FleetRow], str]:
    return lambda row: words.percent(row.figures.means[metric].value)


def _of_host(name: str) -> Callable[[FleetRow], Any]:
    return lambda row: None if row.host is None else getattr(row.host, name)


def _names(get: Callable[[FleetRow], Sequence[str]]) -> Callable[[FleetRow], str]:
    def text(row: FleetRow) -> str:
        names = get(row)
        more = f"+{len(names) - 1}" if len(names) > 1 else ""
        return names[0] + more if names else words.UNKNOWN

    return text


def _jobs(row: FleetRow) -> Sequence[str]:
    return row.group.jobs


def _users(row: FleetRow) -> Sequence[str]:
    return row.group.users


def _slices(row: FleetRow) -> Sequence[str]:
    return row.group.slices


def _slowest(row: FleetRow) -> Sequence[str]:
    return [straggler.name for straggler in row.group.stragglers]


def _age_s(row: FleetRow) -> float | None:
    ages = (m.host.age_s for m in row.group.members if m.host.age_s is not None)
    return max(ages, default=None)


def _number(read: Callable[[float | None], str], get: Callable[[FleetRow], float | None]) -> Any:
    return lambda row: read(get(row))


def _share(title: str, help: str, metric: str, rank: int, letter: str, **more: Any) -> FleetColumn:
    return FleetColumn(
        title, help, _mean_text(metric), 6, rank, _mean(metric), letter=letter,
        most=6 + 1 + _BAR, share=_mean(metric), **more,
    )  # fmt: skip


def _of_chips(row: FleetRow) -> float | None:
    return row.figures.chips.value


def _idle_held(row: FleetRow) -> float | None:
    return row.figures.idle_held_chips.value


# fmt: off
COLUMNS = (
    FleetColumn("NAME", "The job, slice or host.", lambda r: r.title, 10, 0,
        lambda r: natural(r.title), letter="n", right=False, falls=False, most=28,
        is_number=False),
    FleetColumn("STATE", "live; old, as its numbers are; or down: its exporter does not answer.",
        lambda r: state_text(r.group), 7, 1, lambda r: [r.group.in_state(s) for s in NOT_LIVE],
        letter="s", right=False, most=15, is_number=False),
    FleetColumn("HOSTS", "Live hosts, of all.", hosts_text, 5, 4, lambda r: r.group.hosts,
        letter="h", most=9, only=("job", "slice"), is_number=False),
    FleetColumn("CHIPS", "Chips.", _number(words.count, _of_chips), 5, 9, _of_chips, letter="c",
        most=7),
    FleetColumn("MEMORY", "HBM in use of the limit, of all its devices.", _memory_text, 15, 7,
        lambda r: r.figures.hbm_used_bytes.value, letter="g", most=19),
    _share("HBM", "Mean over its devices: HBM in use, of the limit.", "memory_percent", 2, "p"),
    FleetColumn("FULLEST", "HBM in use on its fullest device.",
        _number(words.percent, lambda r: r.figures.fullest_percent), 7, 12,
        lambda r: r.figures.fullest_percent, letter="f", spare=8),
    _share("MXU", "Mean over its devices: share of the peak matrix throughput.",
        "tensorcore_utilization_percent", 3, "x"),
    _share("DUTY", "Mean over its devices: share of the time that they were busy.",
        "duty_cycle_percent", 6, "d"),
    FleetColumn("BW", "Mean over its devices: share of the peak HBM bandwidth.",
        _mean_text("hbm_bandwidth_utilization_percent"), 6, 13,
        _mean("hbm_bandwidth_utilization_percent"), letter="b", spare=8, optional=True),
    FleetColumn("IDLE", "Chips that a process holds, and that were idle for 15 minutes or more.",
        _number(words.count, _idle_held), 4, 8, _idle_held, letter="i",
        most=7),
    FleetColumn("STEP", "Time of a step: the median of its processes.",
        _number(words.duration, lambda r: r.figures.step_time_s), 7, 10,
        lambda r: r.figures.step_time_s, letter="t", most=9, optional=True),
    FleetColumn("SLOW HOST", "The slowest of the hosts that the others wait for.",
        _names(_slowest), 9, 17, lambda r: _slowest(r) or None, letter="z", right=False,
        falls=False, most=24, only=("job", "slice"), optional=True, is_number=False, spare=8),
    FleetColumn("JOB", "Its job; +1: and another one.", _names(_jobs), 6, 11,
        lambda r: _jobs(r) or None, letter="j", right=False, falls=False, most=20,
        only=("slice", "host"), optional=True, is_number=False),
    FleetColumn("USER", "The user who runs it.", _names(_users), 4, 16,
        lambda r: _users(r) or None, letter="u", right=False, falls=False, most=12,
        optional=True, is_number=False, spare=8),
    FleetColumn("SLICE", "Its slice.", _names(_slices), 6, 15, lambda r: _slices(r) or None,
        letter="l", right=False, falls=False, most=20, only=("job", "host"), optional=True,
        is_number=False),
    FleetColumn("WORKER", "Its number in the slice.",
        lambda r: words.UNKNOWN if (n := _of_host("worker")(r)) is None else str(n), 6, 18,
        _of_host("worker"), letter="w", falls=False, only=("host",), optional=True,
        is_number=False, spare=8),
    FleetColumn("AGE", "Age of its oldest numbers.", _number(words.elapsed, _age_s), 6, 10, _age_s,
        letter="a", is_number=False, most=7),
    FleetColumn(WORST, "Codes of its notices, and how many. Sorted by it, the worst are first.",
        problems_text, 19, 5, lambda r: r.severity, letter="o", right=False, most=60,
        sure=24, is_number=False),
)
# fmt: on


def of_kind(kind: str) -> list[FleetColumn]:
    """The columns of a table of jobs, slices or hosts; the first has the name of its kind."""
    return [
        c._replace(title=kind.upper()) if c.title == "NAME" else c
        for c in COLUMNS
        if kind in c.only and c.title != kind.upper()
    ]


def letters(kind: str) -> dict[str, str]:
    """Titles of the columns of a table by the key after `o`."""
    return {c.letter: c.title for c in of_kind(kind)}


ORDER_TITLES = {
    "worst": (WORST, False),
    "problems": (WORST, False),
    "name": ("NAME", False),
    "hosts": ("HOSTS", False),
    "chips": ("CHIPS", False),
    "memory": ("HBM", False),
    "mxu": ("MXU", True),
    "duty": ("DUTY", True),
    "bandwidth": ("BW", True),
    "idle": ("IDLE", False),
    "step": ("STEP", False),
}
"""The column of each order of `fleet_orders`, and whether the smallest is first in it."""


def at_start(kind: str, order: str) -> tuple[str, bool]:
    """Title of the column that a table is sorted by in an order of `fleet_orders`, and whether in
    reverse: by the worst for an order that this kind of row does not have.
    """
    title, is_reversed = ORDER_TITLES.get(order, (WORST, False))
    title = kind.upper() if title == "NAME" else title
    has_it = title in {c.title for c in of_kind(kind)}
    return (title, is_reversed) if has_it else (WORST, False)


def drawn(look: Look, columns: list[FleetColumn]) -> list[Column[FleetRow]]:
    """The same for a table on the screen."""
    return [_column(look, c) for c in columns]


def _column(look: Look, c: FleetColumn) -> Column[FleetRow]:
    def draw(row: FleetRow, width: int) -> Row:
        if c.share is not None and width > c.width + 4:
            return _with_bar(look, c, row, width)
        return look.cell(_shown(c, row, width), width, _style(c, row), right=c.right)

    grows = bool(c.most) and c.share is None
    return Column(
        title=c.title,
        draw=draw,
        width=c.width,
        rank=c.rank,
        most=c.most,
        right=c.right,
        text=(lambda row: _shown(c, row, c.most)) if grows else None,
        sort=c.order,
        falls=c.falls,
        spare=c.spare,
        known=(lambda row: c.text(row) not in (words.UNKNOWN, " ")) if c.optional else None,
        least_more=5 if c.share is not None else 0,
        sure=c.sure,
    )


def _shown(c: FleetColumn, row: FleetRow, width: int) -> str:
    text = c.text(row)
    is_old = c.is_number and row.is_old and text != words.UNKNOWN
    return marked(text, width) if is_old else text


def _style(c: FleetColumn, row: FleetRow) -> str:
    if c.title == "STATE":
        return state_style(row)
    if c.title == WORST or (c.title == "IDLE" and _idle_held(row)):
        return "warn"
    if c.rank == 0:
        return "bold"
    return "dim" if row.is_old else "plain"


def state_style(row: FleetRow) -> str:
    """The style of its state: that of its worst host."""
    if row.group.in_state(HostState.DOWN):
        return "bad"
    is_odd = row.group.in_state(HostState.OLD) or row.group.unreported_hosts
    return "warn" if is_odd else "plain"


def _with_bar(look: Look, c: FleetColumn, row: FleetRow, width: int) -> Row:
    number = look.cell(_shown(c, row, c.width), c.width, _style(c, row), right=True)
    percent = None if c.share is None or row.is_old else c.share(row)
    room = width - c.width - 1
    if percent is None:
        return (*look.cell("", room + 1, "plain"), *number)
    style = fill_style(percent / 100) if c.title == "HBM" else "graph"
    return (*look.bar(percent / 100, None, room, style), *look.line((" ", "plain")), *number)
