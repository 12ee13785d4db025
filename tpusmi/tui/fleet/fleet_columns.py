"""The columns of the tables of a fleet, and how their cells are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tpusmi.fleet.figures import HostState
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
    is_number: bool = True
    """An old one is in parentheses."""
    ratio: Callable[[FleetRow], float | None] | None = None
    """Given for a share that is drawn as a bar where there is room."""


def hosts_text(row: FleetRow) -> str:
    """`62/64`: live of all."""
    return f"{row.figures.states[HostState.LIVE]}/{len(row.hosts)}"


def state_text(row: FleetRow) -> str:
    """`live`, or what is not: `1 down, 2 old`."""
    states = row.figures.states
    if len(row.hosts) == 1:
        return str(row.hosts[0].state)
    order = (HostState.DOWN, HostState.OLD, HostState.PENDING)
    bad = [f"{states[state]} {state}" for state in order if states[state]]
    return ", ".join(bad) or str(HostState.LIVE)


def problems_text(row: FleetRow) -> str:
    """Codes of notices, the most frequent first: `throttled 3, ici_link`."""
    codes = row.figures.codes.most_common()
    return ", ".join(f"{code} {count}" if count > 1 else code for code, count in codes) or " "


def _memory_text(row: FleetRow) -> str:
    f = row.figures
    return words.size_pair(f.used_bytes, f.limit_bytes)


def _memory_share(row: FleetRow) -> float | None:
    f = row.figures
    return f.used_bytes / f.limit_bytes if f.used_bytes is not None and f.limit_bytes else None


def _percent(get: Callable[[FleetRow], float | None]) -> Callable[[FleetRow], str]:
    return lambda row: words.percent(get(row))


def _share(get: Callable[[FleetRow], float | None]) -> Callable[[FleetRow], float | None]:
    return lambda row: None if (value := get(row)) is None else value / 100.0


def _of_host(name: str) -> Callable[[FleetRow], Any]:
    return lambda row: getattr(row.hosts[0], name) if len(row.hosts) == 1 else None


def _several(row: FleetRow, names: tuple[str, ...]) -> str:
    more = f"+{len(names) - 1}" if len(names) > 1 else ""
    return names[0] + more if names else words.UNKNOWN


# fmt: off
def _mxu(row: FleetRow) -> float | None: return row.figures.mxu  # noqa: E704
def _duty(row: FleetRow) -> float | None: return row.figures.duty  # noqa: E704
def _bandwidth(row: FleetRow) -> float | None: return row.figures.bandwidth  # noqa: E704
def _mfu(row: FleetRow) -> float | None: return row.figures.mfu  # noqa: E704


COLUMNS = (
    FleetColumn("NAME", "The job, slice or host.", lambda r: r.name, 10, 0, lambda r: r.name.casefold(),
        letter="n", right=False, falls=False, most=28, is_number=False),
    FleetColumn("STATE", "live; old: its exporter answers with old numbers; down: it does not answer.",
        state_text, 7, 4, lambda r: (r.figures.states[HostState.DOWN], r.figures.states[HostState.OLD]),
        letter="s", right=False, most=15, is_number=False),
    FleetColumn("HOSTS", "Live hosts, of all.", hosts_text, 5, 3, lambda r: len(r.hosts),
        letter="h", most=9, only=("job", "slice"), is_number=False),
    FleetColumn("CHIPS", "Chips.", lambda r: words.count(r.figures.chips), 5, 9, lambda r: r.figures.chips,
        letter="c"),
    FleetColumn("MEMORY", "HBM in use of the limit, of all its devices.", _memory_text, 15, 7,
        lambda r: r.figures.used_bytes, letter="g"),
    FleetColumn("HBM", "The same as a share.", _percent(lambda r: None if (s := _memory_share(r)) is None else 100 * s),
        6, 1, _memory_share, letter="p", most=6 + 1 + _BAR, ratio=_memory_share),
    FleetColumn("FULLEST", "HBM in use on its fullest device.",
        _percent(lambda r: None if r.figures.fullest is None else 100 * r.figures.fullest),
        7, 12, lambda r: r.figures.fullest, letter="f", spare=8),
    FleetColumn("MXU", "Mean over its devices: share of the peak matrix throughput.", _percent(_mxu), 6, 2, _mxu,
        letter="x", most=6 + 1 + _BAR, ratio=_share(_mxu)),
    FleetColumn("DUTY", "Mean over its devices: share of the time that they were busy.", _percent(_duty), 6, 6, _duty,
        letter="d", most=6 + 1 + _BAR, ratio=_share(_duty)),
    FleetColumn("BW", "Mean over its devices: share of the peak HBM bandwidth.", _percent(_bandwidth), 6, 13, _bandwidth,
        letter="b", spare=8, optional=True),
    FleetColumn("IDLE", "Chips that a process holds, and that have been idle for 15 minutes or more.",
        lambda r: words.count(r.figures.idle_held), 4, 8, lambda r: r.figures.idle_held, letter="i"),
    FleetColumn("STEP", "Mean time of a step: of its slowest process.", lambda r: words.duration(r.figures.step_s),
        7, 10, lambda r: r.figures.step_s, letter="t", optional=True),
    FleetColumn("SLOWEST", "The host of that process.", lambda r: r.figures.slowest or words.UNKNOWN, 7, 17,
        lambda r: r.figures.slowest or None, right=False, falls=False, most=24, only=("job", "slice"),
        optional=True, is_number=False, spare=8),
    FleetColumn("MFU", "Model FLOPs per second over the peak.", _percent(_mfu), 6, 14, _mfu, letter="m",
        optional=True, spare=8),
    FleetColumn("JOB", "Its job; +1: and another one.", lambda r: _several(r, r.figures.jobs), 6, 11,
        lambda r: r.figures.jobs or None, letter="j", right=False, falls=False, most=20, only=("slice", "host"),
        optional=True, is_number=False),
    FleetColumn("USER", "The user who runs it.", lambda r: _several(r, r.figures.users), 4, 16,
        lambda r: r.figures.users or None, letter="u", right=False, falls=False, most=12, optional=True,
        is_number=False, spare=8),
    FleetColumn("SLICE", "Its slice.", lambda r: _of_host("slice")(r) or words.UNKNOWN, 6, 15, _of_host("slice"),
        letter="l", right=False, falls=False, most=20, only=("host",), optional=True, is_number=False),
    FleetColumn("WORKER", "Its number in the slice.",
        lambda r: words.UNKNOWN if (n := _of_host("worker")(r)) is None else str(n), 6, 18, _of_host("worker"),
        letter="w", falls=False, only=("host",), optional=True, is_number=False, spare=8),
    FleetColumn("AGE", "Age of its oldest numbers.", lambda r: words.elapsed(r.figures.age_s), 5, 10,
        lambda r: r.figures.age_s, letter="a", is_number=False, most=7),
    FleetColumn(WORST, "Codes of its notices, and how many of each. Sorted: the worst first.", problems_text, 8, 5,
        lambda r: r.severity, letter="o", right=False, most=60, is_number=False),
)
# fmt: on
LETTERS = {c.letter: c.title for c in COLUMNS if c.letter}


def of_kind(kind: str) -> list[FleetColumn]:
    """The columns of a table of jobs, slices or hosts; the first has the name of its kind."""
    return [
        c._replace(title=kind.upper()) if c.title == "NAME" else c
        for c in COLUMNS
        if kind in c.only and c.title != kind.upper()
    ]


def drawn(look: Look, columns: list[FleetColumn]) -> list[Column[FleetRow]]:
    """The same for a table on the screen."""
    return [_column(look, c) for c in columns]


def _column(look: Look, c: FleetColumn) -> Column[FleetRow]:
    def text(row: FleetRow) -> str:
        return c.text(row)

    def draw(row: FleetRow, width: int) -> Row:
        if c.ratio is not None and width > c.width + 4:
            return _with_bar(look, c, row, width)
        return look.cell(_shown(c, row, width), width, _style(c, row), right=c.right)

    grows = bool(c.most) and c.ratio is None
    return Column(
        title=c.title,
        draw=draw,
        width=c.width,
        rank=c.rank,
        most=c.most,
        right=c.right,
        text=text if grows else None,
        sort=c.order,
        falls=c.falls,
        spare=c.spare,
        known=(lambda row: c.text(row) not in (words.UNKNOWN, " ")) if c.optional else None,
        least_more=5 if c.ratio is not None else 0,
    )


def _shown(c: FleetColumn, row: FleetRow, width: int) -> str:
    text = c.text(row)
    is_old = c.is_number and row.figures.is_old and text != words.UNKNOWN
    return marked(text, width) if is_old else text


def _style(c: FleetColumn, row: FleetRow) -> str:
    states = row.figures.states
    if c.title == "STATE":
        return "bad" if states[HostState.DOWN] else "warn" if states[HostState.OLD] else "plain"
    if c.title == WORST:
        return "warn"
    if c.title == "IDLE" and row.figures.idle_held:
        return "warn"
    if c.rank == 0:
        return "bold"
    return "dim" if row.figures.is_old else "plain"


def _with_bar(look: Look, c: FleetColumn, row: FleetRow, width: int) -> Row:
    number = look.cell(_shown(c, row, c.width), c.width, _style(c, row), right=True)
    ratio = None if c.ratio is None or row.figures.is_old else c.ratio(row)
    room = width - c.width - 1
    if ratio is None:
        return (*look.cell("", room + 1, "plain"), *number)
    style = fill_style(ratio) if c.title == "HBM" else "graph"
    return (*look.bar(ratio, None, room, style), *look.line((" ", "plain")), *number)
