"""The details of one process as the main page shows them, the most useful first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from rich.cells import cell_len

from tpusmi.model import Notice, Process, Site, Snapshot, State
from tpusmi.report import verdicts, words
from tpusmi.report.concerns import OF_VERDICT
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.notice_lines import below_verdict, notice_rows
from tpusmi.tui.process.process_facts import (
    NO_AGENT,
    JobFacts,
    letter,
    own_warnings,
    still_s,
    verdict_style,
    without_verdict,
)

_NAME_WIDTH = 10
MOST_SITES = 12
"""The largest lines of code that are worth their room."""
SITES_TO_COME = 8
"""Lines that are kept free for them until they are known."""
LEAST_PLACE = 12
"""The least width of a file and line, however long the function's name."""


_Block = tuple[list[Notice], list[Row]]
"""Lines that belong together, and the warnings that they repeat."""


class Details:
    """The lines about one process. `ending` says how far its end is, if it is being ended."""

    def __init__(self, look: Look, s: Snapshot, p: Process, ending: str | None, width: int) -> None:
        self._look, self._s, self._p, self._width = look, s, p, width
        self._facts = JobFacts(s, p)
        title = look.cell(f"{letter(p)} {p.pid} {p.command}", width, "head")
        end = [] if ending is None else [self._line("ending", [ending], "warn")]
        doubt = unverified(look, p, width)
        self.notices: list[Notice] = own_warnings(s, p)
        """What it warns of, the verdict among it."""
        self._head = [title, *end, *doubt]
        self._warned = self._blocks()
        self._rest = self._fact_lines()

    @property
    def height(self) -> int:
        """Lines that are worth their room, those of the largest sites among them."""
        sites, warned = site_count(self._p), sum(len(rows) for _, rows in self._warned)
        return len(self._head) + warned + len(self._rest) + sites + bool(sites)

    def notices_in(self, height: int) -> list[Notice]:
        """The warnings that it shows whole, with what to do, in that many lines."""
        return [n for notices, _ in self._fitting(height) for n in notices]

    def _fitting(self, height: int) -> Iterator[_Block]:
        """The blocks of warnings for which there is room: none is cut."""
        room = height - len(self._head)
        for block in self._warned:
            room -= len(block[1])
            if room < 0:
                return
            yield block

    def lines(self, height: int) -> list[Row]:
        """As many lines as there is room for."""
        warned = chain.from_iterable(rows for _, rows in self._fitting(height))
        lines = [*self._head, *warned, *self._rest]
        profile, room = self._p.profile, height - len(lines)
        if profile is None or room < 2:
            return lines[:height]
        sites, age_s = profile.sites[: room - 1], self._s.at_s - profile.at_s
        return [*lines, *site_lines(self._look, age_s, sites, self._width)]

    def _fact_lines(self) -> list[Row]:
        facts, line = self._facts, self._line
        life = (("process", [*facts.runs()]), ("started", [*facts.place()]))
        life_lines = [line(name, parts) for name, parts in life if parts]
        lines = [line("job", self._identity())]
        if self._p.holds:
            lines.append(line("holds", [words.nodes(self._p.holds)]))
        if self._p.interval_s is None:
            return [*lines, *life_lines, line("agent", [NO_AGENT])]
        still = still_s(self._s, self._p)
        steps = [*facts.steps(), *facts.flops(), *facts.last_step()] or [words.UNKNOWN]
        return [
            *lines,
            line("steps", chain(steps, facts.cost()), "plain" if still is None else "warn"),
            line("step time", facts.step_times()),
            line("compiled", facts.compilations()),
            line("memory", facts.memory()),
            *life_lines,
        ]

    def _identity(self) -> Iterator[str]:
        numbers = [d.number for d in self._s.devices_of(self._p.key)]
        yield from self._facts.where(words.ranges(numbers) if numbers else "")
        yield from self._facts.rank()
        if self._p.user:
            yield f"user {self._p.user}"
        yield from self._facts.versions()

    def _blocks(self) -> list[_Block]:
        """The verdict and the warnings, in full: the notices below are cut where they are long."""
        look, p, width = self._look, self._p, self._width
        verdict = [n for n in self.notices if n.code in OF_VERDICT]
        judgment: _Block = (verdict, judged(look, p, width, verdict))
        others = without_verdict(self.notices)
        blocks: list[_Block] = [([n], notice_rows(look, n, width)) for n in others]
        return [judgment, *blocks] if p.is_doubtful else [*blocks, judgment]

    def _line(self, name: str, parts: Iterable[str], style: str = "plain") -> Row:
        """A line of that name, cut at the edge; gray if the process has ended."""
        text, room = self._look.joined(parts) or words.UNKNOWN, max(0, self._width - _NAME_WIDTH)
        if cell_len(text) > room:
            text = self._look.fitted(text, room)
        style = "dim" if self._p.is_dead else style
        return self._look.line((name.ljust(_NAME_WIDTH), "title"), (text, style))


def site_count(p: Process) -> int:
    """How many of the largest sites are worth their room, or will be once they are known."""
    if p.profile is not None:
        return min(len(p.profile.sites), MOST_SITES)
    return SITES_TO_COME if p.state == State.LIVE and p.interval_s is not None else 0


def unverified(look: Look, p: Process, width: int) -> list[Row]:
    """Says that this process is known only from a file."""
    if p.is_verified or p.is_dead:
        return []
    if p.elsewhere:
        text = (
            f"{p.elsewhere}: alive, its agent has {p.key.claim} locked; "
            "its pid is of another namespace"
        )
        return look.wrapped(text, width, "plain", "  ")
    whose = f", a file of user {p.user}" if p.user else ""
    text = f"{words.NOT_VERIFIED}: known only from {p.key.claim}{whose}"
    return look.wrapped(text, width, "warn", "! ")


def judged(look: Look, p: Process, width: int, notices: Iterable[Notice] = ()) -> list[Row]:
    """The verdict on whether it is stale, if there is one, what to do if one of the notices says
    so, and its other signs.
    """
    mark = "! " if p.is_doubtful else "  "
    text = verdicts.sentence(p) if p.stale_reason else ""
    lines = look.wrapped(text, width, verdict_style(p), mark) if text else []
    for n in notices:
        if n.code in OF_VERDICT and text:
            lines += below_verdict(look, n, width)
    signs = "; ".join(verdicts.other_signs(p))
    return [*lines, *(look.wrapped(f"signs: {signs}", width, "plain", "  ") if signs else [])]


def site_lines(look: Look, age_s: float, sites: tuple[Site, ...], width: int) -> list[Row]:
    """The largest allocation sites under a title row."""
    title = f"{'BYTES':>10} {'COUNT':>6}  ALLOCATED BY ({words.elapsed(age_s)} ago)"
    return [look.cell(title, width, "head"), *(_site(look, s, width) for s in sites)]


def _site(look: Look, s: Site, width: int) -> Row:
    """A site, of whose path the end is kept."""
    numbers = f"{words.size(s.bytes):>10} {words.count(s.count):>6}  "
    kind = "" if s.kind == "buffer" else f"  ({s.kind})"
    place = f"{s.file}:{s.line}"
    room = max(width - cell_len(numbers + s.function + kind) - 2, LEAST_PLACE)
    if cell_len(place) > room:
        place = look.glyphs.cut + place[-(room - 1) :]
    return look.line((numbers, "plain"), (s.function, "bold"), (f"  {place}{kind}", "dim"))
