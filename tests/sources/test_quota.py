"""What one user's files may cost the others: a stated part, whatever they are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import hosts, segments
from support.clocks import takes_at_most
from support.users import ROOT

from tpusmi.memprofile import HeldMemory, held_memory
from tpusmi.model import ABSENT, OK, Host, Missing, Outcome
from tpusmi.sources.segments import Segments, job_segment, quota
from tpusmi.sources.segments.quota import (
    DEBT_MOST_S,
    OF_ALL_OTHERS,
    OF_OTHER_USER,
    OF_TRUSTED,
    USERS_MOST,
    Quota,
    spent,
)
from tpusmi.wire import identity, places
from tpusmi.wire.layout import PROFILE_PPROF, Identity

pytestmark = ROOT

STRANGER, ANOTHER, HONEST = 41001, 41002, 41500


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """With a job of this user."""
    found = hosts.host(tmp_path)._replace(segment_dir=None)
    segments.my_segment(directory(found, os.getuid()))
    return found


def directory(host: Host, uid: int, where: str = "/dev/shm") -> Path:
    path = Path(host.path(f"{where}/tpusmi-{uid}"))
    path.mkdir(parents=True, exist_ok=True)
    os.chown(path, uid, uid)
    return path


def elsewhere(uid: int, number: int) -> Identity:
    """Who writes from a pid namespace that cannot be seen here."""
    return identity.me()._replace(uid=uid, pid=number + 2, start_ticks=number + 5, pid_namespace=1)


def hostile(host: Host, uid: int, count: int, devices: int = OF_OTHER_USER.devices) -> None:
    """Segments of that user, each with many devices."""
    for number in range(count):
        place = directory(host, uid)
        writer = segments.small_segment(place, elsewhere(uid, number), devices)
        writer.close()
        os.chown(writer.path, uid, uid)


def honest(host: Host, uid: int = HONEST, pid: int | None = None) -> str:
    """A job of that user, with two devices."""
    who = elsewhere(uid, 0)
    if pid is not None:
        me = identity.me()
        ticks = identity.start_ticks("/proc", pid)
        assert ticks is not None
        who = me._replace(uid=uid, pid=pid, start_ticks=ticks)
    writer = segments.segment(directory(host, uid), who)
    devices = [segments.device(), segments.device(1)]
    writer.append(segments.slot(time.monotonic(), segments.RUNNING, devices, time.time()))
    writer.close()
    os.chown(writer.path, uid, uid)
    return writer.path


def read(source: Segments) -> Outcome:
    return source.read(time.monotonic())


def users(found: Outcome) -> list[int | None]:
    return sorted({p.uid for p in found.processes if p.uid is not None})


def mine(found: Outcome) -> bool:
    """Whether the own job is there, with its numbers."""
    (process,) = [p for p in found.processes if p.uid == os.getuid()]
    return any(r.metric == "steps_per_s" and r.subject == process.key for r in found.readings)


BLOCKED: dict[str, Callable[[Path], Any]] = {
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a name too long": lambda path: path.symlink_to("a" * 300),
    "link to a path too long": lambda path: path.symlink_to("a/" * 2000),
    "link to a directory": lambda path: path.symlink_to("/proc/self/fd"),
    "file": lambda path: path.touch(),
    "pipe": lambda path: os.mkfifo(path),
}


@pytest.mark.parametrize("what", BLOCKED)
def test_what_stands_in_a_directorys_place_costs_its_own_user_alone(host: Host, what: str) -> None:
    path = Path(host.path(f"/dev/shm/tpusmi-{STRANGER}"))
    BLOCKED[what](path)
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    honest(host)
    found = read(Segments(host))
    assert found.status == OK
    assert mine(found)
    assert users(found) == [os.getuid(), HONEST]
    assert found.missing == (Missing("agent", f"{path} is not a directory", STRANGER),)


@pytest.mark.parametrize("what", BLOCKED)
def test_what_stands_in_a_segments_place_costs_itself(host: Host, what: str) -> None:
    place = directory(host, STRANGER)
    BLOCKED[what](place / "7-8.seg")
    os.chown(place / "7-8.seg", STRANGER, STRANGER, follow_symlinks=False)
    found = read(Segments(host))
    assert mine(found)
    assert [m.uid for m in found.missing] == [STRANGER]
    assert len(found.notes) == 1


def test_one_users_mess_is_no_failure_of_the_source_and_nothing_is_said_of_the_host(
    tmp_path: Path,
) -> None:
    alone = hosts.host(tmp_path)._replace(segment_dir=None)
    assert read(Segments(alone)).message == "no job that called tpusmi.start() can be seen here"
    path = directory(alone, STRANGER) / "7-8.seg"
    path.write_bytes(b"garbage" * 99)
    os.chown(path, STRANGER, STRANGER)
    found = read(Segments(alone))
    assert found.status == ABSENT
    assert "but not everything could be read" in found.message
    assert str(path) in found.message


@pytest.mark.parametrize("devices", [1, OF_OTHER_USER.devices, 1024])
def test_many_segments_of_one_user_cost_the_others_neither_numbers_nor_time(
    host: Host, devices: int
) -> None:
    hostile(host, STRANGER, 64, devices)
    honest(host)
    source = Segments(host)
    for _ in range(3):
        with takes_at_most(1.0):  # about a tenth of it, where the machine is not slow
            found = read(source)
        assert mine(found)
        assert HONEST in users(found)
        assert len(found.devices) <= 2 + 2 + OF_OTHER_USER.devices
        if devices > 1:
            assert {m.uid for m in found.missing} == {STRANGER}
            assert any(
                f"of user {STRANGER} not read: more than 256 devices" in n for n in found.notes
            )


def test_many_users_together_have_a_bound_too_and_each_is_heard(host: Host) -> None:
    uids = range(STRANGER, STRANGER + 12)
    for uid in uids:
        hostile(host, uid, 4, devices=128)
    honest(host)
    found = read(Segments(host))
    assert mine(found)
    assert len(found.devices) <= 2 + OF_ALL_OTHERS.devices
    per_user = {uid: sum(p.uid == uid for p in found.processes) for uid in uids}
    assert max(per_user.values()) <= 1 + min(per_user.values())
    assert all(m.uid in (*uids, HONEST) for m in found.missing)


def test_a_users_many_old_files_do_not_hide_his_living_job(host: Host) -> None:
    with hosts.running("say('here'); wait()", user=HONEST) as child:
        assert child.line() == "here"
        silent = honest(host, HONEST, child.pid)
        os.utime(silent, (1.0, 1.0))
        for number in range(1, 3 * OF_OTHER_USER.segments):
            old = directory(host, HONEST) / f"{number}-5.seg"
            old.write_bytes(b"garbage")
            os.utime(old, (time.time() - 100, time.time() - 100))
            os.chown(old, HONEST, HONEST)
        found = read(Segments(host))
    (job,) = [p for p in found.processes if p.uid == HONEST]
    assert (job.pid, job.is_verified) == (child.pid, True)


def test_a_directory_of_very_many_files_is_not_read_to_its_end(host: Host) -> None:
    place = directory(host, STRANGER)
    for number in range(OF_OTHER_USER.files + 10):
        (place / f"{number}-{number}.x").touch()
    found = read(Segments(host))
    assert mine(found)
    assert [(m.uid, m.message) for m in found.missing] == [
        (STRANGER, f"{place} has more than {OF_OTHER_USER.files} files: not all were read")
    ]


def dear(payload: bytes, by_device: bool) -> HeldMemory:
    until_s = time.thread_time() + 3 * OF_OTHER_USER.cpu_s
    while time.thread_time() < until_s:
        pass
    return held_memory(segments.profile_bytes(), by_device)


def test_directories_of_very_many_users_are_not_listed_once_the_share_of_all_is_spent(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "OF_OTHER_USER", OF_OTHER_USER._replace(files=50))
    monkeypatch.setattr(quota, "OF_ALL_OTHERS", OF_ALL_OTHERS._replace(files=100))
    for uid in range(STRANGER, STRANGER + 20):
        place = directory(host, uid)
        for number in range(200):
            (place / f"{number}-1.seg").touch()
            os.chown(place / f"{number}-1.seg", uid, uid)
    listed, real = [], os.scandir

    @contextmanager
    def scandir(path: Any) -> Iterator[Iterator[os.DirEntry[str]]]:
        with real(path) as entries:
            is_counted = "/tpusmi-1" in str(path)
            yield (listed.append(e.name) or e if is_counted else e for e in entries)

    monkeypatch.setattr(os, "scandir", scandir)
    found = Segments(host).read(time.monotonic())
    assert [p.pid for p in found.processes] == [os.getpid()]
    assert len(listed) <= 3 * 200 + 17 * 2


def test_a_profile_that_is_dear_is_paid_by_its_user(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(job_segment._DECODERS, PROFILE_PPROF, dear)
    honest(host)
    who = elsewhere(STRANGER, 0)
    writer = segments.segment(directory(host, STRANGER), who)
    writer.append(segments.slot(time.monotonic(), segments.RUNNING, [{}, {}], time.time()))
    os.chown(writer.path, STRANGER, STRANGER)
    source = Segments(host)
    skipped = 0
    for turn in range(6):
        writer.profile.write(PROFILE_PPROF, b"dear", float(turn))
        found = read(source)
        assert mine(found)
        assert HONEST in users(found)
        skipped += any("took more than" in note for note in found.notes)
    assert skipped >= 3


def test_the_past_of_all_segments_together_is_bounded(host: Host) -> None:
    now = time.monotonic()
    rows = [segments.device(i) for i in range(8)]
    for uid in (STRANGER, ANOTHER):
        for number in range(4):
            writer = segments.segment(directory(host, uid), elsewhere(uid, number), devices=8)
            for ago in range(600, 0, -1):
                writer.append(segments.slot(now - ago, segments.RUNNING, rows, time.time() - ago))
            writer.close()
            os.chown(writer.path, uid, uid)
    source = Segments(host, with_past=True)
    past = [r for _ in range(20) for r in read(source).past]
    owners = {p.key: p.uid for p in read(source).processes}
    told = {uid: 0 for uid in (os.getuid(), STRANGER, ANOTHER)}
    for r in past:
        key = getattr(r.subject, "process", r.subject)
        told[owners[key]] += 1
    assert 0 < told[STRANGER] <= OF_OTHER_USER.past
    assert told[STRANGER] + told[ANOTHER] <= OF_ALL_OTHERS.past
    assert told[os.getuid()] > 0


def test_descriptors_of_what_is_not_read_are_closed(host: Host) -> None:
    source = Segments(host)
    place = directory(host, STRANGER)
    for turn in range(4):
        for number in range(OF_OTHER_USER.segments):
            who = elsewhere(STRANGER, turn * 1000 + number)
            writer = segments.small_segment(place, who, 1)
            writer.close()
            os.chown(writer.path, STRANGER, STRANGER)
        for old in place.iterdir():
            if turn and int(old.name.partition("-")[0]) < turn * 1000:
                os.utime(old, (1.0, 1.0))
        read(source)
        opened = len(source._open)
        assert opened <= 1 + OF_OTHER_USER.segments
    source.close()


def test_what_is_spent_too_much_is_taken_off_the_next_reads_and_forgotten_in_the_end() -> None:
    shares = Quota()
    shares.spend(STRANGER, OF_OTHER_USER._replace(cpu_s=100.0))
    assert "took more than" in shares.lateness(STRANGER)
    for _ in range(1 + int(DEBT_MOST_S / OF_OTHER_USER.cpu_s)):
        shares.renew()
    assert shares.lateness(STRANGER) == ""
    assert shares.lateness(0) == shares.lateness(os.geteuid()) == ""


def test_own_files_and_those_of_root_have_a_limit_of_their_own() -> None:
    shares = Quota()
    shares.spend(STRANGER, OF_ALL_OTHERS._replace(cpu_s=100.0))
    assert shares.left(0) == OF_TRUSTED
    with spent(shares, 0):
        pass
    assert shares.left(0).cpu_s < OF_TRUSTED.cpu_s


CROWDS: dict[str, Callable[[Path, int], Any]] = {
    "names": lambda place, number: (place / f"x{number}").touch(),
    "directories": lambda place, number: theirs(place, number),
}


def theirs(place: Path, number: int) -> None:
    """A directory of the stranger's that sorts before that of any user."""
    path = place / f"tpusmi-0.{number:06}"
    path.mkdir()
    os.chown(path, STRANGER, STRANGER)


@pytest.fixture
def small_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits on what is looked at in /dev/shm and /tmp, as if they were a few hundred."""
    monkeypatch.setattr(places, "NAMES_MOST", 256)
    monkeypatch.setattr(places, "NAMED_MOST", 128)


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.usefixtures("small_places")
def test_who_crowds_a_place_hides_no_job_and_no_verdict_rests_on_what_was_seen(
    host: Host, crowd: str
) -> None:
    place = Path(host.path("/dev/shm"))
    with hosts.running("say('here'); wait()", user=HONEST) as child:
        assert child.line() == "here"
        honest(host, HONEST, child.pid)
        for number in range(300):
            CROWDS[crowd](place, number)
        found = read(Segments(host))
    assert mine(found)
    assert users(found) == [os.getuid(), HONEST]
    assert Missing("agent", f"{place} has too many names: not all were checked") in found.missing


def test_many_directories_of_one_user_are_not_looked_into_and_hide_no_other(host: Host) -> None:
    place = Path(host.path("/dev/shm"))
    for number in range(1100):
        theirs(place, number)
    honest(host)
    found = read(Segments(host))
    assert users(found) == [os.getuid(), HONEST]
    assert found.missing == ()


def test_very_many_users_are_not_remembered_for_ever() -> None:
    """One user has a whole range of numbers with /etc/subuid, and a dashboard runs for weeks."""
    shares = Quota()
    shares.spend(0, OF_TRUSTED)
    for uid in range(100_000, 100_000 + 2 * USERS_MOST):
        shares.left(uid)
    shares.renew()
    assert len(shares._users) < USERS_MOST
    assert shares.left(0).past == 0
