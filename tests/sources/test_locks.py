"""What follows from the lock on a segment, and where nothing does."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import hosts, segments
from support.namespaces import OWN
from support.network_mounts import mounted_as
from support.users import ROOT, reachable

from tpusmi.model import Host, Outcome, Process
from tpusmi.report.plain_table import table
from tpusmi.sources.segments import Segments
from tpusmi.sources.segments.locks import Locks
from tpusmi.wire import identity, lock, places
from tpusmi.wire.writer import SegmentWriter

USER = 41001


def old(directory: Path | str, number: int = 1, age_s: float = 60.0) -> SegmentWriter:
    """A segment of a job of another pid namespace whose newest sample is old."""
    who = identity.me()._replace(pid=number, start_ticks=number, pid_namespace=1)
    writer = segments.segment(directory, who, devices=1)
    at_s = time.monotonic() - age_s
    writer.append(segments.slot(at_s, segments.RUNNING, [segments.device()], time.time() - age_s))
    return writer


def read(host: Host) -> Outcome:
    return Segments(host).read(time.monotonic())


def one(host: Host) -> Process:
    (process,) = read(host).processes
    return process


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "9p", "lustre"])
def test_on_a_network_file_system_a_lock_tells_nothing_and_that_is_said(
    tmp_path: Path, kind: str
) -> None:
    writer = old(tmp_path)
    host = mounted_as(tmp_path, kind)
    for _ in range(2):
        found = read(host)
        assert [(p.state, p.phase, p.is_living) for p in found.processes] == [
            ("unknown", None, False)
        ]
        assert [note for note in found.notes if f"network file system ({kind})" in note]
        writer.close()


@pytest.mark.parametrize("kind", ["tmpfs", "ext4", "overlay"])
def test_on_a_file_system_of_this_machine_the_lock_decides(tmp_path: Path, kind: str) -> None:
    writer = old(tmp_path)
    host = mounted_as(tmp_path, kind)
    assert one(host).state == "silent"
    writer.close()
    assert one(host).state == "dead"


def test_on_a_network_file_system_a_process_that_is_there_lives(tmp_path: Path) -> None:
    segments.my_segment(tmp_path).close()
    found = read(mounted_as(tmp_path, "nfs4"))
    assert [p.state for p in found.processes] == ["live"]
    assert found.notes == ()


def test_a_job_that_may_have_ended_is_not_listed_as_living_and_has_no_device(
    tmp_path: Path,
) -> None:
    segments.without_lock(old(tmp_path))
    s = hosts.seen(Host(segment_dir=str(tmp_path), metrics_ports=()))
    assert [p.state for p in s.processes] == ["unknown"]
    assert s.devices == ()
    assert len(s.dead_devices) == 1
    assert "unknown, not verified" in table(s)


def test_a_reader_cannot_make_an_ended_job_look_alive(tmp_path: Path) -> None:
    writer = old(tmp_path)
    writer.close()
    fd = os.open(writer.path, os.O_RDONLY)
    try:
        assert lock.hold(fd) is False
        assert one(Host(segment_dir=str(tmp_path))).state == "dead"
    finally:
        os.close(fd)


@ROOT
@pytest.mark.parametrize("living_in", ["another namespace", "this one"])
def test_a_living_job_does_not_fall_out_among_very_many_files(
    tmp_path: Path, living_in: str
) -> None:
    host = hosts.host(tmp_path)._replace(segment_dir=None)
    directory = tmp_path / f"dev/shm/tpusmi-{USER}"
    directory.mkdir(parents=True)
    dead = old(directory, 4_000_000)
    dead.close()
    for number in range(4_000_001, 4_000_000 + (300 if living_in != "this one" else 5000)):
        os.link(dead.path, directory / f"{number}-{number}.seg")
    if living_in == "this one":
        writer = segments.my_segment(directory)
    else:
        writer = old(directory, 9_999_999)
        os.utime(writer.path, (1.7e9, 1.7e9))
    for path in (directory, writer.path, dead.path):
        os.chown(path, USER, USER)
    source = Segments(host)
    # A busy machine may need more than the time that one read has.
    reads = (source.read(time.monotonic()) for _ in range(3))
    assert any(writer.header.pid in [p.pid for p in found.processes] for found in reads)
    writer.close()


def test_a_job_that_writes_although_its_lock_is_free_lives(tmp_path: Path) -> None:
    """Its lock is in a virtual machine, say, where our kernel does not know of it."""
    writer = old(tmp_path)
    host = Host(segment_dir=str(tmp_path))
    source = Segments(host)
    fd = os.open(writer.path, os.O_RDWR)
    writer.close()
    assert [p.state for p in source.read(time.monotonic()).processes] == ["dead"]
    assert [p.state for p in source.read(time.monotonic()).processes] == ["dead"]
    again = WithoutLock(writer, fd)
    for _ in range(3):
        again.write()
        found = source.read(time.monotonic())
        assert [(p.state, p.phase) for p in found.processes] == [("live", "running")]
        assert "has no lock" in found.notes[0]
    os.close(fd)


class WithoutLock:
    """What goes on writing into a segment whose writer is closed."""

    def __init__(self, writer: SegmentWriter, fd: int) -> None:
        self._writer, self._fd = writer, fd
        writer._file = self  # type: ignore[assignment]

    def write(self, data: bytes = b"", offset: int = 0) -> None:
        """A sample; as a file, those bytes."""
        if data:
            os.pwrite(self._fd, data, offset)
        else:
            self._writer.append(
                segments.slot(time.monotonic(), segments.RUNNING, [segments.device()], time.time())
            )


def test_many_ended_jobs_are_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = old(tmp_path, 4_000_000)
    dead.close()
    for number in range(4_000_001, 4_000_300):
        shutil.copy(dead.path, tmp_path / f"{number}-{number}.seg")
    asked: list[str] = []
    real = lock.is_held_at

    def is_held_at(path: str, *more: Any) -> bool | None:
        asked.append(path)
        return real(path, *more)

    monkeypatch.setattr(lock, "is_held_at", is_held_at)
    source = Segments(Host(segment_dir=str(tmp_path)))
    source.read(time.monotonic())
    assert len(asked) == 300
    source.read(time.monotonic())
    assert len(asked) == 300


AS_ROOT_OF_ITS_OWN = f"""{OWN}
def become_root_of_its_own(user):
    os.setgroups([]); os.setgid(user); os.setuid(user)
    libc.prctl(4, 1, 0, 0, 0)  # else /proc/self is root's
    try:
        own_users(0, 0)
    except OSError:
        say("[]"); sys.exit()
"""
IN_A_USER_NAMESPACE = f"""{AS_ROOT_OF_ITS_OWN}
from support import segments
directory = sys.argv[1] + "/tpusmi-0"
segments.identity.me()  # what it imports, that user may not read
become_root_of_its_own(int(sys.argv[2]))
os.mkdir(directory)
writer = segments.my_segment(directory)
say(os.getuid()); wait()
"""


@contextmanager
def in_a_user_namespace(user: int, directory: Path) -> Iterator[int]:
    """The pid of that user's job, which is root for itself."""
    with hosts.running(IN_A_USER_NAMESPACE, directory, user) as child, reachable(directory):
        found = child.line()
        if found == "[]":
            pytest.skip("no user namespaces here")
        assert found == "0"
        yield child.pid


@ROOT
@pytest.mark.parametrize("user", [USER, 100_000])
def test_a_job_of_a_user_namespace_is_shown_under_its_outer_user(tmp_path: Path, user: int) -> None:
    host = hosts.host(tmp_path)._replace(segment_dir=None)
    shared = tmp_path / "dev/shm"
    shared.mkdir(parents=True)
    shared.chmod(0o1777)
    with reachable(tmp_path), in_a_user_namespace(user, shared) as pid:
        found = read(host)
        assert found.notes == ()
        assert [(p.pid, p.uid, p.state, p.is_verified) for p in found.processes] == [
            (pid, user, "live", True)
        ]
    process = one(host)
    assert (process.uid, process.state) == (user, "dead")


@ROOT
def test_who_takes_the_name_of_roots_directory_speaks_for_himself_alone(tmp_path: Path) -> None:
    host = hosts.host(tmp_path)._replace(segment_dir=None)
    directory = tmp_path / "dev/shm/tpusmi-0"
    directory.mkdir(parents=True)
    os.chown(directory, USER, USER)
    mine, roots = segments.my_segment(directory), old(directory)
    os.chown(mine.path, USER, USER)
    process = one(host)
    assert (process.pid, process.uid, process.is_verified) == (os.getpid(), USER, False)
    roots.close()


@ROOT
def test_users_who_have_one_number_in_a_user_namespace_are_not_one_user(tmp_path: Path) -> None:
    """In there all users of the machine are 65534: that proves nobody to be anybody."""
    with hosts.running("say(1); wait()", user=USER) as victim:
        victim.line()
        ticks = identity.start_ticks("/proc", victim.pid)
        assert ticks is not None
        who = identity.me()._replace(pid=victim.pid, start_ticks=ticks)
        writer = segments.segment(tmp_path, who, devices=1)
        os.chown(writer.path, USER + 2, USER + 2)
        with reachable(tmp_path):
            found = holding_view(tmp_path)
        writer.close()
    assert found == [[65534, False]]


VIEWER = f"""{AS_ROOT_OF_ITS_OWN}
import json, time
from tpusmi.model import Host
from tpusmi.sources.segments import Segments
from tpusmi.sources.segments.locks import Locks
Segments(Host(segment_dir=sys.argv[1])).read(time.monotonic())  # what it imports, he may not read
become_root_of_its_own(1002)
found = Segments(Host(segment_dir=sys.argv[1])).read(time.monotonic())
say(json.dumps([[p.uid, p.is_verified] for p in found.processes]))
"""


def holding_view(directory: Path) -> list[list[object]]:
    """Uid and proof of what is seen by somebody in a user namespace."""
    with hosts.running(VIEWER, directory) as viewer:
        found: list[list[object]] = json.loads(viewer.line())
    if not found:
        pytest.skip("no user namespaces here")
    return found


def test_a_network_file_system_that_is_mounted_later_is_known(tmp_path: Path) -> None:
    """Homes are often mounted when they are first looked at."""
    (tmp_path / "self").mkdir()
    mountinfo = tmp_path / "self/mountinfo"
    mountinfo.write_text("36 35 0:52 / / rw - ext4 /dev/vda rw\n")
    known = Locks(str(tmp_path))
    assert known.network(os.makedev(0, 52)) == ""
    mountinfo.write_text("37 36 0:60 / /home rw - nfs4 server:/home rw\n")
    assert known.network(os.makedev(0, 60)) == "nfs4"


def test_a_list_of_mounts_that_cannot_be_read_now_is_not_taken_for_one_without_network(
    tmp_path: Path,
) -> None:
    writer = old(tmp_path)
    host = mounted_as(tmp_path, "nfs4")
    mountinfo = tmp_path / "own_proc/self/mountinfo"
    mountinfo.rename(mountinfo.with_name("aside"))
    mountinfo.mkdir()  # to read it is an error, as where too many files are open
    source = Segments(host)
    writer.close()
    found = source.read(time.monotonic())
    assert [p.state for p in found.processes] == ["unknown"]
    assert any("may be on a network file system" in note for note in found.notes)
    mountinfo.rmdir()
    mountinfo.with_name("aside").rename(mountinfo)
    found = source.read(time.monotonic())
    assert [p.state for p in found.processes] == ["unknown"]
    assert any("is on a network file system (nfs4)" in note for note in found.notes)


def test_very_many_files_in_a_shared_directory_hide_no_job_that_lives_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "ENTRIES_MOST", 8)
    for number in range(1000):
        (tmp_path / f"{4_000_000 + number}-1.seg").touch()
    with contextlib.closing(segments.my_segment(tmp_path)):
        found = Segments(Host(segment_dir=str(tmp_path))).read(time.monotonic())
    assert [(p.pid, p.state) for p in found.processes] == [(os.getpid(), "live")]
    assert any("has more than 8 files: not all were read" in note for note in found.notes)
