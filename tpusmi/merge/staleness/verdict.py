"""The verdict on one holder: its signs, weighed against the evidence of its work. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tpusmi.merge.staleness.signs import (
    NEVER_ENOUGH,
    WITHOUT_WEIGHT,
    signs_of,
    works_since_its_start,
)
from tpusmi.merge.staleness.work import NOT_MEASURED, Case, lack_of_work, why_working
from tpusmi.merge.witnesses import in_words, missing_for, stopped
from tpusmi.model import (
    ENDING_CODES,
    LOST_AFTER_S,
    LOST_CODES,
    History,
    Process,
    Sign,
    Snapshot,
    Verdict,
)
from tpusmi.model.process import Limits
from tpusmi.text import elapsed

_ASKED_ALREADY = ("idle", "stuck")
"""Codes of signs that are themselves the answer of an agent or a metrics server."""


class _Judgement(NamedTuple):
    """A verdict, the sign that it rests on, and why."""

    verdict: Verdict
    code: str | None = None
    reason: str | None = None


def with_verdict(s: Snapshot, p: Process, limits: Limits, history: History | None) -> Process:
    """The holder with its verdict, its signs, and why; unchanged if it is dead, or if the kernel
    says nothing about it.
    """
    if p.is_dead or p.life is None:
        return p
    devices = [d for d in s.devices if p.key in d.owners]
    case = Case(snapshot=s, process=p, life=p.life, devices=devices, limits=limits, history=history)
    signs = signs_of(case)
    judgement = _judgement(case, signs)
    return p._replace(
        verdict=judgement.verdict,
        stale_code=judgement.code,
        stale_reason=judgement.reason,
        signs=signs,
    )


def _judgement(c: Case, signs: Sequence[Sign]) -> _Judgement:
    if c.life.platform:
        return _Judgement(Verdict.NOT_STALE, None, "an agent of the platform")
    ending = next((sign for sign in signs if sign.code in ENDING_CODES), None)
    if ending is not None:
        return _Judgement(Verdict.STALE, ending.code, ending.message)
    weighty = [sign for sign in signs if sign.code not in WITHOUT_WEIGHT]
    works = why_working(c)
    if works:
        reason = f"{weighty[0].message}, but {works}" if weighty else None
        return _Judgement(Verdict.NOT_STALE, None, reason)
    # The verdict as far as the witnesses that were asked go: a sign that is enough, else the first.
    judgements = [_weight(c, sign) for sign in weighty]
    stale = [judgement for judgement in judgements if judgement.verdict == Verdict.STALE]
    return _in_doubt(c, next(iter((*stale, *judgements)), _Judgement(Verdict.NOT_STALE)))


def _weight(c: Case, sign: Sign) -> _Judgement:
    """What one sign makes of a holder that nothing shows to work."""
    if sign.code in NEVER_ENOUGH:
        return _Judgement(Verdict.MAYBE, sign.code, sign.message)
    rest = lack_of_work(c)
    against = [*_against(c, sign)]
    # The use of the processor is measured only of holders without other evidence.
    if not (rest.rests or _is_answer(sign) or (against and rest.words == NOT_MEASURED)):
        against.append(rest.words)
    if against:
        return _Judgement(Verdict.MAYBE, sign.code, f"{sign.message}, but {'; '.join(against)}")
    reason = sign.message if _is_answer(sign) else f"{sign.message}; {rest.words}"
    return _Judgement(Verdict.STALE, sign.code, reason)


def _is_answer(sign: Sign) -> bool:
    return sign.code in _ASKED_ALREADY


def _against(c: Case, sign: Sign) -> Iterator[str]:
    """What keeps a sign from being enough, beside work."""
    if why := stopped(c.process):
        yield f"it is {why}"
    if sign.code == "stuck" and (works := works_since_its_start(c)):
        yield works
    if sign.code not in LOST_CODES:
        return
    age_s = c.life.age_s
    if age_s is None:
        yield "its age is not known"
    elif age_s < LOST_AFTER_S:
        yield f"it is only {elapsed(age_s)} old"
    yield from c.life.ties
    if ports := _client_ports(c):
        yield f"it listens for clients on TCP port {', '.join(map(str, ports))}"


def _client_ports(c: Case) -> list[int]:
    """The ports on which it listens, without those where libtpu's metrics service answers."""
    addressed = ((server.address.rpartition(":")[2], server) for server in c.servers)
    by_port = {int(port): server for port, server in addressed if port.isdecimal()}
    others = {port for port, server in by_port.items() if not server.is_service}
    return sorted({*c.life.client_ports, *others} - (by_port.keys() - others))


def _in_doubt(c: Case, judgement: _Judgement) -> _Judgement:
    """Unknown, when a witness that could not be asked could have changed it."""
    missing = missing_for(c.snapshot, c.process)
    age_s, least_s = c.life.age_s, min(c.limits)
    # Nothing makes one stale that is too young for any of the limits.
    is_safe = judgement.verdict == Verdict.NOT_STALE and age_s is not None and age_s < least_s
    if not missing or is_safe:
        return judgement
    words = in_words(missing)
    reason = f"{judgement.reason}; {words}" if judgement.reason else words
    return _Judgement(Verdict.UNKNOWN, judgement.code, reason)
