"""Real holders, really ended: only after proof, only those that are meant, until the nodes are
free.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.clocks import without_collector
from support.hosts import (
    BEFORE_OTHERS,
    IS_FREE,
    IS_ROOT,
    NODE,
    SECOND,
    SEES_ALL,
    add_chips,
    as_stale,
    holder,
    host,
    running,
)
from support.requirements import needs
from support.users import NOBODY, ROOT, acting_as, reachable
from support.waits import until, where_all_can_be_seen

from tpusmi.actions.end import Order, carry_out
from tpusmi.actions.outcome import Report
from tpusmi.actions.plan import Plan, Request, make_plan
from tpusmi.actions.planning import me, planned
from tpusmi.collect import look
from tpusmi.model import Host, Process, ProcessKey, Verdict
from tpusmi.model.process import Limits
from tpusmi.report.kill_text import plan_text

QUICK = Order(signal.SIGTERM, grace_s=20.0, free_within_s=20.0)
IMPATIENT = Order(signal.SIGTERM, grace_s=0.3, free_within_s=10.0)
STUBBORN = """
import signal
files = hold(*sys.argv[1:])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
say('holds')
wait()
"""
SYS_EXIT = {"x86_64": 60, "aarch64": 93}.get(platform.machine())
pytestmark = pytest.mark.usefixtures("only_ours")

ORPHAN = """
import time
files = hold(*sys.argv[1:])
parent = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == parent: time.sleep(0.001)
say('holds', os.getpid())
time.sleep(60)
"""


@pytest.fixture(
    params=["files", pytest.param("devices", marks=pytest.mark.skipif(not IS_ROOT, reason="mknod"))]
)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    """Two chips, whose nodes are files or real character devices."""
    add_chips(tmp_path, 2)
    return host(tmp_path, NODE, SECOND, device=request.param == "devices")


@contextmanager
def open_to_all(machine: Host) -> Iterator[None]:
    """Another user may get to the nodes, and use them."""
    at(machine, NODE).chmod(0o666)
    with reachable(Path(machine.root)):
        yield


def aged(machine: Host) -> Host:
    """The same, with processes that are an hour older than the kernel says."""
    return machine._replace(older_s=3600.0)


def at(machine: Host, node: str) -> Path:
    return Path(machine.path(node))


def holders(machine: Host) -> dict[int, Process]:
    return {p.pid: p for p in look(machine).processes if p.holds}


def freed(machine: Host, order: Order = QUICK, **request: object) -> tuple[Plan, Report]:
    """What `tpusmi kill` does with that request."""
    snapshot = look(machine)
    plan = planned(machine, snapshot, Request(**request))  # type: ignore[arg-type]
    return plan, carry_out(machine, snapshot.chips, plan, order)


def outcomes(report: Report) -> dict[int, str]:
    return {r.process.pid: r.outcome for r in report.results}


def in_child(check: Callable[[], bool]) -> bool:
    """What a forked child finds; False when it fails."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    found = False
    try:
        found = check()
    finally:
        os._exit(not found)


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@where_all_can_be_seen
def test_all_holders_of_a_node_are_ended_and_it_is_free(machine: Host) -> None:
    with holder(at(machine, NODE)) as one, holder(at(machine, NODE)) as two:
        plan, report = freed(machine, chips=(0,))
        assert plan.nodes == (NODE,)
        assert outcomes(report) == {one: "ended", two: "ended"}
        assert report.is_free is IS_FREE
        assert holders(machine) == {}


def test_one_of_two_holders_is_ended_and_the_other_is_named(machine: Host) -> None:
    with holder(at(machine, NODE)) as one, holder(at(machine, NODE)) as two:
        plan, report = freed(machine, pids=(one,))
        assert plan.also_held_by == (two,)
        assert outcomes(report) == {one: "ended"}
        assert report.still_held == {NODE: (two,)}
        assert report.is_free is False
        assert is_alive(two)


def test_a_holder_of_more_chips_than_named_is_left_alone_and_told(machine: Host) -> None:
    with (
        holder(at(machine, NODE), at(machine, SECOND)) as both,
        holder(at(machine, SECOND)) as one,
    ):
        plan, report = freed(machine, chips=(1,))
        assert [(r.pid, "also holds /dev/vfio/0" in r.why) for r in plan.refused] == [(both, True)]
        assert outcomes(report) == {one: "ended"}
        assert is_alive(both)


def test_a_child_that_inherited_the_node_is_an_orphan_when_its_parent_has_ended(
    machine: Host,
) -> None:
    with running(ORPHAN, at(machine, NODE)) as parent, holder(at(machine, SECOND)) as healthy:
        child = int(parent.line().split()[1])
        found = holders(machine)
        assert (found[child].verdict, found[child].stale_code) == (Verdict.MAYBE, "orphaned")
        assert f"process {parent.pid}, has ended" in (found[child].stale_reason or "")
        assert found[healthy].stale is False
        # Our session lives, and we read what it prints: it is a suspect, and ended by its pid only.
        _, report = freed(aged(machine), stale=True)
        assert outcomes(report) == {}
        assert is_alive(child)
        _, report = freed(machine, pids=(child,))
        assert outcomes(report) == {child: "ended"}
        assert is_alive(healthy)


@needs("bash", "setsid")
def test_a_background_job_whose_shell_has_ended_has_lost_its_session(machine: Host) -> None:
    """A shell with job control gives each job a group of its own."""
    code = """
import subprocess
quiet = ">/dev/null 2>&1 4>&-"
job = "exec 3<>" + sys.argv[1] + "; trap '' INT; echo holds $$ >&4; exec sleep 60 " + quiet
shell = f"set -m; sh -c '{job.replace(chr(39), chr(34))}' <&0 & read -r; exit"
bash = subprocess.Popen(["setsid", "-w", "bash", "-c", shell], stdin=subprocess.PIPE,
                        preexec_fn=lambda: os.dup2(1, 4), pass_fds=(4,))
sys.stdin.readline()
bash.communicate(b"go\\n")
say('ended')
wait()
"""
    with running(code, at(machine, NODE)) as child:
        job = int(child.line().split()[1])
        assert child.go_on() == "ended"
        (found,) = holders(aged(machine)).values()
        assert (found.pid, found.stale, found.stale_code) == (job, True, "session_gone")
        assert "has ended" in (found.stale_reason or "")
        _, report = freed(machine, stale=True)
        assert outcomes(report) == {}  # it is a few seconds old
        _, report = freed(aged(machine), stale=True)
        assert outcomes(report) == {job: "ended"}


@where_all_can_be_seen
def test_who_has_lost_its_terminal_has_lost_its_session(machine: Host) -> None:
    code = """
import pty, time
child, terminal = pty.fork()
if not child:
    import signal
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    if os.fork():
        time.sleep(60)
    f = hold(sys.argv[1]); os.write(1, b"x"); time.sleep(60)
os.read(terminal, 1)
os.close(terminal)
say('closed', child)
wait()
"""
    with running(code, at(machine, NODE)) as parent:
        leader = int(parent.line().split()[1])
        (found,) = holders(aged(machine)).values()
        assert (found.verdict, found.stale_code) == (Verdict.MAYBE, "session_gone")
        assert "its terminal /dev/pts/" in (found.stale_reason or "")
        assert f"the leader of its session, process {leader} " in (found.stale_reason or "")
        _, report = freed(machine, IMPATIENT, pids=(found.pid,))
        assert report.is_free is IS_FREE
        os.kill(leader, signal.SIGKILL)


@contextmanager
def control_group(parent: str, name: str) -> Iterator[Path]:
    """One of the kernel's, which is gone at the end. Skips where none may be made."""
    group = Path("/sys/fs/cgroup") / parent / name
    if not group.parent.is_dir() or not os.access(group.parent, os.W_OK):
        pytest.skip(f"no control group {parent} here")
    group.mkdir()
    try:
        yield group
    finally:
        until_s = time.monotonic() + 30
        while group.exists() and time.monotonic() < until_s:
            try:
                group.rmdir()  # not before its last process is gone
            except OSError:
                time.sleep(0.05)


@ROOT
@where_all_can_be_seen
def test_a_holder_in_a_container_is_told_with_its_id_and_its_pid_in_there(machine: Host) -> None:
    """A pid namespace and a control group of the kernel's own, named as container engines do."""
    code = """
import subprocess
open(sys.argv[2] + '/cgroup.procs', 'w').write(str(os.getpid()))
held = 'exec 3<>' + sys.argv[1] + '; echo holds >&4; exec sleep 60'
subprocess.Popen(['unshare', '-p', '-f', 'sh', '-c', held], pass_fds=(4,),
                 preexec_fn=lambda: os.dup2(1, 4))
wait()
"""
    id_ = f"{os.getpid():064x}"
    parent = "pids" if Path("/sys/fs/cgroup/pids").is_dir() else ""
    with (
        control_group(parent, f"docker-{id_}.scope") as group,
        running(code, at(machine, NODE), group) as child,
    ):
        assert child.line() == "holds"
        (found,) = holders(machine).values()
        assert found.life is not None
        assert (found.life.container, found.life.inner_pid) == (id_, 1)
        assert found.stale is False
        _, report = freed(machine, IMPATIENT, pids=(found.pid,))
        assert report.is_free is IS_FREE


@ROOT
def test_a_frozen_holder_that_sigkill_does_not_reach_is_unkillable(machine: Host) -> None:
    with (
        control_group("freezer", f"tpusmi-test-{os.getpid()}") as group,
        holder(at(machine, NODE)) as pid,
        frozen(group, pid),
    ):
        order = Order(signal.SIGTERM, grace_s=0.3, free_within_s=0.5)
        _, report = freed(machine, order, pids=(pid,))
        assert outcomes(report) == {pid: "alive"}
        assert "SIGKILL is pending, but it does not end: state D" in report.results[0].message
        (found,) = holders(machine).values()
        assert (found.stale, found.stale_code) == (True, "unkillable")


@contextmanager
def frozen(group: Path, pid: int) -> Iterator[None]:
    """That process, until it thaws and ends by what was sent to it."""
    (group / "cgroup.procs").write_text(str(pid))
    (group / "freezer.state").write_text("FROZEN")
    try:
        yield
    finally:
        (group / "freezer.state").write_text("THAWED")


@where_all_can_be_seen
def test_who_ignores_sigterm_is_killed_after_the_grace(machine: Host) -> None:
    with running(STUBBORN, at(machine, NODE)) as child:
        child.line()
        _, report = freed(machine, IMPATIENT, pids=(child.pid,))
        assert outcomes(report) == {child.pid: "killed"}
        assert report.results[0].took_s >= IMPATIENT.grace_s
        assert report.is_free is IS_FREE


def test_a_stopped_holder_ends_by_sigterm_without_being_killed(machine: Host) -> None:
    polite = (
        "import signal, time; files = hold(*sys.argv[1:])\n"
        "signal.signal(15, lambda *_: os._exit(7)); say('holds')\n"
        "while True: time.sleep(0.01)"
    )
    with running(polite, at(machine, NODE)) as child:
        child.line()
        child.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        snapshot = look(machine)
        plan = planned(machine, snapshot, Request((child.pid,)))
        assert "stopped (state T): SIGSTOP or Ctrl-Z" in plan_text(snapshot, plan, QUICK)
        _, report = freed(machine, pids=(child.pid,))
        assert outcomes(report) == {child.pid: "ended"}
        assert "ended by SIGTERM, and SIGCONT: it was stopped" in report.results[0].message
        assert child.process.wait(30) == 7


@pytest.mark.skipif(SYS_EXIT is None, reason="the number of exit() is not known here")
@where_all_can_be_seen
def test_threads_that_an_ended_leader_left_behind_are_holders(machine: Host) -> None:
    code = f"""
import ctypes, threading, time
files = hold(*sys.argv[1:])
threading.Thread(target=time.sleep, args=(60,)).start()
say('holds')
ctypes.CDLL(None).syscall({SYS_EXIT}, 0)
"""
    with running(code, at(machine, NODE)) as child:
        child.line()
        until_s = time.monotonic() + 30
        while is_alive(child.pid) and time.monotonic() < until_s:
            time.sleep(0.01)
        (found,) = holders(machine).values()
        assert (found.pid, found.holds, found.stale_code) == (child.pid, (NODE,), "zombie")
        _, report = freed(machine, stale=True)
        assert report.is_free is IS_FREE
        assert outcomes(report)[child.pid] in ("ended", "killed")


def test_a_pid_that_is_another_process_by_now_is_not_signalled(machine: Host) -> None:
    with holder(at(machine, NODE)) as pid:
        snapshot = look(machine)
        shown = next(p for p in snapshot.processes if p.pid == pid)
        before = shown._replace(key=ProcessKey(pid, shown.key.start_ticks - 1))
        plan = make_plan(snapshot._replace(processes=(before,)), Request((pid,)), me(machine))
        report = carry_out(machine, snapshot.chips, plan, QUICK)
        assert outcomes(report) == {pid: "replaced"}
        assert is_alive(pid)


@where_all_can_be_seen
def test_who_has_let_go_of_the_node_meanwhile_is_not_signalled(machine: Host) -> None:
    code = (
        "f = hold(*sys.argv[1:]); say('holds'); sys.stdin.readline(); os.close(f[0])\n"
        "say('closed'); wait()"
    )
    with running(code, at(machine, NODE)) as child:
        child.line()
        snapshot = look(machine)
        plan = make_plan(snapshot, Request((child.pid,)), me(machine))
        child.go_on()
        report = carry_out(machine, snapshot.chips, plan, QUICK)
        assert outcomes(report) == {child.pid: "let_go"}
        assert report.is_free is IS_FREE
        assert is_alive(child.pid)


def test_who_has_ended_meanwhile_is_gone(machine: Host) -> None:
    with running("f = hold(*sys.argv[1:]); say('holds'); wait()", at(machine, NODE)) as child:
        child.line()
        snapshot = look(machine)
        plan = make_plan(snapshot, Request((child.pid,)), me(machine))
        child.let_go()
        assert outcomes(carry_out(machine, snapshot.chips, plan, QUICK)) == {child.pid: "gone"}


@where_all_can_be_seen
def test_who_lets_go_at_sigterm_and_lives_on_is_not_killed(machine: Host) -> None:
    code = (
        "import signal, time; f = hold(*sys.argv[1:])\n"
        "signal.signal(15, lambda *_: os.close(f.pop())); say('holds')\n"
        "while True: time.sleep(0.01)"
    )
    with running(code, at(machine, NODE)) as child:
        child.line()
        _, report = freed(machine, pids=(child.pid,))
        assert outcomes(report) == {child.pid: "released"}
        assert report.is_free is IS_FREE
        assert is_alive(child.pid)


def test_another_kernel_without_pidfd_gets_a_look_right_before_each_signal(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    with running(STUBBORN, at(machine, NODE)) as child, holder(at(machine, SECOND)) as other:
        child.line()
        _, report = freed(machine, IMPATIENT._replace(grace_s=1.5), pids=(child.pid, other))
        assert outcomes(report) == {child.pid: "killed", other: "ended"}
        assert "no pidfd" in report.notes[0]


@where_all_can_be_seen
def test_a_child_is_ended_before_its_parent_has_noticed(machine: Host) -> None:
    """A zombie that nobody has waited for holds nothing."""
    with holder(at(machine, NODE)) as pid:
        _, report = freed(machine, pids=(pid,))  # its parent, this test, waits at the end
        assert report.is_free is IS_FREE
        assert report.results[0].took_s < 60
        zombie = f"zombie until its parent, pid {os.getpid()}, collects it"
        assert report.results[0].message == f"ended by SIGTERM; {zombie}"
        again, report = freed(machine, pids=(pid,))
        holds = "holds no TPU" if SEES_ALL else "is not seen to hold a TPU"
        assert again.refused[0].why == f"{holds}; it has ended: {zombie}"
        assert report.is_free is None


def test_a_pid_that_no_process_has_is_called_so(machine: Host) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    plan, _ = freed(machine, pids=(ended.pid,))
    assert plan.refused[0].why == "is not running"


@where_all_can_be_seen
def test_without_a_bus_a_stale_holder_of_a_lookalike_is_left_alone(tmp_path: Path) -> None:
    """/dev/vfio/96 may be a network card's."""
    machine = host(tmp_path, "/dev/vfio/96", device=IS_ROOT)
    with holder(at(machine, "/dev/vfio/96")) as pid:
        snapshot = as_stale(look(machine), pid)
        plan = planned(machine, snapshot, Request(stale=True))
        assert [
            (r.pid, "may be another device's; end it by pid" in r.why) for r in plan.refused
        ] == [(pid, True)]
        report = carry_out(machine, snapshot.chips, plan, QUICK)
        assert (report.results, is_alive(pid)) == ((), True)
        assert freed(machine, pids=(pid,))[1].is_free is IS_FREE


def test_this_process_and_who_started_it_are_never_ended(machine: Host) -> None:
    own = os.open(at(machine, NODE), os.O_RDWR)
    try:
        plan, report = freed(machine, chips=(0,))
        assert [(r.pid, r.why) for r in plan.refused] == [(os.getpid(), "is this process itself")]
        assert report.results == ()

        def refused_in_a_child() -> bool:  # whose ancestor the test is, as a notebook's kernel is
            plan, _ = freed(machine, pids=(os.getppid(),))
            return "started this tpusmi" in plan.refused[0].why

        assert in_child(refused_in_a_child)
    finally:
        os.close(own)


@ROOT
def test_the_processes_of_other_users_are_ended_only_when_asked_for(machine: Host) -> None:
    with open_to_all(machine), holder(at(machine, NODE), user=NOBODY) as pid:
        plan, report = freed(machine, pids=(pid,))
        assert "belongs to user nobody: add --all-users to end it" in plan.refused[0].why
        assert report.results == ()
        assert is_alive(pid)
        _, report = freed(machine, pids=(pid,), all_users=True)
        assert outcomes(report) == {pid: "ended"}


@ROOT
def test_whoever_may_not_signal_a_process_is_told(machine: Host) -> None:
    with open_to_all(machine), holder(at(machine, NODE)) as pid:
        snapshot = look(machine)
        plan = make_plan(snapshot, Request((pid,)), me(machine))
        with acting_as(NOBODY):
            report = carry_out(machine, snapshot.chips, plan, IMPATIENT)
        assert outcomes(report) == {pid: "unseen"}
        assert report.is_free is False
        assert is_alive(pid)


@ROOT
def test_whoever_may_look_and_not_signal_is_told(machine: Host) -> None:
    """Root without the capability to signal other users' processes."""
    code = (
        "import sys\n"
        "from tpusmi.actions.end import carry_out\n"
        "from tpusmi.actions.end import Order\n"
        "from tpusmi.actions.planning import me\n"
        "from tpusmi.actions.plan import Request, make_plan\n"
        "from tpusmi.collect import look\n"
        "from tpusmi.model import Host\n"
        "host = Host(root=sys.argv[1], segment_dir=sys.argv[1], metrics_ports=())\n"
        "s = look(host)\n"
        "plan = make_plan(s, Request((int(sys.argv[2]),), all_users=True), me(host))\n"
        "(r,) = carry_out(host, s.chips, plan, Order(grace_s=0.3)).results\n"
        "print(r.outcome, r.message)"
    )
    with open_to_all(machine), holder(at(machine, NODE), user=NOBODY) as pid:
        weak = ["setpriv", "--bounding-set", "-kill", sys.executable, "-c", code]
        found = subprocess.run(
            [*weak, machine.root, str(pid)], capture_output=True, text=True, timeout=60
        )
        assert "not_permitted could not be signalled" in found.stdout, found.stderr
        assert is_alive(pid)


def test_an_empty_request_ends_nobody(machine: Host) -> None:
    with holder(at(machine, NODE)) as pid:
        plan, report = freed(machine)
        assert plan.targets == plan.refused == plan.nodes == report.results == ()
        assert report.is_free is None
        assert is_alive(pid)


def test_a_name_alone_makes_no_agent_of_the_platform(machine: Host) -> None:
    """As `exec -a tpu-runtime python train.py` does."""
    code = "f = hold(*sys.argv[1:]); say('holds'); wait()"
    with running(code, at(machine, NODE), argv0="tpu-runtime") as child:
        child.line()
        (found,) = holders(machine).values()
        assert found.life is not None
        assert not found.life.platform
        _, report = freed(machine, pids=(child.pid,))
        assert outcomes(report) == {child.pid: "ended"}


@ROOT
def test_an_agent_of_the_platform_is_neither_stale_nor_ended(machine: Host, tmp_path: Path) -> None:
    program = tmp_path / "tpu-runtime"
    shutil.copy("/bin/sh", program)
    holds = [program, "-c", 'exec 3<>"$0"; echo holds; read -r x', at(machine, NODE)]
    with subprocess.Popen(holds, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"holds\n"
        (found,) = holders(machine).values()
        assert (found.stale, found.stale_reason) == (False, "an agent of the platform")
        plan, _ = freed(machine, pids=(agent.pid,))
        assert plan.refused[0].why == "is an agent of the platform"
        assert agent.stdin is not None
        agent.stdin.close()


def test_a_process_may_have_any_name(machine: Host) -> None:
    code = (
        "f = hold(sys.argv[1]); open('/proc/self/comm', 'wb').write(b'x) \\xff\\x1bS 1 1')\n"
        "say('holds'); wait()"
    )
    name = b"\xff\x1b[31m(evil) R 1 2\n\xe2\x80\xae"
    with running(code, at(machine, NODE), "--token=s3cret", argv0=name) as child:
        child.line()
        (found,) = holders(machine).values()
        assert found.pid == child.pid
        assert found.command.isprintable()
        assert "s3cret" not in found.command
        _, report = freed(machine, pids=(child.pid,))
        assert outcomes(report) == {child.pid: "ended"}


def test_without_a_server_that_answers_nobody_is_called_stuck(machine: Host) -> None:
    with holder(at(machine, NODE)):
        patient = look(machine)
        assert [p.stale for p in patient.processes if p.holds] == [False]
        # Without a server that answers nobody knows that it has loaded nothing.
        found = [p for p in look(aged(machine), Limits(0.0, 0.0)).processes if p.holds]
        assert [(p.verdict, p.stale_code) for p in found] == [(Verdict.MAYBE, "quiet")]


def test_whoever_started_us_is_safe_however_far_above(machine: Host) -> None:
    """Forty levels."""
    top = os.getpid()

    def below(levels: int) -> bool:
        return in_child(lambda: below(levels - 1)) if levels else top in me(machine).ancestors

    assert below(40)


def test_an_orphan_that_works_hard_on_the_host_is_not_stale(machine: Host) -> None:
    code = ORPHAN.replace("time.sleep(60)", f"{BEFORE_OTHERS}while time.time(): pass")
    with running(code, at(machine, NODE)) as parent:
        child = int(parent.line().split()[1])

        def at_work() -> Process | None:
            """Once it was on a processor for long enough: on a busy machine it waits for one."""
            (found,) = holders(aged(machine)).values()
            assert (found.pid, found.stale is True) == (child, False), found.stale_reason
            return found if found.stale is False else None

        assert "% of a core" in (until(at_work).stale_reason or "")


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param("signal.signal(signal.SIGHUP, signal.SIG_IGN)", id="nohup"),
        pytest.param("signal.signal(signal.SIGHUP, lambda *_: None)", id="its own handler"),
    ],
)
def test_who_was_meant_to_outlive_its_launcher_is_no_orphan(machine: Host, prepare: str) -> None:
    code = "import signal\n" + prepare + ORPHAN
    with running(code, at(machine, NODE)) as parent:
        child = int(parent.line().split()[1])
        (found,) = holders(machine).values()
        assert (found.pid, found.stale) == (child, False)
        os.kill(child, signal.SIGKILL)


def test_a_parent_that_left_its_session_is_still_there(machine: Host) -> None:
    code = """
import time
if os.fork():
    os.setsid() if os.getpgrp() != os.getpid() else None
    time.sleep(60)
f = hold(sys.argv[1]); say('holds', os.getpid()); time.sleep(60)
"""
    outer = "if os.fork(): os.wait(); os._exit(0)\n" + code  # no leader of its group: may setsid
    with running(outer, at(machine, NODE)) as top:
        child = int(top.line().split()[1])
        (found,) = holders(machine).values()
        assert (found.pid, found.stale) == (child, False)


def test_whoever_is_interrupted_while_it_waits_sends_nothing_more(machine: Host) -> None:
    """As by Ctrl-C in a notebook: the time of grace runs out, and no SIGKILL follows."""
    with running(STUBBORN, at(machine, NODE)) as child:
        child.line()
        snapshot = look(machine)
        plan = make_plan(snapshot, Request((child.pid,)), me(machine))
        interrupted: list[object] = []

        def interrupt(words: object) -> None:
            if not interrupted:
                interrupted.append(words)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        with pytest.raises(KeyboardInterrupt), without_collector():
            carry_out(machine, snapshot.chips, plan, Order(grace_s=0.5), interrupt)
        time.sleep(1.0)
        assert is_alive(child.pid)


def test_an_error_of_who_listens_is_raised_and_not_taken_for_a_hang(machine: Host) -> None:
    def fail(words: object) -> None:
        raise RuntimeError("cannot be told")

    with running(STUBBORN, at(machine, NODE)) as child:
        child.line()
        snapshot = look(machine)
        plan = make_plan(snapshot, Request((child.pid,)), me(machine))
        with pytest.raises(RuntimeError, match="cannot be told"):
            carry_out(machine, snapshot.chips, plan, IMPATIENT, fail)
