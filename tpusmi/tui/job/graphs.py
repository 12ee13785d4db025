"""The history of one job: step time, phases, MFU, compilations, each over the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tpusmi.model import AGENT, PHASE, PHASES, History, Process, Snapshot, State, Value
from tpusmi.report import words
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.graphs import Drawn, Graphs, How, Slots, dominant, filed, held, most
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.draw.named import NAME_WIDTH, named
from tpusmi.tui.job.facts import JobFacts
from tpusmi.tui.job.phases import shares, time_line
from tpusmi.tui.memory.curve import Holder
from tpusmi.tui.span import in_words

LEAST_STEP_LINES, MOST_STEP_LINES = 5, 32
LEAST_LINES, MOST_LINES = 3, 16
"""Of the lesser graphs, their titles included."""
TALL = 28
"""From so many lines on there is a graph of the memory."""
BESIDE_LINES = 4
"""Phases, their shares, and two time axes."""
SHARES = (
    ("duty", "duty_cycle_percent"),
    ("MXU", "tensorcore_utilization_percent"),
    ("bandwidth", "hbm_bandwidth_utilization_percent"),
)
"""What is known of devices whose job says nothing, by the name it has here."""
OWN = ("step_time_s.p50", "steps_per_s", PHASE, "mfu_percent", "flops_per_s", "compilations")
"""Of a process with an agent."""
NO_STEPS = "no step yet: call tpusmi.step() in the loop, once per step"
NO_FLOPS = "unknown: tell tpusmi.step(flops=N), or wrap the step in tpusmi.track(jax.jit(f))"


class Moment(NamedTuple):
    """What there is to draw from."""

    look: Look
    snapshot: Snapshot
    process: Process
    graphs: Graphs
    history: History
    span_s: int
    is_past: bool = False
    """An earlier moment is shown: nobody knows the warnings of then."""


class JobGraphs:
    """Graphs of one process that end at the snapshot's time."""

    def __init__(self, moment: Moment, width: int) -> None:
        self._moment, self._look, self._width = moment, moment.look, width
        self._facts = JobFacts(moment.snapshot, moment.process)

    def lines(self, height: int) -> list[Row]:
        """All of them in about that many lines, the most important first; more where even their
        least heights do not fit.
        """
        if self._moment.process.interval_s is None:
            return self._devices_only(height)
        spare = height // 5 if height >= TALL else 0
        room = height - BESIDE_LINES - spare
        main = min(max(room // 2, LEAST_STEP_LINES), MOST_STEP_LINES)
        lesser = min(max((room - main) // 2, LEAST_LINES), MOST_LINES)
        above = [*self._steps(main), *self._phases(), *self._flops(lesser)]
        compiled = self._compilations(lesser)
        if spare:
            above += self._memory(height - len(above) - len(compiled), len(compiled) < lesser)
        return [*above, *compiled]

    def _memory(self, height: int, has_axis: bool) -> list[Row]:
        """In what the others leave over, with a time axis unless there is one below."""
        m = self._moment
        found = Holder(m.snapshot, m.process).curve(m.graphs, m.span_s, self._count())
        if found is None or height < LEAST_LINES + has_axis:
            return []
        found = found._replace(name=_name(found.name))
        rows = plot.graph(self._look, found, self._width, height - has_axis)
        return [*rows, self._axis()] if has_axis else rows

    def _steps(self, height: int) -> list[Row]:
        middle, high = (self._slots(f"step_time_s.{part}") for part in ("p50", "p95"))
        if _known(middle):
            top = plot.round_top(max(v for v in (*middle, *high) if v is not None))
            said = "median, the 95th percentile above it"
            found = plot.Curve(
                _name("step time"), said, middle, top, words.duration(top), line=high
            )
        elif _known(rate := self._slots("steps_per_s")):
            top = plot.round_top(max(v for v in rate if v is not None))
            found = plot.Curve(_name("steps/s"), "", rate, top, words.rate(top))
        else:
            unknown = self._facts.value("steps") is None
            return self._said("step time", NO_STEPS if unknown else words.UNKNOWN)
        return plot.graph(self._look, found, self._width, height)

    def _phases(self) -> list[Row]:
        """The phases under the step times, and the time axis of both."""
        m, look = self._moment, self._look
        at_s = int(m.snapshot.at_s)
        room = max(1, self._width - plot.SCALE_WIDTH)
        slots = self._slots(PHASE, dominant, room)
        axis = self._axis()
        seconds = m.history.window(PHASE, m.process.key, at_s, m.span_s) or ()
        if not _known(slots):
            return [axis]
        left = look.cell("phase", plot.SCALE_WIDTH - 1, "dim", right=True)
        line = (*left, *look.line((look.glyphs.frame[3], "dim")), *time_line(look, slots))
        told = f" {look.glyphs.dot} ".join(shares(seconds, m.span_s))
        return [line, axis, look.line((" " * plot.SCALE_WIDTH, "plain"), (told, "plain"))]

    def _flops(self, height: int) -> list[Row]:
        name = "mfu_percent"
        slots = self._slots(name)
        text = "  ".join(self._facts.flops()).removeprefix("MFU ")
        if _known(slots):
            top = max(100.0, plot.round_top(max(v for v in slots if v is not None)))
            found = plot.Curve(_name("MFU"), text or words.UNKNOWN, slots, top, words.percent(top))
        elif _known(slots := self._slots("flops_per_s")):
            top = plot.round_top(max(v for v in slots if v is not None))
            text = f"{text}  (no MFU: unknown peak of {self._kind()})"
            found = plot.Curve(_name("FLOP/s"), text, slots, top, _flops_scale(top))
        else:
            return self._said("MFU", text or self._why_no_flops())
        return plot.graph(self._look, found, self._width, height)

    def _why_no_flops(self) -> str:
        return NO_STEPS if self._facts.value("steps") is None else NO_FLOPS

    def _kind(self) -> str:
        facts = self._moment.process.facts
        return str(facts.get("device_kind") or facts.get("platform") or "these devices")

    def _compilations(self, height: int) -> list[Row]:
        """Drawn where there were any; a flat line says no more than the words."""
        text = f" {self._look.glyphs.dot} ".join(self._facts.compiles()) or words.UNKNOWN
        totals = self._slots("compilations", most)
        rates = per_minute(totals, self._moment.span_s / len(totals))
        highest = max((v for v in rates if v is not None), default=0.0)
        if not highest:
            return self._said("compiled", text + self._since(totals[0]))
        top = max(4.0, plot.round_top(highest))
        found = plot.Curve(_name("compiled"), text, rates, top, f"{top:.0f}/min", "warn")
        rows = plot.graph(self._look, found, self._width, height)
        return [*rows, self._axis()]

    def _since(self, first: float | None) -> str:
        """That the count is what it was at first; empty where either is not known."""
        m = self._moment
        now = m.snapshot.values.get((m.process.key, "compilations"))
        if now is None or now.stale or now.value != first:
            return ""
        return f", none in the last {in_words(m.span_s).removeprefix('1 ')}"

    def _devices_only(self, height: int) -> list[Row]:
        """Of a process that says nothing itself: what its devices do."""
        known = [(name, slots) for name, metric in SHARES if _known(slots := self._mean(metric))]
        if not known:
            return []
        lines = max((height - 1) // len(known), LEAST_LINES)
        graphs = [row for name, slots in known for row in self._share(name, slots, lines)]
        return [*graphs, self._axis()]

    def _share(self, name: str, slots: Slots, height: int) -> list[Row]:
        found = plot.Curve(_name(name), "mean of its devices", slots, 100.0, "100 %")
        return plot.graph(self._look, found, self._width, height)

    def _mean(self, metric: str) -> Slots:
        m, key = self._moment, self._moment.process.key
        return m.graphs.average(m.snapshot, metric, m.span_s, self._count(), key)

    def _said(self, name: str, text: str) -> list[Row]:
        return named(self._look, name, text, self._width)

    def _axis(self) -> Row:
        end = "then" if self._moment.is_past else "now"
        return plot.axis(self._look, self._moment.span_s, self._width, end)

    def _count(self) -> int:
        return plot.slots_across(self._look, max(1, self._width - plot.SCALE_WIDTH))

    def _slots(self, metric: str, how: How | None = None, count: int | None = None) -> Slots:
        """Of the process's own: a value for each place of a graph."""
        m, key, count = self._moment, self._moment.process.key, count or self._count()
        found = m.graphs.of((key,), metric, m.snapshot.at_s, m.span_s, count, how)
        return held(found, self._present(metric), m.span_s / count)

    def _present(self, metric: str) -> Value | None:
        """The newest value; of phases the number of the one that is shown. Of what writes nothing
        any more there is none.
        """
        m, phase = self._moment, self._moment.process.phase
        if m.process.state != State.LIVE:
            return None
        if metric != PHASE:
            return m.snapshot.values.get((m.process.key, metric))
        return None if phase is None else Value(PHASES.index(phase), AGENT, 0.0, False)


def drawn(s: Snapshot, p: Process) -> Iterator[Drawn]:
    """What the graphs of the process are of."""
    if p.interval_s is not None:
        yield from (((p.key,), name) for name in OWN)
        yield from Holder(s, p).drawn()
    else:
        yield from ((filed(s, d, name), name) for d in s.devices_of(p.key) for _, name in SHARES)


def per_minute(totals: Sequence[float | None], slot_s: float) -> Slots:
    """How far a count rose in the minute before each slot, as far back as it is known."""
    back = max(1, round(60 / slot_s))
    found: Slots = []
    for i, total in enumerate(totals):
        before = next((v for v in totals[max(0, i - back) : i + 1] if v is not None), None)
        known = total is not None and before is not None
        found.append(max(0.0, total - before) if known else None)  # type: ignore[operator]
    return found


def _known(slots: Sequence[float | None]) -> bool:
    return any(v is not None for v in slots)


def _name(text: str) -> str:
    """As wide as the names of lines without a graph: what is said begins at the same place."""
    return text.ljust(NAME_WIDTH - 1)


def _flops_scale(value: float) -> str:
    return words.flops(value).removesuffix("LOP/s")
