"""Readings from every agent segment, of living and of ended jobs. No byte of one is trusted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from tpusmi.model import ABSENT, AGENT, DENIED, FAILED, OK, Host, Missing, Outcome, Process, Status
from tpusmi.sources.segments.evidence import Kernel
from tpusmi.sources.segments.gaps import Gaps
from tpusmi.sources.segments.listing import Directories
from tpusmi.sources.segments.quota import Quota, ReadCost, spent
from tpusmi.text import counted, noun
from tpusmi.wire.layout import SegmentError
from tpusmi.wire.places import SegmentFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.sources.segments.job_report import JobReport, Judged
    from tpusmi.sources.segments.job_segment import Job

NO_JOB = "no job that called tpusmi.start() can be seen here"


class Segments:
    """The agents' source.

    Keeps segments open between reads, and decodes a memory profile only when it is new.
    """

    name = AGENT

    def __init__(
        self, host: Host, with_past: bool = False, period_s: float = 1.0, by_device: bool = False
    ) -> None:
        """`with_past` adds what jobs recorded before, `by_device` memory profiles by device."""
        self.period_s = period_s
        self._host = host
        self._with_past = with_past
        self._by_device = by_device
        self._kernel = Kernel(host)
        self._budget = Quota()
        self._directories = Directories(host)
        self._open: dict[str, Job] = {}

    def read(self, now_s: float) -> Outcome:
        """Every job with an agent, its devices and readings. ABSENT when there is none."""
        refusal = _refusal(self._host.segment_dir)
        if refusal is not None:
            return refusal
        self._budget.renew()
        gaps = Gaps(self._kernel)
        if self._kernel.limits:
            gaps.note(self._kernel.limits)
        listed = self._directories.segments(now_s, self._budget, gaps)
        files = [*listed, *self._deleted(listed)]
        jobs = [job for job in (self._job(file, gaps) for file in files) if job is not None]
        contested = _contested(jobs, self._budget)
        read = (
            self._report(job, (job.named, job.file.uid) in contested, now_s, gaps) for job in jobs
        )
        reports = [report for report in read if report is not None]
        for path in self._open.keys() - {job.file.path for job in jobs}:
            self._open.pop(path).close()
        processes = tuple(report.process for report in reports)
        status, message = _status(processes, gaps)
        return Outcome(
            source=self.name,
            status=status,
            message=message,
            took_s=time.monotonic() - now_s,
            readings=tuple(r for report in reports for r in report.readings),
            past=tuple(r for report in reports for r in report.past),
            devices=tuple(d for report in reports for d in report.devices),
            processes=processes,
            notes=gaps.notes(),
            missing=gaps.missing(),
            slices=tuple(r.slice for r in reports if r.slice is not None),
        )

    def judged(self) -> list[Judged]:
        """The segments of the last read, each with the verdict on its process."""
        return [j for j in (job.judged for job in self._open.values()) if j is not None]

    def close(self) -> None:
        """Close the segments that are open."""
        while self._open:
            self._open.popitem()[1].close()

    def _deleted(self, listed: Iterable[SegmentFile]) -> list[SegmentFile]:
        """Segments that are open here, were deleted, and are still written by their agents: each
        agent soon makes another one.
        """
        named = {(file.pid, file.start_ticks, file.uid) for file in listed}
        written = (job.file for job in self._open.values() if job.is_written)
        return [f for f in written if (f.pid, f.start_ticks, f.uid) not in named]

    def _job(self, file: SegmentFile, gaps: Gaps) -> Job | None:
        """The open segment of that file, with what the kernel says about its process. None for one
        that cannot be read, or is over the limits.
        """
        quota, uid = self._budget, file.charged
        late = "" if file.path in self._open else quota.lateness(uid)
        cost = ReadCost(segments=1, bytes=file.bytes)
        if why := quota.refusal(uid, cost) or late:
            gaps.cut(uid, why)
            return None
        quota.spend(uid, cost)
        with spent(quota, uid):
            try:
                job = self._opened(file)
            except SegmentError as error:
                gaps.segment(file, str(error))
                return None
        job.look_elsewhere()
        with spent(quota, uid):
            job.look()
        if job.may_be_proven:
            gaps.segment(file, "names a process that was not found among very many")
        cost = ReadCost(devices=job.devices)
        if why := quota.refusal(uid, cost):
            gaps.cut(uid, why)
            return None
        quota.spend(uid, cost)
        return job

    def _report(self, job: Job, is_contested: bool, now_s: float, gaps: Gaps) -> JobReport | None:
        """What the segment gives now; what it gave a moment ago, where there is no time for it."""
        quota, payer = self._budget, job.file.charged
        if why := quota.lateness(payer):
            gaps.cut(payer, why)
            return job.recent(now_s)
        with spent(quota, payer):
            try:
                report = job.read(now_s, is_contested, quota.left(payer).past)
            except SegmentError as error:
                gaps.segment(job.file, str(error))
                return None
        quota.spend(payer, ReadCost(past=len(report.past)))
        if report.note:
            gaps.note(f"{job.file.path} {report.note}")
        return report

    def _opened(self, file: SegmentFile) -> Job:
        """The segment, opened again when its file was replaced. Raises SegmentError."""
        from tpusmi.sources.segments.job_segment import Job

        job = self._open.get(file.path)
        if job is not None and job.is_current(file):
            job.file = file
            return job
        if job is not None:
            self._open.pop(file.path).close()
        job = self._open[file.path] = Job(file, self._kernel, self._with_past, self._by_device)
        return job


def _contested(jobs: Iterable[Job], quota: Quota) -> set[tuple[tuple[int, int], int]]:
    """Processes that have ended and that files of several users name, each with a user who may be
    lying: the kernel says nothing about ended processes. Root and this user are believed.
    """
    owners: dict[tuple[int, int], set[int]] = {}
    for job in jobs:
        if job.evidence.is_alive is False:
            owners.setdefault(job.named, set()).add(job.file.uid)
    return {
        (named, uid)
        for named, uids in owners.items()
        for uid in uids
        if len(uids) > 1 and not quota.is_trusted(uid)
    }


def _refusal(directory: str | None) -> Outcome | None:
    """Why a TPUSMI_DIR cannot be read; None where it can, or does not exist yet."""
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


def _status(processes: Sequence[Process], gaps: Gaps) -> tuple[Status, str]:
    if processes:
        ended, jobs = sum(p.is_dead for p in processes), counted(len(processes), "job")
        if ended == len(processes):
            jobs += f" that {noun(ended, 'has', 'have')} ended"
        else:
            jobs += " with an agent" + (f", {ended} of them ended" if ended else "")
        return OK, f"{jobs}; {gaps.wall}" if gaps.wall else jobs
    if gaps.denied:
        return DENIED, f"{counted(gaps.denied, 'segment')} of other users cannot be read"
    if gaps.own:
        return FAILED, gaps.own
    notes = gaps.notes()
    if notes:
        return ABSENT, f"{NO_JOB}, but not everything could be read: {notes[0]}"
    return ABSENT, f"{NO_JOB}; {gaps.wall}" if gaps.wall else NO_JOB
