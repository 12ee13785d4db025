"""Real holders that have lost who started them: which are left over, and which are spared."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.hosts import BEFORE_OTHERS, HOLD, NODE, add_chips, host, running
from support.requirements import needs
from support.users import ROOT
from support.waits import until

from tpusmi.collect import look
from tpusmi.model import Host, Process, Verdict
from tpusmi.sources.holders.scan import sees_every_process

STALE, MAYBE, UNKNOWN, NOT = Verdict.STALE, Verdict.MAYBE, Verdict.UNKNOWN, Verdict.NOT_STALE
HOUR = 3600.0

LEFT = """
import socket, time
node, how, *more = sys.argv[1:]
NULL = os.open('/dev/null', os.O_RDWR)
def to(descriptor, *streams):
    for stream in streams or (1, 2): os.dup2(descriptor, stream)
pair = socket.socketpair() if how.startswith('pair') else ()
if how == 'connected':
    server = socket.create_server(('127.0.0.1', 0))
if not os.fork():
    os.setsid()
    if how == 'leader' and os.fork(): time.sleep(60)
    leader = os.getpid()
    if os.fork():
        if how == 'siblings' and not os.fork():
            os.open(more[0], os.O_WRONLY | os.O_CREAT); time.sleep(60)
        os._exit(0)
    while os.getppid() == leader: time.sleep(0.001)
    files = hold(node)
    words = ('holds', os.getpid())
    keep = os.dup(1)
    def told(): os.write(keep, (" ".join(map(str, words)) + "\\n").encode()); os.close(keep)
    to(NULL, *((2,) if how == 'read' else (1, 2)))
    exec(HOW.get(how, ''))
    if how == 'connected': server.close()
    told()
    while how in ('busy', 'starved'): pass
    time.sleep(60)
    os._exit(0)
if how == 'pair': pair[1].close()
elif how == 'pair closed': pair[0].close(); pair[1].close()
if how == 'connected': kept = server.accept()
wait()
"""
HOW = {
    "starved": "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
    "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\n"
    "if os.path.exists('/proc/self/autogroup'): open('/proc/self/autogroup', 'w').write('19')",
    "unread": "r, w = os.pipe(); to(w); os.close(r); os.close(w)",
    "own": "r, w = os.pipe(); to(w); os.close(w)",
    "child": "r, w = os.pipe(); to(w); os.close(w)\nif not os.fork(): time.sleep(60)\nos.close(r)",
    "file": "to(os.open(more[0], os.O_WRONLY | os.O_CREAT))",
    "siblings": "to(os.open(more[0], os.O_WRONLY | os.O_CREAT))",
    "pair": "pair[0].close(); to(pair[1].fileno())",
    "pair closed": "pair[0].close(); to(pair[1].fileno())",
    "connected": "c = socket.create_connection(server.getsockname()); to(c.fileno())",
    "tcp": "s = socket.create_server(('127.0.0.1', 0))",
    "tcp elsewhere": "s = socket.create_server(('127.0.0.77', 0))",
    "libtpu": "s = socket.create_server(('127.0.0.1', int(more[0])))",
    "unix": "s = socket.socket(socket.AF_UNIX); "
    "s.bind(f'\\0tpusmi-test-{os.getpid()}'); s.listen()",
    "busy": BEFORE_OTHERS,
    "worker": f"{BEFORE_OTHERS}if not os.fork():\n    while True: pass",
    "stopped": "import signal\n"
    "if not os.fork(): time.sleep(0.3); os.kill(os.getppid(), 19); os._exit(0)",
}
"""What it does when it holds the node; without an entry, nothing."""

HOLDER = """
import time
f = hold(sys.argv[1])
open(sys.argv[2], 'w').write(str(os.getpid()))
time.sleep(60)
"""

pytestmark = pytest.mark.usefixtures("only_ours")


@pytest.fixture
def machine(tmp_path: Path) -> Host:
    """A chip, on a machine whose processes are an hour older than the kernel says."""
    add_chips(tmp_path, 1)
    return host(tmp_path, NODE)._replace(older_s=HOUR)


@contextmanager
def left(machine: Host, how: str, *more: object) -> Iterator[int]:
    """The pid of a holder whose parent and session have ended."""
    code = f"HOW = {HOW!r}\n" + LEFT
    with running(code, machine.path(NODE), how, *more) as child:
        yield int(child.line().split()[1])


def found(machine: Host, pid: int) -> Process:
    """The holder, as every command sees it."""
    (process,) = (p for p in look(machine).processes if p.holds and p.pid == pid)
    return process


def test_the_classic_is_stale_and_the_reason_says_what_was_asked(machine: Host) -> None:
    with left(machine, "null") as pid:
        p = found(machine, pid)
    assert (p.verdict, p.stale_code) == (STALE, "orphaned"), p.stale_reason
    reason = p.stale_reason or ""
    assert "its launcher, process " in reason
    assert "neither an agent nor a metrics server of its own answers" in reason
    assert re.search(r"% of a core over \d+\.\d s", reason)


def test_kill_stale_frees_the_chips_of_the_classic(machine: Host) -> None:
    from tpusmi.actions.end import Order, carry_out
    from tpusmi.actions.plan import Request, make_plan
    from tpusmi.actions.planning import me

    with left(machine, "null") as pid:
        snapshot = look(machine)
        plan = make_plan(snapshot, Request(stale=True), me(machine))
        report = carry_out(machine, snapshot.chips, plan, Order(grace_s=20.0, free_within_s=20.0))
        assert [(r.process.pid, r.outcome) for r in report.results] == [(pid, "ended")]


def test_three_seconds_after_its_start_it_is_a_suspect_at_most(machine: Host) -> None:
    with left(machine, "null") as pid:
        p = found(machine._replace(older_s=0.0), pid)
    assert (p.verdict, p.stale) == (MAYBE, None)
    assert "but it is only " in (p.stale_reason or "")


def test_one_that_works_and_gets_none_of_the_processor_is_not_stale(machine: Host) -> None:
    """As where another user has started many busy processes."""
    # Each in a session of its own: the kernel may share the processor out among sessions.
    crowd = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n" + (
        "for _ in range(12):\n"
        "    if not os.fork():\n"
        "        os.setsid()\n"
        "        while True: pass\n"
        "say('spins'); wait()"
    )
    with left(machine, "starved") as pid, running(crowd) as spinners:
        assert spinners.line() == "spins"
        p = found(machine, pid)
    assert p.verdict in (MAYBE, NOT), p.stale_reason
    if " of a core over " not in (p.stale_reason or ""):  # it got next to none
        assert f"process {pid} " in (p.stale_reason or "")
        assert "waits for the processor" in (p.stale_reason or "")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("read", "its output goes to a pipe that process "),
        ("leader", "the leader of its session, process "),
        ("pair", "its output goes to a socket that another process has open"),
        ("connected", "its output goes to a socket that another process has open"),
        ("tcp", "it listens for clients on TCP port "),
        ("tcp elsewhere", "it listens for clients on TCP port "),
        ("unix", "it listens for clients on the unix socket @tpusmi-test"),
        ("stopped", "it is stopped (state T): SIGSTOP or Ctrl-Z"),
    ],
)
def test_one_that_may_be_waited_for_is_not_stale(machine: Host, how: str, reason: str) -> None:
    with left(machine, how) as pid:
        if how == "stopped":
            _wait_for_state(pid, "T")
        p = found(machine, pid)
        os.kill(pid, signal.SIGKILL)
    assert p.verdict == MAYBE, p.stale_reason
    assert reason in (p.stale_reason or "")


@pytest.mark.parametrize("how", ["unread", "own", "child", "pair closed"])
def test_an_output_that_nobody_reads_ties_it_to_nobody(machine: Host, how: str) -> None:
    if how in ("own", "child") and not _sees_all():
        pytest.skip("who reads a pipe is known to who sees every process")
    with left(machine, how) as pid:
        p = found(machine, pid)
    assert p.verdict == STALE, p.stale_reason


def test_a_file_that_another_process_reads_ties_it_to_that_one(
    machine: Host, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with left(machine, "file", log) as pid:
        with running("f = open(sys.argv[1]); say('open'); wait()", log) as reader:
            reader.line()
            p = found(machine, pid)
            assert p.verdict == MAYBE
            assert f"process {reader.pid} " in (p.stale_reason or "")
            assert f"has its output {str(log)[:60]}" in (p.stale_reason or "")  # it may be long
        if _sees_all():
            p = found(machine, pid)
            assert p.verdict == STALE, p.stale_reason
        else:
            assert "cannot be seen" in (found(machine, pid).stale_reason or "")


def test_those_that_were_left_together_do_not_speak_for_each_other(
    machine: Host, tmp_path: Path
) -> None:
    if not _sees_all():
        pytest.skip("who has a file open is known to who sees every process")
    with left(machine, "siblings", tmp_path / "log") as pid:
        p = found(machine, pid)
    assert p.verdict == STALE, p.stale_reason


def test_a_port_of_libtpus_own_is_no_service_for_clients(machine: Host) -> None:
    with left(machine, "libtpu", _free_slice_port()) as pid:
        p = found(machine, pid)
    assert p.verdict == STALE, p.stale_reason


@pytest.mark.parametrize("how", ["busy", "worker"])
def test_one_that_works_or_whose_children_do_is_not_stale(machine: Host, how: str) -> None:
    with left(machine, how) as pid:

        def at_work() -> Process | None:
            """Once it was on a processor for long enough: on a busy machine it waits for one."""
            p = found(machine, pid)
            assert p.verdict in (NOT, MAYBE), p.stale_reason
            return p if p.verdict == NOT else None

        assert "% of a core" in (until(at_work).stale_reason or "")


DETACHED = {
    "ssh": "setsid sh -c 'exec </dev/null >{log} 2>&1; {holder} & sleep 0.2'",
    "subshell": "setsid bash -c '({holder} &) </dev/null >{log} 2>&1'",
    "disown": "setsid bash -c '{holder} </dev/null >{log} 2>&1 & disown; sleep 0.2'",
    "nohup": "setsid sh -c 'nohup {holder} </dev/null >{log} 2>&1 & sleep 0.2'",
}


@needs("bash", "setsid")
@pytest.mark.parametrize("way", DETACHED)
def test_a_job_that_was_detached_is_not_stale_when_it_starts(
    machine: Host, tmp_path: Path, way: str
) -> None:
    """As over ssh, whose shell ends at once: its parent is the init process from then on."""
    with detached(tmp_path, machine, DETACHED[way]) as pid:
        p = found(machine._replace(older_s=0.0), pid)
        assert p.verdict == (NOT if way == "nohup" else MAYBE), p.stale_reason
        assert p.life is not None
        assert p.life.parent != os.getpid()


@contextmanager
def detached(tmp_path: Path, machine: Host, line: str) -> Iterator[int]:
    """The pid of a holder that a shell has started in the background, and has left."""
    script, told = tmp_path / "holder.py", tmp_path / "pid"
    script.write_text(HOLD + HOLDER)
    holder = shlex.join([sys.executable, str(script), machine.path(NODE), str(told)])
    with ExitStack() as stack:
        shell = running(
            "import subprocess, signal\n"
            "subprocess.run(sys.argv[1], shell=True, executable='/bin/bash')\n"
            "say('done'); wait()",
            line.format(holder=holder, log=tmp_path / "log"),
        )
        stack.enter_context(shell).line()
        until_s = time.monotonic() + 60
        while not (told.exists() and told.read_text()):
            assert time.monotonic() < until_s
            time.sleep(0.01)
        yield int(told.read_text())


@ROOT
def test_who_cannot_see_everybody_spares_one_whose_output_may_be_open_elsewhere(
    machine: Host, tmp_path: Path
) -> None:
    """A log file that a process of another user may have open: nobody says that it has not."""
    code = """
import os
from pathlib import Path
from tpusmi import collect
from tpusmi.model import Host
h = Host(root=sys.argv[1], segment_dir=sys.argv[1] + '/none', metrics_ports=(), older_s=3600.0)
collect.look(h)
from tpusmi.sources.holders import ties
os.setgroups([]); os.setuid(65534)
opened = ties._openers('/proc', {'/some/file'}, ties.Kin('/proc'))
say(opened.is_complete)
"""
    with running(code, machine.root) as viewer:
        assert viewer.line() == "False"


def test_a_stopped_holder_is_called_stopped_and_is_a_suspect_at_most(machine: Host) -> None:
    with running("f = hold(*sys.argv[1:]); say('holds'); wait()", machine.path(NODE)) as child:
        child.line()
        child.process.send_signal(signal.SIGSTOP)
        _wait_for_state(child.pid, "T")
        p = found(machine, child.pid)
        assert (p.verdict, p.stale_code) == (MAYBE, "stopped")
        assert p.stale_reason == "stopped (state T): SIGSTOP or Ctrl-Z"
        assert p.life is not None
        assert p.life.state == "T"
        child.process.send_signal(signal.SIGCONT)


def test_one_that_says_nothing_for_long_may_be_stuck(machine: Host) -> None:
    with running("f = hold(*sys.argv[1:]); say('holds'); wait()", machine.path(NODE)) as child:
        child.line()
        p = found(machine, child.pid)
        assert (p.verdict, p.stale_code) == (MAYBE, "quiet")
        assert "still starting, or stuck" in (p.stale_reason or "")
        young = found(machine._replace(older_s=0.0), child.pid)
        assert young.verdict == NOT


def _wait_for_state(pid: int, state: str) -> None:
    until_s = time.monotonic() + 30
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != state:
        assert time.monotonic() < until_s
        time.sleep(0.01)


def _sees_all() -> bool:
    """Whether this test may look at every process but the init."""
    return os.geteuid() == 0 and sees_every_process() is True


def _free_slice_port() -> int:
    import socket

    for port in range(8470, 8483):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    pytest.skip("no port of libtpu's slice builder is free")
