"""What stands out in a profile and what to do about it, worst first. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tpusmi.report.profile.capture_cases import CAPTURE_CASES
from tpusmi.report.profile.finding_case import BAD, BAD_PERCENT, WARN, FindingCase
from tpusmi.report.profile.finding_cases import CASES
from tpusmi.report.profile.finding_evidence import ProfileEvidence, evidence
from tpusmi.trace.figures import TraceProfile


class Finding(NamedTuple):
    """One thing that stands out. Texts of the trace in it are safe to print."""

    code: str
    title: str
    figure: str
    """How bad it is: `54 % of the step time`."""
    where: str
    """Which operations or cores; empty where it concerns all."""
    advice: str
    weight_percent: float
    """About how much of the time it costs."""
    style: str
    """`bad`, `warn`, or `dim` for what is about the capture itself."""


def findings(profile: TraceProfile) -> tuple[Finding, ...]:
    """All findings, the one that costs most first. A figure that is unknown makes none."""
    figures = evidence(profile)
    pid = "PID" if profile.capture.pid is None else str(profile.capture.pid)
    by_code = {case.code: _finding(case, figures, pid) for case in CASES}
    of_all = (f for c in CASES if (f := by_code[c.code]) and not by_code.get(c.unless))
    return tuple(sorted(of_all, key=lambda f: -f.weight_percent))


def can_judge(profile: TraceProfile) -> bool:
    """Whether the profile has any of the figures of the job that findings are judged by."""
    figures = evidence(profile)
    of_job = (case.measure for case in CASES if case not in CAPTURE_CASES)
    return any(getattr(figures, measure) is not None for measure in of_job)


class _StandInNumber:
    """Stands for any number, however it is formatted."""

    def __format__(self, spec: str) -> str:
        return "N"


def rows() -> Iterator[tuple[str, str, str]]:
    """Title, least figure and advice of each finding, without the numbers of a job."""
    usual = ProfileEvidence._field_defaults
    general: dict[str, object] = {name: usual[name] or _StandInNumber() for name in usual}
    for case in CASES:
        fields = {**general, case.measure: case.least, "pid": "PID"}
        texts = (text.format(**fields) for text in (case.title, case.figure, case.advice))
        title, figure, advice = texts
        yield title, figure, advice


def _finding(case: FindingCase, figures: ProfileEvidence, pid: str) -> Finding | None:
    measured = getattr(figures, case.measure)
    if measured is None or measured < case.least:
        return None
    weight = -case.weight if case.weight < 0 else case.weight * measured
    fields = {**figures._asdict(), "pid": pid}
    return Finding(
        code=case.code,
        title=case.title.format(**fields),
        figure=case.figure.format(**fields),
        where=case.where.format(**fields),
        advice=case.advice.format(**fields),
        weight_percent=weight,
        style=case.level or (BAD if weight >= BAD_PERCENT else WARN),
    )
