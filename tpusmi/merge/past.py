"""A moment of the last ten minutes: the present devices and jobs with the values of then. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpusmi.model import (
    CHIP_METRICS,
    DEVICE_METRICS,
    PHASE,
    PHASES,
    PROCESS_METRICS,
    History,
    Metric,
    Process,
    Snapshot,
    Subject,
    Value,
)

WITHIN_S = 5.0
"""A value of then is one that was measured at most so long before."""
_LASTING = ("hbm_limit_bytes",)
"""What does not change: the present value stands for the past one."""


def past(s: Snapshot, history: History, at_s: float) -> Snapshot:
    """The snapshot with what was measured at that time; what nobody measured then is unknown.

    Who is there is as of now, its phase as of then. Who held a node then, and how much of the host
    anybody used, is not kept: unknown.
    """
    values = {}
    for subject, metric, names in _wanted(s):
        now = s.values.get((subject, metric.name))
        if metric.name in _LASTING and now is not None:
            values[subject, metric.name] = now
            continue
        found = _first(history, metric, names, at_s)
        if found is not None:
            source = now.source if now is not None else metric.trust[0]
            number = int(found) if metric.is_integer else found
            values[subject, metric.name] = Value(number, source, s.at_s - at_s, False)
    processes = tuple(_then(p, history, at_s, s.at_s - at_s) for p in s.processes)
    back_s, up_s = s.at_s - at_s, s.host.uptime_s
    host = s.host._replace(
        load_averages=None,
        memory_available_bytes=None,
        uptime_s=None if up_s is None else max(0.0, up_s - back_s),
    )
    return s._replace(at_s=at_s, values=values, processes=processes, host=host, nodes=())


def _then(p: Process, history: History, at_s: float, back_s: float) -> Process:
    """The process with its phase and age of then: one that has ended since still lived."""
    if p.life is not None:
        age_s = None if p.life.age_s is None else max(0.0, p.life.age_s - back_s)
        life = p.life._replace(cpu_percent=None, rss_bytes=None, recent_cpu_percent=None)
        p = p._replace(life=life._replace(age_s=age_s))
    number = history.at(PHASE, p.key, at_s, WITHIN_S)
    if number is None:
        return p if p.state == "dead" else p._replace(phase=None)
    phase = PHASES[int(number)]
    return p._replace(phase=phase, state="dead" if phase == "ended" else "live")


def _wanted(s: Snapshot) -> Iterator[tuple[Subject, Metric, tuple[Subject, ...]]]:
    """Every value there may be: its subject, its metric, and under what the history files it."""
    for d in (*s.devices, *s.dead_devices):
        yield from ((d.key, m, d.filed(m.name)) for m in DEVICE_METRICS)
    for c in s.chips:
        yield from ((c.key, m, c.filed(m.name)) for m in CHIP_METRICS)
    for p in s.processes:
        yield from ((p.key, m, (p.key,)) for m in PROCESS_METRICS)


def _first(history: History, m: Metric, names: Iterable[Subject], at_s: float) -> float | None:
    """Of the first witness that has one: two are never mixed."""
    found = (history.at(m.name, name, at_s, WITHIN_S) for name in names)
    return next((v for v in found if v is not None), None)
