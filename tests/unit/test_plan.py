"""Whom a request ends and whom it leaves, with the reason; and whether the TPU is free. Pure."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from tpusmi.actions.end import Order
from tpusmi.actions.outcome import Cleared, Report, Result
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
    Missing,
    Outcome,
    Process,
    ProcessKey,
    Snapshot,
    Verdict,
    Visibility,
)
from tpusmi.model.holding import node_states, status
from tpusmi.report import kill_text

NODES = ("/dev/vfio/0", "/dev/vfio/1")
CHIPS = tuple(
    Chip(i, "v5e", "TPU v5e", (f"0000:00:0{i}.0",), (node,), 1) for i, node in enumerate(NODES)
)
ME = Me(500, frozenset({400, 300}), frozenset({1000}))
UIDS = {"ann": 1000, "bob": 1001}
HOST = HostFacts("h", "t", None, None)


def process(pid: int, *holds: str, **more: Any) -> Process:
    life = Life("S", 1, pid, pid, 60.0, 1, platform=more.pop("platform", False))
    known = {"user": "ann", "verdict": Verdict.NOT_STALE, **more}
    user = known.pop("user")
    known.setdefault("uid", UIDS.get(user))
    return Process(
        *(ProcessKey(pid, pid), user, f"job {pid}", "live", None, None, None, {}),
        holds=holds,
        life=life,
        **known,
    )


def snapshot(*processes: Process, **more: Any) -> Snapshot:
    """Two chips and those processes; everybody could be seen, unless `more` says otherwise."""
    of_sight = {name: more.pop(name) for name in Visibility._fields if name in more}
    sight = Visibility(nodes=NODES)._replace(**of_sight)
    usual = {"visibility": sight, "chips": CHIPS, "sources": (Outcome("holders", OK),)}
    s = Snapshot("1", False, 0.0, HOST, (), processes, (), (), {})
    return s._replace(**{**usual, **more})


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
            (A, B),
            {"pids": (1000,), "chips": (1,)},
            [],
            {1000: "holds chip 0, not chip 1"},
            id="a pid that is on another chip",
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
            {300: "started this tpusmi, which would end with it (a shell, a notebook kernel)"},
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
            {9: "belongs to user bob: add --all-users to end it"},
            id="another user's",
        ),
        pytest.param(
            (process(9, NODES[0], user=None),),
            {"pids": (9,)},
            [],
            {9: "belongs to an unknown user: add --all-users to end it"},
            id="nobody knows whose",
        ),
        pytest.param(
            (process(9, NODES[0], user="ann", uid=1001),),
            {"pids": (9,)},
            [],
            {9: "belongs to user ann: add --all-users to end it"},
            id="another user's of the same name",
        ),
        pytest.param(
            (process(9, NODES[0], user="bob", uid=1000),), {"pids": (9,)}, [9], {}, id="my own uid"
        ),
        pytest.param(
            (process(9, NODES[0], user="ann", uid=None),),
            {"pids": (9,)},
            [],
            {9: "belongs to user ann: add --all-users to end it"},
            id="a name without a uid",
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
            {9: "also holds /dev/vfio/1, of chips that you did not name"},
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
    s = snapshot(not_inspected=3, reason="3 processes not inspected")
    assert planned(s, pids=(9,)) == ([], {9: "is not seen to hold a TPU"})
    assert make_plan(s, Request(chips=(0,)), ME).unseen == "3 processes not inspected"


def test_who_could_not_look_knows_of_nobody() -> None:
    s = snapshot(sources=(Outcome("holders", FAILED, "hung"),), nodes=())
    plan = make_plan(s, Request(pids=(9,)), ME)
    assert plan.blind == "holders could not be looked for: hung"
    assert plan.refused[0].why == f"may hold a TPU: {plan.blind}"


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
            snapshot(not_inspected=1),
            ["not_visible"] * 2,
            "not_visible",
            id="some cannot be inspected",
        ),
        pytest.param(
            snapshot(own_pid_namespace=True), ["not_visible"] * 2, "not_visible", id="a container"
        ),
        pytest.param(
            snapshot(A, not_inspected=1), ["held", "not_visible"], "held", id="one seen, some not"
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
    known = {"nodes": NODES[:1], **more}
    return Report(results, known.pop("held", {}), known.pop("cleared", ()), (), **known)


def options(**more: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"visible_only": False, "chip": None, "stale": False, **more})


MAYBE = A._replace(verdict=Verdict.MAYBE, stale_reason="its launcher has ended")
UNKNOWN = A._replace(verdict=Verdict.UNKNOWN, stale_reason="its agent could not be asked: hung")
SUSPECTED = Refusal(A.pid, MAYBE, "x", A.holds)
UNJUDGED = Refusal(A.pid, UNKNOWN, "x", A.holds)
REFUSED = Refusal(7, None, "x")


@pytest.mark.parametrize(
    ("done", "free", "code"),
    [
        pytest.param(report("ended"), True, Exit.ANSWERED, id="ended"),
        pytest.param(report("killed", "released"), True, Exit.ANSWERED, id="killed, released"),
        pytest.param(report("alive"), False, Exit.BUSY, id="it lives"),
        pytest.param(report("not_permitted"), False, Exit.PERMISSION, id="not permitted"),
        pytest.param(report("unseen"), False, Exit.PERMISSION, id="not seen"),
        pytest.param(report("unseen", "alive"), False, Exit.BUSY, id="one not seen, one lives"),
        pytest.param(
            report("ended", held={NODES[0]: (7,)}), False, Exit.BUSY, id="somebody else holds"
        ),
        pytest.param(
            report("ended", held={NODES[0]: ()}), None, Exit.PERMISSION, id="nobody can look"
        ),
        pytest.param(
            report("ended", unseen="3 not inspected"), None, Exit.PERMISSION, id="who knows"
        ),
        pytest.param(report("ended", refused=(REFUSED,)), None, Exit.BUSY, id="one refused"),
        pytest.param(
            report(refused=(REFUSED._replace(nodes=A.holds),), held={NODES[0]: (7,)}),
            False,
            Exit.BUSY,
            id="one refused, which holds it",
        ),
        pytest.param(report(nodes=()), None, Exit.ANSWERED, id="all of none is not a yes"),
        pytest.param(
            report("ended", spared=(SUSPECTED,)), True, Exit.ANSWERED, id="one that may be stale"
        ),
        pytest.param(
            report("ended", spared=(UNJUDGED,)), None, Exit.SOURCE_FAILED, id="one not judged"
        ),
        pytest.param(
            report("ended", cleared=(Cleared("/tmp/x", False, "kept"),)),
            True,
            Exit.BUSY,
            id="the lock file is still in the way",
        ),
    ],
)
def test_the_exit_code_of_kill_says_whether_all_of_it_is_free(
    done: Report, free: bool | None, code: Exit
) -> None:
    assert done.is_free is free
    assert kill._code(done, options()) == code


def test_what_cannot_be_seen_may_be_taken_for_nobody() -> None:
    done = report("ended", unseen="3 not inspected")
    assert kill._code(done, options(visible_only=True)) == Exit.ANSWERED
    held = report("ended", held={NODES[0]: (7,)}, unseen="3 not inspected")
    assert kill._code(held, options(visible_only=True)) == Exit.BUSY
    blind = report("ended", held={NODES[0]: ()}, unseen="3 not inspected")
    assert kill._code(blind, options(visible_only=True)) == Exit.PERMISSION


@pytest.mark.parametrize(
    ("plan", "more", "code"),
    [
        pytest.param(Plan(), {"stale": True}, Exit.ANSWERED, id="nobody is stale"),
        pytest.param(Plan(unseen="x"), {"stale": True}, Exit.PERMISSION, id="nobody seen is stale"),
        pytest.param(
            Plan(unseen="x"), {"stale": True, "visible_only": True}, Exit.ANSWERED, id="by choice"
        ),
        pytest.param(Plan(spared=(SUSPECTED,)), {"stale": True}, Exit.ANSWERED, id="suspected"),
        pytest.param(Plan(spared=(UNJUDGED,)), {"stale": True}, Exit.SOURCE_FAILED, id="unknown"),
        pytest.param(Plan(), {"chip": [0]}, Exit.ANSWERED, id="nobody is on the chip"),
        pytest.param(Plan(unseen="x"), {"chip": [0]}, Exit.PERMISSION, id="nobody seen on it"),
        pytest.param(
            Plan(unseen="x"), {"chip": [0], "visible_only": True}, Exit.ANSWERED, id="visible only"
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
    assert [t.process.pid for t in kill._still_confirmed(before, now).targets] == [1001]


@pytest.mark.parametrize("verdict", [Verdict.UNKNOWN, Verdict.MAYBE, Verdict.NOT_STALE, None])
@pytest.mark.parametrize("request_", [{"stale": True}, {"pids": (1000,)}])
def test_after_a_long_thought_who_was_stale_and_is_not_for_certain_is_left_alone(
    verdict: Verdict | None, request_: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    request = Request(**request_)
    changed = A._replace(verdict=verdict)
    before, now = (make_plan(snapshot(p), request, ME) for p in (STALE, changed))
    assert [t.process.pid for t in before.targets] == [1000]
    plan = kill._still_confirmed(before, now)
    assert plan.targets == ()
    if verdict is not Verdict.NOT_STALE:
        assert "pid 1000 is left alone: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("holder", "spared"),
    [
        (MAYBE, "may be stale: its launcher has ended; end it by pid"),
        (UNKNOWN, "cannot be judged: its agent could not be asked: hung; end it by pid"),
        (A._replace(verdict=None), "cannot be judged; end it by pid"),
        (MAYBE._replace(uid=1001), None),
        (MAYBE._replace(life=Life("S", *(None,) * 5, platform=True)), None),
        (A, None),
    ],
    ids=["suspected", "unknown", "no verdict", "another user's", "the platform's", "healthy"],
)
def test_stale_leaves_what_is_not_certain_alone_and_says_why(
    holder: Process, spared: str | None
) -> None:
    plan = make_plan(snapshot(holder, B), Request(stale=True), ME)
    assert plan.targets == plan.refused == ()
    assert [left.why for left in plan.spared] == ([spared] if spared else [])


def test_by_pid_whatever_holds_is_ended_with_the_doubt_said_before() -> None:
    for holder, why in (
        (MAYBE, "may be stale: its launcher has ended"),
        (UNKNOWN, "cannot be judged: its agent could not be asked: hung"),
    ):
        (target,) = make_plan(snapshot(holder), Request((1000,)), ME).targets
        assert (target.process, target.why) == (holder, why.removeprefix("is "))
        assert planned(snapshot(holder), pids=(1000,), stale=True) == ([], {1000: why})


def test_without_a_bus_a_lookalike_is_ended_by_its_pid_alone() -> None:
    s = snapshot(
        process(9, "/dev/vfio/96", verdict=Verdict.STALE), chips=(), nodes=("/dev/vfio/96",)
    )
    why = "no PCI bus is visible here: /dev/vfio/96 may be another device's; end it by pid"
    assert planned(s, stale=True) == ([], {9: why})
    assert planned(s, pids=(9,)) == ([9], {})
    assert planned(s, pids=(9,), stale=True) == ([9], {})


@pytest.mark.parametrize(
    ("request_", "nodes"),
    [
        ({}, ()),
        ({"pids": (1000,)}, NODES[:1]),
        ({"pids": (7,)}, ()),
        ({"chips": (1,)}, NODES[1:]),
        ({"chips": (0, 1)}, NODES),
        ({"stale": True}, NODES[:1]),
        ({"stale": True, "chips": (1,)}, ()),
    ],
    ids=str,
)
def test_a_plan_knows_which_nodes_were_asked_for(
    request_: dict[str, Any], nodes: tuple[str, ...]
) -> None:
    """A holder of the first is stale; one of the second is healthy."""
    assert make_plan(snapshot(STALE, B), Request(**request_), ME).nodes == nodes


def test_who_holds_nothing_was_asked_for_with_the_nodes_of_its_children() -> None:
    child = process(1002, NODES[0])
    assert child.life is not None
    below = child._replace(life=child.life._replace(parent=70, ancestors=((70, "x"), (7, "y"))))
    plan = make_plan(snapshot(below), Request((7,)), ME)
    assert (plan.nodes, plan.also_held_by) == (NODES[:1], (1002,))
    assert plan.refused[0].why == "holds no TPU: pid 1002, which it started, holds /dev/vfio/0"


def test_what_a_file_claims_of_a_pid_makes_no_holder() -> None:
    claim = A._replace(key=ProcessKey(1000, 1000, "/dev/shm/tpusmi-1001/1000-1000.seg"))
    assert planned(snapshot(claim), pids=(1000,)) == ([], {1000: "holds no TPU"})
    assert planned(snapshot(claim, A), pids=(1000,)) == ([1000], {})
    assert planned(snapshot(claim._replace(verdict=Verdict.STALE)), stale=True) == ([], {})


def test_witnesses_that_could_not_be_asked_are_named() -> None:
    s = snapshot(
        A,
        sources=(
            Outcome("holders", OK),
            Outcome("agent", FAILED, "OSError: [Errno 40] x"),
            Outcome("sysfs", OK),
        ),
        missing=(Missing("libtpu", "port 8431 has not answered"),) * 2,
    )
    plan = make_plan(s, Request(stale=True), ME)
    assert plan.unasked == ("agent: OSError: [Errno 40] x", "libtpu: port 8431 has not answered")
    said = kill_text.plan_text(s, plan, Order())
    assert "could not be read: agent: OSError: [Errno 40] x\n" in said
    assert kill_text.report_dict(plan, None)["plan"]["not_asked"] == list(plan.unasked)


@pytest.mark.parametrize(
    ("state", "words"),
    [("T", "stopped (state T): SIGSTOP or Ctrl-Z"), ("D", "in an uninterruptible sleep (state D)")],
)
def test_a_holder_that_stands_still_is_called_so(state: str, words: str) -> None:
    assert A.life is not None
    s = snapshot(A._replace(life=A.life._replace(state=state)))
    assert f", chip 0, {words}): job 1000" in kill_text.plan_text(
        s, make_plan(s, Request((1000,)), ME), Order()
    )
