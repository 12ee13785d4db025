"""`tpusmi ps` and `tpusmi kill` as commands, on simulated hosts and on a machine that has nodes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import pytest
from support.commands import TPUSMI, environment, tpusmi
from support.hosts import FREED, IS_FREE, SEES_ALL, holder, running
from support.private_dev import ON_A_MACHINE, on_a_machine
from support.schemas import strict_schema
from support.terminals import terminal
from support.users import NOBODY, ROOT
from support.waits import where_all_can_be_seen

from tpusmi.model import Host
from tpusmi.simulate.host import HostPlan, start

FREE, NOTHING, USAGE, NOT_VISIBLE, HELD, STALE, NO_NODE = 0, 1, 2, 3, 5, 6, 7


def _is_kept_from_init() -> bool:
    try:
        os.readlink("/proc/1/fd/0")
    except PermissionError:
        return True
    except OSError:
        pass
    return False


@contextmanager
def simulated(*faults: str, hold: bool = True, machine: str = "v5e-4") -> Iterator[Host]:
    with start(HostPlan(machine, faults=faults, hold=hold)) as host:
        yield host


def ps(host: Host, *arguments: str) -> subprocess.CompletedProcess[str]:
    return tpusmi(host.root, "ps", "--simulate", host.root, *arguments)


def kill(host: Host, *arguments: str) -> subprocess.CompletedProcess[str]:
    return tpusmi(host.root, "kill", "--simulate", host.root, *arguments)


def test_a_free_tpu_is_said_to_be_free_only_when_everybody_was_seen() -> None:
    with simulated(hold=False) as host:
        found = ps(host, "--json")
        told = json.loads(found.stdout)["holding"]
        expected = NOT_VISIBLE if told["not_inspected"] else FREE
        assert (found.returncode, told["status"]) == (
            expected,
            "not_visible" if expected else "free",
        )
        assert ps(host, "--visible-only").returncode == FREE


def test_a_held_tpu_is_told_with_its_holder_and_the_lock() -> None:
    with simulated() as host:
        found = ps(host)
        assert found.returncode == HELD
        assert "train.py --config=simulated" in found.stdout
        assert "/tmp/libtpu_lockfile: locked by pid " in found.stdout
        assert "tpusmi.simulate.keeper" in found.stdout  # who started it, above it
        assert ps(host, "--visible-only").returncode == HELD
        assert "keeper" not in ps(host, "--flat").stdout


def test_a_stale_holder_is_found_by_the_exit_code_and_told_with_the_reason() -> None:
    with simulated("orphan") as host:
        found = ps(host)
        assert found.returncode == STALE
        assert "is stale (orphaned): its launcher, process " in found.stdout
        assert ", has ended: it is now a child of process " in found.stdout
        assert re.search(r"used 0\.\d % of a core over \d+\.\d s", found.stdout)
        assert ps(host, "--visible-only").returncode == STALE
        (process,) = json.loads(ps(host, "--stale", "--json").stdout)["processes"]
        assert (process["stale"], process["stale_code"]) == (True, "orphaned")


def test_a_holder_that_runs_nothing_is_stale_after_the_minutes_that_are_given() -> None:
    with simulated("idle") as host:
        assert ps(host).returncode == HELD
        time.sleep(1.5)
        found = ps(host, "--idle-minutes", "0.01")
        assert found.returncode == STALE
        assert "stale (idle): has left all its devices idle" in found.stdout
        assert ps(host, "--idle-minutes", "10").returncode == HELD
    with simulated() as host:  # one that trains
        assert ps(host, "--idle-minutes", "0.01").returncode == HELD


def test_a_holder_that_never_loads_a_program_is_stuck() -> None:
    """Its server answers, and has nothing to tell; and no thread of it is new."""
    with simulated("empty") as host:
        assert ps(host).returncode == HELD
        time.sleep(3.0)
        found = ps(host, "--idle-minutes", "0.02")
        assert found.returncode == STALE, found.stdout
        assert "stale (stuck): no program and no HBM in use" in found.stdout
        assert ps(host).returncode == HELD


def test_a_tpu_without_a_node_and_one_that_is_not_mine_are_told_apart() -> None:
    with simulated("no-node", machine="v5e-1") as host:
        found = ps(host)
        assert found.returncode == NO_NODE
        assert "1 TPU chip without a device node" in found.stdout
        assert "chip 0: no device node" in found.stdout
    with simulated("no-node") as host:  # the others have theirs
        assert ps(host).returncode == HELD


@ROOT
def test_a_free_node_that_i_may_not_open_is_not_free_for_me() -> None:
    with simulated("no-permission", hold=False) as host:
        code = (
            "import os\n"
            "from tpusmi import collect\n"
            "from tpusmi.report import ps_text as report\n"
            "from tpusmi.simulate.directory import attach\n"
            f"host = attach({host.root!r})\n"
            "collect.look(host)\n"
            f"os.setuid({NOBODY})\n"
            "s = collect.look(host)\n"
            "s = s._replace(visibility=s.visibility._replace(not_inspected=0))\n"
            "print(report.summary(s))"
        )
        command = [sys.executable, "-c", code]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "but you have no permission to open chips 0-3" in found.stdout, found.stderr


def test_the_object_has_the_keys_of_the_whole_snapshot() -> None:
    with simulated() as host:
        told = json.loads(ps(host, "--json").stdout)
    whole = strict_schema()["properties"]
    for name in told:
        jsonschema.validate(told[name], whole[name])
    (process,) = told["processes"]
    assert process["listens_on"]
    assert process["rss_bytes"] > 1e6
    assert process["cwd"] == host.root
    assert process["threads"] >= 1


def test_filters_choose_what_is_shown_and_the_chips_what_is_free() -> None:
    with simulated(hold=False) as host:
        nodes = [Path(host.path(f"/dev/vfio/{n}")) for n in range(1, 5)]
        nodes = [node for node in nodes if node.exists()]
        with holder(nodes[0]) as one, holder(nodes[1]) as two:
            pids = [p["pid"] for p in json.loads(ps(host, "--json").stdout)["processes"]]
            assert sorted(pids) == sorted([one, two])
            found = json.loads(ps(host, "--json", "--pid", str(one)).stdout)
            assert [p["pid"] for p in found["processes"]] == [one]
            assert ps(host, "--chip", "0").returncode == HELD
            assert ps(host, "--chip", "2", "--visible-only").returncode == FREE
            # A filter on processes frees nothing.
            nobodys = ps(host, "--user", "nobody-at-all")
            assert (nobodys.returncode, "held by 2 processes" in nobodys.stdout) == (HELD, True)
            told = json.loads(ps(host, "--user", "nobody-at-all", "--json").stdout)
            assert (told["processes"], told["holding"]["status"]) == ([], "held")
            assert ps(host, "--chip", "9").returncode == USAGE


def test_a_launch_script_can_wait_until_the_tpu_is_free() -> None:
    with simulated(hold=False) as host:
        node = next(Path(host.path("/dev/vfio")).glob("[0-9]*"))
        with running("f = hold(sys.argv[1]); say('holds'); wait()", node) as child:
            child.line()
            assert ps(host, "--wait-free", "0.3").returncode == HELD
            with subprocess.Popen(
                [*TPUSMI, "ps", "--simulate", host.root, "--wait-free", "50", "--visible-only"],
                env=environment(host.root),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            ) as waiting:
                assert waiting.stderr is not None
                assert f"held by pid {child.pid}, waiting" in waiting.stderr.readline()
                child.let_go()
                assert waiting.wait(30) == FREE


@ROOT
def test_whoever_cannot_look_is_told_so_and_never_that_the_tpu_is_free() -> None:
    with simulated() as host:
        code = (
            "import os\n"
            "from tpusmi import collect\n"
            "from tpusmi.report import ps_text as report\n"
            "from tpusmi.simulate.directory import attach\n"
            f"host = attach({host.root!r})\n"
            "collect.look(host)\n"  # whoever is nobody may be unable to import anything
            f"os.setuid({NOBODY})\n"
            "s = collect.look(host)\n"
            "hidden = s.visibility.not_inspected > 0\n"
            "print(report.summary(s), hidden, [p.pid for p in s.processes if p.holds])"
        )
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
        )
    assert "no holder visible (" in found.stdout, found.stderr
    assert "processes of other users not inspected, try sudo) True []" in found.stdout


def test_kill_says_what_it_would_do_and_does_nothing_unasked() -> None:
    with simulated("orphan") as host:
        dry = kill(host, "--stale", "--dry-run")
        assert dry.returncode == 0
        assert "stale (orphaned)" in dry.stdout
        assert "Sends SIGTERM; after 10 s, SIGKILL to any still running" in dry.stdout
        refused = kill(host, "--stale")
        assert refused.returncode == USAGE
        assert "--yes is needed" in refused.stderr
        assert ps(host).returncode == STALE
        assert kill(host).returncode == USAGE
        assert kill(host, "--signal", "STOP", "--stale").returncode == USAGE
        readonly = tpusmi(
            host.root, "kill", "--simulate", host.root, "--stale", "--yes", TPUSMI_MODE="readonly"
        )
        assert readonly.returncode == USAGE
        assert ps(host).returncode == STALE


@where_all_can_be_seen
def test_kill_frees_the_tpu_of_a_stale_holder() -> None:
    with simulated("orphan") as host:
        done = kill(host, "--stale", "--yes", "--json")
        assert done.returncode == FREED
        told = json.loads(done.stdout)
        assert (told["done"], told["free"], told["still_held"]) == (True, IS_FREE, {})
        assert [r["outcome"] for r in told["results"]] == ["ended"]
        assert ps(host, "--visible-only").returncode == FREE
        again = kill(host, "--stale", "--yes")
        assert again.returncode == FREED
        assert again.stdout.startswith("nothing to do: no holder matches\n")
        assert ("could be seen" in again.stdout) is not SEES_ALL


def test_kill_forces_whoever_ignores_the_polite_signal() -> None:
    with simulated("stubborn") as host:
        done = kill(host, "--chip", "0,1,2,3", "--yes", "--json", "--grace", "0.5")
        assert [r["outcome"] for r in json.loads(done.stdout)["results"]] == ["killed"]
        assert ps(host, "--visible-only").returncode == FREE


@where_all_can_be_seen
def test_kill_by_chip_leaves_whoever_holds_more_and_says_so() -> None:
    with simulated() as host:
        found = kill(host, "--chip", "0", "--yes")
        assert found.returncode == HELD
        assert "also holds /dev/vfio/" in found.stdout
        assert kill(host, "--chip", "0,1,2,3", "--yes").returncode == FREED
        assert ps(host, "--visible-only").returncode == FREE


def test_kill_exits_5_when_a_node_stays_held() -> None:
    with simulated(hold=False) as host:
        node = next(Path(host.path("/dev/vfio")).glob("[0-9]*"))
        with holder(node) as one, holder(node) as two:
            found = kill(host, str(one), "--yes")
            assert found.returncode == HELD
            assert f"is still held by pid {two}" in found.stdout
            assert kill(host, str(os.getpid()), "--yes").returncode == HELD


@where_all_can_be_seen
def test_a_person_at_a_terminal_is_asked() -> None:
    with simulated("orphan") as host:
        command = [*TPUSMI, "kill", "--stale", "--simulate", host.root]
        with terminal(command, environment(host.root)) as screen:
            screen.see("End 1 process? [y/N]")
            screen.press("n\n")
            assert screen.end() == USAGE
        assert ps(host).returncode == STALE
        with terminal(command, environment(host.root)) as screen:
            screen.see("End 1 process? [y/N]")
            screen.press("y\n")
            screen.see("ended by SIGTERM")
            assert screen.end() == FREED
            assert "SIGTERM sent" not in screen.text  # how far it was, is over
        assert ps(host, "--visible-only").returncode == FREE


@ROOT
def test_it_answers_on_a_real_machine(tmp_path: Path) -> None:
    """As root, in a mount namespace whose /dev has a node of a TPU, without a PCI bus for it."""
    found = on_a_machine(tmp_path, *TPUSMI, "ps", "--json")
    told = json.loads(found.stdout)
    assert found.returncode == HELD, found.stderr
    assert told["holding"]["nodes"][0]["node"] == "/dev/vfio/0"
    assert told["holding"]["lock_files"][0]["state"] == "absent"
    holders = [p for p in told["processes"] if p["holds"]]
    assert holders
    unknown = on_a_machine(tmp_path, *TPUSMI, "kill", "--chip", "0", "--dry-run")
    assert (unknown.returncode, "no PCI bus is visible" in unknown.stderr) == (USAGE, True)


@ROOT
@pytest.mark.skipif(not _is_kept_from_init(), reason="its init may be looked at here")
def test_tpu_info_fails_on_this_machine_where_we_answer() -> None:
    code = "from tpu_info import device; device.get_chip_owners()"
    peer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "PermissionError" in peer.stderr


@ROOT
def test_in_a_container_nobody_claims_that_the_tpu_is_free(tmp_path: Path) -> None:
    alone = ("-m", "-p", "-f", "--mount-proc")
    script = ON_A_MACHINE.replace("exec 3<>/dev/vfio/0\n", "")
    found = on_a_machine(tmp_path, *TPUSMI, "ps", script=script, namespaces=alone)
    assert found.returncode == NOT_VISIBLE, found.stderr
    assert "no holder visible (processes outside this container" in found.stdout
    held = on_a_machine(tmp_path, *TPUSMI, "ps", "--json", namespaces=alone)
    assert held.returncode == HELD
    assert json.loads(held.stdout)["holding"]["own_pid_namespace"] is True


@ROOT
def test_from_python_the_same_rules_hold(tmp_path: Path) -> None:
    code = """
import os, subprocess, sys, tpusmi
hold = "import sys; f = open('/dev/vfio/0'); print(flush=True); sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, pass_fds=(), close_fds=True)
child.stdout.readline()
assert child.pid in [p.pid for p in tpusmi.holders()]
try:
    tpusmi.free()
except ValueError:
    pass
else:
    raise AssertionError("an empty request")
plan = tpusmi.free([child.pid], dry_run=True)
assert [t.process.pid for t in plan.targets] == [child.pid]
assert child.poll() is None
os.close(3)
report = tpusmi.free([child.pid], grace_s=5)
assert [r.outcome for r in report.results] == ["ended"], report
print(sorted(report.still_held))
"""
    found = on_a_machine(tmp_path, sys.executable, "-c", code)
    assert found.returncode == 0, found.stderr


@ROOT
@pytest.mark.parametrize("mount", ["-t tmpfs none", "-t proc none"])
def test_where_proc_is_not_ours_nothing_is_free_and_nobody_is_ended(
    tmp_path: Path, mount: str
) -> None:
    """An empty /proc, and one that numbers processes in another way than our own namespace."""
    if "proc" in mount:
        # In a new pid namespace the old /proc stays mounted: its pids are not ours.
        script, namespaces = ON_A_MACHINE, ("-m", "-p", "-f")
    else:
        script, namespaces = ON_A_MACHINE + f"\nmount {mount} /proc\n", ("-m",)
    script = script.replace('"$@"\n', "") + '\n"$@"\n'
    found = on_a_machine(tmp_path, *TPUSMI, "ps", script=script, namespaces=namespaces)
    assert found.returncode == NOT_VISIBLE, found.stderr
    assert "is not the /proc of this process" in found.stdout
    tried = on_a_machine(
        tmp_path, *TPUSMI, "kill", "2", "--yes", script=script, namespaces=namespaces
    )
    assert tried.returncode == 4
    assert "holders could not be looked for" in tried.stderr


@ROOT
def test_who_cannot_see_everybody_frees_no_chip_by_seeing_nobody(tmp_path: Path) -> None:
    alone = ("-m", "-p", "-f", "--mount-proc")
    code = """
import json, os, subprocess, sys
hold = "import sys; f = open('/dev/vfio/0'); print(flush=True); sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
child.stdout.readline()
done = subprocess.run([sys.executable, "-m", "tpusmi", "kill", str(child.pid), "--yes", "--json"],
                      capture_output=True, text=True)
told = json.loads(done.stdout)
assert told["results"][0]["outcome"] == "ended", told
assert told["free"] is None, told
assert "container" in told["unseen"], told
sys.exit(done.returncode)
"""
    script = ON_A_MACHINE.replace("exec 3<>/dev/vfio/0\n", "")
    found = on_a_machine(tmp_path, sys.executable, "-c", code, script=script, namespaces=alone)
    assert found.returncode == NOT_VISIBLE, found.stderr


def test_nobody_reads_what_is_said() -> None:
    """A pipe that is closed early does not change ps's code, nor make kill succeed."""
    with simulated("orphan") as host:
        for command, expected in ((["ps"], STALE), (["kill", "--stale", "--yes"], 74)):
            child = subprocess.Popen(
                [*TPUSMI, *command, "--simulate", host.root],
                env=environment(host.root),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            assert child.stdout is not None
            child.stdout.close()
            try:
                assert child.wait(30) == expected
            finally:
                child.kill()
        assert ps(host).returncode == STALE


@pytest.mark.parametrize(
    ("closed", "cannot_write"), [("<&-", False), ("2>&-", False), (">&-", True)]
)
@where_all_can_be_seen
def test_closed_streams_stop_nobody(closed: str, cannot_write: bool) -> None:
    with simulated("orphan") as host:
        line = f"{shlex.join(TPUSMI)} {{}} --simulate {shlex.quote(host.root)} {closed}"
        shell = {"env": environment(host.root), "shell": True, "timeout": 60}
        found = subprocess.run(line.format("ps"), **shell)  # type: ignore[call-overload]
        assert found.returncode == (74 if cannot_write else STALE)
        done = subprocess.run(line.format("kill --stale --yes"), **shell)  # type: ignore[call-overload]
        assert done.returncode == (74 if cannot_write else FREED)
        assert ps(host, "--visible-only").returncode == FREE


def test_absurd_orders_are_refused_before_anybody_is_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tpusmi as api

    for bad in ({"signal": 0}, {"signal": 19}, {"grace_s": float("nan")}, {"wait_s": -1.0}):
        with pytest.raises(ValueError, match=r"is not one of|is not between"):
            api.free([os.getpid()], **bad)  # type: ignore[arg-type]
    monkeypatch.setenv("TPUSMI_MODE", "readonly")
    with pytest.raises(PermissionError):
        api.free([os.getpid()])


def test_what_kill_is_not_told_rightly_or_not_told_to_do_is_said() -> None:
    with simulated() as host:
        found = kill(host, "--stale", "--grace", "x")
        assert (found.returncode, "x is not a number" in found.stderr) == (USAGE, True)
        refused = kill(host, "--chip", "0,1,2,3", "--json")
        assert json.loads(refused.stdout)["done"] is False


@ROOT
def test_where_no_bus_tells_of_a_tpu_the_table_names_the_nodes_and_who_holds_them(
    tmp_path: Path,
) -> None:
    script = ON_A_MACHINE.replace("exec 3<>/dev/vfio/0\n", "mount -t tmpfs none /sys\n")
    free = on_a_machine(tmp_path, *TPUSMI, "-1", script=script)
    named = "No PCI bus confirms a TPU; device nodes named like one: /dev/vfio/0"
    assert named in free.stdout, free.stderr
    assert "No device or process matches" not in free.stdout
    if "could not be inspected" in free.stdout:  # not even root may look at some init processes
        assert (free.returncode, "from here" in free.stderr) == (NOT_VISIBLE, True)
    else:
        assert free.returncode == 0
        assert f"{named}: no process holds the TPU" in free.stdout
    other = on_a_machine(tmp_path, *TPUSMI, "-1", "-p", "1", script=script)
    assert other.returncode == 1
    assert "No device or process matches" in other.stderr
