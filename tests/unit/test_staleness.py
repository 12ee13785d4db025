"""When a holder is stale, and what speaks against it: signs of the kernel, of libtpu, of agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.snapshots import merge

from tpusmi.merge.staleness import judged
from tpusmi.model import (
    AGENT,
    FAILED,
    LIBTPU,
    OK,
    PROFILE,
    Chip,
    Device,
    DeviceKey,
    History,
    HostFacts,
    Life,
    Missing,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    RowKey,
    Server,
    Sign,
    Snapshot,
    TracedKey,
    Verdict,
    Visibility,
)
from tpusmi.model.holding import node_states, status
from tpusmi.model.process import Limits

NOW = 50_000.0
KEY = ProcessKey(4321, 99)
NODE = "/dev/vfio/0"
ADDRESS = "localhost:8431"
ORPHANED = Sign("orphaned", "its launcher, process 7, has ended")
RELEASING = Sign("releasing", "it is ending")
UNKILLABLE = Sign("unkillable", "in state D")
ZOMBIE = Sign("zombie", "its main thread has ended")
SESSION_GONE = Sign("session_gone", "its session, process 7, has ended")
CONTAINER_GONE = Sign("container_gone", "its container has been removed")
STOPPED = Sign("stopped", "stopped (state T): SIGSTOP or Ctrl-Z")
HOUR = 3600.0
STALE, MAYBE, UNKNOWN, NOT = Verdict.STALE, Verdict.MAYBE, Verdict.UNKNOWN, Verdict.NOT_STALE


def life(*signs: Sign, age_s: float | None = HOUR, cpu: float | None = None, **more: Any) -> Life:
    """An hour old; `cpu` is what it used in the last second, which is known of suspects alone."""
    found = {"newest_thread_s": age_s, "mean_cpu_percent": 90.0, **more}
    if cpu is not None:
        found.update(recent_cpu_percent=cpu, recent_s=1.0)
    return Life("T" if STOPPED in signs else "S", 1, 7, 7, age_s, 12, signs=signs, **found)


def left(*signs: Sign, **more: Any) -> Life:
    """The classic: launcher and session are gone, and it has used nothing in the last second."""
    return life(*(signs or (ORPHANED,)), cpu=more.pop("cpu", 0.0), **more)


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
    more: tuple[Outcome, ...] = (),
) -> Snapshot:
    """One chip, held by one process; `rows` are its server's, `values` those of its agent."""
    chip = Chip(0, "v5e", "TPU v5e", ("0000:00:04.0",), (NODE,), 1)
    held = Process(KEY, "ann", "x", "live", None, None, None, {}, holds=(NODE,), life=kernel)
    outcomes = [
        Outcome("sysfs", OK, chips=(chip,)),
        Outcome("holders", OK, processes=(held,), visibility=Visibility(nodes=(NODE,))),
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
    outcomes += more
    host = HostFacts("h", "t", None, None)
    return merge(outcomes, host, NOW, "1", judge=judge)


def verdict(s: Snapshot) -> tuple[Verdict | None, str | None]:
    (p,) = s.processes
    return p.verdict, p.stale_code


BUSY = {"duty_cycle_percent": 50.0}
QUIET = {"duty_cycle_percent": 0.0, "hbm_used_bytes": 5.0}
STEPPED = {"since_last_step_s": 1900.0}
STARTING, IDLE, SILENT = {"phase": "starting"}, {"phase": "idle"}, {"state": "silent"}
ROWS: list[tuple[str, Snapshot, Verdict | None, str | None]] = [
    # The kernel has no sign.
    ("nothing speaks for it", snapshot(life()), NOT, None),
    ("nothing is known of it", snapshot(None), None, None),
    ("its server is silent", snapshot(life(), ids=(), server=FAILED), NOT, None),
    ("its agent waits, and holds memory", snapshot(life(), agent=STARTING, hbm=5 << 30), NOT, None),
    (
        "its agent said that it was idle, a minute ago",
        snapshot(life(), agent=IDLE, values=STEPPED, age_s=60.0),
        *(NOT, None),
    ),
    ("not idle yet", snapshot(life(), rows={"idle_s": 1799.0}), NOT, None),
    ("idle by libtpu", snapshot(life(), rows={"idle_s": 1800.0}), STALE, "idle"),
    ("idle by its agent", snapshot(life(), agent=IDLE, values=STEPPED), STALE, "idle"),
    ("it compiles", snapshot(life(), agent={"phase": "compiling"}, values=STEPPED), NOT, None),
    ("quiet for who knows how long", snapshot(life(), rows=QUIET), NOT, None),
    ("its runtime is new", snapshot(life(newest_thread_s=599.0), ids=()), NOT, None),
    ("nobody counted threads", snapshot(life(newest_thread_s=None), ids=()), NOT, None),
    ("its server had numbers once", snapshot(life(), ids=(0,)), NOT, None),
    ("no program, old threads", snapshot(life(mean_cpu_percent=2.0), ids=()), STALE, "stuck"),
    ("its agent waits", snapshot(life(mean_cpu_percent=2.0), agent=STARTING), STALE, "stuck"),
    ("no program, but it loads its data", snapshot(life(), ids=()), MAYBE, "stuck"),
    ("it says nothing, does nothing", snapshot(life(mean_cpu_percent=0.2)), MAYBE, "quiet"),
    ("it says nothing, and is young", snapshot(life(age_s=599.0, mean_cpu_percent=0.2)), NOT, None),
    (
        "it says nothing, and serves",
        snapshot(life(mean_cpu_percent=0.2, client_ports=(8000,))),
        *(NOT, None),
    ),
    # It is ending, whatever its numbers say.
    ("ending", snapshot(life(ORPHANED, RELEASING), rows=BUSY), STALE, "releasing"),
    ("unkillable", snapshot(life(UNKILLABLE), rows=BUSY), STALE, "unkillable"),
    ("the platform's own agent", snapshot(left(platform=True)), NOT, None),
    # It has lost who started it, and that alone.
    ("an orphan, asked for nothing", snapshot(life(ORPHANED)), MAYBE, "orphaned"),
    ("the classic", snapshot(left()), STALE, "orphaned"),
    ("the classic, its session", snapshot(left(SESSION_GONE)), STALE, "session_gone"),
    ("three seconds old", snapshot(left(age_s=3.0)), MAYBE, "orphaned"),
    ("ten minutes, nearly", snapshot(left(age_s=599.0)), MAYBE, "orphaned"),
    ("of unknown age", snapshot(left(age_s=None)), MAYBE, "orphaned"),
    ("its output is read", snapshot(left(ties=("process 9 reads it",))), MAYBE, "orphaned"),
    ("it serves", snapshot(left(client_ports=(8000,))), MAYBE, "orphaned"),
    ("it used a little", snapshot(left(cpu=3.0)), MAYBE, "orphaned"),
    ("it works on the host", snapshot(left(cpu=90.0)), NOT, None),
    ("its server is silent, too", snapshot(left(), ids=(), server=FAILED), STALE, "orphaned"),
    ("its server has no program", snapshot(left(), ids=(), rows=None), STALE, "orphaned"),
    ("its agent said so, long ago", snapshot(left(), agent=SILENT), STALE, "orphaned"),
    ("its agent says that it steps", snapshot(left(), agent={}), NOT, None),
    ("its agent says that it starts", snapshot(left(), agent=STARTING), MAYBE, "orphaned"),
    ("its agent says that it is idle", snapshot(left(), agent=IDLE), STALE, "orphaned"),
    ("its chip is busy", snapshot(left(), rows=BUSY), NOT, None),
    (
        "its chip's memory is busy",
        snapshot(left(), rows={"hbm_bandwidth_utilization_percent": 3.0}),
        *(NOT, None),
    ),
    ("it just ran", snapshot(left(), rows={"idle_s": 2.0}), NOT, None),
    ("its chip rests for 90 s", snapshot(left(), rows={"idle_s": 90.0}), STALE, "orphaned"),
    (
        "it saves a checkpoint, perhaps",
        snapshot(left(cpu=90.0), rows={"idle_s": 90.0}),
        *(MAYBE, "orphaned"),
    ),
    (
        "it spins while its chip has long been at rest",
        snapshot(left(cpu=90.0), rows={"idle_s": 700.0}),
        *(STALE, "orphaned"),
    ),
    (
        "busy in the last minute, at rest for longer",
        snapshot(left(), rows={"idle_s": 90.0, **BUSY}),
        *(STALE, "orphaned"),
    ),
    # Its leader, or its container, is gone.
    ("a zombie at rest", snapshot(left(ZOMBIE)), STALE, "zombie"),
    ("a zombie whose threads work", snapshot(left(ZOMBIE, cpu=50.0)), NOT, None),
    ("a zombie that nobody measured", snapshot(life(ZOMBIE)), MAYBE, "zombie"),
    ("no container, at rest", snapshot(left(CONTAINER_GONE)), STALE, "container_gone"),
    ("no container, young", snapshot(left(CONTAINER_GONE, age_s=9.0)), STALE, "container_gone"),
    ("no container, nobody measured", snapshot(life(CONTAINER_GONE)), MAYBE, "container_gone"),
    # It is stopped: what it would do is not known.
    ("stopped", snapshot(life(STOPPED)), MAYBE, "stopped"),
    ("stopped and left", snapshot(left(ORPHANED, STOPPED)), MAYBE, "orphaned"),
    ("stopped and stuck", snapshot(life(STOPPED, mean_cpu_percent=1), ids=()), MAYBE, "stopped"),
]


@pytest.mark.parametrize(
    ("found", "expected", "code"),
    [pytest.param(found, expected, code, id=name) for name, found, expected, code in ROWS],
)
def test_a_holder_is_judged_by_signs_and_by_work(
    found: Snapshot, expected: Verdict | None, code: str | None
) -> None:
    assert verdict(found) == (expected, code)
    (p,) = found.processes
    assert p.stale == {STALE: True, NOT: False}.get(expected)
    assert not (p.life and p.life.signs) or set(p.life.signs) <= set(p.signs)


def shaken(s: Snapshot, *missing: Missing) -> tuple[Verdict | None, str | None]:
    """The verdict where those witnesses could not be asked."""
    (p,) = judged(s._replace(missing=missing)).processes
    return p.verdict, p.stale_reason


AGENTS = Missing(AGENT, "OSError: [Errno 40] too many links")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(snapshot(left()), UNKNOWN, id="stale: the agent could have said that it runs"),
        pytest.param(snapshot(left(age_s=9.0)), UNKNOWN, id="maybe: the same"),
        pytest.param(
            snapshot(life()), UNKNOWN, id="old: the agent could have said that it is idle"
        ),
        pytest.param(snapshot(life(age_s=500.0)), NOT, id="too young to be anything"),
        pytest.param(
            snapshot(life(), rows={"idle_s": 1800.0}), UNKNOWN, id="it could be compiling"
        ),
        pytest.param(snapshot(life(), rows=BUSY), NOT, id="another witness has seen it work"),
        pytest.param(snapshot(life(RELEASING)), STALE, id="what ends, ends"),
        pytest.param(snapshot(left(platform=True)), NOT, id="the platform's own agent"),
    ],
)
def test_what_a_witness_could_have_changed_is_unknown_without_it(
    found: Snapshot, expected: Verdict
) -> None:
    known, _ = shaken(found)
    assert known != UNKNOWN
    assert shaken(found, AGENTS)[0] == expected


def test_the_missing_witness_is_named() -> None:
    _, reason = shaken(snapshot(left()), AGENTS, Missing(LIBTPU, "x"))
    assert reason is not None
    assert reason.startswith("its launcher, process 7, has ended; ")
    assert "(agent: OSError: [Errno 40] too many links, and 1 more)" in reason


@pytest.mark.parametrize(
    ("witness", "expected"),
    [
        pytest.param(Missing(AGENT, "x", uid=1), STALE, id="of another user"),
        pytest.param(Missing(AGENT, "x", uid=5), UNKNOWN, id="of its user"),
        pytest.param(Missing(AGENT, "x", process=ProcessKey(1, 1)), STALE, id="of another process"),
        pytest.param(Missing(AGENT, "x", process=KEY), UNKNOWN, id="its own"),
    ],
)
def test_a_witness_matters_to_those_that_it_could_have_spoken_for(
    witness: Missing, expected: Verdict
) -> None:
    s = snapshot(left())
    (p,) = s.processes
    assert shaken(s._replace(processes=(p._replace(uid=5),)), witness)[0] == expected


def test_a_segment_that_cannot_be_read_is_not_that_of_a_process_whose_own_was_read() -> None:
    s = snapshot(left(), agent=IDLE)
    assert shaken(s, Missing(AGENT, "x", uid=0))[0] == STALE
    assert shaken(s, AGENTS)[0] == UNKNOWN  # the whole source: what was read is of before


@pytest.mark.parametrize("source", [AGENT, LIBTPU, "holders", "sysfs"])
def test_a_source_that_failed_is_a_missing_witness_for_everybody(source: str) -> None:
    s = snapshot(left(), more=(Outcome(source, FAILED, "broken"),))
    assert verdict(s) == (UNKNOWN, "orphaned")
    (p,) = s.processes
    assert f"a witness could not be asked ({source}: broken)" in (p.stale_reason or "")


def test_a_silent_server_is_a_sign_about_its_process_and_no_missing_witness() -> None:
    """Although libtpu's source has failed then: it has nothing else to ask."""
    silent = Server(ADDRESS, KEY, (), FAILED, "port 8431 does not answer")
    failed = Outcome(LIBTPU, FAILED, silent.message, servers=(silent,))
    s = snapshot(left(), more=(failed,))
    assert verdict(s) == (STALE, "orphaned")
    (p,) = s.processes
    assert [sign.code for sign in p.signs] == ["orphaned", "server_silent"]


def test_a_server_that_is_not_libtpus_serves_clients() -> None:
    other = Server(ADDRESS, KEY, (), FAILED, "speaks HTTP", is_service=False)
    s = snapshot(left(ports=(8431,)), more=(Outcome(LIBTPU, FAILED, "x", servers=(other,)),))
    assert verdict(s) == (MAYBE, "orphaned")


def test_a_stopped_process_explains_the_silence_of_its_server_and_of_its_agent() -> None:
    silent = Server(ADDRESS, KEY, (), FAILED, "port 8431 has not answered for 9 s")
    failed = Outcome(LIBTPU, FAILED, silent.message, servers=(silent,), notes=(silent.message,))
    s = snapshot(life(STOPPED), agent=SILENT, more=(failed,))
    why = f"port 8431 has not answered for 9 s: pid {KEY.pid} is stopped (state T): SIGSTOP"
    libtpu = next(o for o in s.sources if o.source == LIBTPU)
    (p,) = s.processes
    said = (s.servers[0].message, libtpu.message, libtpu.notes[0], p.signs[1].message)
    assert all(why in text for text in said), said
    assert p.signs[2].message.endswith("it is stopped (state T): SIGSTOP or Ctrl-Z")
    (notice,) = (n for n in s.warnings if n.code == "silent_agent")
    assert notice.message.endswith(
        "has stopped writing: it is stopped (state T): SIGSTOP or Ctrl-Z"
    )


def test_a_duty_cycle_of_nothing_must_have_been_seen_for_the_whole_time() -> None:
    def duty(at_s: float, percent: float) -> Reading:
        return Reading("duty_cycle_percent", DeviceKey(None, 0), percent, at_s, LIBTPU, 5.0)

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
    (warning,) = (w for w in snapshot(left()).warnings if w.code == "stale_holder")
    assert warning.pid == KEY.pid
    assert "orphaned" in warning.message


def test_a_leader_that_has_ended_for_its_agent_holds_on_by_its_threads() -> None:
    """The agent of the same process is dead; the kernel sees who holds."""
    s = snapshot(left(ZOMBIE), agent={"state": "dead", "phase": "ended"})
    (p,) = s.processes
    assert (p.state, p.stale, p.stale_code) == ("silent", True, "zombie")
    assert [n.state for n in node_states(s)] == ["stale"]
    assert status(s) == "stale"


def test_the_warnings_are_of_the_same_verdict_as_the_process() -> None:
    patient = Limits(idle_s=3600.0)
    s = snapshot(life(), rows={"idle_s": 2400.0}, judge=lambda found: judged(found, patient))
    assert verdict(s) == (NOT, None)
    assert "stale_holder" not in [w.code for w in s.warnings]
    assert "stale_holder" in [w.code for w in snapshot(life(), rows={"idle_s": 2400.0}).warnings]


def test_a_gap_in_the_duty_cycle_may_have_been_anything() -> None:
    def duty(at_s: float) -> Reading:
        return Reading("duty_cycle_percent", DeviceKey(None, 0), 0.0, at_s, LIBTPU, 5.0)

    history = History()
    history.add([duty(NOW - 4000), duty(NOW - 100), duty(NOW - 50)])
    assert history.nothing_since_s(DeviceKey(None, 0)) == NOW - 100


def test_a_quiet_time_longer_than_the_history_is_known() -> None:
    history = History()
    for ago_s in range(4000, 0, -1):
        at_s = NOW - ago_s
        history.add([Reading("duty_cycle_percent", DeviceKey(None, 0), 0.0, at_s, LIBTPU, 5.0)])
        history.forget(at_s)
    s = snapshot(life(), rows=QUIET)
    assert [p.stale_code for p in judged(s, history=history).processes] == ["idle"]


def test_a_chip_that_has_rested_for_long_is_no_sign_about_a_process_that_is_younger() -> None:
    history = History()
    for ago_s in range(4000, 0, -10):
        duty = Reading("duty_cycle_percent", DeviceKey(None, 0), 0.0, NOW - ago_s, LIBTPU, 5.0)
        history.add([duty])
    young = snapshot(life(age_s=20.0), rows=QUIET)
    assert [p.stale_code for p in judged(young, history=history).processes] == [None]
    old = snapshot(life(age_s=1900.0), rows=QUIET)
    assert [p.stale_code for p in judged(old, history=history).processes] == ["idle"]


def _captured(duty_percent: float) -> tuple[Outcome, ...]:
    """A capture of the one device, a second ago."""
    key = TracedKey(process=KEY, index=0, id=None, devices=1, platform="tpu")
    reading = Reading("duty_cycle_percent", key, duty_percent, NOW - 1, PROFILE, 15.0)
    return (Outcome(PROFILE, OK, readings=(reading,)),)


@pytest.mark.parametrize("cpu", [0.0, 10.0, 50.0])
def test_a_capture_without_work_changes_no_verdict(cpu: float) -> None:
    """It is of one moment: between two steps, a loader of data rests on the chip."""
    without = snapshot(left(cpu=cpu), ids=())
    after = snapshot(left(cpu=cpu), ids=(), more=_captured(0.0))
    assert after.value("duty_cycle_percent", after.devices[0].key) == 0.0
    assert verdict(after) == verdict(without)
    assert after.processes[0].stale_reason == without.processes[0].stale_reason


def test_a_capture_of_work_is_evidence_of_work() -> None:
    assert verdict(snapshot(left(), ids=()))[0] == STALE
    assert verdict(snapshot(left(), ids=(), more=_captured(30.0)))[0] != STALE
