"""Jobs with mounts of their own, as in a container or a batch job: who finds them, and what those
who run them can do to who looks.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.commands import TPUSMI, USER, tpusmi
from support.hosts import running
from support.namespaces import OWN, inside, shared
from support.private_dev import on_a_machine
from support.users import ROOT, acting_as
from support.waits import with_a_short_limit

from tpusmi.model import AGENT, OTHER_MOUNTS, Host, Outcome, Process
from tpusmi.sources import mounts
from tpusmi.sources.segments import Segments, namespaces

__all__ = ["shared"]
pytestmark = ROOT

OTHER_USER = USER + 1
ALONE = 41001
"""A user of whom no other test has files: many would use up what is read of a user."""
LIMIT_S = 40.0
"""For one look, on a busy machine: what never answers here does not for ever."""


def looked(source: Segments | None = None) -> Outcome:
    """What root finds on this machine, in time."""
    found: list[Outcome] = []
    reader = source or Segments(Host())

    def look() -> None:
        found.append(reader.read(time.monotonic()))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    assert found, "no answer"
    if source is None:
        reader.close()
    return found[0]


def looked_by(user: int) -> Outcome:
    """The same of what that user finds."""
    looked()  # another user could not load what it needs
    with acting_as(user):
        return looked()


def of(pid: int, found: Outcome) -> list[Process]:
    return [p for p in found.processes if p.pid == pid]


def seen_by(user: int | None, tmp_path: Path) -> dict[str, Any]:
    """What the command shows that user, who is told of no directory."""
    found = tpusmi(tmp_path, "--json", user=user, TPUSMI_DIR=None)
    whole: dict[str, Any] = json.loads(found.stdout)
    return whole


def rows(pid: int, seen: dict[str, Any]) -> list[tuple[str, str]]:
    return [(p["state"], p["user"]) for p in seen["processes"] if p["pid"] == pid]


@pytest.mark.parametrize(
    "namespaces",
    [
        pytest.param("own(); here()", id="a /dev/shm of its own"),
        pytest.param("own(); own_pids()", id="and pids of its own"),
        pytest.param("own('/dev/shm', '/tmp', '/run'); own_pids()", id="as in a container"),
    ],
)
@with_a_short_limit
def test_root_finds_a_job_with_mounts_of_its_own(namespaces: str, tmp_path: Path) -> None:
    with inside(f"{namespaces}; start()") as job:
        assert rows(job.pid, seen_by(None, tmp_path)) == [("live", "root")]


@with_a_short_limit
def test_a_job_is_found_wherever_its_agent_can_write(tmp_path: Path) -> None:
    no_shm = "own('/dev/shm', '/run', '/tmp'); mount('', '/dev/shm', '', 0x21); "
    runtime = (
        "own('/dev/shm', '/run', '/tmp'); mount('', '/dev/shm', '', 0x21); "
        "os.makedirs('/run/user/0'); os.chmod('/run/user/0', 0o700); "
    )
    for code in (no_shm, runtime):
        with inside(f"{code} here(); start()") as job:
            assert rows(job.pid, seen_by(None, tmp_path)) == [("live", "root")], code
    with inside("own(); here(); start()", TPUSMI_DIR="/dev/shm/mine") as job:
        assert rows(job.pid, seen_by(None, tmp_path)) == [("live", "root")]


@with_a_short_limit
def test_a_user_finds_the_own_job_and_is_told_of_those_that_cannot_be_seen(tmp_path: Path) -> None:
    with inside(f"own(); become({ALONE}); here(); start()") as job:
        assert rows(job.pid, seen_by(None, tmp_path)) == [("live", str(ALONE))]
        assert rows(job.pid, seen_by(ALONE, tmp_path)) == [("live", str(ALONE))]
        seen = seen_by(OTHER_USER, tmp_path)
        assert rows(job.pid, seen) == []
        agent = next(source for source in seen["sources"] if source["name"] == AGENT)
        assert "does not share this command's /dev/shm" in agent["message"]
        assert "try sudo, look from inside, or share a directory with TPUSMI_DIR" in str(agent)


def test_a_thread_of_the_kernel_is_not_a_job_that_cannot_be_seen() -> None:
    devices = [p for p in Path("/proc").glob("[0-9]*/comm") if p.read_text() == "kdevtmpfs\n"]
    if not devices:
        pytest.skip("the kernel has no thread with mounts of its own here")
    found = looked_by(USER)
    walls = {m.process.pid for m in found.missing if m.process is not None}
    assert int(devices[0].parent.name) not in walls


@with_a_short_limit
def test_black_boxes_do_not_hide_that_a_job_cannot_be_seen(tmp_path: Path) -> None:
    leave = f"{OWN}start(); say(next(n for n in links() if n.endswith('.seg'))); os._exit(0)"
    usual = {"TPUSMI_DIR": None}
    user_job = f"own(); become({USER}); here(); start()"
    with running(leave, env=usual) as ended, inside(user_job) as job:
        box = Path(ended.line())
        try:
            seen = seen_by(OTHER_USER, tmp_path)
        finally:
            box.unlink()
            with suppress(OSError):
                box.parent.rmdir()
        assert rows(job.pid, seen) == []
        agent = next(source for source in seen["sources"] if source["name"] == AGENT)
        assert "does not share this command's /dev/shm" in agent["message"]


@with_a_short_limit
def test_a_wall_is_a_witness_that_could_not_be_asked_about_that_process_alone() -> None:
    with inside("own(); here()") as job:
        found = looked_by(USER)
        walls = [m for m in found.missing if m.code == OTHER_MOUNTS]
        assert job.pid in [m.process.pid for m in walls if m.process is not None]
        assert not [m for m in looked().missing if m.process and m.process.pid == job.pid]


@with_a_short_limit
def test_a_directory_that_several_share_gives_each_job_once(tmp_path: Path) -> None:
    code, shared = "own(); here(); start()", str(tmp_path)
    with inside(code, TPUSMI_DIR=shared) as first, inside(code, TPUSMI_DIR=shared) as second:
        found = looked()
        assert [len(of(job.pid, found)) for job in (first, second)] == [1, 1]


@with_a_short_limit
def test_a_job_stays_when_the_process_through_which_it_was_found_ends() -> None:
    fork = "first = os.getpid(); inner = os.fork()\nif inner: wait(); os._exit(0)\n"
    with inside(f"own(); here(); say('ready')\n{fork}os.setsid(); start(); say(os.getpid())") as up:
        pid = int(up.line())
        source = Segments(Host())
        assert [p.state for p in of(pid, looked(source))] == ["live"]
        os.kill(up.pid, 9)
        up.process.wait()
        time.sleep(1.1)
        assert [p.state for p in of(pid, looked(source))] == ["live"]
        source.close()
        os.kill(pid, 9)


@with_a_short_limit
def test_of_the_processes_asked_the_newest_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "ASKED_CPU_S", -1.0)
    with inside("own(); here(); start()") as job:
        found = looked()
        assert of(job.pid, found) == []
        assert any("not checked for being in a container" in n for n in found.notes)


IN_A_BATCH_JOB = """
import os, sys, time
import tpusmi
tpusmi.start()
while not any(p.pid == os.getpid() and p.phase for p in tpusmi.snapshot().processes):
    time.sleep(0.1)
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(60)
"""
ON_ITS_MACHINE = """
set -e
mkdir -p /dev/vfio && mount -t tmpfs none /dev/vfio && mknod -m 666 /dev/vfio/0 c 1 7
python=$1; code=$2; said=$3; shift 3
unshare -m --propagation private sh -c 'mount -t tmpfs none /dev/shm && exec 3<>/dev/vfio/0 &&
  exec "$@"' sh "$python" -c "$code" "$said" &
job=$!
until [ -s "$said" ]; do sleep 0.1; done
echo "$job"
"$@" --json
echo
"$@" kill "$job" --yes || kill -9 "$job" 2>/dev/null || true
"""


def test_a_holder_with_mounts_of_its_own_is_one_row_and_ends_as_any_other(tmp_path: Path) -> None:
    words = (sys.executable, IN_A_BATCH_JOB, str(tmp_path / "said"), *TPUSMI)
    script = "unset TPUSMI_DIR" + ON_ITS_MACHINE
    found = on_a_machine(tmp_path, *words, script=script, namespaces=("-m",))
    pid, seen, *end = found.stdout.splitlines()
    own = [p for p in json.loads(seen)["processes"] if p["pid"] == int(pid)]
    assert [(p["state"], p["holds"]) for p in own] == [("live", ["/dev/vfio/0"])], found.stderr
    assert own[0]["phase"] is not None
    assert [line for line in end if line.startswith(f"pid {pid}: ended by SIGTERM")], found.stderr


# What a hostile user can do who runs such a process. Another one's job is found all the same.

SILENT_FUSE = """
def silent(target):
    fuse = os.open('/dev/fuse', os.O_RDWR)
    mount('x', target, 'fuse', 0, f'fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other')
def silent_file(target):
    fuse = os.open('/dev/fuse', os.O_RDWR)
    mount('x', target, 'fuse', 0, f'fd={fuse},rootmode=100000,user_id=0,group_id=0,allow_other')
"""
ATTACKS = {
    "a /dev/shm that never answers": "own_mounts(); silent('/dev/shm')",
    "a directory that never answers": "own(); os.mkdir('/dev/shm/tpusmi-0'); "
    "silent('/dev/shm/tpusmi-0')",
    "a segment that never answers": "own(); os.mkdir('/dev/shm/tpusmi-0', 0o700); "
    "open('/dev/shm/tpusmi-0/1-1.seg', 'w'); silent_file('/dev/shm/tpusmi-0/1-1.seg')",
    "a /dev that never answers": "own_mounts(); silent('/dev')",
    "a TPUSMI_DIR that never answers": "own(); os.mkdir('/dev/shm/x'); silent('/dev/shm/x')",
    "a deep TPUSMI_DIR": "own(); os.makedirs('/dev/shm/x' + '/x' * 400)",
    "/proc for a /dev/shm": "own_mounts(); mount('/proc', '/dev/shm', '', BIND)",
    "/proc/self/root for a directory": "own(); os.symlink('/proc/self/root', '/dev/shm/tpusmi-0')",
    "links in a circle": "own(); os.symlink('tpusmi-0', '/dev/shm/tpusmi-0')",
    "very many names": "own(); os.mkdir('/dev/shm/tpusmi-0', 0o700)\n"
    "for n in range(30000): os.mkfifo(f'/dev/shm/tpusmi-0/{n}-{n}.seg')\n"
    "for n in range(1, 30000): os.mkfifo(f'/dev/shm/tpusmi-{n}')",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
@with_a_short_limit
def test_no_mount_of_a_stranger_holds_up_or_hides_anything(attack: str) -> None:
    deep = "/x" * 400 if "400" in attack else ""
    with (
        inside("own(); here(); start()") as job,
        inside(f"{SILENT_FUSE}\n{attack}\nhere()", TPUSMI_DIR="/dev/shm/x" + deep),
    ):
        assert [p.state for p in of(job.pid, looked())] == ["live"]


OURS = f"""
{SILENT_FUSE}
own('/dev/shm', '/run', '/tmp')
for place in ('/dev/shm', '/tmp'):
    for name in ('tpusmi-0', 'tpusmi-{USER}', 'tpusmi-0.feed'):
        os.mkdir(f'{{place}}/{{name}}')
        silent(f'{{place}}/{{name}}')
"""


@with_a_short_limit
def test_a_directory_of_ours_that_never_answers_holds_up_neither_a_viewer_nor_a_job() -> None:
    """With `user_allow_other` any user can mount one on a name that can be foreseen."""
    view = (
        "from tpusmi.model import Host\nfrom tpusmi.sources.segments import Segments\n"
        "found = Segments(Host()).read(time.monotonic())\n"
        "say([str(p.state) for p in found.processes if p.pid == os.getpid()], *found.notes)\n"
    )
    then = "say('ready'); sys.stdin.readline()\nimport time\n"
    with inside(f"{OURS}here(); start()\n{then}{view}") as job:
        said = job.go_on()
    assert said.startswith("['live'] /dev/shm/tpusmi-0 is a FUSE file system, which may never")


OPENED = """
inotify = libc.inotify_init1(os.O_NONBLOCK)
def watch(path):
    assert libc.inotify_add_watch(inotify, path.encode(), 0x20) > 0
def opened():
    try:
        return len(os.read(inotify, 4096))
    except BlockingIOError:
        return 0
"""


@pytest.mark.parametrize(
    "make",
    [
        pytest.param("os.mkfifo(path)", id="a FIFO"),
        pytest.param("os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))", id="a device"),
        pytest.param(
            "open(path, 'w'); os.mknod('/dev/shm/null', 0o600 | 0o020000, os.makedev(1, 3)); "
            "mount('/dev/shm/null', path, '', BIND)",
            id="a bound device",
        ),
    ],
)
@with_a_short_limit
def test_what_is_no_regular_file_is_not_opened(make: str) -> None:
    code = (
        f"{OPENED}\nown(); here(); os.mkdir('/dev/shm/tpusmi-0', 0o700)\n"
        f"path = '/dev/shm/tpusmi-0/1-1.seg'\n{make}\nwatch(path)\n"
        "say('ready'); sys.stdin.readline(); say(opened())"
    )
    with inside(code) as stranger:
        looked()
        assert stranger.go_on() == "0"


@with_a_short_limit
def test_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    """An absolute one in a container would be followed from our own root."""
    job = "os.environ['TPUSMI_DIR'] = sys.argv[1]; here(); start()"
    with inside(job, tmp_path) as elsewhere:
        assert of(elsewhere.pid, looked(Segments(Host(segment_dir=str(tmp_path))))) != []
        links = (
            f"own(); here(); os.symlink({str(tmp_path)!r}, '/dev/shm/tpusmi-0')",
            f"own('/dev'); here(); os.symlink({str(tmp_path)!r}, '/dev/shm')",
        )
        for code in links:
            with inside(code):
                assert of(elsewhere.pid, looked()) == [], code


@with_a_short_limit
def test_a_file_is_its_owners_whatever_the_names_and_directories_say(tmp_path: Path) -> None:
    """In a user namespace of its own a stranger is root, and makes `tpusmi-0`."""
    code = f"""
become({USER})
own_users(0)
mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777")
here()
from support import segments
from tpusmi.wire import identity
victim, ticks, ns = map(int, sys.argv[1:4])
os.mkdir("/dev/shm/tpusmi-0", 0o700)
who = identity.me()._replace(pid=victim, start_ticks=ticks, uid=0)
segments.segment("/dev/shm/tpusmi-0", who)
"""
    from tpusmi.wire import identity

    with inside("here()") as victim:
        ticks = identity.start_ticks("/proc", victim.pid)
        with inside(code, victim.pid, ticks, 0):
            claimed = of(victim.pid, looked())
            assert [p for p in claimed if p.is_verified or p.uid == 0] == []


@with_a_short_limit
def test_nobody_hides_a_job_by_naming_its_directory_first(shared: str) -> None:
    code = "own(); become(int(sys.argv[1])); here(); start()"
    with (
        inside(code, OTHER_USER, TPUSMI_DIR=shared) as job,
        inside(code, USER, TPUSMI_DIR=shared),
    ):
        assert [p.uid for p in of(job.pid, looked())] == [OTHER_USER]


@with_a_short_limit
def test_one_user_with_very_many_namespaces_hides_no_other_user() -> None:
    many = (
        f"become({USER}); import time\n"
        "for _ in range(40):\n"
        "    if not os.fork():\n"
        "        libc.unshare(NEW_USER | NEW_MOUNTS); mount('tmpfs', '/dev/shm', 'tmpfs')\n"
        "        time.sleep(60)\n"
        "here()"
    )
    with inside(many), inside(f"own(); become({OTHER_USER}); here(); start()") as job:
        time.sleep(0.5)
        found = looked()
        assert [p.uid for p in of(job.pid, found)] == [OTHER_USER]


LISTED = b"""\
27 1 254:0 / / rw - ext4 /dev/vda rw
24 27 0:6 / /dev rw - devtmpfs devtmpfs rw
25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw
40 24 0:40 / /dev rw - tmpfs none rw
"""


def test_a_mount_that_lies_under_another_one_is_out_of_sight() -> None:
    found = mounts.mount_of(b"/dev/shm", mounts.table(LISTED))
    assert found is not None
    assert found.number == b"40"
    above = LISTED + b"41 40 0:23 / /dev/shm rw - tmpfs tmpfs rw\n"
    assert mounts.directory_of(b"/dev/shm", mounts.table(above)) == (b"0:23", b"")
    bound = LISTED + b"41 40 254:0 /x /dev/shm rw - ext4 /dev/vda rw\n"
    assert mounts.directory_of(b"/dev/shm/y", mounts.table(bound)) == (b"254:0", b"/x/y")


@pytest.mark.parametrize(
    "listed", [b"", b"1 1 0:2 / / rw - rootfs rootfs rw\n", b"- - -\n", b"\n\n"]
)
def test_no_list_of_mounts_is_looked_at_for_ever(listed: bytes) -> None:
    mounts.mount_of(b"/dev/shm", mounts.table(listed))


@with_a_short_limit
def test_a_dev_shm_that_may_not_be_looked_into_hides_no_other_directory() -> None:
    code = f"{SILENT_FUSE}\nown('/mnt'); silent('/dev/shm'); os.mkdir('/mnt/x'); here(); start()"
    with inside(code, TPUSMI_DIR="/mnt/x") as job:
        assert [p.state for p in of(job.pid, looked())] == ["live"]
