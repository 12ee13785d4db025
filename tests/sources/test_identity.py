"""Who a process is says the kernel: what another user's file says of it is a row of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import hosts, segments
from support.hosts import seen
from support.users import ROOT, reachable

from tpusmi.model import Host, Outcome, Process, ProcessKey, Snapshot
from tpusmi.report import query
from tpusmi.report.html import fragment
from tpusmi.report.plain_table import table
from tpusmi.report.select import Selection, selected
from tpusmi.sources.segments import Segments, evidence
from tpusmi.wire import identity
from tpusmi.wire.layout import Identity
from tpusmi.wire.writer import SegmentWriter

pytestmark = ROOT

FORGER, VICTIM = 41001, 41500
"""In this order: the forger's directory is read first."""
IDLE = {**segments.RUNNING, "phase": 3.0, "since_last_step_s": 7200.0}
SAID = {"argv": ["xmrig", "--coin=monero"], "warnings": [{"code": "x", "message": "forged words"}]}


_OPEN: list[SegmentWriter] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


def segment(
    host: Host,
    uid: int,
    pid: int,
    fields_: dict[str, float] | None = None,
    held: bool | None = None,
    age_s: float = 0.0,
    **more: Any,
) -> str:
    """A file of that user that says to be the segment of that process: with a lock that somebody
    has, with one that is free, or of an agent that knew no lock.
    """
    directory = Path(host.path(f"/dev/shm/tpusmi-{uid}"))
    directory.mkdir(parents=True, exist_ok=True)
    os.chown(directory, uid, uid)
    said = {"said": segments.facts(2, **more.pop("told", {})), "devices": 2}
    who = identity_of(pid)._replace(uid=uid, **more)
    writer = segments.segment(directory, who, **said)
    now = time.monotonic() - age_s
    sample = {**(fields_ or segments.RUNNING), "profile_at_s": now, "utilization_at_s": now}
    writer.append(
        segments.slot(now, sample, [segments.device(), segments.device(1)], time.time() - age_s)
    )
    if held is None:
        segments.without_lock(writer)
    elif held:
        _OPEN.append(writer)
    else:
        writer.close()
    os.chown(writer.path, uid, uid)
    return writer.path


def identity_of(pid: int) -> Identity:
    """What the agent of that process would say of itself."""
    ticks = identity.start_ticks("/proc", pid)
    assert ticks is not None
    return identity.me()._replace(pid=pid, start_ticks=ticks)


@pytest.fixture
def machine(tmp_path: Path) -> Host:
    return hosts.open_machine(tmp_path, 2)._replace(segment_dir=None)


@contextmanager
def victim(machine: Host, user: int | None = None) -> Iterator[int]:
    """A process of root, or of that user, that holds both chips."""
    nodes = [Path(machine.path(f"/dev/vfio/{n}")) for n in range(2)]
    with reachable(Path(machine.root)), hosts.holder(*nodes, user=user) as pid:
        yield pid


def rows(s: Snapshot, pid: int) -> tuple[Process, Process]:
    """The process, and the claim that has its number."""
    sure, claimed = [p for p in s.processes if p.pid == pid]
    assert (sure.is_verified, claimed.is_verified) == (True, False)
    return sure, claimed


NAMESPACES = pytest.mark.parametrize("more", [{}, {"pid_namespace": 1}], ids=["ours", "another"])

LOCKS = pytest.mark.parametrize(
    "held", [None, True, False], ids=["knows no lock", "lock held", "lock free"]
)


@LOCKS
@NAMESPACES
def test_another_users_segment_says_nothing_of_a_holder(
    machine: Host, more: dict[str, Any], held: bool | None
) -> None:
    with victim(machine) as pid:
        before = seen(machine)
        path = segment(machine, FORGER, pid, IDLE, held, told=SAID, **more)
        s = seen(machine)
        (alone,) = before.processes
        holder, claimed = rows(s, pid)
        assert holder._replace(life=None) == alone._replace(life=None)
        assert (holder.user, holder.uid) == ("root", 0)
        assert "xmrig" not in holder.command
        assert holder.holds == ("/dev/vfio/0", "/dev/vfio/1")
        assert (claimed.uid, claimed.user, claimed.holds) == (FORGER, str(FORGER), ())
        assert claimed.key == ProcessKey(pid, holder.key.start_ticks, path)
        assert [d.owners for d in s.devices] == [(holder.key,)] * 2
        assert {s.value("hbm_used_bytes", d.key) for d in s.devices} == {None}
        assert s.value("steps", holder.key) is None
        assert [n for n in s.warnings if "forged" in n.message] == []
        assert {n.pid for n in s.warnings} == {n.pid for n in before.warnings}
        assert len(s.devices_of(claimed.key)) == 2


@LOCKS
def test_the_own_agent_of_a_holder_is_believed_beside_a_forged_one(
    machine: Host, held: bool | None
) -> None:
    with victim(machine, VICTIM) as pid:
        segment(machine, VICTIM, pid)
        before = seen(machine)
        segment(machine, FORGER, pid, IDLE, held, told=SAID, pid_namespace=1)
        s = seen(machine)
        (alone,) = before.processes
        holder, _ = rows(s, pid)
        assert (holder.uid, holder.phase, holder.state) == (VICTIM, "running", "live")
        assert holder.command == alone.command
        assert [(d.key.process, d.owners) for d in s.devices] == [(holder.key, (holder.key,))] * 2
        for d in s.devices:
            assert s.value("hbm_used_bytes", d.key) == before.value("hbm_used_bytes", d.key)


def test_a_holder_that_became_another_program_is_not_the_job_that_it_was(machine: Host) -> None:
    with victim(machine, VICTIM) as pid:
        (alone,) = seen(machine).processes
        segment(machine, VICTIM, pid, held=False, age_s=60.0, told=SAID)
        s = seen(machine)
        holder, ended = rows(s, pid)
        assert holder._replace(life=None) == alone._replace(life=None)
        assert (ended.state, ended.phase, ended.holds) == ("dead", "ended", ())
        assert [d.owners for d in s.devices] == [(holder.key,)] * 2
        assert {s.value("hbm_used_bytes", d.key) for d in s.devices} == {None}
        assert "xmrig" in ended.command


def test_an_agent_that_is_about_to_make_another_segment_is_believed_meanwhile(
    machine: Host,
) -> None:
    with victim(machine, VICTIM) as pid:
        segment(machine, VICTIM, pid, held=False)
        (process,) = seen(machine).processes
        assert (process.state, process.phase) == ("live", "running")


def test_an_agent_that_switched_itself_off_leaves_a_silent_job(machine: Host) -> None:
    off = {"warnings": [{"code": "agent_off", "message": "the agent switched itself off: x"}]}
    with victim(machine, VICTIM) as pid:
        segment(machine, VICTIM, pid, held=False, age_s=60.0, told=off)
        (process,) = seen(machine).processes
        assert (process.state, process.is_verified) == ("silent", True)


@pytest.mark.parametrize("sees_all", [False, True])
def test_where_every_process_is_seen_none_is_said_to_be_in_a_namespace_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sees_all: bool
) -> None:
    own = identity.pid_namespace("/proc")
    monkeypatch.setattr(evidence, "FIRST_PID_NAMESPACE", own if sees_all else 1)
    host = hosts.host(tmp_path)._replace(segment_dir=None)
    segment(host, FORGER, os.getpid(), held=True, pid_namespace=1)
    (process,) = Segments(host).read(time.monotonic()).processes
    assert (process.state, process.is_verified) == ("live", False)
    assert process.elsewhere == ("" if sees_all else "in another pid namespace")


def test_a_claim_is_marked_in_every_view(machine: Host) -> None:
    with victim(machine) as pid:
        segment(machine, FORGER, pid, IDLE, told=SAID, pid_namespace=1)
        s = seen(machine)
    lines = [line for line in table(s).splitlines() if "xmrig" in line]
    assert len(lines) == 1
    assert "idle (not verified)" in lines[0]
    assert "idle (not verified)" in fragment(s)
    whole = json.loads(json.dumps(s.to_dict()))
    assert [(p["pid"], p["uid"], p["verified"]) for p in whole["processes"]] == [
        (pid, 0, True),
        (pid, FORGER, False),
    ]
    assert [d["pids"] for d in whole["devices"]] == [[pid]] * 2
    assert [p["holds"] for p in whole["processes"]] == [["/dev/vfio/0", "/dev/vfio/1"], []]
    columns = query.parse_query("pid,user,verified", query.process_fields())
    layout = query.parse_format("csv,noheader")
    told = query.csv_rows(s, s.processes, columns, layout).splitlines()
    assert told == [f"{pid}, root, True", f"{pid}, {FORGER}, False"]


@LOCKS
def test_who_asks_for_a_pid_gets_the_process_and_not_the_claim(
    machine: Host, held: bool | None
) -> None:
    with victim(machine) as pid:
        segment(machine, FORGER, pid, IDLE, held, told=SAID, pid_namespace=1)
        s = seen(machine)
    found = selected(s, Selection(pids=(pid,)))
    assert [p.is_verified for p in found.processes] == [True]
    assert len(found.devices) == 2
    for name in ("0", "tpu:0"):
        (process,) = selected(s, Selection(devices=(name,))).processes
        assert process.is_verified


def test_a_number_that_nobody_has_is_shown_as_what_a_file_says(machine: Host) -> None:
    who = segments.dead_identity()
    segment(machine, FORGER, os.getpid(), start_ticks=who.start_ticks, pid_namespace=1)
    s = seen(machine)
    (claimed,) = selected(s, Selection(pids=(os.getpid(),))).processes
    assert (claimed.is_verified, claimed.state) == (False, "live")
    assert all(d.owners == () for d in s.devices)


def test_a_process_that_has_changed_its_user_is_not_the_one_that_wrote(tmp_path: Path) -> None:
    code = "say('mine'); sys.stdin.readline(); os.setresuid(0, 0, 0); say(1)"
    become = f"os.setresuid({FORGER}, 0, 0); "
    host = hosts.host(tmp_path)._replace(segment_dir=None)
    source = Segments(host)
    with hosts.running(f"{become}{code}; wait()") as child:
        assert child.line() == "mine"
        segment(host, FORGER, child.pid)
        (process,) = source.read(time.monotonic()).processes
        assert (process.is_verified, process.uid) == (True, FORGER)
        child.go_on()
        (process,) = source.read(time.monotonic()).processes
        assert process.is_verified is False


def test_a_job_that_has_ended_keeps_its_row(tmp_path: Path) -> None:
    host = hosts.host(tmp_path)._replace(segment_dir=None)
    source = Segments(host)
    with hosts.running("say('here'); wait()", user=VICTIM) as child:
        assert child.line() == "here"
        segment(host, VICTIM, child.pid)
        (process,) = source.read(time.monotonic()).processes
        child.let_go()
        (after,) = source.read(time.monotonic()).processes
    assert (process.state, after.state) == ("live", "dead")
    assert process.key == after.key == ProcessKey(child.pid, process.key.start_ticks)
    (later,) = Segments(host).read(time.monotonic()).processes
    assert later.key == process.key


def test_two_users_black_boxes_of_one_process_are_told_apart(tmp_path: Path) -> None:
    host = hosts.host(tmp_path)._replace(segment_dir=None)
    ticks = segments.dead_identity().start_ticks
    for uid in (FORGER, VICTIM):
        segment(host, uid, os.getpid(), start_ticks=ticks)
    found = Segments(host).read(time.monotonic())
    assert [(p.uid, p.state, p.is_verified) for p in found.processes] == [
        (FORGER, "dead", False),
        (VICTIM, "dead", False),
    ]
    assert len({p.key for p in found.processes}) == 2
    segment(host, 0, os.getpid(), start_ticks=ticks)
    found = Segments(host).read(time.monotonic())
    assert [p.uid for p in found.processes if p.is_verified] == [0]


ELSEWHERE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c"]
INNER_JOB = """
import sys, time
sys.path[:0] = [{tests!r}]
from support import segments
from tpusmi.wire import identity
writer = segments.my_segment(sys.argv[1])
print(identity.me().pid, flush=True)
sys.stdin.read()
"""


def test_a_containers_job_is_the_process_that_the_host_sees(tmp_path: Path) -> None:
    host = hosts.host(tmp_path)._replace(segment_dir=None)
    directory = tmp_path / "dev/shm/tpusmi-0"
    directory.mkdir(parents=True)
    code = INNER_JOB.format(tests=str(Path(__file__).parent.parent))
    command = [*ELSEWHERE, code, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        assert job.stdout.readline().strip() == "1"
        (outer,) = children(job.pid)
        (process,) = Segments(host).read(time.monotonic()).processes
        assert (process.pid, process.is_verified, process.state) == (outer, True, "live")
        for path in directory.iterdir():  # now it is another user's word
            os.chown(path, FORGER, FORGER)
        os.chown(directory, FORGER, FORGER)
        directory.rename(directory.parent / f"tpusmi-{FORGER}")
        assert [p for p in Segments(host).read(time.monotonic()).processes if p.is_verified] == []
        job.stdin.close()
        job.wait(20)


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


VIEWER = """
import json, os, sys, time
sys.path[:0] = [{tests!r}]
from tpusmi.model import Host
from tpusmi.sources.segments import Segments, evidence
if os.getuid() == 0:
    import pwd
    Segments(Host(root={root!r})).read(time.monotonic())  # what it imports, he may not read
    os.setgroups([]); os.setgid({uid}); os.setuid({uid})
found = Segments(Host(root={root!r})).read(time.monotonic())
print(json.dumps([[p.uid, p.state, p.is_verified] for p in found.processes]))
"""


@pytest.mark.parametrize("hidepid", [0, 1, 2, 4])
def test_where_proc_hides_others_ones_own_dead_job_is_dead_and_others_by_their_lock(
    tmp_path: Path, hidepid: int
) -> None:
    host = hosts.host(tmp_path)._replace(segment_dir=None)
    users = {VICTIM: None, FORGER: None, FORGER + 1: True, FORGER + 2: False}
    for uid, held in users.items():
        ticks = segments.dead_identity().start_ticks + uid
        segment(host, uid, os.getpid() if uid != FORGER + 1 else 1, held=held, start_ticks=ticks)
    code = VIEWER.format(tests=str(Path(__file__).parent.parent), uid=VICTIM, root=str(tmp_path))
    script = f'mount -t proc -o hidepid={hidepid} proc /proc && exec "$@"'
    command = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh"]
    with reachable(tmp_path):
        said = subprocess.run(
            [*command, sys.executable, "-c", code], capture_output=True, text=True, timeout=60
        )
    assert said.stderr == ""
    found = {uid: (state, is_sure) for uid, state, is_sure in json.loads(said.stdout)}
    hides = bool(hidepid)
    assert found[VICTIM] == ("dead", True)
    assert found[FORGER] == (("live", False) if hides else ("dead", True))
    assert found[FORGER + 1] == (("live", False) if hides else ("dead", True))
    assert found[FORGER + 2] == ("dead", not hides)


def missing(found: Outcome) -> list[tuple[int | None, ProcessKey | None]]:
    return [(m.uid, m.process) for m in found.missing]


def test_a_segment_that_cannot_be_read_is_a_missing_witness_of_its_own_process(
    tmp_path: Path,
) -> None:
    host = hosts.host(tmp_path)._replace(segment_dir=None)
    with hosts.running("say('here'); wait()", user=VICTIM) as child:
        assert child.line() == "here"
        path = segment(host, VICTIM, child.pid)
        forged = segment(host, FORGER, child.pid)
        for file in (path, forged):
            with open(file, "r+b") as broken:
                broken.write(b"garbage")
        found = Segments(host).read(time.monotonic())
        key = ProcessKey(child.pid, identity_of(child.pid).start_ticks)
        assert sorted(missing(found)) == [(FORGER, None), (VICTIM, key)]
        os.utime(forged, (1.0, 1.0))
        assert missing(Segments(host).read(time.monotonic())) == [(VICTIM, key)]
