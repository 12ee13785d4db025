"""When the simulated job did what during a capture: its activities, its steps, and in each step the
operations of a device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from tpusmi.simulate.running import COLLECTIVES, SPEED_LEAST, THROTTLE_MOST, Running
from tpusmi.simulate.trace_programs import (
    INFEED,
    PROGRAM_OF,
    Loop,
    SimulatedOperation,
    SimulatedProgram,
)
from tpusmi.simulate.workload import (
    BUSY,
    EVALUATE,
    HUNG,
    SAVE,
    STALL,
    STEPS_PER_S,
    TRAIN,
    Workload,
    chance,
)

STALL_LEAST = 0.5
UNEVEN = 0.07
"""How much the times of steps differ."""
BARRIER_S = 2e-6
"""How long a program waits for the other devices before its first operation."""
SNAPSHOT_S = 1.0
"""How often a checkpoint runs a small program."""
PIECES_MOST = 100
"""Changes of the activity that are looked at: a capture is shorter than most activities."""


class TracedRun(NamedTuple):
    """One run of a program: a step, or a part of a checkpoint. Times are those of the job."""

    begin_s: float
    end_s: float
    activity: str
    number: int | None
    """Number of the step; None where it is not a step."""

    @property
    def program(self) -> SimulatedProgram:
        return PROGRAM_OF[self.activity]

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s


def runs(job: Workload, begin_s: float, end_s: float) -> list[TracedRun]:
    """The runs that a capture of that time sees, also those that its ends cut off."""
    seen: list[TracedRun] = []
    for activity, piece_begin_s, piece_end_s in _pieces(job, begin_s, end_s):
        for run in _runs_of(job, activity, (piece_begin_s, piece_end_s), begin_s):
            if run.begin_s >= end_s:
                break
            if run.end_s > begin_s:
                seen.append(run)
    return seen


def _pieces(job: Workload, begin_s: float, end_s: float) -> Iterator[tuple[str, float, float]]:
    """The activities of that time, and when each begins and ends, which may be outside of it. They
    also end when a fault begins.
    """
    at_s, changes = begin_s, job.changes()
    for _ in range(PIECES_MOST):
        if at_s >= end_s:
            return
        activity, since_s, left_s = job.moment(at_s)
        piece_begin_s = max(at_s - since_s, *(c for c in changes if c <= at_s), -math.inf)
        piece_end_s = min(at_s + left_s, *(c for c in changes if c > at_s), math.inf)
        yield activity, piece_begin_s, piece_end_s
        at_s = piece_end_s + 1e-9


def _runs_of(
    job: Workload, activity: str, time: tuple[float, float], from_s: float
) -> Iterator[TracedRun]:
    """The runs in a time in which the job does the same, from about `from_s`. What is left at the
    end of that time is too short for another step.
    """
    begin_s, end_s = time
    if activity == HUNG:
        yield TracedRun(begin_s, end_s, activity, None)
    if activity not in (TRAIN, STALL, EVALUATE, SAVE):
        return
    per_s = 1 / SNAPSHOT_S if activity == SAVE else job.steps_per_s(max(begin_s, from_s) + 1e-6)
    first = max(0, math.floor((from_s - begin_s) * per_s) - 1)
    done = job.steps(begin_s + (first + 0.5) / per_s) - first
    for n in count(first):
        early, late = (_uneven(job, done + n + i) if n + i else 0.0 for i in range(2))
        if begin_s + (n + _least(activity)) / per_s > end_s + 1e-6:
            return
        yield TracedRun(
            begin_s=begin_s + (n + early) / per_s,
            end_s=min(begin_s + (n + 1 + late) / per_s, end_s),
            activity=activity,
            number=None if activity == SAVE else done + n + 1,
        )


def _least(activity: str) -> float:
    """The share of the usual time that a run takes at least: a step may wait less for its input."""
    return STALL_LEAST if activity == STALL else 1.0


def _uneven(job: Workload, number: int) -> float:
    """By which share of a step that step ends late, or early."""
    return UNEVEN * (chance(job.seed, 0, number) - 0.5)


class DeviceShares(NamedTuple):
    """What the time of a run is spent on, on one device: shares of it."""

    waits: float
    """For input."""
    computes: float
    collects: float
    """Works on collectives, or waits in them for the other devices."""


def device_shares(running: Running, run: TracedRun, chip: int) -> DeviceShares:
    """How one chip spends a run. The job is as slow as its slowest chip: the others wait for it in
    the collectives, which a bad link makes longer.
    """
    busy = BUSY[run.activity]
    if run.activity == STALL:
        usual_s = 1 / running.workload.steps_per_s(run.begin_s + 1e-6)
        busy = min(BUSY[TRAIN], busy * usual_s / run.length_s)
    waits = BUSY[TRAIN] - busy if run.activity == STALL else 0.0
    if run.activity == HUNG:
        return DeviceShares(0.0, 0.0, 1.0)  # in a collective that never ends
    if run.activity == SAVE or running.job_devices == 1:
        return DeviceShares(waits, busy, 0.0)
    throttled = running.throttle_scores()[chip] / THROTTLE_MOST
    slower = 1 / max(SPEED_LEAST, 1 - throttled)
    healthy = busy * (1 - COLLECTIVES / BUSY[TRAIN])
    speed = running.workload.steps_per_s(run.begin_s + 1e-6) / STEPS_PER_S[run.activity]
    computes = min(busy, healthy * speed * slower)
    return DeviceShares(waits, computes, busy - computes)


class OperationRun(NamedTuple):
    """One operation, or one loop, as long as it lasts. Times are those of the job."""

    what: SimulatedOperation | Loop
    begin_s: float
    end_s: float


def events(run: TracedRun, shares: DeviceShares, layers: int) -> Iterator[OperationRun]:
    """The operations of a run on one device, in the order in which they begin."""
    if run.activity == HUNG:
        last = next(o for o in run.program.operations if o.category == "all-reduce")
        yield OperationRun(last, run.begin_s, run.end_s)
        return
    lengths = _Lengths(run, shares)
    at_s = run.begin_s + BARRIER_S
    for part in run.program.parts:
        if isinstance(part, Loop):
            length_s = sum(map(lengths.seconds, part.body))
            yield OperationRun(part, at_s, at_s + length_s)
            yield from _layers(part, at_s, lengths, layers)
        else:
            length_s = lengths.seconds(part)
            yield OperationRun(part, at_s, at_s + length_s)
        at_s += length_s


def _layers(loop: Loop, at_s: float, lengths: _Lengths, layers: int) -> Iterator[OperationRun]:
    each = [(operation, lengths.seconds(operation) / layers) for operation in loop.body]
    for _ in range(layers):
        for operation, length_s in each:
            yield OperationRun(operation, at_s, at_s + length_s)
            at_s += length_s


class _Lengths:
    """How long each operation of a run lasts on a device."""

    def __init__(self, run: TracedRun, shares: DeviceShares) -> None:
        own = run.program.operations
        self._waits_s = shares.waits * run.length_s
        self._computes_s = (
            shares.computes * run.length_s / sum(o.share for o in own if not o.is_collective)
        )
        collective = sum(o.share for o in own if o.is_collective)
        self._collects_s = shares.collects * run.length_s / collective if collective else 0.0

    def seconds(self, operation: SimulatedOperation) -> float:
        """In all layers."""
        if operation.category == INFEED:
            return self._waits_s
        return operation.share * (self._collects_s if operation.is_collective else self._computes_s)
