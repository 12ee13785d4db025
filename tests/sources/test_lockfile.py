"""libtpu's lock file in each of its states, with real locks; it is removed in one of them alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.hosts import NODE, holder, host, running
from support.users import NOBODY, ROOT

from tpusmi.actions.end import clear
from tpusmi.actions.outcome import Cleared
from tpusmi.collect import look
from tpusmi.model import Host, LockFile
from tpusmi.sources import users
from tpusmi.sources.holders.lockfile import PATHS, NextUser, is_in_the_way
from tpusmi.sources.holders.nodes import known_nodes
from tpusmi.sources.holders.scan import Scan, ScanResult

LOCK = (
    "import fcntl; f = hold(sys.argv[1]); fcntl.lockf(f[0], fcntl.LOCK_EX); say('locked'); wait()"
)


@pytest.fixture
def machine(tmp_path: Path) -> Host:
    return host(tmp_path, NODE)


def lock_file(machine: Host) -> Path:
    return Path(machine.path(PATHS[0]))


def put(machine: Host) -> Path:
    """The file as libtpu makes it."""
    path = lock_file(machine)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o644))
    return path


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """The pid of a process that has its lock."""
    with running(LOCK, path) as child:
        assert child.line() == "locked"
        yield child.pid


def states(machine: Host) -> list[LockFile]:
    return list(look(machine).lock_files)


def cleared(machine: Host) -> tuple[Cleared, ...]:
    nodes = known_nodes(machine, ())
    own = nodes._replace(paths=tuple(map(machine.path, nodes.paths)))
    look_ = Scan(machine.path("/proc"), own, map(machine.path, PATHS))
    look_.look(0.0)
    return clear(machine, look_.result())


@ROOT
def test_it_stays_where_somebody_could_not_be_inspected(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(machine)
    with as_me(monkeypatch, NOBODY):
        (kept,) = clear(machine, ScanResult({}, (), hidden=1))
    assert (kept.removed, "may hold the TPU" in kept.message) == (False, True)
    assert path.exists()


@contextmanager
def as_me(monkeypatch: pytest.MonkeyPatch, uid: int) -> Iterator[None]:
    """Asked through sudo by that user."""
    with monkeypatch.context() as patch:
        patch.setenv("SUDO_UID", str(uid))
        patch.setattr(users, "_has_started_us", lambda found: found == uid)
        yield


def test_no_file_is_no_lock(machine: Host) -> None:
    assert [(f.path, f.state) for f in states(machine)] == [(PATHS[0], "absent")]
    assert cleared(machine) == ()


def test_a_file_of_mine_that_nobody_locks_is_harmless_and_stays(machine: Host) -> None:
    path = put(machine)
    (found,) = states(machine)
    assert (found.state, found.pids) == ("harmless", ())
    assert cleared(machine) == ()
    assert path.exists()


def test_a_lock_is_told_with_the_pid_that_has_it_and_is_never_removed(machine: Host) -> None:
    path = put(machine)
    with locked(path) as pid:
        (found,) = states(machine)
        assert (found.state, found.pids, found.message) == (
            "locked",
            (pid,),
            f"locked by pid {pid}",
        )
        assert [c.removed for c in cleared(machine)] == [False]
    assert path.exists()
    assert states(machine)[0].state == "harmless"


def test_who_has_the_file_open_and_not_locked_locks_nothing(machine: Host) -> None:
    path = put(machine)
    with holder(path):
        assert states(machine)[0].state == "harmless"


def test_a_file_that_was_deleted_under_its_lock_is_told(machine: Host) -> None:
    path = put(machine)
    with locked(path) as pid:
        path.unlink()
        (found,) = [f for f in states(machine) if f.state != "absent"]
        assert (found.path, found.state, found.pids) == (PATHS[0], "deleted", (pid,))
        assert "a second process may start" in found.message
        put(machine)
        assert {f.state for f in states(machine)} == {"harmless", "deleted"}


@ROOT
def test_a_file_that_another_user_left_is_in_the_way_and_removed(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(machine)
    with as_me(monkeypatch, NOBODY):
        (found,) = states(machine)
        assert (found.state, found.owner, found.pids) == ("blocking", "root", ())
        assert "nobody cannot open it" in found.message
        assert [w.code for w in look(machine).warnings] == ["lock_file"]
        assert [c.removed for c in cleared(machine)] == [True]
    assert not path.exists()


@ROOT
def test_it_stays_while_somebody_holds_the_tpu(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(machine)
    with as_me(monkeypatch, NOBODY), holder(Path(machine.path(NODE))) as pid:
        assert cleared(machine) == (Cleared(PATHS[0], False, f"kept: pid {pid} holds the TPU"),)
    assert path.exists()


@ROOT
def test_a_link_in_its_place_is_not_followed(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = Path(machine.path("/tmp/victim"))
    victim.write_text("precious")
    lock_file(machine).symlink_to(victim)
    with as_me(monkeypatch, NOBODY):
        (found,) = states(machine)
        assert (found.state, "a symbolic link" in found.message) == ("unknown", True)
        assert [c.removed for c in cleared(machine)] == [False]
        # Whatever is believed of it, it is never opened through the link.
        left = LockFile(PATHS[0], "blocking", "root", (), "")
        monkeypatch.setattr("tpusmi.actions.end.lock_files", lambda *_: (left,))
        (kept,) = cleared(machine)
        assert (kept.removed, "cannot be opened" in kept.message) == (False, True)
    assert lock_file(machine).is_symlink()


@ROOT
def test_who_takes_the_lock_in_the_last_moment_keeps_it(
    machine: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(machine)
    with as_me(monkeypatch, NOBODY), locked(path):
        # Whatever is believed of the file, its lock is tried before it is removed.
        left = LockFile(PATHS[0], "blocking", "root", (), "")
        monkeypatch.setattr("tpusmi.actions.end.lock_files", lambda *_: (left,))
        (found,) = cleared(machine)
        assert not found.removed
        assert "has just locked it" in found.message
    assert path.exists()


@pytest.mark.parametrize(
    ("uid", "owner", "mode", "protected", "blocks"),
    [
        pytest.param(1000, 1000, 0o644, 2, False, id="my own never is"),
        pytest.param(1000, 1001, 0o644, 0, True, id="another user's cannot be opened to write"),
        pytest.param(1000, 1001, 0o666, 0, False, id="one that everybody may write can"),
        pytest.param(1000, 1001, 0o666, 1, True, id="but not in a sticky /tmp that is protected"),
        pytest.param(0, 1001, 0o644, 0, False, id="root opens everything"),
        pytest.param(0, 1001, 0o644, 1, True, id="but that"),
        pytest.param(1000, 0, 0o644, 1, True, id="root's is in a user's way"),
        pytest.param(0, 0, 0o644, 2, False, id="and not in its own"),
    ],
)
def test_a_file_is_in_the_way_when_libtpu_cannot_open_it(
    uid: int, owner: int, mode: int, protected: int, blocks: bool
) -> None:
    file = os.stat_result((0o100000 | mode, 1, 1, 1, owner, owner, 0, 0, 0, 0))
    tmp = os.stat_result((0o041777, 2, 1, 1, 0, 0, 0, 0, 0, 0))
    assert is_in_the_way(file, tmp, NextUser(uid, protected)) is blocks
