"""When a holder is stale, and what speaks against it: signs of the kernel, of libtpu, of agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tpusmi.merge import merge
from tpusmi.merge.staleness import Limits, judged
from tpusmi.model import (
    AGENT,
    FAILED,
    LIBTPU,
    OK,
    Chip,
    Device,
    DeviceKey,
    History,
    HostFacts,
    Life,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    RowKey,
    Server,
    Sign,
    Snapshot,
)
from tpusmi.model.holding import node_states, status

NOW = 50_000.0
KEY = ProcessKey(4321, 99)
NODE = "/dev/vfio/0"
ADDRESS = "localhost:8431"
ORPHANED = Sign("orphaned", "its launcher, process 7, has ended")
RELEASING = Sign("releasing", "it is ending")
UNKILLABLE = Sign("unkillable", "in state D")
ZOMBIE = Sign("zombie", "its main thread has ended")
HOUR = 3600.0


def life(*signs: Sign, newest_thread_s: float | None = HOUR, **more: Any) -> Life:
    return Life("S", 1, 7, 7, HOUR, 12, signs=signs, newest_thread_s=newest_thread_s, **more)


def snapshot(  # noqa: PLR0913  # a row of the table says what is other
    kernel: Life | None,
    *,
    rows: dict[str, float] | None = None,
    agent: dict[str, Any] | None = None,
    ids: tuple[int, ...] | None = None,
    values: dict[str, float] | None = None,
    judge: Callable[[Snapshot], Snapshot] = judged,
    server: str = OK,
    hbm: int | None = None,
    age_s: float = 0.5,
) -> Snapshot:
    """One chip, held by one process; `rows` are its server's, `values` those of its agent."""
    chip = Chip(0, "v5e", "TPU v5e", ("0000:00:04.0",), (NODE,), 1)
    held = Process(KEY, "ann", "x", "live", None, None, None, {}, holds=(NODE,), life=kernel)
    outcomes = [
        Outcome("sysfs", OK, chips=(chip,)),
        Outcome("holders", OK, processes=(held,), nodes=(NODE,)),
    ]
    if ids is not None or rows:
        row = RowKey(ADDRESS, 0)
        readings = tuple(Reading(n, row, v, NOW - 1, LIBTPU, 5.0) for n, v in (rows or {}).items())
        answers = Server(ADDRESS, KEY, (0,) if ids is None else ids, server)
        outcomes.append(Outcome(LIBTPU, OK, readings=readings, servers=(answers,)))
    if agent is not None:
        told = {"state": "live", "phase": "running", **agent}
        process = Process(
            *(KEY, "ann", "x", told["state"], told["phase"], NOW - 0.5, 1.0, {"platform": "tpu"})
        )
        device = Device(DeviceKey(KEY, 0), 0, 0, "tpu", "TPU v5 lite", None, 0)
        said = [Reading(n, KEY, v, NOW - age_s, AGENT, 5.0) for n, v in (values or {}).items()]
        if hbm is not None:
            said.append(Reading("hbm_used_bytes", device.key, hbm, NOW - age_s, AGENT, 5.0))
        outcomes.append(
            Outcome(AGENT, OK, processes=(process,), devices=(device,), readings=tuple(said))
        )
    host = HostFacts("h", "t", None, None)
    return merge(outcomes, host, NOW, "1", judge=judge)


def verdict(s: Snapshot) -> tuple[bool | None, str | None]:
    (p,) = s.processes
    return p.stale, p.stale_code


BUSY = {"duty_cycle_percent": 50.0}
QUIET = {"duty_cycle_percent": 0.0, "hbm_used_bytes": 5.0}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(snapshot(life()), (False, None), id="nothing speaks for it"),
        pytest.param(snapshot(None), (None, None), id="nothing is known of it"),
        pytest.param(snapshot(life(ORPHANED)), (True, "orphaned"), id="an orphan"),
        pytest.param(snapshot(life(ORPHANED), rows=BUSY), (False, None), id="one that is busy"),
        pytest.param(
            snapshot(life(ORPHANED), rows={"idle_s": 2.0}), (False, None), id="one that just ran"
        ),
        pytest.param(
            snapshot(life(ORPHANED), rows={"idle_s": 90.0}), (True, "orphaned"), id="one that rests"
        ),
        pytest.param(
            snapshot(life(ORPHANED), rows={"idle_s": 90.0, **BUSY}),
            (True, "orphaned"),
            id="one that was busy in the last minute, and rests for longer",
        ),
        pytest.param(
            snapshot(life(ORPHANED), rows={"hbm_bandwidth_utilization_percent": 3.0}),
            (False, None),
            id="one whose memory is busy",
        ),
        pytest.param(
            snapshot(life(ORPHANED, recent_cpu_percent=90.0)), (False, None), id="at work, perhaps"
        ),
        pytest.param(
            snapshot(life(ORPHANED, recent_cpu_percent=90.0), rows=QUIET),
            (True, "orphaned"),
            id="one that spins while its chip rests",
        ),
        pytest.param(
            snapshot(life(), ids=(), server=FAILED), (False, None), id="its server is silent"
        ),
        pytest.param(
            snapshot(life(), agent={"phase": "starting"}, hbm=5 << 30),
            (False, None),
            id="its agent waits, and holds memory",
        ),
        pytest.param(
            snapshot(
                life(), agent={"phase": "idle"}, values={"since_last_step_s": 1900.0}, age_s=60.0
            ),
            (False, None),
            id="its agent said so, a minute ago",
        ),
        pytest.param(
            snapshot(life(ORPHANED), agent={}), (False, None), id="an agent says that it steps"
        ),
        pytest.param(
            snapshot(life(ORPHANED), agent={"state": "silent"}),
            (True, "orphaned"),
            id="an agent said so, long ago",
        ),
        pytest.param(
            snapshot(life(ORPHANED, platform=True)), (False, None), id="the platform's own agent"
        ),
        pytest.param(
            snapshot(life(ORPHANED, RELEASING), rows=BUSY),
            (True, "releasing"),
            id="what ends works no more, whatever its numbers say",
        ),
        pytest.param(snapshot(life(UNKILLABLE), rows=BUSY), (True, "unkillable"), id="unkillable"),
        pytest.param(snapshot(life(ZOMBIE)), (True, "zombie"), id="a zombie"),
        pytest.param(snapshot(life(), rows={"idle_s": 1799.0}), (False, None), id="not idle yet"),
        pytest.param(
            snapshot(life(), rows={"idle_s": 1800.0}), (True, "idle"), id="idle by libtpu"
        ),
        pytest.param(
            snapshot(life(), agent={"phase": "idle"}, values={"since_last_step_s": 1900.0}),
            (True, "idle"),
            id="idle by its agent",
        ),
        pytest.param(
            snapshot(life(), agent={"phase": "compiling"}, values={"since_last_step_s": 1900.0}),
            (False, None),
            id="it compiles",
        ),
        pytest.param(
            snapshot(life(), rows=QUIET), (False, None), id="quiet for who knows how long"
        ),
        pytest.param(
            snapshot(life(), ids=()), (True, "stuck"), id="stuck: no program, old threads"
        ),
        pytest.param(
            snapshot(life(newest_thread_s=599.0), ids=()), (False, None), id="its runtime is new"
        ),
        pytest.param(
            snapshot(life(newest_thread_s=None), ids=()), (False, None), id="nobody counted threads"
        ),
        pytest.param(snapshot(life(), ids=(0,)), (False, None), id="its server had numbers once"),
        pytest.param(
            snapshot(life(), agent={"phase": "starting"}), (True, "stuck"), id="its agent waits"
        ),
    ],
)
def test_a_holder_is_judged_by_signs_and_by_work(
    found: Snapshot, expected: tuple[bool | None, str | None]
) -> None:
    assert verdict(found) == expected


def test_a_duty_cycle_of_nothing_must_have_been_seen_for_the_whole_time() -> None:
    def duty(at_s: float, percent: float) -> Reading:
        return Reading("duty_cycle_percent", RowKey(ADDRESS, 0), percent, at_s, LIBTPU, 5.0)

    s, limits, history = snapshot(life(), rows=QUIET), Limits(idle_s=300.0), History()
    assert [p.stale_code for p in judged(s, limits, history).processes] == [None]
    history.add([duty(NOW - ago_s, 0.0) for ago_s in range(400, 10, -10)])
    assert [p.stale_code for p in judged(s, limits, history).processes] == ["idle"]
    history.add([duty(NOW - 5, 3.0), duty(NOW - 1, 0.0)])
    assert [p.stale_code for p in judged(s, limits, history).processes] == [None]


def test_why_it_is_not_stale_although_it_looks_so_is_told() -> None:
    (p,) = snapshot(life(ORPHANED), rows=BUSY).processes
    assert p.stale_reason == "its launcher, process 7, has ended, but tpu:0 is busy"


def test_a_stale_holder_is_a_warning() -> None:
    (warning,) = (w for w in snapshot(life(ORPHANED)).warnings if w.code == "stale_holder")
    assert warning.pid == KEY.pid
    assert "orphaned" in warning.message


def test_a_leader_that_has_ended_for_its_agent_holds_on_by_its_threads() -> None:
    """The agent of the same process is dead; the kernel sees who holds."""
    s = snapshot(life(ZOMBIE), agent={"state": "dead", "phase": "ended"})
    (p,) = s.processes
    assert (p.state, p.stale, p.stale_code) == ("silent", True, "zombie")
    assert [n.state for n in node_states(s)] == ["stale"]
    assert status(s) == "stale"


def test_the_warnings_are_of_the_same_verdict_as_the_process() -> None:
    patient = Limits(idle_s=3600.0)
    s = snapshot(life(), rows={"idle_s": 2400.0}, judge=lambda found: judged(found, patient))
    assert verdict(s) == (False, None)
    assert "stale_holder" not in [w.code for w in s.warnings]
    assert "stale_holder" in [w.code for w in snapshot(life(), rows={"idle_s": 2400.0}).warnings]


def test_a_gap_in_the_duty_cycle_may_have_been_anything() -> None:
    def duty(at_s: float) -> Reading:
        return Reading("duty_cycle_percent", RowKey(ADDRESS, 0), 0.0, at_s, LIBTPU, 5.0)

    history = History()
    history.add([duty(NOW - 4000), duty(NOW - 100), duty(NOW - 50)])
    assert history.nothing_since_s(RowKey(ADDRESS, 0)) == NOW - 100


def test_a_quiet_time_longer_than_the_history_is_known() -> None:
    history = History()
    for ago_s in range(4000, 0, -1):
        at_s = NOW - ago_s
        history.add([Reading("duty_cycle_percent", RowKey(ADDRESS, 0), 0.0, at_s, LIBTPU, 5.0)])
        history.forget(at_s)
    s = snapshot(life(), rows=QUIET)
    assert [p.stale_code for p in judged(s, history=history).processes] == ["idle"]
