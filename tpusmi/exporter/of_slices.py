"""The slices of a snapshot as families of samples: only what no other exporter has. Pure.

The figures of each host come from its own exporter. Here is how a job's agents see each other:
which of them report, and whose steps are slowest. Each host of the slice has the same numbers, so
they have a label that says which job it is: take `max by (slice_job)`, never the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tpusmi.exporter.families import Families
from tpusmi.exporter.job_names import job_name
from tpusmi.model import Snapshot
from tpusmi.model.slice_hosts import Slice, SliceProcess
from tpusmi.model.states import NOT_HEARD_OF, SliceState

SILENT_MOST = 8
"""Processes that have stopped reporting, each by its number: when the coordinator ends, all have,
and each host of the slice exports each of them.
"""


def add_slices(f: Families, s: Snapshot) -> None:
    """Add the slices whose reader is a process here, and has read them in time."""
    commands = {p.key: p.command for p in s.processes}
    here = [x for x in s.slices if x.process in commands and not x.is_old]
    for x in here:
        assert x.process is not None
        _add_slice(f, x, job_name(commands[x.process]))
    if here:
        left_out = (max(0, len(_silent(x)) - SILENT_MOST) for x in here)
        f.add("left_out", sum(left_out), what="silent processes of slices")


def slice_job(x: Slice) -> str | None:
    """What all processes of a job call it, and most other jobs do not; None if unknown."""
    return f"{x.job:x}" if x.job else None


def _add_slice(f: Families, x: Slice, name: str) -> None:
    labels: dict[str, object] = {"pid": x.pid, "job_name": name, "slice_job": slice_job(x)}
    live = [h for h in x.hosts if h.state == SliceState.LIVE]
    silent = _silent(x)
    f.add("slice_process_index", x.process_index, **labels)
    f.add("slice_expected_processes", x.process_count, **labels)
    states = {
        SliceState.LIVE: len(live),
        SliceState.STOPPED: len(silent),
        NOT_HEARD_OF: max(0, x.process_count - len(x.hosts)),
    }
    for state, count in states.items():
        f.add("slice_processes", count, state=state, **labels)
    _add_steps(f, live, labels)
    for h in silent[:SILENT_MOST]:
        of = {"process_index": h.process_index, "process_host": h.name}
        f.add("slice_silent_seconds", h.age_s, **of, **labels)


def _silent(x: Slice) -> list[SliceProcess]:
    """The processes that have stopped reporting, by their numbers."""
    silent = (h for h in x.hosts if h.state == SliceState.STOPPED)
    return sorted(silent, key=lambda h: h.process_index)


def _add_steps(f: Families, live: Sequence[SliceProcess], labels: dict[str, object]) -> None:
    times = {h.process_index: h.step_time_s for h in live if h.step_time_s}
    if not times:
        return
    slowest = max(times, key=lambda index: (times[index], -index))
    f.add("slice_slowest_process_index", slowest, **labels)
    f.add("slice_step_time_max_seconds", times[slowest], **labels)
    f.add("slice_step_time_p50_seconds", median(times.values()), **labels)
