"""What surrounds the pages of a fleet: header, totals, what is wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.segment import Segment

from tpusmi import __version__
from tpusmi.fleet.fleet_figures import HostState
from tpusmi.fleet.groups.fleet_groups import MEMORY_PERCENT, FleetGroup
from tpusmi.fleet.report.group_columns import mean_text, memory_text, sum_text
from tpusmi.model import Notice
from tpusmi.report import words
from tpusmi.text import clean, counted
from tpusmi.tui.draw.look import SIMULATED, Look, Row, width_of
from tpusmi.tui.draw.notice_lines import notice_rows
from tpusmi.tui.fleet.fleet_scene import FleetScene

PROBLEM_MOST = 300
LINES_OF_ADVICE = 2
"""With no more lines than these, notices are without their advice."""
Part = tuple[str, str]
STATE_STYLES = {
    HostState.LIVE: "good",
    HostState.OLD: "warn",
    HostState.DOWN: "bad",
    HostState.PENDING: "dim",
}


def header(scene: FleetScene, title: str, width: int) -> Row:
    """The top line: who is asked and what the page is about at the left, the time at the right."""
    look = scene.look
    loud = [(SIMULATED, "loud"), (" ", "plain")] if scene.is_simulated else []
    left = look.line(
        *loud,
        (f"tpusmi {__version__} ", "title"),
        ("fleet", "head"),
        (f"  {title}" if title else "", "bold"),
        (f"  {scene.label}", "plain"),
    )
    alarms = look.line(*((text, "paused") for text in _alarms(scene)))
    for with_interval in (True, False):
        right = (*alarms, *look.line(*_clock(scene, with_interval)))
        room = width - width_of(right)
        if width_of(left) < room:
            return (*left, *look.line((" " * (room - width_of(left)), "plain")), *right)
    # On a narrow screen what is wrong stays, and the rest is cut.
    room = max(0, width - width_of(alarms))
    return (*_fitted(look, left, room), *alarms)


def _fitted(look: Look, row: Row, width: int) -> Row:
    """The line in exactly that width."""
    pieces, left = [], width
    for text, style, _ in row:
        shown = look.fitted(text, min(cell_len(text), left))
        left -= cell_len(shown)
        pieces.append((shown, style))
    blank = Segment(" " * left, look.style["plain"])
    return (*(Segment(text, style) for text, style in pieces if text), blank)


def _alarms(scene: FleetScene) -> Iterator[str]:
    if scene.moment_s is not None:
        yield f" {words.elapsed(scene.back_s)} AGO (n = now) "
    if scene.is_reading and not scene.error:
        yield " READING "
    if scene.paused:
        yield " PAUSED "
    age = scene.age_s
    old = f" {words.elapsed(age)} OLD" if age is not None else ""
    if scene.error:
        yield f" FAILED{old} "
    elif scene.late_s:
        yield f" NO ANSWER FOR {scene.late_s:.0f}s "


def _clock(scene: FleetScene, with_interval: bool) -> Iterator[Part]:
    if with_interval:
        yield f" every {scene.interval_s:g}s", "dim"
    if scene.snapshot is not None:
        yield f"  {_local(scene.snapshot.at_s, scene.now_s)}", "plain"


def _local(at_s: float, now_s: float) -> str:
    """The local time; with its date, where that is another day than now."""
    import time

    try:
        at, now = time.localtime(at_s), time.localtime(now_s)
        return time.strftime("%H:%M:%S" if at[:3] == now[:3] else "%Y-%m-%d %H:%M:%S", at)
    except (OverflowError, ValueError, OSError):
        return words.UNKNOWN


def totals(look: Look, g: FleetGroup, took_s: float, width: int) -> Row:
    """The second line: as many figures of the fleet as fit."""
    row: Row = ()
    for n, parts in enumerate(_totals(g, took_s)):
        gap = (f" {look.glyphs.dot} " if n else "", "dim")
        longer = (*row, *look.line(gap, *parts))
        if width_of(longer) > width:
            break
        row = longer
    return row


def _totals(g: FleetGroup, took_s: float) -> Iterator[Sequence[Part]]:
    yield _hosts(g)
    if g.hbm_used_bytes.value is not None:
        memory = [memory_text(g), mean_text(g, MEMORY_PERCENT)]
        known = [text for text in memory if text != words.UNKNOWN] or [words.UNKNOWN]
        yield [(f"HBM {' '.join(known)}", "plain")]
    if g.in_state(HostState.LIVE):  # a dash says nothing
        yield [(f"MXU {mean_text(g, 'tensorcore_utilization_percent')}", "plain")]
    idle = g.idle_held_chips
    if not idle.is_unknown:
        yield [(f"{sum_text(idle)} held idle", "warn" if idle.value else "plain")]
    held = f" ({sum_text(g.held_chips)} held)" if not g.held_chips.is_unknown else ""
    yield [(f"{sum_text(g.chips)} chips{held}", "plain")]
    if g.in_state(HostState.LIVE):
        yield [(f"duty {mean_text(g, 'duty_cycle_percent')}", "plain")]
    if g.stragglers:
        yield [(counted(len(g.stragglers), "straggler"), "warn")]
    if g.problems:
        yield [(counted(g.problems, "notice"), "warn")]
    yield [(f"read in {words.duration(took_s)}", "dim")]


def _hosts(g: FleetGroup) -> list[Part]:
    """`62 of 64 hosts live, 1 old, 1 down`"""
    live = g.in_state(HostState.LIVE)
    if live == g.hosts:
        return [(f"{counted(g.hosts, 'host')} live", "bold")]
    parts = [(f"{live} of {counted(g.hosts, 'host')} live", "bold")]
    for state, style in STATE_STYLES.items():
        if state != HostState.LIVE and (count := g.in_state(state)):
            parts.append((f", {count} {state}", style))
    return parts


def wrong(scene: FleetScene) -> list[str]:
    """Sentences about what could not be read."""
    read = () if scene.snapshot is None else scene.snapshot.problems
    return [*([scene.error] if scene.error else []), *(clean(text, PROBLEM_MOST) for text in read)]


def notice_lines(
    look: Look, sentences: Sequence[str], notices: Sequence[Notice], width: int, most: int
) -> list[Row]:
    """What is wrong in at most that many lines; the last one says how many more there are."""
    blocks = [[_sentence(look, text, width)] for text in sentences]
    # On a small screen what is wrong, and not what to do.
    blocks += [
        notice_rows(look, n, width, 2)
        if most > LINES_OF_ADVICE
        else notice_rows(look, n._replace(advice=""), width, 1)
        for n in notices
    ]
    rows: list[Row] = []
    for n, block in enumerate(blocks):
        left, is_last = most - len(rows), n == len(blocks) - 1
        if len(block) > left - (not is_last):
            hidden = len(blocks) - n
            more = f"{look.glyphs.cut} {hidden} more" if rows or most > 0 else ""
            return [*rows, look.line((more, "dim"))] if left > 0 else rows
        rows += block
    return rows


def _sentence(look: Look, text: str, width: int) -> Row:
    room = max(0, width - len("! "))
    return look.line(("! ", "bad"), (look.fitted(text, min(room, cell_len(text))), "warn"))
