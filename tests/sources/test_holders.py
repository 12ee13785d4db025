"""Who holds a node: found by the node itself, in real processes; what cannot be seen is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.hosts import IS_ROOT, chip, holder, host, running
from support.users import ROOT, as_another_user, reachable

from tpusmi.model import ABSENT, DENIED, OK
from tpusmi.sources.holders import Holders


@pytest.mark.parametrize(
    "device",
    [False, pytest.param(True, marks=pytest.mark.skipif(not IS_ROOT, reason="mknod needs root"))],
)
def test_every_holder_of_a_node_and_every_node_of_a_holder(tmp_path: Path, device: bool) -> None:
    nodes = ("/dev/vfio/9", "/dev/vfio/10")
    machine = host(tmp_path, *nodes, device=device)
    first, second = (tmp_path / n[1:] for n in nodes)
    with holder(first) as one, holder(first, second) as both:
        found = Holders(machine, lambda: [chip(0, *nodes)]).read(0.0)
    assert found.status == OK
    assert {p.pid: p.holds for p in found.processes} == {one: nodes[:1], both: nodes}


def test_a_process_that_opens_a_node_later_is_found_at_the_next_look(tmp_path: Path) -> None:
    machine = host(tmp_path, "/dev/accel0")
    holders = Holders(machine, lambda: [chip(0, "/dev/accel0")])
    with open(tmp_path / "other", "w"):
        assert holders.read(0.0).processes == ()
        with open(tmp_path / "dev/accel0"):
            assert [p.pid for p in holders.read(2.0).processes] == [os.getpid()]
        assert holders.read(4.0).processes == ()


def test_a_descriptor_that_was_opened_anew_is_found_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of descriptors is the same, and the kernel does not tell of the open: it was
    through another /dev.
    """
    machine = host(tmp_path, "/dev/accel0")
    code = (
        "f = os.open('/dev/null', 0); say('open'); sys.stdin.readline()\n"
        "(node,) = hold(sys.argv[1]); os.dup2(node, f); os.close(node); say('holds'); wait()"
    )
    monkeypatch.setattr("tpusmi.sources.holders.passes.Watch.has_seen_open", lambda self: False)
    # Its turn to be inspected again is at the end of the minute: others, by their pid, are earlier.
    monkeypatch.setattr("tpusmi.sources.holders.scan._share", lambda pid, slots: 1.0)
    with running(code, tmp_path / "dev/accel0") as child:
        child.line()
        holders = Holders(machine, lambda: [chip(0, "/dev/accel0")])
        assert holders.read(0.0).processes == ()
        child.go_on()
        assert holders.read(2.0).processes == ()
        assert [p.pid for p in holders.read(61.0).processes] == [child.pid]


def test_a_file_of_the_same_name_elsewhere_is_not_the_node(tmp_path: Path) -> None:
    machine = host(tmp_path / "here", "/dev/vfio/0")
    other = tmp_path / "there" / "dev" / "vfio" / "0"
    other.parent.mkdir(parents=True)
    other.touch()
    with holder(other):
        found = Holders(machine, lambda: [chip(0, "/dev/vfio/0")]).read(0.0)
    assert found.processes == ()
    # In a container even root may be kept from looking at some.
    assert found.message.startswith(("no process holds the TPU", "no holder visible ("))


def test_a_holder_tells_only_the_variables_that_are_ever_read(tmp_path: Path) -> None:
    machine = host(tmp_path, "/dev/accel0")
    words = {"TPU_PROCESS_ADDRESSES": "local\x1b[2J", "MY_API_KEY": "x", "TPU_SECRET": "y"}
    with holder(tmp_path / "dev/accel0", **words) as pid:
        (found,) = Holders(machine, lambda: [chip(0, "/dev/accel0")]).read(0.0).processes
    assert found.pid == pid
    assert found.environment["TPU_PROCESS_ADDRESSES"] == "local [2J"
    assert found.environment.keys() & words.keys() == {"TPU_PROCESS_ADDRESSES"}


def test_a_host_without_a_node_has_no_holder_and_is_not_searched(tmp_path: Path) -> None:
    assert Holders(host(tmp_path), list).read(0.0).status == ABSENT


def test_nodes_are_found_without_a_pci_bus(tmp_path: Path) -> None:
    machine = host(tmp_path, "/dev/vfio/3", "/dev/vfio/vfio")
    with holder(tmp_path / "dev/vfio/3"):
        (found,) = Holders(machine, list).read(0.0).processes
    assert found.holds == ("/dev/vfio/3",)


@ROOT
def test_whoever_may_not_look_is_told_so_and_never_that_the_tpu_is_free(tmp_path: Path) -> None:
    machine = host(tmp_path, "/dev/accel0")
    code = (
        "import ctypes, os, sys\n"
        "from tpusmi.model import Chip, Host\n"
        "from tpusmi.sources.holders import Holders, passes\n"  # others may not read this Python
        "chip = Chip(0, 'v5e', 'TPU v5e', ('a',), ('/dev/accel0',), 1)\n"
        "os.setuid(65534)\n"
        f"found = Holders(Host(root={machine.root!r}), lambda: [chip]).read(0.0)\n"
        "print(found.status, found.message, sep='|')"
    )
    with reachable(tmp_path), holder(tmp_path / "dev/accel0"):
        text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    status, message = text.strip().split("|")
    assert status == DENIED
    assert message.startswith("no holder visible (")
    assert "of other users not inspected, try sudo" in message


@pytest.mark.parametrize(
    "device",
    [False, pytest.param(True, marks=pytest.mark.skipif(not IS_ROOT, reason="mknod needs root"))],
)
def test_a_descriptor_that_opens_nothing_holds_nothing(tmp_path: Path, device: bool) -> None:
    """O_PATH calls no driver, and the next job can open the node."""
    machine = host(tmp_path, "/dev/accel0", device=device)
    code = "f = os.open(sys.argv[1], os.O_PATH); say('open'); sys.stdin.readline()\n"
    code += "hold(sys.argv[1]); say('holds'); wait()"
    holders = Holders(machine, lambda: [chip(0, "/dev/accel0")])
    with running(code, tmp_path / "dev/accel0") as child:
        child.line()
        assert holders.read(0.0).processes == ()
        child.go_on()
        assert [p.pid for p in holders.read(2.0).processes] == [child.pid]


@ROOT
def test_a_proc_that_hides_other_users_is_a_refusal_and_no_free_tpu(tmp_path: Path) -> None:
    """As with hidepid=2: not even the init process is listed."""
    machine = host(tmp_path, "/dev/accel0")
    (tmp_path / "proc").unlink()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/self").symlink_to(str(os.getpid()))
    (tmp_path / "proc" / str(os.getpid())).mkdir()
    holders = Holders(machine, lambda: [chip(0, "/dev/accel0")])
    with as_another_user(tmp_path):
        found = holders.read(0.0)
    assert found.status == DENIED
    assert found.message == (
        "no holder visible (this /proc hides the processes of other users: "
        "others may hold the TPU; try sudo)"
    )
