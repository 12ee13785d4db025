"""How, when and of what a capture was, what it cost the job, and its notes, in words. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from tpusmi import text
from tpusmi.report import words
from tpusmi.report.profile.styled import (
    DOT,
    Line,
    cut_middle,
    facts,
    fitted,
    heading,
    paragraph,
)
from tpusmi.trace.figures import FILE, GRPC, IN_PROCESS, Capture, CaptureCost, TraceProfile

TEXT_MOST = 512
NOTES_MOST, NOTE_MOST = 32, 400
NOTE_WIDTH = 100
HOW = {GRPC: "by its profiler service", IN_PROCESS: "by its agent", FILE: ""}
SIMULATED: Line = (("  ", "plain"), (" SIMULATED ", "loud"))
"""At the end of a line."""
SLOWED_RATIO = 0.98
"""At less than this share of its speed before, the job was slowed down."""
WORTH_A_PAUSE_S = 0.1


def head(p: TraceProfile, width: int) -> list[Line]:
    """What was captured, when and how, and what it cost."""
    c = p.capture
    device = device_name(p) or "Unknown device"
    cores = text.counted(len(p.cores), noun(p)) if p.cores else ""
    pid = "" if c.pid is None else f"pid {c.pid}"
    whose = "".join(f"{DOT}{fact}" for fact in (cores, text.clean(c.host or "", 64), pid) if fact)
    simulated = SIMULATED if c.simulated else ()
    first = fitted(((device, "bold"), (whose, "plain"), *simulated), width)
    lines: list[Line] = [first]
    if c.command:
        command = words.command(text.clean(c.command, TEXT_MOST))
        lines.append(((cut_middle(command, width), "dim"),))
    lines += facts(_when(p), width, "dim")
    if sentence := cost_sentence(c):
        lines += paragraph(sentence, width, _cost_style(c.cost))
    return lines


def _when(p: TraceProfile) -> Iterator[str]:
    c = p.capture
    if c.how == FILE:
        yield cut_middle(text.clean(c.target, TEXT_MOST).rstrip("/").rpartition("/")[2], 60)
    moment = local_time(c.captured_at_s)
    how = " ".join(filter(None, (moment, HOW.get(c.how, ""))))
    if how:
        yield f"captured {how}"
    if p.captured_s is not None:
        yield f"{words.duration(p.captured_s)} long"
    if c.trace_bytes is not None:
        yield f"trace of {words.size(c.trace_bytes)}"
    if c.analyzed_s is not None:
        yield f"analyzed in {words.duration(c.analyzed_s)}"


def local_time(unix_s: float | None, format: str = "%Y-%m-%d %H:%M:%S") -> str:
    """That moment in local time; empty when it is unknown or nonsense."""
    try:
        return "" if unix_s is None else time.strftime(format, time.localtime(unix_s))
    except (OverflowError, ValueError, OSError):
        return ""


def cost_sentence(c: Capture) -> str:
    """What the capture cost the job, as far as it was measured; empty for a file."""
    took = "" if c.took_s is None else f"The capture took {words.duration(c.took_s)}"
    if not took:
        return ""
    cost = c.cost
    before, during = cost.steps_per_s_before, cost.steps_per_s_during
    if before is None or during is None:
        return f"{took}; {_no_cost(cost)}."
    after = _with(", {} after", cost.steps_per_s_after, words.rate)
    paused = _with(", and paused it for {}", cost.paused_s, words.duration, WORTH_A_PAUSE_S)
    if during >= before * SLOWED_RATIO:
        speed = f"{words.rate(before)} before, {words.rate(during)} during"
        return f"{took} and did not slow the job down: {speed}{after} (steps/s){paused}."
    change = f"from {words.rate(before)} to {words.rate(during)} steps/s{after}"
    return f"{took} and slowed the job {change}{paused}."


def _no_cost(cost: CaptureCost) -> str:
    """Why the cost is unknown. A job with long steps may end none during the capture or after."""
    rates = {cost.steps_per_s_before, cost.steps_per_s_during, cost.steps_per_s_after}
    if rates == {None}:
        counted = "no steps of the job were counted (tpusmi.step(), --cost-seconds)"
        return f"its cost is unknown: {counted}"
    return "its cost is unknown: too few steps were counted before or during it"


def _with(
    template: str,
    value: float | None,
    format: Callable[[float | None], str],
    least: float = 0.0,
) -> str:
    """The template with the value in it; empty where that is unknown or too small."""
    return "" if value is None or value < least else template.format(format(value))


def _cost_style(cost: CaptureCost) -> str:
    before, during = cost.steps_per_s_before, cost.steps_per_s_during
    is_much = before and during is not None and during < before * 0.9
    return "warn" if is_much else "dim"


def noun(p: TraceProfile) -> str:
    """What a plane of the trace is: only those of a TPU are cores."""
    return "core" if p.backend in (None, "tpu") else "device"


def device_name(p: TraceProfile) -> str:
    """The trace's name of the device, else `TPU`, `GPU` or `CPU`: safe to print; may be empty."""
    return text.clean(p.device_type or "", 40) or text.clean(p.backend or "", 8).upper()


def label(p: TraceProfile) -> str:
    """The name of the host, else the address, else the last part of the path: safe to print."""
    c = p.capture
    return text.clean(c.host or c.target.rstrip("/").rpartition("/")[2], 64) or "?"


def note_lines(notes: Sequence[str], width: int) -> list[Line]:
    """The notes, each as a paragraph of its own."""
    clean = [note for n in notes[:NOTES_MOST] if (note := text.clean(n, NOTE_MOST))]
    if not clean:
        return []
    room = min(width, NOTE_WIDTH)
    return [heading("NOTES"), *(line for n in clean for line in paragraph(n, room, "dim", " "))]
