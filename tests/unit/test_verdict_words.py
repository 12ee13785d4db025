"""The words and marks of a verdict: which is told apart from which, on which screen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support import snapshots

from tpusmi.model import Life, Process, Sign, Snapshot, Verdict
from tpusmi.report import plain_table, ps_text, verdicts
from tpusmi.report.text_grid import Sheet
from tpusmi.tui.process.process_facts import letter

ORPHANED = Sign("orphaned", "its launcher, process 7, has ended")
SILENT = Sign("server_silent", "its metrics server: port 8431 does not answer")


def judged(verdict: Verdict | None, state: str = "S", **more: object) -> Process:
    """The holder without an agent."""
    (p,) = (p for p in snapshots.machine().processes if p.pid == snapshots.SERVE.pid)
    assert p.life is not None
    doubtful = verdict not in (None, Verdict.NOT_STALE)
    return p._replace(
        verdict=verdict,
        stale_code="orphaned" if doubtful else None,
        stale_reason=f"{ORPHANED.message}, but …" if doubtful else None,
        life=p.life._replace(state=state),
        signs=(ORPHANED, SILENT) if doubtful else (),
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("p", "mark", "state", "doing", "sign"),
    [
        (judged(Verdict.STALE), "orphaned", "stale", "stale (orphaned)", "L"),
        (judged(Verdict.MAYBE), "maybe", "maybe", "may be stale", "M"),
        (judged(Verdict.MAYBE, phase="idle"), "maybe", "maybe", "idle (may be stale)", "M"),
        (judged(Verdict.MAYBE, "T"), "maybe", "stopped", "stopped, may be stale", "T"),
        (judged(Verdict.UNKNOWN), "?", "", "", "?"),
        (judged(Verdict.UNKNOWN, "t", phase="idle"), "?", "stopped", "idle (stopped)", "T"),
        (judged(Verdict.NOT_STALE, phase="running"), "no", "running", "running", "R"),
        (judged(None), "", "", "", "?"),
        (judged(Verdict.STALE)._replace(state="dead"), "orphaned", "ended", "ended", "X"),
    ],
)
def test_each_verdict_has_marks_of_its_own(
    p: Process, mark: str, state: str, doing: str, sign: str
) -> None:
    assert (verdicts.mark(p), p.status, verdicts.doing(p)) == (mark, state, doing)
    assert letter(p) == sign


def test_ps_lists_suspects_apart_and_every_sign_once() -> None:
    lines = list(_lines(judged(Verdict.MAYBE)))
    at = lines.index(ps_text.SUSPECTED)
    assert lines[at + 1] == f"  pid 5000 may be stale (orphaned): {ORPHANED.message}, but …"
    assert f"  pid 5000: {SILENT.message}" in lines
    assert sum(ORPHANED.message in line for line in lines) == 1


def test_ps_says_of_which_it_is_not_known() -> None:
    lines = list(_lines(judged(Verdict.UNKNOWN)))
    why = f"{ORPHANED.message}, but …"
    assert f"? pid 5000 cannot be judged (orphaned): {why}" in lines
    assert ps_text.SUSPECTED not in lines


def test_a_stopped_holder_is_called_stopped_in_the_table() -> None:
    s = _with(judged(Verdict.MAYBE, "T"))
    assert "  stopped, may be stale  " in plain_table.table(s)


def _lines(p: Process) -> Iterator[str]:
    shown = ps_text.view(_with(p), ps_text.Filters())
    yield from ps_text.text(shown, Sheet(False, None), False, True).splitlines()


def _with(p: Process) -> Snapshot:
    s = snapshots.machine()
    assert isinstance(p.life, Life)
    return s._replace(processes=tuple(p if q.key == p.key else q for q in s.processes))
