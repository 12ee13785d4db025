"""How, when and of what a capture was, and what it cost the job, in words. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tpusmi import text
from tpusmi.report import words
from tpusmi.report.profile.styled import Line, cut_middle, fitted, width_of
from tpusmi.trace.figures import FILE, GRPC, IN_PROCESS, Capture, CaptureCost, TraceProfile

DOT = " · "
TEXT_MOST = 512
HOW = {GRPC: "by its profiler service", IN_PROCESS: "by its agent", FILE: ""}
SLOWED_RATIO = 0.98
"""At less than this share of its speed before, the job was slowed down."""
WORTH_A_PAUSE_S = 0.1
NAME_LEAST = 16


def head(p: TraceProfile, width: int) -> list[Line]:
    """What was captured, when and how, and what it cost."""
    c = p.capture
    device = text.clean(p.device_type or "", 40) or (p.backend or "").upper() or "Unknown device"
    cores = text.counted(len(p.cores), "core") if p.cores else ""
    pid = "" if c.pid is None else f"pid {c.pid}"
    facts = DOT.join(filter(None, (cores, text.clean(c.host or "", 64), pid)))
    simulated = [("  ", "plain"), (" SIMULATED ", "loud")] if c.simulated else []
    first = fitted(((device, "bold"), (f"{DOT}{facts}" if facts else "", "plain"), *simulated), width)
    lines: list[Line] = [first]
    if c.command:
        command = words.command(text.clean(c.command, TEXT_MOST))
        lines.append(((cut_middle(command, width), "dim"),))
    lines += _wrapped_facts([*_when(p)], width)
    if sentence := cost_sentence(c):
        lines.append(((sentence, _cost_style(c.cost)),))
    return lines


def _wrapped_facts(facts: list[str], width: int) -> list[Line]:
    """Facts with dots between them, in as many lines as they need."""
    lines: list[str] = []
    for fact in facts:
        longer = f"{lines[-1]}{DOT}{fact}" if lines else fact
        if lines and width_of(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(fact)
    return [((cut_middle(line, width), "dim"),) for line in lines]


def _when(p: TraceProfile) -> Iterator[str]:
    c = p.capture
    if c.how == FILE:
        yield cut_middle(text.clean(c.target, TEXT_MOST).rstrip("/").rpartition("/")[2], 60)
    moment = local_time(c.captured_at_s)
    yield " ".join(filter(None, (f"captured {moment}".rstrip(), HOW.get(c.how, ""))))
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
        return f"{took}; what it cost the job in steps/s is unknown."
    pause = cost.paused_s
    after = "" if cost.steps_per_s_after is None else f", {words.rate(cost.steps_per_s_after)} after"
    paused = f", and paused it for {words.duration(pause)}" if pause and pause >= WORTH_A_PAUSE_S else ""
    if during >= before * SLOWED_RATIO:
        speed = f"{words.rate(before)} before, {words.rate(during)} during"
        return f"{took} and did not slow the job down: {speed}{after} (steps/s){paused}."
    change = f"from {words.rate(before)} to {words.rate(during)} steps/s{after}"
    return f"{took} and slowed the job {change}{paused}."


def _cost_style(cost: CaptureCost) -> str:
    before, during = cost.steps_per_s_before, cost.steps_per_s_during
    is_much = before and during is not None and during < before * 0.9
    return "warn" if is_much else "dim"


def label(p: TraceProfile) -> str:
    """The name of the host, else the address, else the last part of the path: safe to print."""
    c = p.capture
    return text.clean(c.host or c.target.rstrip("/").rpartition("/")[2], 64) or "?"
