"""Whom a request ends and whom it leaves, with the reason; and whether the TPU is free. Pure."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from tpusmi.actions.lockfile import Cleared
from tpusmi.actions.outcome import Report, Result
from tpusmi.actions.plan import Me, Plan, Refusal, Request, Target, make_plan
from tpusmi.cli import kill
from tpusmi.cli.exits import Exit
from tpusmi.model import (
    FAILED,
    OK,
    Chip,
    HostFacts,
    Life,
    LockFile,
    Outcome,
    Process,
    ProcessKey,
    Snapshot,
    Verdict,
)
from tpusmi.model.holding import node_states, status

NODES = ("/dev/vfio/0", "/dev/vfio/1")
CHIPS = tuple(
    Chip(i, "v5e", "TPU v5e", (f"0000:00:0{i}.0",), (node,), 1) for i, node in enumerate(NODES)
)
ME = Me(500, frozenset({400, 300}), frozenset({"ann"}))
HOST = HostFacts("h", "t", None, None)


def process(pid: int, *holds: str, **more: Any) -> Process:
    life = Life("S", 1, pid, pid, 60.0, 1, platform=more.pop("platform", False))
    known = {"user": "ann", "verdict": Verdict.NOT_STALE, **more}
    user = known.pop("user")
    return Process(
        *(ProcessKey(pid, pid), user, f"job {pid}", "live", None, None, None, {}),
        holds=holds,
        life=life,
        **known,
    )


def snapshot(*processes: Process, **more: Any) -> Snapshot:
    """Two chips and those processes; everybody could be seen, unless `more` says otherwise."""
    known = {"nodes": NODES, "chips": CHIPS, "sources": (Outcome("holders", OK),), **more}
    s = Snapshot("1", False, 0.0, HOST, (), processes, (), (), {})
    return s._replace(**known)


def planned(s: Snapshot, **request: Any) -> tuple[list[int], dict[int, str]]:
    """Who would be ended, and why the others are not."""
    plan = make_plan(s, Request(**request), ME)
    return [t.process.pid for t in plan.targets], {r.pid: r.why for r in plan.refused}


A, B = process(1000, NODES[0]), process(1001, NODES[1])


@pytest.mark.parametrize(
    ("found", "request_", "ended", "why"),
    [
        pytest.param((A, B), {}, [], {}, id="nobody is named"),
        pytest.param((A, B), {"pids": (1000,)}, [1000], {}, id="by pid"),
        pytest.param((A, B), {"chips": (1,)}, [1001], {}, id="by chip"),
        pytest.param((A, B), {"stale": True}, [], {}, id="nobody is stale"),
        pytest.param(
            (A._replace(verdict=Verdict.STALE, stale_code="idle"), B),
            {"stale": True},
            [1000],
            {},
            id="stale",
        ),
        pytest.param(
            (A, B),
            {"stale": True, "pids": (1000,)},
            [],
            {1000: "is not stale"},
            id="a pid that is not stale, where only stale ones are meant",
        ),
        pytest.param(
            (A, B), {"pids": (1000,), "chips": (1,)}, [], {}, id="a pid that is on another chip"
        ),
        pytest.param(
            (process(1, NODES[0]),), {"chips": (0,)}, [], {1: "is the init process"}, id="init"
        ),
        pytest.param(
            (process(500, NODES[0]),),
            {"chips": (0,)},
            [],
            {500: "is this process itself"},
            id="ourselves",
        ),
        pytest.param(
            (process(300, NODES[0]),),
            {"chips": (0,), "all_users": True},
            [],
            {300: "started this tpusmi, which would end with it (a notebook's kernel, a shell)"},
            id="an ancestor",
        ),
        pytest.param(
            (process(9, NODES[0], platform=True, verdict=Verdict.STALE),),
            {"pids": (9,), "all_users": True},
            [],
            {9: "is an agent of the platform"},
            id="an agent of the platform, be it called stale",
        ),
        pytest.param(
            (process(9, NODES[0], user="bob"),),
            {"pids": (9,)},
            [],
            {9: "belongs to bob: only with --all-users"},
            id="another user's",
        ),
        pytest.param(
            (process(9, NODES[0], user=None),),
            {"pids": (9,)},
            [],
            {9: "belongs to an unknown user: only with --all-users"},
            id="nobody knows whose",
        ),
        pytest.param(
            (process(9, NODES[0], user="bob"),),
            {"pids": (9,), "all_users": True},
            [9],
            {},
            id="another user's, asked for",
        ),
        pytest.param(
            (process(9, *NODES),),
            {"chips": (0,)},
            [],
            {9: "also holds /dev/vfio/1, of chips that were not named"},
            id="one that holds more",
        ),
        pytest.param((process(9, *NODES),), {"chips": (0, 1)}, [9], {}, id="all of it named"),
        pytest.param((), {"pids": (9,)}, [], {9: "holds no TPU"}, id="no such holder"),
        pytest.param(
            (process(9, loaded_only=True, verdict=None),),
            {"pids": (9,)},
            [],
            {9: "has libtpu loaded, and holds no TPU"},
            id="one that has only loaded libtpu",
        ),
        pytest.param(
            (process(9, NODES[0])._replace(state="dead"),),
            {"chips": (0,)},
            [],
            {},
            id="one that has ended",
        ),
    ],
)
def test_a_request_ends_whom_it_names_and_nobody_else(
    found: tuple[Process, ...], request_: dict[str, Any], ended: list[int], why: dict[int, str]
) -> None:
    assert planned(snapshot(*found), **request_) == (ended, why)


def test_where_not_everybody_can_be_seen_a_pid_may_hold_all_the_same() -> None:
    s = snapshot(hidden=3, unseen="3 processes not inspected")
    assert planned(s, pids=(9,)) == ([], {9: "holds no TPU, or may not be seen"})
    assert make_plan(s, Request(chips=(0,)), ME).unseen == "3 processes not inspected"


def test_who_could_not_look_knows_of_nobody() -> None:
    s = snapshot(sources=(Outcome("holders", FAILED, "hung"),), nodes=())
    plan = make_plan(s, Request(pids=(9,)), ME)
    assert plan.blind == plan.refused[0].why == "holders could not be looked for: hung"


def test_a_lock_file_is_cleared_only_where_nobody_stays() -> None:
    left = LockFile("/tmp/libtpu_lockfile", "blocking", "bob", (), "")
    s = snapshot(A, B, lock_files=(left,))
    assert make_plan(s, Request(pids=(1000,)), ME).lock_files == ()
    assert make_plan(s, Request(chips=(0, 1)), ME).lock_files == (left.path,)
    harmless = snapshot(A, lock_files=(left._replace(state="harmless"),))
    assert make_plan(harmless, Request(chips=(0, 1)), ME).lock_files == ()


STALE = A._replace(verdict=Verdict.STALE, stale_code="orphaned")
RELEASING = A._replace(verdict=Verdict.STALE, stale_code="releasing")


@pytest.mark.parametrize(
    ("s", "states", "expected"),
    [
        pytest.param(snapshot(), ["free", "free"], "free", id="nobody"),
        pytest.param(snapshot(A), ["held", "free"], "held", id="one"),
        pytest.param(snapshot(STALE, B), ["stale", "held"], "stale", id="one is stale"),
        pytest.param(
            snapshot(STALE, process(7, NODES[0])),
            ["held", "free"],
            "stale",
            id="a stale one beside another on the same node",
        ),
        pytest.param(snapshot(RELEASING), ["releasing", "free"], "stale", id="one is ending"),
        pytest.param(
            snapshot(A._replace(state="dead")), ["free", "free"], "free", id="one has ended"
        ),
        pytest.param(
            snapshot(hidden=1), ["not_visible"] * 2, "not_visible", id="some cannot be inspected"
        ),
        pytest.param(
            snapshot(own_namespace=True), ["not_visible"] * 2, "not_visible", id="a container"
        ),
        pytest.param(
            snapshot(A, hidden=1), ["held", "not_visible"], "held", id="one seen, some not"
        ),
        pytest.param(
            snapshot(nodes=NODES[:1]),
            ["free", "not_visible"],
            "not_visible",
            id="a node that nobody looked at",
        ),
        pytest.param(
            snapshot(closed_nodes=NODES[1:]),
            ["free", "no_permission"],
            "no_permission",
            id="one not for me",
        ),
        pytest.param(
            snapshot(nodes=(), chips=(CHIPS[0]._replace(nodes=()),)), [], "no_node", id="no node"
        ),
        pytest.param(snapshot(nodes=(), chips=()), [], "no_tpu", id="no chip"),
        pytest.param(
            snapshot(nodes=(), chips=(), sources=(Outcome("holders", FAILED, "x"),)),
            [],
            "not_visible",
            id="no chip, and nobody could look",
        ),
    ],
)
def test_a_tpu_is_free_only_where_everybody_was_seen(
    s: Snapshot, states: list[str], expected: str
) -> None:
    assert [n.state for n in node_states(s)] == states
    assert status(s) == expected


def report(*outcomes: str, **more: Any) -> Report:
    results = tuple(Result(A, outcome, "", 0.0) for outcome in outcomes)
    return Report(results, more.pop("held", {}), more.pop("cleared", ()), (), **more)


def options(**more: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"visible_only": False, "chip": None, "stale": False, **more})


@pytest.mark.parametrize(
    ("plan", "done", "code"),
    [
        pytest.param(Plan(), report("ended"), Exit.ANSWERED, id="ended"),
        pytest.param(Plan(), report("killed", "released"), Exit.ANSWERED, id="killed, released"),
        pytest.param(Plan(), report("alive"), Exit.BUSY, id="it lives"),
        pytest.param(Plan(), report("not_permitted"), Exit.PERMISSION, id="not permitted"),
        pytest.param(Plan(), report("unseen"), Exit.PERMISSION, id="not seen"),
        pytest.param(Plan(), report("unseen", "alive"), Exit.BUSY, id="one not seen, one lives"),
        pytest.param(
            Plan(), report("ended", held={NODES[0]: (7,)}), Exit.BUSY, id="somebody else holds"
        ),
        pytest.param(
            Plan(), report("ended", unseen="3 not inspected"), Exit.PERMISSION, id="who knows"
        ),
        pytest.param(
            Plan(refused=(Refusal(7, None, "x"),)), report("ended"), Exit.BUSY, id="one refused"
        ),
        pytest.param(
            Plan(),
            report("ended", cleared=(Cleared("/tmp/x", False, "kept"),)),
            Exit.BUSY,
            id="the lock file is still in the way",
        ),
    ],
)
def test_the_exit_code_of_kill_says_whether_all_of_it_is_free(
    plan: Plan, done: Report, code: Exit
) -> None:
    assert kill._code(plan, done, options()) == code


def test_what_cannot_be_seen_may_be_taken_for_nobody() -> None:
    done = report("ended", unseen="3 not inspected")
    assert kill._code(Plan(), done, options(visible_only=True)) == Exit.ANSWERED
    held = report("ended", held={NODES[0]: (7,)}, unseen="3 not inspected")
    assert kill._code(Plan(), held, options(visible_only=True)) == Exit.BUSY


@pytest.mark.parametrize(
    ("plan", "more", "code"),
    [
        pytest.param(Plan(), {"stale": True}, Exit.ANSWERED, id="nobody is stale"),
        pytest.param(Plan(unseen="x"), {"stale": True}, Exit.ANSWERED, id="nobody seen is stale"),
        pytest.param(Plan(), {"chip": [0]}, Exit.ANSWERED, id="nobody is on the chip"),
        pytest.param(Plan(unseen="x"), {"chip": [0]}, Exit.PERMISSION, id="nobody seen on it"),
        pytest.param(
            Plan(unseen="x"), {"chip": [0], "visible_only": True}, Exit.ANSWERED, id="by choice"
        ),
        pytest.param(Plan(refused=(Refusal(7, None, "x"),)), {}, Exit.BUSY, id="one refused"),
    ],
)
def test_to_end_nobody_frees_a_chip_only_where_everybody_was_seen(
    plan: Plan, more: dict[str, Any], code: Exit
) -> None:
    assert kill._code_of_nothing(plan, options(**more)) == code


def test_after_a_long_thought_only_those_who_were_confirmed_and_are_meant_still_are_ended() -> None:
    before = Plan(targets=(Target(A, ""), Target(B, "")))
    newcomer = process(1002, NODES[0])
    now = Plan(targets=(Target(B, ""), Target(newcomer, "")))
    assert [t.process.pid for t in kill._still_meant(before, now).targets] == [1001]
