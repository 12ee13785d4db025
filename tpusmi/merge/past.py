"""A moment of the last ten minutes: the present devices and jobs with their values at that time.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.model import (
    CHIP_METRICS,
    DEVICE_METRICS,
    HOST_KEY,
    HOST_MEMORY,
    PHASE,
    PHASES,
    PROCESS_METRICS,
    UNKEPT,
    History,
    Metric,
    Phase,
    Process,
    Snapshot,
    State,
    Subject,
    Value,
)

WITHIN_S = 5.0
"""How long before a moment a value of that moment may have been measured."""


def past(s: Snapshot, history: History, at_s: float) -> Snapshot:
    """The snapshot with what was measured at that time; what was not measured then is unknown.

    The processes are the present ones, without those that began later, each in its phase at that
    time. Other facts about a process, a device, a link or the host are not kept: unknown. The
    memory of the host is.
    """
    values = {}
    for subject, metric in _measurable(s):
        key = subject, metric.name
        if metric.name in UNKEPT and key in s.values:
            values[key] = s.values[key]
            continue
        reading = history.with_source(metric.name, subject, at_s, WITHIN_S)
        if reading is not None:
            number = int(reading[0]) if metric.is_integer else reading[0]
            values[key] = Value(number, reading[1], s.at_s - at_s, False)
    back_s = s.at_s - at_s
    processes = (_earlier_process(p, history, at_s, back_s) for p in s.processes)
    host = s.host._replace(
        load_averages=None,
        memory_available_bytes=_available(s, history, at_s),
        uptime_s=_earlier(s.host.uptime_s, back_s),
    )
    return s._replace(
        at_s=at_s,
        host=host,
        devices=tuple(d._replace(error=None) for d in s.devices),
        chips=tuple(c._replace(notes=()) for c in s.chips),
        values=values,
        processes=tuple(p for p in processes if p is not None),
        warnings=(),
        links=(),
        latencies=(),
        cores=(),
        visibility=s.visibility._replace(nodes=()),
        slices=(),  # the past of other hosts is not kept
    )


def _available(s: Snapshot, history: History, at_s: float) -> int | None:
    """The host's free memory at that time."""
    total, used = s.host.memory_total_bytes, history.at(HOST_MEMORY, HOST_KEY, at_s, WITHIN_S)
    return None if total is None or used is None else int(total - used)


def _earlier_process(p: Process, history: History, at_s: float, back_s: float) -> Process | None:
    """The process with its phase and age at that time: if it has ended since, it still lived. None
    if it began later.
    """
    life = p.life
    if life is not None:
        age_s = _earlier(life.age_s, back_s)
        if age_s is None and life.age_s is not None:
            return None
        life = life._replace(cpu_percent=None, rss_bytes=None, recent_cpu_percent=None, age_s=age_s)
    p = p._replace(life=life, warnings=(), verdict=None, stale_code=None, stale_reason=None)
    number = history.at(PHASE, p.key, at_s, WITHIN_S)
    phase = None if number is None else PHASES[int(number)]
    if p.state == State.UNCERTAIN and phase is None:
        return p._replace(profile=None, phase=None, sampled_at_s=None)
    if phase == Phase.ENDED or (phase is None and p.is_dead):
        has_ended = p.sampled_at_s is not None and p.sampled_at_s <= at_s
        ended_at_s = p.sampled_at_s if has_ended else None
        return p._replace(
            profile=None, phase=Phase.ENDED, state=State.DEAD, sampled_at_s=ended_at_s
        )
    return p._replace(profile=None, phase=phase, state=State.LIVE, sampled_at_s=None)


def _earlier(seconds: float | None, back_s: float) -> float | None:
    """How long something had lasted then; None when it had not begun, or is unknown."""
    return None if seconds is None or seconds < back_s else seconds - back_s


def _measurable(s: Snapshot) -> Iterator[tuple[Subject, Metric]]:
    """Every value that there may be."""
    for d in (*s.devices, *s.dead_devices):
        yield from ((d.key, m) for m in DEVICE_METRICS)
    for c in s.chips:
        yield from ((c.key, m) for m in CHIP_METRICS)
    for p in s.processes:
        yield from ((p.key, m) for m in PROCESS_METRICS)
