"""Joins what tpusmi reads in a trace with what xprof makes of it: one profile, each figure from the
one that measures it best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpusmi.profiler.xprof_figures import FROM_RATE, NO_STEPS, profile_of
from tpusmi.profiler.xprof_run import pages_of
from tpusmi.trace.figures import TRACE, XPROF, Operation, TimeShares, TraceProfile
from tpusmi.trace.limits import TraceLimits
from tpusmi.trace.trace_notes import NO_BANDWIDTH, NO_MXU, STEPS_AHEAD

APART_MOST_PERCENT = 1.0
"""Points between two percentages, and percent between two step times, that need no note."""
XPROF_FIRST = (
    "device_type",
    "duty_cycle_percent",
    "idle_percent",
    "mxu_percent",
    "hbm_bandwidth_percent",
    "flops_per_s",
    "operations",
    "memory",
)
"""It measures these with the help of the compiled programs, which it understands."""
OURS_FIRST = (
    "backend",
    "captured_s",
    "steps",
    "input_bound_percent",
    "peak_flops_per_s",
    "peak_hbm_bytes_per_s",
    "cores",
    "programs",
)
"""The trace itself has these, or xprof does not have them for each core. Only the trace shows which
steps the ends of the capture cut off.
"""
SAME_RATE = 0.01
NAMES_FROM_TRACE = ("source", "framework_name")
FROM_TRACE = (*NAMES_FROM_TRACE, "flops_per_s", "mxu_percent")
OURS_FIRST_OFF_TPU = ("duty_cycle_percent", "idle_percent")
"""On a GPU xprof prints neither, and its idle operation includes copies."""
COMPARED = {
    "duty_cycle_percent": "Duty cycle",
    "idle_percent": "Idle",
    "mxu_percent": "MXU utilization",
    "hbm_bandwidth_percent": "HBM bandwidth",
}


def with_xprof(path: str, own: TraceProfile, limits: TraceLimits) -> TraceProfile:
    """The profile of the trace at that path, with xprof's figures joined to our own reading of it.

    Without xprof, or where it fails: our own, and a note with the reason. It raises no error.
    """
    answer = pages_of(path, limits)
    notes = (f"{answer.failure}.",) if answer.failure else ()
    if not answer.pages:
        return _with_notes(own, notes)
    return _with_notes(joined(own, profile_of(answer.pages, own.capture)), notes)


def joined(own: TraceProfile, theirs: TraceProfile) -> TraceProfile:
    """One profile of two readings of the same trace: ours, and that of xprof's pages."""
    theirs = _without_guessed_cpu(own, _without_guessed_duty(own, theirs))
    differences = _differences(own, theirs)
    theirs = _without_lone_step(own, _without_estimates(own, theirs))
    members: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name in (*XPROF_FIRST, *OURS_FIRST):
        profile = _best(name, own, theirs)
        if profile is not None:
            members[name] = getattr(profile, name)
            sources[name] = _source(profile, theirs, name)
    if theirs.operations:
        members["operations"] = _completed(own, theirs)
    shares = _shares(own, theirs)
    if shares != TimeShares():
        members["shares"] = shares
        sources["shares"] = _source(_of_shares(own, theirs), theirs, "shares")
    profile = own._replace(**members, sources=sources)
    profile = profile._replace(notes=_true_of(profile, own.notes))
    return _with_notes(profile, (*_notes_of(profile, theirs), *differences))


def _true_of(profile: TraceProfile, notes: Sequence[str]) -> tuple[str, ...]:
    """The notes, without those that miss a figure that the profile has."""
    figures = {NO_MXU: profile.mxu_percent, NO_BANDWIDTH: profile.hbm_bandwidth_percent}
    past = tuple(end for end, figure in figures.items() if figure is not None)
    return tuple(note for note in notes if not note.endswith(past))


def _notes_of(profile: TraceProfile, theirs: TraceProfile) -> list[str]:
    """xprof's notes, unless our own reading has what they miss, or says the same."""
    ends = (NO_MXU, NO_BANDWIDTH)
    past = [NO_STEPS, *(end for end in ends if any(n.endswith(end) for n in profile.notes))]
    return [note for note in _true_of(profile, theirs.notes) if not note.endswith(tuple(past))]


def _best(name: str, own: TraceProfile, theirs: TraceProfile) -> TraceProfile | None:
    """The reading to take a figure from; None if neither has it."""
    is_ours = name in OURS_FIRST or (theirs.backend != "tpu" and name in OURS_FIRST_OFF_TPU)
    order = (own, theirs) if is_ours else (theirs, own)
    return next((p for p in order if getattr(p, name) not in (None, ())), None)


def _completed(own: TraceProfile, theirs: TraceProfile) -> tuple[Operation, ...]:
    """xprof's operations with what only the trace says: it prints 0 also for unknown FLOPs, and
    knows no kernel of a GPU that belongs to no program, such as a copy.
    """
    ours: dict[tuple[str | None, str], list[Operation]] = {}
    for op in own.operations:
        ours.setdefault((op.program, op.name), []).append(op)
    operations = [_filled(op, ours.pop((op.program, op.name), [])) for op in theirs.operations]
    if theirs.backend != "tpu":
        operations += [op for several in ours.values() for op in several if op.program is None]
    return tuple(sorted(operations, key=lambda op: -op.self_s))


def _filled(operation: Operation, same_name: Sequence[Operation]) -> Operation:
    if len(same_name) != 1 or same_name[0].runs != operation.runs:
        return operation
    (ours,) = same_name
    names = FROM_TRACE if operation.flops_per_s is None else NAMES_FROM_TRACE
    lacking = {n: getattr(ours, n) for n in names if getattr(operation, n) is None}
    return operation._replace(**lacking)


def _without_estimates(own: TraceProfile, theirs: TraceProfile) -> TraceProfile:
    """xprof's MXU utilization is a plain rate where nothing was measured. If ours is another one
    it knows more, such as the hardware's counters.
    """
    ours, rate = own.mxu_percent, theirs.mxu_percent
    if FROM_RATE not in theirs.notes or ours is None or rate is None:
        return theirs
    if abs(ours - rate) <= SAME_RATE * rate:
        return theirs
    notes = tuple(note for note in theirs.notes if note != FROM_RATE)
    return theirs._replace(mxu_percent=None, notes=notes)


def _without_guessed_cpu(own: TraceProfile, theirs: TraceProfile) -> TraceProfile:
    """xprof calls it a CPU where the trace has no device at all: that of a TPU job that did nothing
    is one.
    """
    is_guess = theirs.backend == "cpu" and own.backend is None
    return theirs._replace(backend=None, device_type=None) if is_guess else theirs


def _without_guessed_duty(own: TraceProfile, theirs: TraceProfile) -> TraceProfile:
    """xprof prints a duty cycle of 0 also where it has none. All but the idle time stands for it
    then, with the waits for the host; ours is without them.
    """
    duty, idle = theirs.duty_cycle_percent, theirs.idle_percent
    is_guess = idle is not None and duty == 100 - idle
    if not is_guess or own.duty_cycle_percent is None:
        return theirs
    return theirs._replace(duty_cycle_percent=None)


def _without_lone_step(own: TraceProfile, theirs: TraceProfile) -> TraceProfile:
    """The only step of a short capture is most often cut off, which xprof's table does not show:
    where our own reading has no whole step, xprof's is not believed. Nor is it where the markers
    are ahead of the device.
    """
    is_lone = (theirs.steps is not None and theirs.steps.whole == 1) or STEPS_AHEAD in own.notes
    if not is_lone or own.steps is not None or not own.cores:
        return theirs
    return theirs._replace(steps=None, input_bound_percent=None)


def _source(profile: TraceProfile, theirs: TraceProfile, name: str) -> str:
    return XPROF if profile is theirs else profile.sources.get(name, TRACE)


def _of_shares(own: TraceProfile, theirs: TraceProfile) -> TraceProfile:
    """The reading whose shares are taken, all of them, so that they add up."""
    if own.shares.compute_percent is None:
        return theirs
    is_theirs = theirs.backend == "tpu" and theirs.shares.compute_percent is not None
    return theirs if is_theirs else own


def _shares(own: TraceProfile, theirs: TraceProfile) -> TimeShares:
    """Where the time went. Either reading may know of compilation."""
    shares = _of_shares(own, theirs).shares
    compiling = (shares, theirs.shares, own.shares)
    percents = (s.compile_percent for s in compiling if s.compile_percent is not None)
    return shares._replace(compile_percent=next(percents, None))


def _differences(own: TraceProfile, theirs: TraceProfile) -> list[str]:
    """Sentences about figures on which the two readings differ."""
    notes = []
    for name, words in COMPARED.items():
        ours, xprofs = getattr(own, name), getattr(theirs, name)
        if None not in (ours, xprofs) and abs(ours - xprofs) > APART_MOST_PERCENT:
            notes.append(
                f"{words}: {xprofs:.1f} % by xprof, {ours:.1f} % by tpusmi's own reading of the"
                " trace."
            )
    # On a CPU xprof's step is what is inside the mark; ours lasts until the next mark.
    is_cpu = theirs.backend == "cpu"
    if not is_cpu and own.steps and theirs.steps and own.steps[:2] == theirs.steps[:2]:
        ours_s, xprofs_s = own.steps.p50_s, theirs.steps.p50_s
        if abs(ours_s - xprofs_s) > APART_MOST_PERCENT / 100 * max(ours_s, xprofs_s):
            notes.append(
                f"Median step: {1000 * xprofs_s:.1f} ms by xprof, {1000 * ours_s:.1f} ms by"
                " tpusmi's own reading of the trace."
            )
    return notes


def _with_notes(profile: TraceProfile, notes: Sequence[str]) -> TraceProfile:
    new = [note for note in notes if note not in profile.notes]
    return profile._replace(notes=(*profile.notes, *new))
