"""Joins what tpusmi reads in a trace with what xprof makes of it: one profile, each figure from the
one that measures it best.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tpusmi.profiler.xprof_figures import NO_STEPS, profile_of
from tpusmi.profiler.xprof_run import pages_of
from tpusmi.trace.figures import TRACE, XPROF, TimeShares, TraceProfile
from tpusmi.trace.limits import TraceLimits

APART_MOST_PERCENT = 1.0
"""Points between two percentages, and percent between two step times, that need no note."""
XPROF_FIRST = (
    "device_type",
    "duty_cycle_percent",
    "idle_percent",
    "mxu_percent",
    "hbm_bandwidth_percent",
    "flops_per_s",
    "steps",
    "input_bound_percent",
    "operations",
    "memory",
)
"""It measures these with the help of the compiled programs, which it understands."""
OURS_FIRST = (
    "backend",
    "captured_s",
    "peak_flops_per_s",
    "peak_hbm_bytes_per_s",
    "cores",
    "programs",
)
"""These stand in the trace itself, or xprof does not tell them for each core."""
COMPARED = {
    "idle_percent": "idle",
    "mxu_percent": "MXU utilization",
    "hbm_bandwidth_percent": "HBM bandwidth",
    "input_bound_percent": "waiting for input",
}


def with_xprof(path: str, own: TraceProfile, limits: TraceLimits) -> TraceProfile:
    """The profile of the trace at that path, with xprof's figures joined to our own reading of it.

    Without xprof, or where it fails: our own, and a note with the reason. It raises no error.
    """
    answer = pages_of(path, limits)
    notes = (answer.failure,) if answer.failure else ()
    if not answer.pages:
        return _with_notes(own, notes)
    return _with_notes(joined(own, profile_of(answer.pages, own.capture)), notes)


def with_xprof_each(
    traces: Iterable[tuple[str, TraceProfile]], limits: TraceLimits
) -> list[TraceProfile]:
    """The same for the traces of several hosts, one after the other, within the same limits."""
    return [with_xprof(path, own, limits) for path, own in traces]


def joined(own: TraceProfile, theirs: TraceProfile) -> TraceProfile:
    """One profile of two readings of the same trace: ours, and that of xprof's pages."""
    members: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for names, order in ((XPROF_FIRST, (theirs, own)), (OURS_FIRST, (own, theirs))):
        for name in names:
            profile = next((p for p in order if getattr(p, name) not in (None, ())), None)
            if profile is not None:
                members[name] = getattr(profile, name)
                sources[name] = _source(profile, theirs, name)
    shares = _shares(own, theirs)
    if shares != TimeShares():
        members["shares"] = shares
        sources["shares"] = XPROF if _is_told(theirs.shares) else _source(own, theirs, "shares")
    profile = own._replace(**members, sources=sources)
    return _with_notes(profile, (*_notes_of(profile, theirs), *_differences(own, theirs)))


def _source(profile: TraceProfile, theirs: TraceProfile, name: str) -> str:
    return XPROF if profile is theirs else profile.sources.get(name, TRACE)


def _is_told(shares: TimeShares) -> bool:
    return shares.compute_percent is not None


def _shares(own: TraceProfile, theirs: TraceProfile) -> TimeShares:
    """All of one reading, so that they add up; either may know of compilation."""
    shares = theirs.shares if _is_told(theirs.shares) else own.shares
    compiling = (shares, theirs.shares, own.shares)
    percents = (s.compile_percent for s in compiling if s.compile_percent is not None)
    return shares._replace(compile_percent=next(percents, None))


def _notes_of(profile: TraceProfile, theirs: TraceProfile) -> list[str]:
    """xprof's notes, unless our own reading has what they miss."""
    has_steps = profile.steps is not None
    return [note for note in theirs.notes if not (has_steps and note == NO_STEPS)]


def _differences(own: TraceProfile, theirs: TraceProfile) -> list[str]:
    """Sentences about figures on which the two readings differ."""
    notes = []
    for name, words in COMPARED.items():
        ours, xprofs = getattr(own, name), getattr(theirs, name)
        if None not in (ours, xprofs) and abs(ours - xprofs) > APART_MOST_PERCENT:
            notes.append(
                f"{words}: {xprofs:.1f} % by xprof, {ours:.1f} % by tpusmi's own reading of the"
                " trace"
            )
    if own.steps and theirs.steps:
        ours_s, xprofs_s = own.steps.p50_s, theirs.steps.p50_s
        if abs(ours_s - xprofs_s) > APART_MOST_PERCENT / 100 * max(ours_s, xprofs_s):
            notes.append(
                f"median step: {1000 * xprofs_s:.3g} ms by xprof, {1000 * ours_s:.3g} ms by"
                " tpusmi's own reading of the trace"
            )
    return notes


def _with_notes(profile: TraceProfile, notes: Sequence[str]) -> TraceProfile:
    new = [note for note in notes if note not in profile.notes]
    return profile._replace(notes=(*profile.notes, *new))
