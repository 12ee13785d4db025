"""The lines of the job page about one process, the most important first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from rich.segment import Segment
from textual.geometry import Size

from tpusmi.merge.causes import Cause, likeliest
from tpusmi.model import Device, Notice, Process, Snapshot, State, Value
from tpusmi.model.several import mean, total
from tpusmi.report import rows, words
from tpusmi.tui.draw.look import Look, Row, split
from tpusmi.tui.draw.notice_lines import aged, notice_rows, room_beside_age
from tpusmi.tui.job.job_graphs import SHARES, JobGraphs
from tpusmi.tui.process.process_details import (
    MOST_SITES,
    Details,
    judged,
    site_count,
    site_lines,
    unverified,
)
from tpusmi.tui.process.process_facts import (
    NAME_WIDTH,
    NO_AGENT,
    JobFacts,
    letter,
    letter_style,
    named,
    own_warnings,
    without_verdict,
)
from tpusmi.tui.scene import Scene

TWO_COLUMNS_FROM = 140
GAP = 3
FACTS_SHARE = 0.4
"""The share of the width for facts, where there are two columns."""
ROOMY = 16
"""Screens with fewer lines show one line of the command."""
SITES_STEP = 4
AROUND_SITES = 2
"""A blank line above them, and their title."""
ROOMY_GRAPHS = 20
"""Lines of graphs that are enough where lines of code would be out of sight."""
_STEP_TIMES = ("p50", "p95", "mean", "min", "max")
_LOUD = ("hangs", "recompiles")
"""Causes that are shown as warnings."""


def job_lines(
    scene: Scene, snapshot: Snapshot, process: Process, span_s: int, size: Size
) -> list[Row]:
    """Every line, also those below the last one of the screen."""
    width, height = size
    page = _Page(scene, snapshot, process)
    head = page.head(width, height)
    room = height - len(head)

    def graphs(width: int, height: int) -> list[Row]:
        return JobGraphs(scene, snapshot, process, span_s, width).lines(height)

    if width < TWO_COLUMNS_FROM:
        facts = page.facts(width)
        left = room - len(facts)
        if left - (sites := page.lines_of_sites) >= ROOMY_GRAPHS:
            left -= sites
        return [*head, *graphs(width, left), *facts, *page.sites(width)]
    right = int(width * FACTS_SHARE)
    left = width - GAP - right
    beside = page.beside(right, room - 1)
    return [*head, (), *_beside(scene.look, graphs(left, room - 1), beside, left)]


def _beside(look: Look, left: Sequence[Row], right: Sequence[Row], width: int) -> list[Row]:
    gap = look.line((" " * GAP, "plain"))
    return [
        (*Segment.adjust_line_length(list(a), width, look.style["plain"]), *gap, *b)
        for a, b in zip_longest(left, right, fillvalue=())
    ]


class _Page:
    """The parts of the page that are text."""

    def __init__(self, scene: Scene, snapshot: Snapshot, process: Process) -> None:
        self._look, self._s, self._p = scene.look, snapshot, process
        self._ends = scene.ends
        self._facts = JobFacts(snapshot, process)

    def head(self, width: int, height: int) -> list[Row]:
        """Its identity, how it is doing, and what the user can do about it."""
        lines = [self._title(), *self._command(width, 1 if height < ROOMY else 2)]
        if (progress := self._ends.progress.get(self._p.key)) is not None:
            lines += named(self._look, "ending", progress, width, "warn")
        lines += self._ends.lines(self._look, width)
        lines += unverified(self._look, self._p, width)
        notices = own_warnings(self._s, self._p)
        if self._p.is_doubtful:
            lines += judged(self._look, self._p, width, notices)
        cause = likeliest(self._s, self._p)
        lines += self._step_lines()
        warned = "" if cause is None else cause.notice
        for notice in without_verdict(notices):
            if notice.code != warned:
                lines += notice_rows(self._look, notice, width)
        if cause is not None:
            same = [n for n in notices if n.code == cause.notice]
            lines += self._cause(cause, same[0] if same else None, width)
        return lines

    def facts(self, width: int) -> list[Row]:
        """Memory, the agent, and where and how it runs."""
        facts, named = self._facts, self._wrapped
        lines = [
            *named("memory", facts.memory(), width),
            *named("agent", self._agent(), width),
            *named("process", facts.runs(), width),
            *named("started", facts.place(), width),
            *named("holds", [words.nodes(self._p.holds)] if self._p.holds else [], width),
            *named("versions", facts.versions(), width),
            *named("variables", facts.environment(), width),
        ]
        if not self._p.is_doubtful:
            lines += judged(self._look, self._p, width)
        return lines

    def beside(self, width: int, height: int) -> list[Row]:
        """The column beside the graphs: facts, the largest sites and, if there is room, devices,
        more sites, and another job.
        """
        lines = self.facts(width)
        room = height - len(lines) - self.lines_of_sites
        lines += device_lines(self._look, self._s, self._p, width, room)
        lines += self.sites(width, max(height - len(lines) - AROUND_SITES, MOST_SITES))
        return [*lines, *other_job(self._look, self._s, self._p, width, height - len(lines))]

    @property
    def lines_of_sites(self) -> int:
        """Lines of the sites, roughly, or of the sites to come."""
        few = -(-site_count(self._p) // SITES_STEP) * SITES_STEP
        has_living_agent = self._p.interval_s is not None and self._p.state == State.LIVE
        return few + AROUND_SITES if has_living_agent else 0

    def sites(self, width: int, most: int = MOST_SITES) -> list[Row]:
        """The lines of code that hold the most memory; the memory page lists all."""
        profile = self._p.profile
        if profile is None:
            return []
        age_s = self._s.at_s - profile.at_s
        return [(), *site_lines(self._look, age_s, profile.sites[:most], width)]

    def _title(self) -> Row:
        p, devices = self._p, self._s.devices_of(self._p.key)
        numbers = [d.number for d in devices]
        which = words.ranges(numbers) if numbers else ""
        where = [*self._facts.where(which)]
        if devices and not where:
            where = [f"{devices[0].kind or devices[0].platform or ''} {which}".strip()]
        if p.facts.get("process_count") != 1:
            where += self._facts.rank()
        style = letter_style(p)
        return self._look.line(
            (f"{letter(p)} ", style),
            (f"{p.pid}  ", "bold"),
            (f"{p.user or words.UNKNOWN}  ", "plain"),
            (f"{self._state()}", style),
            *((f"  {text}", "plain") for text in where),
        )

    def _state(self) -> str:
        """Its state in words."""
        p, sampled_s = self._p, self._p.sampled_at_s
        old = "" if sampled_s is None else words.duration(max(0.0, self._s.at_s - sampled_s))
        if p.is_dead:
            return f"ended {old} ago" if old else "ended"
        if p.status in ("stale", "stopped"):
            return p.status
        if p.state in (State.SILENT, State.UNCERTAIN):
            return f"{p.state}: no data from its agent for {old}" if old else p.state
        since_s = self._facts.value("since_last_step_s")
        if p.phase == "idle" and since_s is not None:
            return f"idle, no step for {words.duration(since_s)}"
        return p.phase or ("phase unknown" if p.interval_s is not None else "no agent")

    def _command(self, width: int, most: int) -> list[Row]:
        lines = split(self._p.command, width)
        if len(lines) > most:
            lines[most - 1 :] = [" ".join(lines[most - 1 :])]
        return [self._look.cell(text, width, "bold") for text in lines]

    def _step_lines(self) -> list[Row]:
        """Step times, steps and devices."""
        lines = []
        if self._p.interval_s is not None:
            steps = chain(self._facts.steps(), self._facts.flops(), self._facts.last_step())
            body = [*self._facts.step_body()]
            bodies = [self._measured("step body", body)] if body else []
            lines = [self._step_times(), *bodies, self._measured("steps", steps)]
        chips = [*self._chips()]
        return [*lines, *([self._measured("devices", chips)] if chips else [])]

    def _step_times(self) -> Row:
        """Each number has a fixed place: nothing moves when it changes."""
        values = [self._s.values.get((self._p.key, f"step_time_s.{part}")) for part in _STEP_TIMES]
        dim = self._p.is_dead or any(v is not None and v.stale for v in values)
        parts = [("step time".ljust(NAME_WIDTH), "title")]
        for name, v in zip(_STEP_TIMES, values, strict=True):
            text = words.duration(None if v is None else v.value)
            style = "dim" if dim else "bold" if name in ("p50", "p95") else "plain"
            parts += [(f"{name} ", "dim"), (f"{text:>7}  ", style)]
        return self._look.line(*parts)

    def _chips(self) -> Iterable[str]:
        """Memory, and the mean shares, of its devices."""
        devices = self._s.devices_of(self._p.key)
        used, limit = (
            total(self._s, name, devices) for name in ("hbm_used_bytes", "hbm_limit_bytes")
        )
        if used is not None:
            yield f"HBM {words.size_pair(used.value, limit and limit.value)}"
        for q in SHARES:
            value = mean(self._s, q.metric, devices)
            if value is not None:
                yield f"{q.name} {words.percent(value):>5}"

    def _cause(self, cause: Cause, notice: Notice | None, width: int) -> list[Row]:
        mark, style = ("! ", "warn") if cause.code in _LOUD else ("", "plain")
        look = self._look
        room = width if notice is None else room_beside_age(width)
        if mark:
            lines = look.wrapped(cause.why, room, style, mark)
        else:
            lines = self._wrapped("maybe slow", [cause.why], room)
        if notice is not None:
            lines = aged(look, lines, notice, width)
        return [*lines, *self._wrapped("what to do", [cause.cure], width)]

    def _agent(self) -> Iterable[str]:
        p = self._p
        if p.interval_s is None:
            yield NO_AGENT
            return
        yield f"samples every {words.duration(p.interval_s)}"
        if p.sampled_at_s is not None and not p.is_dead:
            yield f"last {words.duration(max(0.0, self._s.at_s - p.sampled_at_s))} ago"
        yield from (text.removeprefix("agent ") for text in self._facts.cost())

    def _measured(self, name: str, parts: Iterable[str]) -> Row:
        """A line that may be cut at the edge; gray if the job is not running."""
        text = self._look.joined(parts) or words.UNKNOWN
        style = "plain" if self._p.state == State.LIVE else "dim"
        return self._look.line((name.ljust(NAME_WIDTH), "title"), (text, style))

    def _wrapped(self, name: str, parts: Iterable[str], width: int) -> list[Row]:
        """The parts behind their name; no line if there are none."""
        text, style = self._look.joined(parts), "dim" if self._p.is_dead else "plain"
        return named(self._look, name, text, width, style) if text else []


MEMORY_WIDTH = len("123.4/~192.0 GiB") + 1
_TITLES = f"{'DEVICE':<8}{'MEMORY':>{MEMORY_WIDTH}}" + "".join(f"{q.name:>8}" for q in SHARES)


def device_lines(look: Look, s: Snapshot, p: Process, width: int, room: int) -> list[Row]:
    """All devices below a title, or nothing where there is no room for all."""
    devices = s.devices_of(p.key)
    if not devices or len(devices) + 2 > room:
        return []
    return [(), look.cell(_TITLES, width, "head"), *(_line(look, s, d) for d in devices)]


def other_job(look: Look, s: Snapshot, p: Process, width: int, room: int) -> list[Row]:
    """Details of the next living process, as on the main page, if there is room for all."""
    at = next((n for n, other in enumerate(s.processes) if other.key == p.key), 0)
    order = (*s.processes[at + 1 :], *s.processes[:at])
    other = next((o for o in order if not o.is_dead and o.is_verified), None)
    if other is None:
        return []
    details = Details(look, s, other, None, width)
    return [(), *details.lines(details.height)] if details.height < room else []


def _line(look: Look, s: Snapshot, d: Device) -> Row:
    memory = rows.memory(s, d)
    text = rows.DITTO if memory.repeats else memory.text
    parts = [(f"{d.name:<8}", "bold"), (f"{text:>{MEMORY_WIDTH}}", _style(memory.used))]
    for q in SHARES:
        cell = rows.device_value(s, d, q.metric)
        value = words.percent(cell.value.value if cell.value else None)
        parts.append((f"{rows.DITTO if cell.repeats else value:>8}", _style(cell.value)))
    return look.line(*parts)


def _style(v: Value | None) -> str:
    return "dim" if v is not None and v.stale else "plain"
