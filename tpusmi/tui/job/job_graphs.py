"""The history of one job: step time, phases, MFU, compilations, memory, each over the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from tpusmi.model import AGENT, PHASE, PHASES, Phase, Process, Snapshot, State, Value
from tpusmi.report import words
from tpusmi.report.quantities import QUANTITIES
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.graphs import (
    Drawn,
    How,
    Slots,
    dominant,
    held,
    history_subjects,
    is_known,
    most,
)
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.page import in_words
from tpusmi.tui.process.memory_curve import Holder
from tpusmi.tui.process.process_facts import LETTERS, NAME_WIDTH, JobFacts, named
from tpusmi.tui.scene import Scene

LEAST_STEP_LINES, MOST_STEP_LINES = 5, 32
"""Lines of the graph of step times, its title included."""
LEAST_LINES, MOST_LINES = 3, 16
"""Lines of each other graph, its title included."""
MEMORY_FROM = 28
"""A page with at least this many lines of graphs has one of the memory."""
BESIDE_LINES = 4
"""Lines of the phases, their shares, and two time axes."""
SHARES = QUANTITIES[1:]
"""What the devices of a job without an agent still tell."""
METRICS = ("step_time_s.p50", "steps_per_s", PHASE, "mfu_percent", "flops_per_s", "compilations")
"""Metrics drawn for a process with an agent."""
NO_STEPS = "no step yet: call tpusmi.step() in the loop, once per step"
NO_FLOPS = "unknown: pass tpusmi.step(flops=N), or wrap the step in tpusmi.track(jax.jit(f))"
PHASE_STYLES = {
    Phase.STARTING: "graph",
    Phase.COMPILING: "warn",
    Phase.RUNNING: "good",
    Phase.IDLE: "dim",
    Phase.ENDED: "dim",
}
THIN_PHASES = (Phase.IDLE, Phase.ENDED)
"""Phases without work are drawn as a thin line, which needs no color to see."""
KNOWN_RATIO = 0.98
"""Shares of phases say how much of the span is known below this: the newest seconds are late."""


class JobGraphs:
    """Graphs of one process that end at the snapshot's time."""

    def __init__(
        self, scene: Scene, snapshot: Snapshot, process: Process, span_s: int, width: int
    ) -> None:
        self._scene, self._s, self._p = scene, snapshot, process
        self._look, self._span_s, self._width = scene.look, span_s, width
        self._count = plot.values_across(self._look, width)
        self._facts = JobFacts(snapshot, process)

    def lines(self, height: int) -> list[Row]:
        """All graphs in about that many lines, the most important first; in more lines where not
        even their least heights fit.
        """
        if self._p.interval_s is None:
            return self._devices_only(height)
        spare = height // 5 if height >= MEMORY_FROM else 0
        room = height - BESIDE_LINES - spare
        main = min(max(room // 2, LEAST_STEP_LINES), MOST_STEP_LINES)
        lesser = min(max((room - main) // 2, LEAST_LINES), MOST_LINES)
        above = [*self._steps(main), *self._phases(), *self._flops(lesser)]
        compiled = self._compilations(lesser)
        if spare:
            above += self._memory(height - len(above) - len(compiled), len(compiled) < lesser)
        return [*above, *compiled]

    def _memory(self, height: int, has_axis: bool) -> list[Row]:
        """The memory in the lines left over, with a time axis unless there is one below."""
        graphs = self._scene.graphs
        curve = Holder(self._s, self._p).curve(graphs, self._span_s, self._count)
        if curve is None or height < LEAST_LINES + has_axis:
            return []
        lines = self._graph(curve, height - has_axis)
        return [*lines, self._axis()] if has_axis else lines

    def _steps(self, height: int) -> list[Row]:
        p50, p95 = (self._slots(f"step_time_s.{part}") for part in ("p50", "p95"))
        if is_known(p50):
            top = plot.round_top(_max((*p50, *p95)))
            text = "median, with the 95th percentile above it"
            curve = plot.Curve("step time", text, p50, top, words.duration(top), line=p95)
        elif is_known(rate := self._slots("steps_per_s")):
            top = plot.round_top(_max(rate))
            curve = plot.Curve("steps/s", "", rate, top, words.rate(top))
        else:
            has_no_step = self._facts.value("steps") is None
            return self._line("step time", NO_STEPS if has_no_step else words.UNKNOWN)
        return self._graph(curve, height)

    def _phases(self) -> list[Row]:
        """The phases below the step times, and the time axis of both."""
        look, history = self._look, self._scene.history
        slots = self._slots(PHASE, dominant, max(1, self._width - plot.SCALE_WIDTH))
        if not is_known(slots):
            return [self._axis()]
        seconds = history.window(PHASE, self._p.key, int(self._s.at_s), self._span_s) or ()
        left = look.cell("phase", plot.SCALE_WIDTH - 1, "dim", right=True)
        line = (*left, *look.line((look.glyphs.frame[3], "dim")), *time_line(look, slots))
        text = look.joined(shares(seconds, self._span_s))
        blank = " " * plot.SCALE_WIDTH
        return [line, self._axis(), look.line((blank, "plain"), (text, "plain"))]

    def _flops(self, height: int) -> list[Row]:
        text = "  ".join(self._facts.flops()).removeprefix("MFU ")
        if is_known(slots := self._slots("mfu_percent")):
            top = max(100.0, plot.round_top(_max(slots)))
            curve = plot.Curve("MFU", text or words.UNKNOWN, slots, top, words.percent(top))
        elif is_known(slots := self._slots("flops_per_s")):
            top = plot.round_top(_max(slots))
            facts = self._p.facts
            kind = facts.get("device_kind") or facts.get("platform") or "these devices"
            text = f"{text}  (no MFU: unknown peak of {kind})"
            scale = words.flops(top).removesuffix("LOP/s")
            curve = plot.Curve("FLOP/s", text, slots, top, scale)
        else:
            why = NO_STEPS if self._facts.value("steps") is None else NO_FLOPS
            return self._line("MFU", text or why)
        return self._graph(curve, height)

    def _compilations(self, height: int) -> list[Row]:
        """A graph if there were any: a flat line would say no more than the words."""
        text = self._look.joined(self._facts.compilations()) or words.UNKNOWN
        totals = self._slots("compilations", most)
        rates = per_minute(totals, self._span_s / len(totals))
        if not _max(rates):
            return self._line("compiled", text + self._none_since(totals[0]))
        top = max(4.0, plot.round_top(_max(rates)))
        curve = plot.Curve("compiled", text, rates, top, f"{top:.0f}/min", "warn")
        return [*self._graph(curve, height), self._axis()]

    def _none_since(self, first: float | None) -> str:
        """Says that the count has not changed since `first`; empty where either is unknown."""
        now = self._s.values.get((self._p.key, "compilations"))
        if now is None or now.stale or now.value != first:
            return ""
        return f", none in the last {in_words(self._span_s).removeprefix('1 ')}"

    def _devices_only(self, height: int) -> list[Row]:
        """What its devices do: all that is known of a process without an agent."""
        graphs, key = self._scene.graphs, self._p.key
        means = [
            (q, graphs.average(self._s, q.metric, self._span_s, self._count, key)) for q in SHARES
        ]
        curves = [
            plot.Curve(q.label, "mean of its devices", slots, 100.0, "100 %")
            for q, slots in means
            if is_known(slots)
        ]
        if not curves:
            return []
        lines = max((height - 1) // len(curves), LEAST_LINES)
        return [*(row for curve in curves for row in self._graph(curve, lines)), self._axis()]

    def _graph(self, curve: plot.Curve, height: int) -> list[Row]:
        # Values of graphs begin where the text of lines without a graph begins.
        curve = curve._replace(name=curve.name.ljust(NAME_WIDTH - 1))
        return plot.graph(self._look, curve, self._width, height)

    def _line(self, name: str, text: str) -> list[Row]:
        return named(self._look, name, text, self._width)

    def _axis(self) -> Row:
        return self._scene.axis(self._span_s, self._width)

    def _slots(self, metric: str, how: How | None = None, count: int | None = None) -> Slots:
        """The process's own values, one for each place of a graph."""
        graphs, count = self._scene.graphs, count or self._count
        slots = graphs.of((self._p.key,), metric, self._s.at_s, self._span_s, count, how)
        return held(slots, self._present(metric), self._span_s / count)

    def _present(self, metric: str) -> Value | None:
        """The newest value, of the phase its number; None for a process that writes nothing."""
        if self._p.state != State.LIVE:
            return None
        if metric != PHASE:
            return self._s.values.get((self._p.key, metric))
        phase = self._p.phase
        return None if phase is None else Value(PHASES.index(phase), AGENT, 0.0, False)


def drawn(s: Snapshot, p: Process) -> Iterator[Drawn]:
    """The subjects and the metric of each graph of the process."""
    if p.interval_s is not None:
        yield from (((p.key,), name) for name in METRICS)
        yield from Holder(s, p).drawn()
    else:
        yield from (
            (history_subjects(s, d, q.metric), q.metric)
            for d in s.devices_of(p.key)
            for q in SHARES
        )


def per_minute(totals: Sequence[float | None], slot_s: float) -> Slots:
    """How far a count rose in the minute before each slot, as far back as it is known."""
    back = max(1, round(60 / slot_s))
    rates: Slots = []
    for i, total in enumerate(totals):
        before = next((v for v in totals[max(0, i - back) : i + 1] if v is not None), None)
        is_known = total is not None and before is not None
        rates.append(max(0.0, total - before) if is_known else None)  # type: ignore[operator]
    return rates


def time_line(look: Look, slots: Sequence[float | None]) -> Row:
    """The phase of each slot: the letter of each run of one phase, then a line as long as the run;
    blank where unknown.
    """
    parts = []
    for number, run in groupby(slots):
        length = len(list(run))
        phase = _phase(number)
        if phase is None:
            parts.append((" " * length, "plain"))
        else:
            glyph = look.glyphs.track if phase in THIN_PHASES else look.glyphs.bar
            parts.append((LETTERS[phase] + glyph * (length - 1), PHASE_STYLES[phase]))
    return look.line(*parts)


def shares(seconds: Sequence[float], span_s: int) -> list[str]:
    """`running 91 %`, the largest share first, of the seconds with a known phase; and how many
    seconds these are, where they are not the whole span.
    """
    counts = Counter(phase for v in seconds if (phase := _phase(v)) is not None)
    total = sum(counts.values())
    texts = [f"{name} {_percent(n / total)}" for name, n in counts.most_common()]
    return [*texts, f"of {words.duration(total)}"] if 0 < total < KNOWN_RATIO * span_s else texts


def _percent(share: float) -> str:
    """A whole number: several shares are on a line."""
    return f"{share:.0%}".replace("%", " %") if share >= 0.01 else words.percent(100 * share)


def _phase(number: float | None) -> Phase | None:
    """The name of a phase, None for other numbers: they are from a file of another process."""
    return PHASES[int(number)] if number is not None and 0 <= number < len(PHASES) else None


def _max(slots: Sequence[float | None]) -> float:
    """The largest known value; 0 where none is known."""
    return max((v for v in slots if v is not None), default=0.0)
