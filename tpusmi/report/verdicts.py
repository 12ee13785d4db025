"""The verdict on a holder as a mark for a column, and as text. Its words are the model's. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tpusmi.model import VERDICT_WORDS, Process, State, Verdict
from tpusmi.report import words

UNKNOWN_MARK = "?"
MARKS: Mapping[str, str] = {
    Verdict.STALE: "stale",
    Verdict.MAYBE: "maybe",
    Verdict.UNKNOWN: UNKNOWN_MARK,
    Verdict.NOT_STALE: "no",
}
"""Each verdict in a column."""


def mark(p: Process) -> str:
    """For a column: the code of a stale holder, `maybe`, `?`, `no`; empty for other processes."""
    if p.verdict == Verdict.STALE and p.stale_code:
        return p.stale_code
    return "" if p.verdict is None else MARKS[p.verdict]


def sentence(p: Process) -> str:
    """The verdict, the sign that it rests on, and why; empty where there is no verdict."""
    return p.judgment.removeprefix("is ")


def doing(p: Process) -> str:
    """What a process is doing, in full: `stale (orphaned)`, `idle (silent, stopped)`; empty when
    that is unknown.
    """
    if p.is_dead:
        return "ended"
    if p.verdict == Verdict.STALE:
        return f"stale ({p.stale_code})" if p.stale_code else "stale"
    marks = ["silent"] if p.state == State.SILENT else []
    marks += ["stopped"] if p.is_stopped else []
    marks += [VERDICT_WORDS[Verdict.MAYBE]] if p.is_suspect else []
    marks += ["unknown"] if p.state == State.UNCERTAIN else []
    marks += [] if p.is_verified else [doubt(p)]
    more = ", ".join(marks)
    return f"{p.phase} ({more})" if p.phase and more else more or p.phase or ""


def doubt(p: Process) -> str:
    """For a process that the kernel does not show: where it is, if it proves that it is alive."""
    return p.elsewhere or words.NOT_VERIFIED


def is_faint(p: Process) -> bool:
    """True for a process shown in gray: it may have ended, or only a file claims that it exists."""
    return not p.is_living or not (p.is_verified or p.elsewhere)


def everything(p: Process) -> str:
    """The verdict and its other signs, in one text."""
    return "; ".join((sentence(p), *other_signs(p)))


def other_signs(p: Process) -> list[str]:
    """Its signs in words, without those in its reason."""
    return [sign.message for sign in p.signs if sign.message not in (p.stale_reason or "")]
