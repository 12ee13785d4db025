"""Who holds a node under another name, as any user can arrange among mounts of its own."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import hosts
from support.users import ROOT, acting_as, reachable

from tpusmi.model import Host
from tpusmi.sources.holders import Holders, mount_kinds, open_files
from tpusmi.sources.holders.allowance import Allowance
from tpusmi.sources.holders.mount_kinds import MountKinds
from tpusmi.sources.holders.nodes import known_nodes
from tpusmi.sources.holders.open_files import Descriptors
from tpusmi.sources.holders.scan import Scan
from tpusmi.sources.mounts import is_overlay_trusted

pytestmark = ROOT

STRANGER = 1001
NEW_USER, NEW_MOUNTS = 0x10000000, 0x20000
BIND, PRIVATE, LAZY = 0x1000, 0x40000 | 0x4000, 2
_libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), "not permitted here")


def bind(source: Path, target: Path) -> None:
    words = (os.fsencode(source), os.fsencode(target))
    checked(_libc.mount(*words, None, ctypes.c_ulong(BIND), None))


def under_a_usual_name(node: Path) -> None:
    """As /dev/null, which everybody has open."""
    bind(node, Path("/dev/null"))
    os.open("/dev/null", os.O_RDWR)


def under_a_name_of_its_own(node: Path) -> None:
    bind(node, node.parents[2] / "mine/x")
    os.open(node.parents[2] / "mine/x", os.O_RDWR)


def behind_very_many_mounts(node: Path) -> None:
    target = node.parents[2] / "mine"
    for _ in range(20_000_000 // 4096):
        bind(target, target)
    bind(node, target / "x")
    os.open(target / "x", os.O_RDWR)


def on_a_mount_that_is_gone(node: Path) -> None:
    under_a_name_of_its_own(node)
    checked(_libc.umount2(os.fsencode(node.parents[2] / "mine/x"), LAZY))


def by_its_name(node: Path) -> None:
    os.open(node, os.O_RDWR)


def with_streams_alone(_node: Path) -> None:
    """It has what it was started with."""


@contextmanager
def stranger(work: Callable[[Path], None], node: Path) -> Iterator[int]:
    """A process of an ordinary user in a user and a mount namespace of its own that does that. It
    is another program: a process with threads, as ours may be, gets no such namespace.
    """
    code = f"import runpy, sys; sys.path[:0] = {sys.path}; runpy.run_path({__file__!r}, {{}}, "
    command = [sys.executable, "-c", f"{code} '__main__')", work.__name__, str(node)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            if child.stdout.read(1) != b".":
                pytest.skip("no such namespaces here")
            yield child.pid
        finally:
            child.kill()


def main() -> None:
    """Become the stranger, do what is asked, say so, and wait for the end."""
    try:
        _enter()
        globals()[sys.argv[1]](Path(sys.argv[2]))
    except OSError:
        os.write(1, b"!")
        return
    os.write(1, b".")
    signal.pause()


def _enter() -> None:
    os.setgroups([])
    os.setgid(STRANGER)
    os.setuid(STRANGER)
    _libc.prctl(4, 1, 0, 0, 0)  # may be looked at by itself again
    checked(_libc.unshare(NEW_USER | NEW_MOUNTS))
    maps = (("setgroups", "deny"), ("uid_map", f"0 {STRANGER} 1"), ("gid_map", f"0 {STRANGER} 1"))
    for name, line in maps:
        Path(f"/proc/self/{name}").write_text(line)
    checked(_libc.mount(None, b"/", None, ctypes.c_ulong(PRIVATE), None))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Host]:
    found = hosts.host(tmp_path, hosts.NODE, device=True)
    os.chmod(found.path(hosts.NODE), 0o666)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/x").touch()
    with reachable(tmp_path):
        yield found


def source(machine: Host) -> Holders:
    return Holders(machine, lambda: [hosts.chip(0, hosts.NODE)])


@pytest.mark.parametrize("work", [by_its_name, under_a_usual_name, under_a_name_of_its_own])
def test_a_node_is_known_among_other_mounts_under_any_name(
    machine: Host, work: Callable[[Path], None]
) -> None:
    with stranger(work, Path(machine.path(hosts.NODE))) as pid:
        looked = source(machine)
        first, again = (looked.read(time.monotonic()) for _ in range(2))
        assert [p.pid for p in first.processes] == [p.pid for p in again.processes] == [pid]


def held_by(machine: Host, pid: int) -> tuple[str, ...] | None:
    """The nodes of that process; None where they cannot be seen. Other tests start processes too,
    so a number of all that could not be inspected says nothing about this one.
    """
    return Scan("/proc", known_nodes(machine, [hosts.chip(0, hosts.NODE)]), ()).held_by(pid)


@pytest.mark.parametrize("work", [behind_very_many_mounts, on_a_mount_that_is_gone])
def test_what_a_process_has_open_on_an_unknown_mount_is_not_taken_for_nothing(
    machine: Host, work: Callable[[Path], None]
) -> None:
    with stranger(work, Path(machine.path(hosts.NODE))) as pid:
        found = source(machine).read(time.monotonic())
        nodes = held_by(machine, pid)
        assert nodes is None or [p.pid for p in found.processes] == [pid]
        assert found.visibility.not_inspected >= (nodes is None)


def test_streams_from_outside_make_no_process_of_other_mounts_uninspected(machine: Host) -> None:
    """As a container has them from the runtime that started it."""
    with stranger(with_streams_alone, Path(machine.path(hosts.NODE))) as pid:
        assert held_by(machine, pid) == ()


def with_mounts_of_its_own(node: Path) -> None:
    mine = node.parents[2] / "mine"
    checked(_libc.mount(b"tmpfs", os.fsencode(mine), b"tmpfs", ctypes.c_ulong(0), None))
    (mine / "dev").mkdir()
    (mine / "dev/1.seg").touch()


def test_who_looks_into_other_mounts_can_be_inspected(machine: Host) -> None:
    """As a viewer of a container's segments, which it keeps open."""
    with stranger(with_mounts_of_its_own, Path(machine.path(hosts.NODE))) as pid:
        inside = f"/proc/{pid}/root{Path(machine.path(hosts.NODE)).parents[2]}/mine/dev/1.seg"
        with open(inside) as file:
            assert "/dev/" in os.readlink(f"/proc/self/fd/{file.fileno()}")
            assert held_by(machine, os.getpid()) == ()


def test_a_mount_with_the_number_of_one_that_is_gone_is_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel gives the lowest free number: any user can bring it about, with a file system that
    never answers.
    """
    kinds = {"70": "tmpfs"}
    monkeypatch.setattr(mount_kinds, "mount_types", lambda process, most=0: kinds)
    mounts = MountKinds("/proc", Allowance())
    assert mounts.answers_at_once("/proc/1", "70") is True
    mounts.begin()
    kinds["70"] = "fuse"
    assert mounts.answers_at_once("/proc/1", "70") is False


def test_a_descriptor_of_a_node_that_became_one_of_another_file_is_not_asked_again(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(machine.path(hosts.NODE)) as file:
        looks = Descriptors("/proc", known_nodes(machine, [hosts.chip(0, hosts.NODE)]), ())
        link = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        assert looks.is_node(link)
        monkeypatch.setattr(mount_kinds, "mount_types", lambda *_: hosts.AnyMount("fuse"))
        monkeypatch.setattr(open_files, "node_of", lambda *_: pytest.fail("it may never answer"))
        looks.begin()
        assert not looks.is_node(link)


def test_the_search_for_a_mount_has_a_bound_and_begins_with_those_of_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mount_kinds, "OTHERS_MOST", 1)
    searched = [*mount_kinds._of_each_namespace("/proc")]
    assert len(searched) == 1
    assert os.stat(searched[0]).st_uid == 0


def test_one_who_may_look_at_strangers_trusts_no_overlay_of_theirs(machine: Host) -> None:
    """As the exporter, which is not root and has CAP_SYS_PTRACE."""
    with stranger(with_streams_alone, Path(machine.path(hosts.NODE))) as pid:
        assert not is_overlay_trusted(f"/proc/{pid}")
        with acting_as(STRANGER):
            assert is_overlay_trusted(f"/proc/{pid}")  # their own, and nobody else's
            may_trace_others()
            assert not is_overlay_trusted(f"/proc/{pid}")
            assert is_overlay_trusted("/proc/self")


def may_trace_others() -> None:
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; low and high
    checked(_libc.capget(head, sets))
    sets[0] |= 1 << 19
    checked(_libc.capset(head, sets))


if __name__ == "__main__":
    main()
