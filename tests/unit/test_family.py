"""Processes under what started them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpusmi.model import Life, Process, ProcessKey
from tpusmi.report.family import tree

SHELL, LAUNCHER = (10, "bash"), (20, "python launch.py")


def process(
    pid: int, *above: tuple[int, str], session: int | None = 10, state: str = "live"
) -> Process:
    """One with these ancestors, the nearest first."""
    life = Life("S", above[0][0] if above else 1, pid, session, 1.0, 1, ancestors=above)
    key = ProcessKey(pid, pid * 100)
    return Process(key, "ann", f"job {pid}", state, None, None, None, {}, life=life)


def drawn(*processes: Process) -> list[str]:
    return [f"{b.indent}{b.pid}" for b in tree(processes)]


def test_those_with_one_launcher_stand_under_it_in_the_order_given() -> None:
    both = process(40, LAUNCHER, SHELL), process(30, LAUNCHER, SHELL)
    assert drawn(*both) == ["10", "└─ 20", "   ├─ 40", "   └─ 30"]
    assert drawn(*reversed(both)) == ["10", "└─ 20", "   ├─ 30", "   └─ 40"]


def test_a_process_that_is_shown_is_the_parent_of_those_it_started() -> None:
    parent, child = process(20, SHELL), process(30, LAUNCHER, SHELL)
    branches = [*tree([child, parent])]
    assert [b.pid for b in branches] == [10, 20, 30]
    assert [b.process for b in branches] == [None, parent, child]
    assert [b.key for b in branches] == [None, parent.key, child.key]


def test_a_parent_has_its_own_place_and_not_that_of_what_it_started() -> None:
    parent, child, other = process(20, SHELL), process(90, LAUNCHER, SHELL), process(50, SHELL)
    assert drawn(child, other, parent) == ["10", "├─ 50", "└─ 20", "   └─ 90"]


def test_what_is_above_the_leader_of_the_session_is_not_shown() -> None:
    assert drawn(process(30, SHELL, (5, "sshd"), (4, "sshd"))) == ["10", "└─ 30"]


def test_a_leader_of_a_session_of_its_own_is_still_under_a_process_that_is_shown() -> None:
    parent, child = process(20, SHELL), process(30, LAUNCHER, SHELL, session=30)
    assert drawn(parent, child) == ["10", "└─ 20", "   └─ 30"]
    assert drawn(child) == ["30"]


def test_a_process_that_has_ended_is_nobodys_parent() -> None:
    dead, child = process(20, SHELL, state="dead"), process(30, LAUNCHER, SHELL)
    assert drawn(dead, child) == ["20", "10", "└─ 20", "   └─ 30"]


def test_lines_go_on_beside_what_is_further_down() -> None:
    first, second = process(30, LAUNCHER, SHELL), process(40, SHELL)
    assert drawn(first, second) == ["10", "├─ 20", "│  └─ 30", "└─ 40"]


def test_without_a_word_on_ancestors_it_is_a_list() -> None:
    bare = [Process(ProcessKey(n, n), None, "x", "live", None, None, None, {}) for n in (3, 1, 2)]
    assert drawn(*bare) == ["3", "1", "2"]


def test_a_thousand_below_each_other_are_no_harm() -> None:
    jobs = [process(n + 1, (n, "x"), session=1) for n in range(1, 3000)]
    assert len(drawn(*jobs)) == 3000


@given(st.lists(st.tuples(st.integers(1, 9), st.lists(st.integers(1, 9), max_size=6))))
def test_every_process_is_there_once_whatever_the_ancestors_say(
    found: list[tuple[int, list[int]]],
) -> None:
    jobs = {pid: process(pid, *((n, "x") for n in above)) for pid, above in found}
    keys = [b.key for b in tree([*jobs.values()]) if b.key is not None]
    assert sorted(keys) == sorted(p.key for p in jobs.values())
    for branch in tree([*jobs.values()]):
        text = branch.indent
        parts = {text[i : i + 3] for i in range(0, len(text), 3)}
        assert parts <= {"   ", "│  ", "├─ ", "└─ "}


def test_a_launcher_has_all_processes_below_it_and_a_walk_has_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = ((7, "worker"), (6, "torchrun"))
    life = Life("S", 7, 7, 6, 60.0, 1, ancestors=line)
    ranks = [Process(ProcessKey(pid, pid), "ann", f"rank {pid}", life=life) for pid in (8, 9)]
    rows = {b.pid: b.below for b in tree(ranks)}
    assert {p.pid for p in rows[6]} == {8, 9} == {p.pid for p in rows[7]}
    assert rows[8] == ()
    monkeypatch.setattr("tpusmi.report.family.WALKS_MOST", 2)
    assert all(b.below == () for b in tree(ranks))
