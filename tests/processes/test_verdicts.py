"""One verdict, whichever command is asked; and none where a witness could not be asked."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.commands import environment, tpusmi
from support.users import ROOT
from support.waits import with_a_short_limit

from tpusmi import collect
from tpusmi.model import FAILED, Host, Process
from tpusmi.simulate.host import HostPlan, start

HELD, STALE = 5, 6
OLD_S = 700.0


@pytest.mark.parametrize(
    ("plan", "verdict", "code"),
    [
        pytest.param(HostPlan("v5e-4", faults=("orphan",)), "stale", "orphaned", id="orphan"),
        pytest.param(
            HostPlan("v5e-4", faults=("empty",), age_s=OLD_S), "stale", "stuck", id="stuck"
        ),
        pytest.param(
            HostPlan("v5e-4", faults=("no-server", "sdk-crash"), age_s=OLD_S),
            *("maybe", "quiet"),
            id="no witness",
        ),
        pytest.param(HostPlan("v5e-4"), "not_stale", None, id="in training"),
    ],
)
@with_a_short_limit
def test_every_command_says_the_same_of_a_holder(
    plan: HostPlan, verdict: str, code: str | None
) -> None:
    with start(plan) as simulated:
        root = simulated.root
        listing = tpusmi(root, "ps", "--simulate", root)
        table = tpusmi(root, "-1", "--simulate", root)
        told = [
            _holder(tpusmi(root, *command, "--json", "--simulate", root).stdout)
            for command in (("ps",), ())
        ]
        seen = [_judged(collect.look(simulated).processes), _judged(_dashboard(simulated))]
    assert [(p["verdict"], p["stale_code"]) for p in told] == [(verdict, code)] * 2
    assert seen == [(verdict, code)] * 2
    assert listing.returncode == (STALE if verdict == "stale" else HELD)
    for p in told:
        assert p["stale"] is {"stale": True, "not_stale": False}.get(verdict)
        assert [sign["code"] for sign in p["signs"]][:1] == ([code] if code else [])
    if code is None:
        assert "stale" not in table.stdout
    else:
        assert ("may be stale (kill" in listing.stdout) == (verdict == "maybe")
        assert f"stale ({code}): " in listing.stdout
        assert f"stale ({code}): " in table.stdout


def _holder(text: str) -> dict[str, object]:
    (found,) = (p for p in json.loads(text)["processes"] if p["holds"])
    return dict(found)


def _judged(processes: tuple[Process, ...]) -> tuple[str | None, str | None]:
    (p,) = (p for p in processes if p.holds)
    return p.verdict and p.verdict.value, p.stale_code


def _dashboard(machine: Host) -> tuple[Process, ...]:
    """The processes as the dashboard asks for them."""
    collector = collect.open_collector(machine, True, 1.0, detailed=True)
    try:
        return collector.read_once(5.0).processes
    finally:
        collector.stop()


@with_a_short_limit
def test_without_the_agents_nobody_is_ended_as_stale() -> None:
    """The directory of the segments is a link to itself: any user can make one."""
    with start(HostPlan("v5e-4", faults=("orphan",))) as machine:
        assert tpusmi(machine.root, "ps", "--simulate", machine.root).returncode == STALE
        shutil.rmtree(f"{machine.root}/segments")
        os.symlink("segments", f"{machine.root}/segments")
        listing = tpusmi(machine.root, "ps", "--simulate", machine.root)
        told = _holder(tpusmi(machine.root, "--json", "--simulate", machine.root).stdout)
        killed = tpusmi(machine.root, "kill", "--stale", "--yes", "--simulate", machine.root)
        again = tpusmi(machine.root, "ps", "--simulate", machine.root)
    assert (told["verdict"], told["stale"]) == ("unknown", None)
    assert "a witness could not be asked (agent: " in str(told["stale_reason"])
    assert listing.returncode == again.returncode == HELD
    assert "cannot be judged (orphaned): its launcher" in listing.stdout
    assert " ?  " in listing.stdout
    assert "ended by" not in killed.stdout


@pytest.mark.parametrize("source", ["segments.Segments", "libtpu.Libtpu", "sysfs.Sysfs"])
def test_a_source_that_breaks_makes_it_unknown(
    monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    def fail(self: object, now_s: float) -> None:
        raise OSError(5, "Input/output error")

    with start(HostPlan("v5e-4", faults=("orphan",))) as machine:
        monkeypatch.setattr(f"tpusmi.sources.{source}.read", fail)
        snapshot = collect.look(machine)
    assert [o.status for o in snapshot.sources].count(FAILED) == 1
    (p,) = (p for p in snapshot.processes if p.holds)
    assert p.verdict is not None
    assert p.verdict.value == "unknown", p.stale_reason
    assert "Input/output error" in (p.stale_reason or "")


@with_a_short_limit
def test_a_stopped_job_is_called_stopped_by_every_command() -> None:
    with start(HostPlan("v5e-4", faults=("sdk-crash",))) as machine:  # it tells of no process
        (p,) = (p for p in collect.look(machine).processes if p.holds)
        os.kill(p.pid, signal.SIGSTOP)
        try:
            listing = tpusmi(machine.root, "ps", "--simulate", machine.root)
            table = tpusmi(machine.root, "-1", "--simulate", machine.root)
            told = json.loads(tpusmi(machine.root, "--json", "--simulate", machine.root).stdout)
        finally:
            os.kill(p.pid, signal.SIGCONT)
    why = f"pid {p.pid} is stopped (state T): SIGSTOP or Ctrl-Z"
    (found,) = (q for q in told["processes"] if q["holds"])
    assert (found["verdict"], found["os_state"], listing.returncode) == ("maybe", "T", HELD)
    assert "stopped (state T): SIGSTOP or Ctrl-Z" in found["stale_reason"]
    assert "may be stale: stopped (state T)" in listing.stdout
    assert why in listing.stdout
    assert "stopped, may be stale" in table.stdout
    assert why in table.stdout
    assert [s["message"] for s in told["servers"] if why in s["message"]]


@with_a_short_limit
def test_how_long_the_server_of_a_stopped_job_has_been_silent_is_said() -> None:
    with start(HostPlan("v5e-4")) as machine:
        collector = collect.holding_collector(machine)
        try:
            (p,) = (p for p in collector.read_once(5.0).processes if p.holds)
            os.kill(p.pid, signal.SIGSTOP)
            try:
                for _ in range(3):
                    snapshot = collector.read_once(5.0)
                    time.sleep(1.1)
            finally:
                os.kill(p.pid, signal.SIGCONT)
        finally:
            collector.stop()
    (server,) = (s for s in snapshot.servers if s.process == p.key)
    assert " has not answered for " in server.message
    assert f" s: pid {p.pid} is stopped (state T): SIGSTOP or Ctrl-Z" in server.message


ON_A_MACHINE = """
set -e
mkdir -p /dev/vfio && mount -t tmpfs none /dev/vfio && mknod -m 666 /dev/vfio/0 c 1 3
"""
AS_NOBODY = """
import os, sys
from tpusmi.cli import main
from tpusmi import collect
sys.stdout, out = open(os.devnull, "w"), sys.stdout
main(["-1"])  # who is nobody may be unable to import anything
sys.stdout = out
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(main(["-1"]))
"""


@ROOT
@pytest.mark.parametrize("hidepid", [2, 4])
def test_under_hidepid_the_table_says_that_others_cannot_be_seen(
    tmp_path: Path, hidepid: int
) -> None:
    script = f"{ON_A_MACHINE}mount -t proc -o hidepid={hidepid} proc /proc\n"
    found = _on_a_machine(tmp_path, script, "-m")
    assert (
        found.stdout.count("hides the processes of other users: others may hold the TPU; try sudo")
        == 1
    ), found.stderr


@ROOT
def test_in_a_container_the_table_says_that_others_cannot_be_seen(tmp_path: Path) -> None:
    script = ON_A_MACHINE + "exec 3<>/dev/vfio/0\n"
    found = _on_a_machine(tmp_path, script, "-m", "-p", "-f", "--mount-proc", code=AS_ROOT)
    said = "outside this container, or pid namespace, cannot be seen: others may hold the TPU"
    assert found.stdout.count(said) == 1, found.stderr


AS_ROOT = "import sys; from tpusmi.cli import main; sys.exit(main(['-1']))"


def _on_a_machine(
    tmp_path: Path, script: str, *namespaces: str, code: str = AS_NOBODY
) -> subprocess.CompletedProcess[str]:
    """The table, in a mount namespace whose /dev has a node of a TPU."""
    if subprocess.run(["unshare", *namespaces, "true"], check=False).returncode:
        pytest.skip("no such namespace here")
    return subprocess.run(
        ["unshare", *namespaces, "sh", "-c", f'{script}"$@"', "sh", sys.executable, "-c", code],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
