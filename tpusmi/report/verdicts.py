"""The verdict on a holder in words and marks, the same on every screen. Pure."""

from __future__ import annotations

from tpusmi.model import UNCERTAIN, Process, Verdict
from tpusmi.report import words

MAYBE_MARK, UNKNOWN_MARK = "maybe", "?"
_IN_WORDS = {
    Verdict.STALE: "stale",
    Verdict.MAYBE: "maybe stale",
    Verdict.UNKNOWN: "whether it is stale is not known",
    Verdict.NOT_STALE: "not stale",
}


def mark(p: Process) -> str:
    """For a column: the code of a stale one, `maybe`, `?`, `no`; empty of what holds nothing."""
    marks = {
        Verdict.STALE: p.stale_code or "stale",
        Verdict.MAYBE: MAYBE_MARK,
        Verdict.UNKNOWN: UNKNOWN_MARK,
        Verdict.NOT_STALE: "no",
    }
    return "" if p.verdict is None else marks[p.verdict]


def sentence(p: Process) -> str:
    """The verdict, the sign that it rests on, and why; empty where there is none."""
    return "" if p.verdict is None else f"{_IN_WORDS[p.verdict]}{p.why_judged}"


def state(p: Process) -> str:
    """What it is doing, in a word; empty when unknown. That it is left over comes first."""
    if p.state == "dead":
        return "ended"
    if p.verdict == Verdict.STALE:
        return "stale"
    if is_stopped(p):
        return "stopped"
    if p.verdict == Verdict.MAYBE:
        return MAYBE_MARK
    if not p.is_verified and not p.elsewhere:
        return ""
    return "silent" if p.state == "silent" else p.phase or ""


def doing(p: Process) -> str:
    """The same with all there is to say: `stale (orphaned)`, `idle (silent, stopped)`; empty when
    nothing is.
    """
    if p.state == "dead":
        return "ended"
    if p.verdict == Verdict.STALE:
        return f"stale ({p.stale_code})" if p.stale_code else "stale"
    marks = ["silent"] if p.state == "silent" else []
    marks += ["stopped"] if is_stopped(p) else []
    marks += ["maybe stale"] if is_suspect(p) else []
    marks += ["unknown"] if p.state == UNCERTAIN else []
    marks += [] if p.is_verified else [doubt(p)]
    more = ", ".join(marks)
    return f"{p.phase} ({more})" if p.phase and more else more or p.phase or ""


def doubt(p: Process) -> str:
    """Of one that the kernel does not show: where it is, if it proves that it lives."""
    return p.elsewhere or words.NOT_VERIFIED


def is_faint(p: Process) -> bool:
    """True for what is shown in grey: it has ended or may have, or only a file says it is there."""
    return not p.is_living or not (p.is_verified or p.elsewhere)


def is_stale(p: Process) -> bool:
    """True for one that holds the TPU, and will not do work again."""
    return p.verdict == Verdict.STALE and p.state != "dead"


def is_suspect(p: Process) -> bool:
    """True for one that may be stale: it is ended by its pid only."""
    return p.verdict == Verdict.MAYBE and p.state != "dead"


def is_doubtful(p: Process) -> bool:
    """True where a person has to look: it is stale, may be, or looks so and cannot be known."""
    is_odd = p.verdict in (Verdict.STALE, Verdict.MAYBE)
    is_unknown = p.verdict == Verdict.UNKNOWN and p.stale_code is not None
    return p.state != "dead" and (is_odd or is_unknown)


def is_stopped(p: Process) -> bool:
    """True while a signal or a debugger keeps it from running."""
    return p.state != "dead" and p.life is not None and p.life.is_stopped


def everything(p: Process) -> str:
    """The verdict and its other signs, in one text."""
    return "; ".join((sentence(p), *other_signs(p)))


def other_signs(p: Process) -> list[str]:
    """Its signs in words, without those that its reason tells."""
    return [sign.message for sign in p.signs if sign.message not in (p.stale_reason or "")]
