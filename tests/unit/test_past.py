"""A moment of the past: what was measured then, and nothing that is of now."""

from __future__ import annotations

from typing import Any

from support import snapshots

from tpusmi.merge.past import past
from tpusmi.model import (
    PHASE,
    PHASES,
    History,
    Life,
    Notice,
    Process,
    ProcessKey,
    Reading,
    Snapshot,
    Verdict,
)

BACK_S = 60.0


def process(now: Snapshot, **fields: Any) -> Process:
    """One that lives now and says all there is to say."""
    usual: dict[str, Any] = {
        "state": "live",
        "phase": "running",
        "sampled_at_s": now.at_s - 0.4,
        "warnings": (Notice("recompiling", "compiles again and again", 7),),
        "verdict": Verdict.STALE,
        "stale_code": "orphaned",
        "stale_reason": "its launcher has ended",
        "life": Life("S", 1, 7, 7, 300.0, 4, cpu_percent=90.0, rss_bytes=1 << 30),
    }
    of_itself = {"interval_s": 1.0, "facts": {}}
    return Process(ProcessKey(7, 70), "ann", "python train.py", **{**usual, **of_itself, **fields})


def then(history: History, **fields: Any) -> Snapshot:
    now = snapshots.machine()
    s = now._replace(processes=(process(now, **fields),))
    return past(s, history, s.at_s - BACK_S)


def lived_through(phase: str) -> History:
    """In that phase a minute ago."""
    history = History()
    at_s = snapshots.machine().at_s - BACK_S
    number = float(PHASES.index(phase))
    history.add([Reading(PHASE, ProcessKey(7, 70), number, at_s, "agent", 5.0)])
    return history


def test_what_is_said_of_now_is_not_said_of_then() -> None:
    (p,) = then(lived_through("compiling")).processes
    assert (p.phase, p.state, p.sampled_at_s) == ("compiling", "live", None)
    assert (p.verdict, p.stale, p.stale_code, p.stale_reason) == (None, None, None, None)
    assert (p.warnings, p.profile) == ((), None)
    assert p.life is not None
    assert (p.life.age_s, p.life.cpu_percent, p.life.rss_bytes) == (240.0, None, None)


def test_of_the_machine_only_what_lasts_is_said_of_then() -> None:
    now = snapshots.machine()
    now = now._replace(devices=tuple(d._replace(error="cannot be opened") for d in now.devices))
    s = past(now, History(), now.at_s - BACK_S)
    assert any(c.notes for c in now.chips)
    assert not any(c.notes for c in s.chips)
    assert not any(d.error for d in s.devices)
    assert now.visibility.nodes
    assert (s.visibility.nodes, s.links, s.latencies, s.cores, s.warnings) == ((), (), (), (), ())
    assert [d.key for d in s.devices] == [d.key for d in now.devices]
    assert {name for _, name in s.values} == {"hbm_limit_bytes"}


def test_a_process_that_began_later_was_not_there() -> None:
    young = Life("S", 1, 7, 7, BACK_S - 1, 4)
    assert then(History(), life=young).processes == ()
    assert then(History(), life=young._replace(age_s=BACK_S)).processes != ()


def test_a_process_whose_age_nobody_knows_stays() -> None:
    for life in (None, Life("S", 1, 7, 7, None, 4)):
        assert [p.pid for p in then(History(), life=life).processes] == [7]


def test_a_silence_of_now_is_not_one_of_then() -> None:
    (p,) = then(History(), state="silent").processes
    assert (p.state, p.phase) == ("live", None)


def test_a_process_that_has_ended_since_lived_and_its_end_is_not_told() -> None:
    (p,) = then(lived_through("running"), state="dead", phase="ended", life=None).processes
    assert (p.state, p.phase, p.sampled_at_s) == ("live", "running", None)


def test_a_process_that_had_ended_says_when_and_none_ends_in_the_future() -> None:
    at_s = snapshots.machine().at_s
    dead: dict[str, Any] = {"state": "dead", "phase": "ended", "life": None}
    (p,) = then(History(), **dead, sampled_at_s=at_s - 90).processes
    assert (p.state, p.sampled_at_s) == ("dead", at_s - 90)
    (p,) = then(History(), **dead, sampled_at_s=at_s - 30).processes
    assert (p.state, p.sampled_at_s) == ("dead", None)
