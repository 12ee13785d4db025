"""What dead jobs leave is bounded at once, and no living job's file is ever swept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import segments
from support.commands import environment
from support.users import ROOT
from support.waits import until

from tpusmi.agent import output
from tpusmi.model import Host
from tpusmi.sources.segments import Segments
from tpusmi.wire import identity, lock, places
from tpusmi.wire.layout import Identity
from tpusmi.wire.reader import SegmentReader

CYCLES = """
import os, signal, sys, time
import tpusmi
from tpusmi.agent import _sampler
AT_ONCE, CYCLES = 4, 200

def live(how):
    tpusmi.start(0.05)
    mine = f"{os.getpid()}-"
    until_s = time.monotonic() + 20
    while not any(n.startswith(mine) and n.endswith(".seg") for n in os.listdir(sys.argv[1])):
        if time.monotonic() > until_s: os._exit(1)
        time.sleep(0.002)
    if how == "exit": sys.exit(0)
    if how == "stop": tpusmi.stop()
    if how == "kill": os.kill(os.getpid(), signal.SIGKILL)
    os._exit(0)

running = set()
for number in range(CYCLES):
    if len(running) == AT_ONCE: running.remove(os.wait()[0])
    child = os.fork()
    if not child: live(("stop", "kill", "exit", "mixed")[number % 4])
    running.add(child)
while running: running.remove(os.wait()[0])
print("done", flush=True)
"""
LIVE = """
import sys
import tpusmi
agent = tpusmi.start(0.05)
sys.stdin.readline()
"""


@contextmanager
def living(directory: Path, *prefix: str, code: str = LIVE) -> Iterator[subprocess.Popen[bytes]]:
    """A job that publishes itself into that directory."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", code, str(directory)],
        env=environment(directory),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def segments_in(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def dead(count: int, directory: Path) -> list[str]:
    """Segments of dead processes of this user."""
    me = identity.me()
    made = [segments.segment(directory, me._replace(start_ticks=2 + n)) for n in range(count)]
    for writer in made:
        writer.close()
    return [writer.path for writer in made]


def age(path: Path | str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_two_hundred_short_jobs_leave_eight_black_boxes_and_no_half_file(tmp_path: Path) -> None:
    with living(tmp_path) as long, living(tmp_path, code=CYCLES) as cycles:
        assert cycles.stdout is not None
        assert cycles.stdout.readline() == b"done\n"
        left = [name for name in segments_in(tmp_path) if not name.startswith(f"{long.pid}-")]
        assert len(left) <= output.KEEP_DEAD_MOST + 4  # the last four ended when none began
        assert not [name for name in left if name.endswith(".new")]
        with living(tmp_path) as last:
            until(lambda: any(n.startswith(f"{last.pid}-") for n in segments_in(tmp_path)))
            until(lambda: len(segments_in(tmp_path)) <= output.KEEP_DEAD_MOST + 2)
            assert any(name.startswith(f"{long.pid}-") for name in segments_in(tmp_path))


@ROOT
def test_a_job_of_another_pid_namespace_keeps_its_file_until_it_ends(tmp_path: Path) -> None:
    namespace = ["unshare", "-pf", "--kill-child", "--mount-proc"]
    with living(tmp_path, *namespace) as inside:
        (path,) = until(lambda: list(tmp_path.glob("*.seg")))
        until(lambda: SegmentReader(str(path)).newest())
        os.kill(inside.pid, signal.SIGSTOP)
        dead(20, tmp_path)
        for child in Path(f"/proc/{inside.pid}/task/{inside.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGSTOP)  # it writes no more
        age(path, 90000)
        output.remove_old(identity.me(), str(tmp_path))
        assert path.exists()
        assert len(segments_in(tmp_path)) == output.KEEP_DEAD_MOST + 1
        inside.kill()
        inside.wait()
        until(lambda: SegmentReader(str(path)).is_locked() is False)
        output.remove_old(identity.me(), str(tmp_path))
        assert not path.exists()
        assert len(segments_in(tmp_path)) <= output.KEEP_DEAD_MOST


def test_a_plain_exit_leaves_its_black_box_and_it_counts(tmp_path: Path) -> None:
    dead(20, tmp_path)
    with living(tmp_path) as ending:
        until(lambda: [n for n in segments_in(tmp_path) if n.startswith(f"{ending.pid}-")])
        until(lambda: len(segments_in(tmp_path)) == output.KEEP_DEAD_MOST + 1)
        ending.communicate(b"end\n")
        assert len(segments_in(tmp_path)) == output.KEEP_DEAD_MOST
        (own,) = tmp_path.glob(f"{ending.pid}-*.seg")
        sample = SegmentReader(str(own)).newest()
        assert sample is not None
        assert sample.process["phase"] == output.ENDED


NO_LOCK = Identity(7, os.getuid(), 3, b"another machine.", 99)


@pytest.mark.parametrize(
    ("phase", "age_s", "is_dead"), [(2.0, 30, False), (4.0, 0, True), (2.0, 61, True)]
)
def test_where_no_lock_tells_a_segment_that_was_written_lately_is_of_a_living_job(
    tmp_path: Path, phase: float, age_s: float, is_dead: bool
) -> None:
    """As on a network file system, from another machine, whose lock cannot be seen here."""
    writer = segments.segment(tmp_path, NO_LOCK)
    writer.append(segments.slot(7.0, {"phase": phase}, [{}, {}]))
    writer.close()
    age(writer.path, age_s)
    (place,) = places.segments(str(tmp_path), os.getuid())[0]
    assert output.is_dead(place, identity.me()) is is_dead


def test_a_half_file_is_removed_at_once_unless_a_process_is_at_it(tmp_path: Path) -> None:
    made, held, empty, old = (tmp_path / f"{n}-5.seg.new" for n in range(4))
    for path in (made, held):
        path.write_bytes(bytes(700))
    for path in (empty, old):
        path.touch()
    age(old, 5.0)
    with open(held, "r+b") as file:
        assert lock.hold(file.fileno())
        output.remove_old(identity.me(), str(tmp_path))
    assert [path.exists() for path in (made, held, empty, old)] == [False, True, True, False]


def test_half_files_cost_a_job_no_more_time_than_all_that_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "5-5.seg.new"
    made.write_bytes(bytes(700))
    monkeypatch.setattr(output, "SWEEP_CPU_S", -1.0)  # as where other files have taken it all
    output.remove_old(identity.me(), str(tmp_path))
    assert made.exists()
    monkeypatch.undo()
    output.remove_old(identity.me(), str(tmp_path))
    assert not made.exists()


@ROOT
def test_another_users_half_files_are_let_alone(tmp_path: Path) -> None:
    path = tmp_path / "5-5.seg.new"
    path.write_bytes(bytes(700))
    os.chown(path, 65534, 65534)
    output.remove_old(identity.me(), str(tmp_path))
    assert path.exists()


def test_a_half_file_that_was_swept_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, swept = os.rename, []

    def rename(source: str, target: str) -> None:
        if not swept:
            swept.append(source)
            os.unlink(source)
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    writer = output.create(identity.me(), 1, str(tmp_path))
    assert segments_in(tmp_path) == [os.path.basename(writer.path)]
    assert writer.is_in_place()
    writer.close()


def test_a_living_process_of_another_container_with_our_number_keeps_its_file(
    tmp_path: Path,
) -> None:
    me = identity.me()
    other = segments.segment(tmp_path, me._replace(pid_namespace=99))
    mine = output.create(me, 1, str(tmp_path))
    assert other.is_in_place()
    assert mine.is_in_place()
    found = Segments(Host(segment_dir=str(tmp_path))).read(time.monotonic())
    assert len(found.processes) == 2
    other.close()
    mine.close()
