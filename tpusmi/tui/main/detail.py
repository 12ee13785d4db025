"""The detail pane: everything known of one process, the most useful first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from rich.cells import cell_len

from tpusmi.model import Process, Site, Snapshot, State
from tpusmi.report import verdicts, words
from tpusmi.tui.draw.cells import age
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.job.facts import NO_AGENT, JobFacts, told
from tpusmi.tui.main.processes import letter, verdict_style

_NAME_WIDTH = 10
SITES_WANTED, SITES_TO_COME = 12, 8
"""Lines of code that are worth their room; how many there will be before anybody knows."""
LEAST_PLACE = 12
"""Of a file and line, however long the function's name."""


class About(NamedTuple):
    """What is known of a process beside the snapshot."""

    devices: str = ""
    """Its, as `0-7`."""
    ending: str | None = None
    """How far its end is."""


class Details:
    """All that the pane says of one process."""

    def __init__(self, look: Look, s: Snapshot, p: Process, about: About, width: int) -> None:
        self._look, self._s, self._p, self._width = look, s, p, width
        detail = _Detail(look, s, p, width)
        title = look.cell(f"{letter(p)} {p.pid} {p.command}", width, "head")
        end = [] if about.ending is None else [detail.line("ending", [about.ending], "warn")]
        doubt = unverified(look, p, width)
        facts = detail.facts(about.devices)
        self._lines = [title, *end, *doubt, *_notices(look, s, p, width), *facts]

    @property
    def wanted(self) -> int:
        """Lines that are worth their room, those of the largest sites among them."""
        sites = sites_wanted(self._p)
        return len(self._lines) + sites + bool(sites)

    def lines(self, height: int) -> list[Row]:
        """As many lines as there is room for."""
        profile, room = self._p.profile, height - len(self._lines)
        if profile is None or room < 2:
            return self._lines[:height]
        sites, age_s = profile.sites[: room - 1], self._s.at_s - profile.at_s
        return [*self._lines, *site_lines(self._look, age_s, sites, self._width)]


class _Detail:
    """Lines of name and value, for one process in one snapshot."""

    def __init__(self, look: Look, snapshot: Snapshot, process: Process, width: int) -> None:
        self._look, self._p = look, process
        self._room = max(0, width - _NAME_WIDTH)
        self._facts = JobFacts(snapshot, process)

    def facts(self, devices: str) -> list[Row]:
        """Who it is, what it holds, how its steps go, what it compiled."""
        facts = self._facts
        lines = [self.line("job", self._who(devices))]
        if self._p.holds:
            lines.append(self.line("holds", chain(facts.holds(), facts.environment())))
        if self._p.interval_s is None:
            return [*lines, *self._life(), self.line("agent", [NO_AGENT])]
        steps = [*facts.steps(), *facts.flops(), *facts.last_step()] or [words.UNKNOWN]
        return [
            *lines,
            self.line("steps", chain(steps, facts.cost())),
            self.line("step time", facts.step_times()),
            self.line("compiles", facts.compiles()),
            self.line("memory", facts.memory()),
            *self._life(),
        ]

    def line(self, name: str, parts: Iterable[str], style: str = "plain") -> Row:
        """A line of that name, cut at the edge; grey when the process has ended."""
        text = f" {self._look.glyphs.dot} ".join(parts) or words.UNKNOWN
        if cell_len(text) > self._room:
            text = self._look.fitted(text, self._room)
        style = "dim" if self._p.is_dead else style
        return self._look.line((name.ljust(_NAME_WIDTH), "title"), (text, style))

    def _who(self, devices: str) -> Iterator[str]:
        yield from self._facts.where(devices)
        yield from self._facts.rank()
        if self._p.user:
            yield f"user {self._p.user}"
        yield from self._facts.versions()

    def _life(self) -> list[Row]:
        """What the kernel knows of a holder, as far as it was told."""
        lines = (("process", [*self._facts.runs()]), ("started", [*self._facts.place()]))
        return [self.line(name, parts) for name, parts in lines if parts]


def _notices(look: Look, s: Snapshot, p: Process, width: int) -> list[Row]:
    """The verdict on it, and what a person can do something about. Whole: the notices below are cut
    at the edge.
    """
    verdict_lines = judged(look, p, width)
    lines = [row for n in told(s, p) for row in look.wrapped(n.message, width, "warn", "! ")]
    first = p.is_doubtful
    return [*verdict_lines, *lines] if first else [*lines, *verdict_lines]


def sites_wanted(p: Process) -> int:
    """How many of the largest sites are worth their room, when they are known, or are to come."""
    if p.profile is not None:
        return min(len(p.profile.sites), SITES_WANTED)
    return SITES_TO_COME if p.state == State.LIVE and p.interval_s is not None else 0


def unverified(look: Look, p: Process, width: int) -> list[Row]:
    """That only a file says that there is this process."""
    if p.is_verified:
        return []
    if p.is_dead:
        return []
    if p.elsewhere:
        text = (
            f"{p.elsewhere}: it lives, for its agent has {p.key.claim} locked; its pid is not ours"
        )
        return look.wrapped(text, width, "plain", "  ")
    whose = f", a file of user {p.user}," if p.user else ""
    text = f"{words.NOT_VERIFIED}: only {p.key.claim}{whose} says that there is this process"
    return look.wrapped(text, width, "warn", "! ")


def judged(look: Look, p: Process, width: int) -> list[Row]:
    """Whether it is stale, where there is a word to say about it, and its other signs."""
    mark = "! " if p.is_doubtful else "  "
    text = verdicts.sentence(p) if p.stale_reason else ""
    lines = look.wrapped(text, width, verdict_style(p), mark) if text else []
    signs = "; ".join(verdicts.other_signs(p))
    return [*lines, *(look.wrapped(f"signs: {signs}", width, "plain", "  ") if signs else [])]


def site_lines(look: Look, age_s: float, sites: tuple[Site, ...], width: int) -> list[Row]:
    """The largest allocation sites under a title row."""
    title = f"{'BYTES':>10} {'COUNT':>6}  ALLOCATED BY ({age(age_s)} ago)"
    return [look.cell(title, width, "head"), *(_site(look, s, width) for s in sites)]


def _site(look: Look, s: Site, width: int) -> Row:
    """A site; of a long path the end is what tells."""
    numbers = f"{words.size(s.bytes):>10} {words.count(s.count):>6}  "
    kind = "" if s.kind == "buffer" else f"  ({s.kind})"
    place = f"{s.file}:{s.line}"
    room = max(width - cell_len(numbers + s.function + kind) - 2, LEAST_PLACE)
    if cell_len(place) > room:
        place = look.glyphs.cut + place[-(room - 1) :]
    return look.line((numbers, "plain"), (s.function, "bold"), (f"  {place}{kind}", "dim"))
