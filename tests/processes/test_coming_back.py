"""What was ended and is started again is recognised as new, with what starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.clocks import Stopwatch
from support.hosts import IS_FREE, MARK, NODE, _kill, add_chips, host, marked
from support.private_dev import on_a_machine
from support.users import ROOT
from support.waits import where_all_can_be_seen

from tpusmi.actions.end import Order, carry_out
from tpusmi.actions.outcome import Report
from tpusmi.actions.plan import Plan, Request, Starter
from tpusmi.actions.planning import planned
from tpusmi.actions.restarts import starter_of
from tpusmi.collect import look
from tpusmi.model import Host

pytestmark = pytest.mark.usefixtures("only_ours")
QUICK = Order(grace_s=20.0, free_within_s=30.0, settle_s=8.0)
LOOP = """#!/bin/sh
while :; do sh -c 'exec 3<>"$0"; echo $$ >>"$1"; exec sleep 60' "$1" "$2"; sleep "$3"; done
"""
ONCE = """#!/bin/sh
sh -c 'exec 3<>"$0"; echo $$ >>"$1"; exec sleep 60' "$1" "$2"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Host:
    add_chips(tmp_path, 1)
    return host(tmp_path, NODE)


@contextmanager
def script(text: str, machine: Host, delay_s: float = 0.0) -> Iterator[subprocess.Popen[bytes]]:
    """A script that runs a holder of the node. It is no child of this process, which would be one
    of those that start nothing again.
    """
    directory = Path(machine.root)
    path, mark = directory / "loop.sh", f"{time.monotonic_ns()}"
    path.write_text(text)
    words = ["sh", str(path), machine.path(NODE), str(directory / "pids"), str(delay_s)]
    process = subprocess.Popen(words, env={**os.environ, MARK: mark}, start_new_session=True)
    try:
        yield process
    finally:
        _kill(process.pid)
        process.wait(20)
        for pid in marked(mark):
            _kill(pid)


def pids(machine: Host, count: int) -> list[int]:
    """Pids of the holders that have been started so far, when there are so many."""
    path = Path(machine.root) / "pids"
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        found = path.read_text().split() if path.exists() else []
        if len(found) >= count:
            return [int(pid) for pid in found]
        time.sleep(0.01)
    raise AssertionError(f"no {count} holders were started")


def freed(machine: Host, pid: int, order: Order = QUICK) -> tuple[Plan, Report]:
    s = look(machine)
    plan = planned(machine, s, Request((pid,)))
    return plan, carry_out(machine, s.chips, plan, order)


@pytest.mark.parametrize("delay_s", [0.0, 0.5])
def test_a_loop_that_starts_it_again_is_named_before_and_after(
    machine: Host, delay_s: float
) -> None:
    with script(LOOP, machine, delay_s) as loop:
        (old,) = pids(machine, 1)
        with Stopwatch() as end:
            plan, report = freed(machine, old)
        assert end.seconds() < 20  # and not the whole wait
        (target,) = plan.targets
        assert target.starter is not None
        assert target.starter[:2] == ("parent", str(loop.pid))
        assert f"pid {loop.pid}, a shell script: sh /" in target.starter.words
        assert [r.outcome for r in report.results] == ["ended"]
        (new,) = report.came_back
        assert (new.pid, new.nodes, new.replaces) == (pids(machine, 2)[1], (NODE,), old)
        assert new.after_s is not None
        assert delay_s - 0.2 <= new.after_s < 30
        assert new.starter is not None
        assert f"pid {loop.pid}, a shell loop: " in new.starter.words
        assert report.is_free is False
        assert report.still_held == {NODE: (new.pid,)}


@where_all_can_be_seen
def test_what_may_come_back_later_is_said_afterwards(machine: Host) -> None:
    with script(LOOP, machine, 60) as loop:
        (old,) = pids(machine, 1)
        _, report = freed(machine, old, QUICK._replace(settle_s=0.3))
        assert (report.is_free, report.came_back) == (IS_FREE, ())
        (note,) = report.notes
        assert note.startswith(f"pid {old} may come back: started by pid {loop.pid}, a shell")


@where_all_can_be_seen
def test_a_script_that_ends_with_its_child_is_not_waited_for(machine: Host) -> None:
    with script(ONCE, machine) as once:
        (old,) = pids(machine, 1)
        with Stopwatch() as end:
            plan, report = freed(machine, old, QUICK._replace(settle_s=60.0))
        assert end.seconds() < 30
        assert plan.targets[0].starter is not None
        once.wait(20)
        assert (report.is_free, report.notes) == (IS_FREE, ())


def test_another_process_that_takes_the_node_is_new_and_replaces_nothing(machine: Host) -> None:
    """It has begun before, and has another command and parent."""
    code = (
        "import os, sys, time\n"
        "while os.path.exists(f'/proc/{sys.argv[2]}/fd/3'): time.sleep(0.005)\n"
        "f = open(sys.argv[1]); time.sleep(60)"
    )
    with script(LOOP, machine, 60):
        (old,) = pids(machine, 1)
        command = [sys.executable, "-c", code, machine.path(NODE), str(old)]
        with subprocess.Popen(command, env={**os.environ, MARK: "1"}) as other:
            try:
                _, report = freed(machine, old)
                (new,) = report.came_back
                assert (new.pid, new.replaces, new.after_s) == (other.pid, None, None)
            finally:
                other.kill()


@ROOT
def test_the_command_says_it_and_exits_5(tmp_path: Path) -> None:
    code = """
import json, os, subprocess, sys, time
path = sys.argv[1]
loop = subprocess.Popen(["sh", "-c", "while :; do sh -c 'exec 3<>/dev/vfio/0; echo $$ >" + path
                         + "; exec sleep 60'; done"], start_new_session=True)
try:
    while not os.path.exists(path) or not open(path).read().strip(): time.sleep(0.02)
    old = int(open(path).read())
    done = subprocess.run([sys.executable, "-m", "tpusmi", "kill", str(old), "--yes", "--json"],
                          capture_output=True, text=True)
    told = json.loads(done.stdout)
    (new,) = told["came_back"]
    found = done.returncode, new["replaces"] == old, new["pid"] != old, told["free"], new["nodes"]
    print(json.dumps([*found, new["starter"]["name"] == str(loop.pid), done.stderr]))
    said = subprocess.run([sys.executable, "-m", "tpusmi", "kill", str(new["pid"]), "--yes"],
                          capture_output=True, text=True).stdout
    print(json.dumps(said))
finally:
    loop.kill()
    loop.wait()
    os.kill(int(open(path).read()), 9)
"""
    # Its own descriptor would be one more holder.
    script = "exec 3<>/dev/vfio/0\n"
    from support.private_dev import ON_A_MACHINE

    command = (sys.executable, "-c", code, str(tmp_path / "pid"))
    found = on_a_machine(tmp_path, *command, script=ON_A_MACHINE.replace(script, ""))
    lines = found.stdout.splitlines()
    assert len(lines) == 2, found.stderr
    *told, words = json.loads(lines[0])
    assert told == [5, True, True, False, ["/dev/vfio/0"], True]
    assert "may come back: started by pid " in words
    said = json.loads(lines[1])
    assert " is new: it took /dev/vfio/0 " in said
    assert ", a shell loop: sh -c while :; do" in said


def test_whoever_runs_this_starts_nothing_again(machine: Host) -> None:
    with script(LOOP, machine) as loop:
        (old,) = pids(machine, 1)
        assert starter_of(machine, old, ()) is not None
        assert starter_of(machine, old, (loop.pid,)) is None


def test_a_persons_shell_starts_nothing_again(machine: Host) -> None:
    """`bash -i` at a terminal waits for its job as a loop would."""
    code = 'exec 3<>"$NODE"; echo $$ >>"$PIDS"; sleep 60 & wait'
    env = {**os.environ, "NODE": machine.path(NODE), "PIDS": f"{machine.root}/pids", "CODE": code}
    with subprocess.Popen(["sh"], stdin=subprocess.PIPE, env={**env, MARK: "2"}) as shell:
        assert shell.stdin is not None
        shell.stdin.write(b'sh -c "$CODE"\necho\n')
        shell.stdin.flush()
        (old,) = pids(machine, 1)
        try:
            assert starter_of(machine, old, ()) is None
        finally:
            for pid in marked("2"):
                _kill(pid)


CONTAINER = "3f6c1f0b9a52" + "0" * 52


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (f"0::/system.slice/docker-{CONTAINER}.scope", "container 3f6c1f0b9a52: docker stop {}"),
        (f"4:memory:/docker/{CONTAINER}\n0::/", "container 3f6c1f0b9a52: docker stop {}"),
        (f"0::/machine.slice/libpod-{CONTAINER}.scope", "container 3f6c1f0b9a52: podman stop {}"),
        (
            f"0::/user.slice/user-1001.slice/user@1001.service/docker-{CONTAINER}.scope",
            "container 3f6c1f0b9a52 of that user: podman stop as them",
        ),
        (
            f"0::/kubepods.slice/kubepods-pod12.slice/cri-containerd-{CONTAINER}.scope",
            "container 3f6c1f0b9a52 of a pod: kubectl delete pod",
        ),
        (
            "0::/system.slice/train.service",
            "unit train.service (Restart=always): systemctl stop train.service",
        ),
        (
            "0::/system.slice/train@a.service",
            "unit train@a.service (Restart=on-failure): systemctl stop train@a.service",
        ),
        ("0::/system.slice/once.service", None),
        (
            "0::/system.slice/elsewhere.service",
            "unit elsewhere.service: systemctl stop elsewhere.service",
        ),
        (
            "0::/user.slice/user-7.slice/user@7.service/app.slice/my.service",
            "unit my.service: systemctl --user stop my.service",
        ),
        ("0::/user.slice/user-7.slice/user@7.service/app.slice/tmux.scope", None),
        ("0::/user.slice/user-7.slice/session-3.scope", None),
        ("0::/system.slice/cron.service", None),
        ("0::/system.slice/ssh.service", None),
        ("0::/system.slice/x;reboot #.service", None),
        ("0::/", None),
    ],
)
def test_a_unit_and_a_container_are_known_by_the_control_group(
    tmp_path: Path, groups: str, expected: str | None
) -> None:
    machine = Host(root=str(tmp_path))
    (tmp_path / "proc/77").mkdir(parents=True)
    (tmp_path / "proc/77/cgroup").write_text(groups + "\n")
    for name, text in (
        ("etc/systemd/system/train.service", "[Service]\nRestart=no\n"),
        ("etc/systemd/system/train.service.d/more.conf", "[Service]\nRestart=always\n"),
        ("usr/lib/systemd/system/train@.service", "[Service]\nRestart=on-failure\n"),
        ("usr/lib/systemd/system/once.service", "[Service]\nExecStart=/bin/x\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = starter_of(machine, 77, ())
    words = None if found is None else found.words
    assert words == (expected and expected.format(CONTAINER[:12]))
    assert found is None or isinstance(found, Starter)
