"""What the agents of a simulated slice hear of each other, as each exporter has it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from zlib import crc32

from tpusmi.model.states import NOT_HEARD_OF, SliceState
from tpusmi.simulate.fleet_job import DIED_S, JobMoment, pace_of
from tpusmi.simulate.fleet_members import FleetMember


def slice_figures(
    member: FleetMember, job: JobMoment
) -> Iterator[tuple[str, float, Mapping[str, str]]]:
    """Names, values and labels of the samples, without the labels of the process."""
    s = member.slice
    job_id = {"slice_job": f"{crc32(f'{s.name} {s.program} {job.run}'.encode()):x}"}
    for name, value, labels in _figures(member, job):
        yield name, value, {**labels, **job_id}


def _figures(member: FleetMember, job: JobMoment) -> Iterator[tuple[str, float, Mapping[str, str]]]:
    s = member.slice
    down = [worker for worker in range(s.hosts) if s.is_down(worker)]
    yield "slice_process_index", member.worker, {}
    yield "slice_expected_processes", s.hosts, {}
    states = {SliceState.LIVE: s.hosts - len(down), SliceState.STOPPED: len(down), NOT_HEARD_OF: 0}
    for state, count in states.items():
        yield "slice_processes", count, {"state": str(state)}
    for worker in down:
        of = {"process_index": str(worker), "process_host": FleetMember(s, worker).name}
        yield "slice_silent_seconds", DIED_S, of
    usual_s = job.fields.get("step_time_s.mean")
    if usual_s is not None:
        paces = {w: pace_of(s, w, job) for w in range(s.hosts) if w not in down}
        slowest = max(paces, key=lambda worker: (paces[worker], -worker))
        yield "slice_slowest_process_index", slowest, {}
        yield "slice_step_time_max_seconds", usual_s * paces[slowest], {}
        yield "slice_step_time_p50_seconds", usual_s * median(paces.values()), {}
