"""The figures of a profile, its steps, and where the time went, as lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tpusmi.report import words
from tpusmi.report.profile.derived_figures import input_percent
from tpusmi.report.profile.styled import Line, facts, heading, padded, tracked, width_of
from tpusmi.trace.figures import TRACE, TracedSteps, TraceProfile

GAP = 4
BAR_MOST = 44
NOTHING_PERCENT = 0.05
SHARES = (
    ("compute_percent", "compute", "good"),
    ("collectives_percent", "collectives", "graph2"),
    ("infeed_percent", "infeed", "warn"),
    ("outfeed_percent", "outfeed", "graph3"),
    ("host_percent", "host copies", "graph3"),
    ("idle_percent", "idle", "dim"),
)
"""Field, name and style of the shares that add up to 100."""


class Figure(NamedTuple):
    """A name, a value, and who read it from the trace."""

    name: str
    value: str
    source: str = ""


def figures(p: TraceProfile) -> list[Figure]:
    """The figures of all cores together. Unknown ones are dashes."""

    def of(name: str, field: str, value: str | None = None) -> Figure:
        number = getattr(p, field)
        own = words.percent(number) if value is None else value
        has_source = number is not None and own != words.UNKNOWN
        return Figure(name, own, source_of(p.sources, field) if has_source else "")

    return [
        of("Duty cycle", "duty_cycle_percent"),
        of("Idle", "idle_percent"),
        of("MXU", "mxu_percent"),
        of("HBM bandwidth", "hbm_bandwidth_percent"),
        of(
            "Input-bound",
            "shares" if p.input_bound_percent is None else "input_bound_percent",
            words.percent(input_percent(p)),
        ),
    ]


def source_of(sources: Mapping[str, str], field: str) -> str:
    """`xprof` or `agent`; empty for tpusmi's own reading, which is the usual one."""
    source = sources.get(field, TRACE)
    return source if source in ("xprof", "agent") else ""


def flop_rate(flops: float | None, peak: float | None) -> str:
    """`139 TFLOP/s, 60 % of 233 TFLOP/s`."""
    if flops is None or not peak:
        return words.flops(flops) + (f" of {words.flops(peak)}" if peak else "")
    return f"{words.flops(flops)}, {words.percent(100 * flops / peak)} of {words.flops(peak)}"


def figure_lines(p: TraceProfile, width: int) -> list[Line]:
    """The figures in as many columns as fit, and the steps below."""
    rate = [flop_rate(p.flops_per_s, p.peak_flops_per_s)]
    return [
        heading("FIGURES", _legend(p)),
        *_in_columns(figures(p), width),
        *_line_of(p, "flops_per_s", " FLOP rate      ", rate, width),
        *_line_of(p, "steps", " Step time      ", step_words(p.steps), width),
    ]


def _line_of(
    p: TraceProfile, field: str, name: str, parts: Iterable[str], width: int
) -> list[Line]:
    """A figure of several parts, and its source at the end."""
    source = "" if getattr(p, field) is None else source_of(p.sources, field)
    end = f"  {source}" if source else ""
    room = width - width_of(end)
    whole = [s for part in parts for s in _split(part, room - width_of(name))]
    *lines, last = facts(whole, room, "plain", name)
    return [*lines, (*last, (end, "dim")) if end else last]


def _split(part: str, room: int) -> Iterable[str]:
    """The part, or its own parts where it is too wide: a reader cannot use half a number."""
    return [part] if width_of(part) <= room else part.split(", ")


MARKED = (
    "duty_cycle_percent",
    "idle_percent",
    "mxu_percent",
    "hbm_bandwidth_percent",
    "input_bound_percent",
    "flops_per_s",
    "steps",
    "shares",
    "operations",
    "memory",
)
"""What the page marks with its source."""


def _legend(p: TraceProfile) -> str:
    marked = sorted({s for f in MARKED if (s := source_of(p.sources, f))})
    return f"from {' and '.join(marked)} where marked, else read by tpusmi" if marked else ""


def _in_columns(cells: list[Figure], width: int) -> list[Line]:
    names = max(width_of(f.name) for f in cells) + 2
    values = [f"{f.value}" for f in cells]
    for count in (len(cells), 3, 2, 1):
        rows = [range(n, min(n + count, len(cells))) for n in range(0, len(cells), count)]
        each = [
            max(width_of(values[n]) for n in range(c, len(cells), count))
            for c in range(min(count, len(cells)))
        ]
        source = max(width_of(f.source) for f in cells) + 1
        if count == 1 or sum(names + w + source + GAP for w in each) - GAP + 1 <= width:
            return [_figure_line([cells[n] for n in row], names, each, source) for row in rows]
    return []


def _figure_line(cells: list[Figure], names: int, widths: list[int], source: int) -> Line:
    pieces: list[tuple[str, str]] = []
    for n, (f, width) in enumerate(zip(cells, widths, strict=False)):
        pieces += [
            ((" " * GAP if n else " ") + padded(f.name, names), "plain"),
            (padded(f.value, width), "bold" if f.value != words.UNKNOWN else "plain"),
            (padded(f" {f.source}", source), "dim"),
        ]
    return tuple(pieces)


def step_words(steps: TracedSteps | None) -> list[str]:
    """`120.1 ms p50`, `120.1 ms min`, …, `4 whole`, `1 cut off and left out`."""
    if steps is None:
        return [words.UNKNOWN]
    cut_off = [f"{steps.cut_off} cut off and left out"] if steps.cut_off else []
    if not steps.whole:
        return [f"{words.UNKNOWN} no whole step inside", *cut_off]
    if steps.whole == 1:
        return [step_time(steps.p50_s), "1 whole", *cut_off]
    times = (
        (steps.p50_s, "p50"),
        (steps.min_s, "min"),
        (steps.mean_s, "mean"),
        (steps.p95_s, "p95"),
        (steps.max_s, "max"),
    )
    return [*(f"{step_time(t)} {name}" for t, name in times), f"{steps.whole} whole", *cut_off]


def step_time(value: float | None) -> str:
    """A step time with four digits: those of one job differ little."""
    if value is None or not 1e-6 <= value < 59.95:
        return words.duration(value)
    units = ((0.99995e-3, 1e6, "µs"), (0.99995, 1e3, "ms"), (60.0, 1.0, "s"))
    factor, unit = next((factor, unit) for below, factor, unit in units if value < below)
    number = value * factor
    decimals = 1 if number >= 99.995 else 2 if number >= 9.9995 else 3
    return f"{number:.{decimals}f} {unit}"


def time_lines(p: TraceProfile, width: int) -> list[Line]:
    """A bar for each share of the time, and which shares are unknown or nothing."""
    values = [(getattr(p.shares, field), name, style) for field, name, style in SHARES]
    if all(value is None for value, _, _ in values):
        return []
    names = max(width_of(name) for _, name, _ in values) + 2
    room = max(10, min(BAR_MOST, width - names - 10))
    lines: list[Line] = [
        heading("WHERE THE TIME WENT", "of all cores", source_of(p.sources, "shares"))
    ]
    for value, name, style in values:
        if value is not None and value >= NOTHING_PERCENT:
            percent = padded(words.percent(value), 6, right=True)
            start = (f" {padded(name, names)}{percent}  ", "plain")
            lines.append((start, *tracked(value / 100, room, style)))
    if len(lines) == 1:  # pages of xprof may have the idle time alone
        return []
    return [*lines, *(((f" {words_}", "dim"),) for words_ in _remarks(p, values))]


def _remarks(p: TraceProfile, values: list[tuple[float | None, str, str]]) -> Iterator[str]:
    compiling = p.shares.compile_percent
    if compiling is not None and compiling >= NOTHING_PERCENT:
        yield f"Meanwhile the host compiled for {words.percent(compiling)} of the time."
    little = [name for value, name, _ in values if value and value < NOTHING_PERCENT]
    nothing = [name for value, name, _ in values if value == 0]
    unknown = [name for value, name, _ in values if value is None]
    parts = (("less than 0.1 %", little), ("nothing", nothing), ("unknown", unknown))
    remark = "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names)
    if remark:
        yield remark
