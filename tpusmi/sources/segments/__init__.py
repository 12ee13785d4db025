"""Readings from every agent segment, live or dead. Not a byte of one is trusted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from tpusmi.model import ABSENT, AGENT, DENIED, FAILED, OK, Host, Missing, Outcome, Process, Status
from tpusmi.sources.segments.budget import NOTHING, Budget, spent
from tpusmi.sources.segments.gaps import Gaps
from tpusmi.sources.segments.job import Found, Job
from tpusmi.sources.segments.listing import Listing
from tpusmi.sources.segments.proof import Machine
from tpusmi.sources.segments.samples import FRESH_LEAST_S
from tpusmi.text import counted
from tpusmi.wire.layout import SegmentError
from tpusmi.wire.places import Place

NO_JOB = "no job that called tpusmi.start() can be seen here"


class Segments:
    """The agents' source.

    Keeps segments open between reads, and decodes a memory profile only when it is new.
    """

    name = AGENT

    def __init__(
        self,
        host: Host,
        with_past: bool = False,
        period_s: float = 1.0,
        by_device: bool = False,
    ) -> None:
        """`with_past` gives what was before, `by_device` tells memory profiles apart by device."""
        self.period_s = period_s
        self._host = host
        self._with_past = with_past
        self._by_device = by_device
        self._machine = Machine(host)
        self._budget = Budget()
        self._listing = Listing(host)
        self._open: dict[str, Job] = {}

    def read(self, now_s: float) -> Outcome:
        """Every job with an agent, its devices and readings. ABSENT when there is none."""
        refusal = _refusal(self._host.segment_dir)
        if refusal is not None:
            return refusal
        self._budget.renew()
        gaps = Gaps(self._machine)
        looked = self._listing.look(now_s, self._budget)
        if self._machine.lacking:
            gaps.note(self._machine.lacking)
        for trouble in looked.troubles:
            gaps.directory(trouble)
        gaps.others(looked.others)
        listed = [*looked.places, *self._nameless(looked.places)]
        jobs = [job for job in (self._job(p, gaps) for p in listed) if job is not None]
        contested = _contested(jobs, self._budget)
        read = (
            self._read(job, (_named(job), job.place.uid) in contested, now_s, gaps) for job in jobs
        )
        found = [found for found in read if found is not None]
        for path in self._open.keys() - {job.place.path for job in jobs}:
            self._open.pop(path).close()
        status, message = _status([f.process for f in found], gaps)
        return Outcome(
            self.name,
            status,
            message,
            took_s=time.monotonic() - now_s,
            readings=tuple(r for f in found for r in f.readings),
            past=tuple(r for f in found for r in f.past),
            devices=tuple(d for f in found for d in f.devices),
            processes=tuple(f.process for f in found),
            notes=gaps.notes(),
            missing=gaps.missing(),
        )

    def close(self) -> None:
        """Close the segments that are open."""
        while self._open:
            self._open.popitem()[1].close()

    def _nameless(self, listed: Iterable[Place]) -> list[Place]:
        """Those that are open here and were deleted, and that their agents still write to: each
        makes another one soon.
        """
        named = {(place.pid, place.start_ticks, place.uid) for place in listed}
        known = (job.place for job in self._open.values() if job.is_written)
        return [p for p in known if (p.pid, p.start_ticks, p.uid) not in named]

    def _job(self, place: Place, gaps: Gaps) -> Job | None:
        """The open segment of that place, with what the kernel says of its process. None of one
        that cannot be read, or that is over the limits.
        """
        budget, uid = self._budget, place.charged
        late = "" if place.path in self._open else budget.lateness(uid)
        if why := budget.refusal(uid, place.bytes) or late:
            gaps.cut(uid, why)
            return None
        budget.spend(uid, NOTHING._replace(segments=1, bytes=place.bytes))
        with spent(budget, uid):
            try:
                job = self._opened(place)
            except SegmentError as error:
                gaps.segment(place, str(error))
                return None
        job.look_elsewhere()
        with spent(budget, uid):
            job.look()
        if job.may_be_proven:
            gaps.segment(place, "is of a process that was not found among very many")
        if why := budget.refusal_of(uid, job.devices):
            gaps.cut(uid, why)
            return None
        budget.spend(uid, NOTHING._replace(devices=job.devices))
        return job

    def _read(self, job: Job, is_contested: bool, now_s: float, gaps: Gaps) -> Found | None:
        """What the segment gives now; what it gave a moment ago, where there is no time for it."""
        budget, place, payer = self._budget, job.place, job.place.charged
        if why := budget.lateness(payer):
            gaps.cut(payer, why)
            is_young = job.newest is not None and now_s - job.newest_at_s < FRESH_LEAST_S
            return job.newest._replace(past=[]) if job.newest is not None and is_young else None
        with spent(budget, payer):
            try:
                found = job.read(now_s, is_contested, budget.left(payer).past)
            except SegmentError as error:
                gaps.segment(place, str(error))
                return None
            except Exception as error:  # noqa: BLE001  # a hostile segment costs itself, no other
                gaps.segment(place, f"cannot be read: {type(error).__name__}: {error}")
                return None
        budget.spend(payer, NOTHING._replace(past=len(found.past)))
        if found.note:
            gaps.note(f"{place.path} {found.note}")
        return found

    def _opened(self, place: Place) -> Job:
        """The segment, opened anew when its file was replaced. Raises SegmentError."""
        known = self._open.get(place.path)
        if known is not None and known.is_current(place):
            known.place = place
            return known
        if known is not None:
            self._open.pop(place.path).close()
        job = self._open[place.path] = Job(place, self._machine, self._with_past, self._by_device)
        return job


_Named = tuple[int, int]
"""A process by the number and the start that a file names."""


def _named(job: Job) -> _Named:
    return job.place.pid, job.place.start_ticks


def _contested(jobs: Iterable[Job], budget: Budget) -> set[tuple[_Named, int]]:
    """Processes that have ended and that files of several users name, with each user who may be
    the wrong one: of the dead the kernel tells nothing. Root and the own user are believed.
    """
    owners: dict[_Named, set[int]] = {}
    for job in jobs:
        if job.standing.is_gone:
            owners.setdefault(_named(job), set()).add(job.place.uid)
    return {
        (named, uid)
        for named, uids in owners.items()
        for uid in uids
        if len(uids) > 1 and not budget.is_trusted(uid)
    }


def _refusal(directory: str | None) -> Outcome | None:
    """Why a TPUSMI_DIR cannot be looked into; None where it can, or is not there yet."""
    try:
        if directory is not None:
            os.scandir(directory).close()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        is_denied = isinstance(error, PermissionError)
        why = "cannot be read" if is_denied else f"cannot be read: {error.strerror or error}"
        message = f"{directory} {why}"
        witness = (Missing(AGENT, message),)
        return Outcome(AGENT, DENIED if is_denied else FAILED, message, missing=witness)
    return None


def _status(found: list[Process], gaps: Gaps) -> tuple[Status, str]:
    if found:
        ended = sum(p.is_dead for p in found)
        some = f"{ended} of them ended" if ended < len(found) else "ended"
        jobs = f"{counted(len(found), 'job')} with an agent{f', {some}' if ended else ''}"
        return OK, f"{jobs}; {gaps.wall}" if gaps.wall else jobs
    if gaps.denied:
        what = f"{gaps.denied} segment{'s' if gaps.denied > 1 else ''}"
        return DENIED, f"{what} of other users cannot be read"
    if gaps.own:
        return FAILED, gaps.own
    notes = gaps.notes()
    if notes:
        return ABSENT, f"{NO_JOB}, but not all could be read: {notes[0]}"
    return ABSENT, f"{NO_JOB}; {gaps.wall}" if gaps.wall else NO_JOB
