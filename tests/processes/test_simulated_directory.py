"""Nothing is left of a simulated host, however it ended, once another has started."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.clocks import Stopwatch
from support.commands import TPUSMI, USER, environment, tpusmi
from support.hosts import MARK, _kill, marked
from support.run_as import another_user
from support.users import ROOT
from support.waits import until

from tpusmi.simulate import directory, faults
from tpusmi.simulate.directory import is_running
from tpusmi.simulate.host import HostPlan, start

LIMIT_S = 60.0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where hosts are made."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def left(place: Path) -> list[str]:
    return [name for name in os.listdir(place) if name.startswith(directory.PREFIX)]


@contextmanager
def simulating(place: Path) -> Iterator[str]:
    """`tpusmi simulate`, all of whose processes are killed at once, at the end: its mark."""
    mark = f"{time.monotonic_ns()}"
    process = subprocess.Popen(
        [*TPUSMI, "simulate", "v5e-1"],
        env=environment(place, TMPDIR=str(place), **{MARK: mark}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        yield mark
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in marked(mark):
                os.kill(pid, number) if number == signal.SIGSTOP else _kill(pid)
        process.wait(LIMIT_S)


def test_the_next_start_sweeps_what_was_killed_at_any_moment(place: Path) -> None:
    chance = random.Random(7)
    most = 0
    for _ in range(12):
        with simulating(place):
            time.sleep(chance.uniform(0.05, 0.8))
        most = max(most, len(left(place)))
    if not most:  # each took longer to start: this machine is busy
        with simulating(place):
            until(lambda: left(place), LIMIT_S, "a directory")
        most = len(left(place))
    assert most >= 1, "none was killed while it had a directory"
    assert tpusmi(place, "-1", "--simulate", "v5e-1", TMPDIR=str(place)).returncode == 0
    assert left(place) == []


def test_a_host_that_runs_is_not_swept(place: Path) -> None:
    with start(HostPlan("v5e-1")) as first, start(HostPlan("v5e-1")) as second:
        directory.sweep()
        assert is_running(first.root)
        assert is_running(second.root)
    assert left(place) == []


def test_one_that_another_version_keeps_without_a_lock_is_not_swept(place: Path) -> None:
    with start(HostPlan("v5e-1")) as host:
        copy = place / f"{directory.PREFIX}copy"
        copy.mkdir()
        (copy / "simulated.json").write_bytes(Path(host.root, "simulated.json").read_bytes())
        directory.sweep()
        assert copy.is_dir()
    directory.sweep()
    assert left(place) == []


def test_a_directory_in_the_making_is_not_swept_and_one_that_was_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = directory.make()
    directory.sweep()
    assert os.path.isdir(path)
    os.close(lock)
    directory.sweep()
    assert not os.path.exists(path)

    real, swept = directory._lock, []

    def late(path: str) -> int | None:
        if not swept:  # between making and locking
            swept.append(path)
            directory.sweep()
        return real(path)

    monkeypatch.setattr(directory, "_lock", late)
    path, lock = directory.make()
    assert os.path.isdir(path)
    assert path not in swept
    os.close(lock)


def test_makers_and_sweepers_at_once_lose_none(place: Path) -> None:
    code = """
import os, sys, time
from tpusmi.simulate import directory
until_s = time.monotonic() + 2
while time.monotonic() < until_s:
    path, lock = directory.make()
    open(f"{path}/file", "w").close()
    directory.sweep()
    assert os.listdir(path) == ["file"], path
    os.close(lock)
"""
    command = [sys.executable, "-c", code]
    env = environment(place, TMPDIR=str(place))
    makers = [subprocess.Popen(command, env=env, stderr=subprocess.PIPE) for _ in range(4)]
    for maker in makers:
        _, words = maker.communicate(timeout=LIMIT_S)
        assert (maker.returncode, words) == (0, b"")
    directory.sweep()
    assert left(place) == []


def test_a_place_for_temporary_files_is_not_needed_where_shared_memory_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", none)
    directory.sweep()  # as in a container with a read-only root
    path, lock = directory.make()
    os.rmdir(path)
    os.close(lock)


@ROOT
def test_what_is_another_users_or_leads_elsewhere_is_left_alone(place: Path) -> None:
    theirs = place / f"{directory.PREFIX}theirs"
    theirs.mkdir()
    os.chown(theirs, USER, USER)
    kept = place / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (place / f"{directory.PREFIX}link").symlink_to(kept)
    (place / f"{directory.PREFIX}file").touch()
    os.mkfifo(place / f"{directory.PREFIX}fifo")
    directory.sweep()
    assert theirs.is_dir()
    assert (kept / "file").exists()
    assert len(left(place)) == 4


def test_another_user_cannot_take_the_lock_of_a_host_that_runs() -> None:
    code = """
import fcntl, os, sys
directory = os.open(sys.argv[1], os.O_RDONLY)
try: fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError: sys.exit(7)
"""
    with start(HostPlan("v5e-1")) as host:
        command = another_user(USER, sys.executable, "-c", code, host.root)
        assert subprocess.run(command, check=False, timeout=LIMIT_S).returncode == 7


def test_a_keeper_that_is_killed_before_it_has_said_anything_leaves_nothing(place: Path) -> None:
    with simulating(place) as mark:

        def keepers() -> list[int]:
            found = [pid for pid in marked(mark) if b"simulate.keeper" in _cmdline(pid)]
            return found if left(place) else []

        _kill(until(keepers, LIMIT_S, "a keeper with a directory")[0])
        # The command that asked for it sweeps it.
        until(lambda: left(place) == [], LIMIT_S, "no directory")


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("python", ["/bin/false", "/nowhere/python", "/bin/true"])
def test_where_its_python_does_not_start_it_says_so(place: Path, python: str) -> None:
    code = (
        f"import sys; sys.executable = {python!r}\n"
        "from tpusmi.cli import main; sys.exit(main(['-1', '--simulate', 'v5e-1']))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment(place), capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.startswith("tpusmi: the simulated host did not start: its Python ")
    assert found.stderr.count("\n") == 1


def test_where_there_is_no_room_for_it_it_says_so(tmp_path: Path) -> None:
    missing = f"{tmp_path}/missing"
    found = tpusmi(tmp_path, "-1", "--simulate", "v5e-1", user=None, TMPDIR=missing)
    # Python takes another directory where that one cannot be used.
    assert found.returncode == 0
    script = 'mount -t tmpfs -o size=16k none "$TMPDIR" && exec "$@"'
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespace here")
    full = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *TPUSMI, "-1", "--simulate", "v5e-1"],
        env=environment(tmp_path, TMPDIR=str(tmp_path)), capture_output=True, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip
    assert (full.returncode, full.stdout) == (1, "")
    assert full.stderr.startswith("tpusmi: the simulated host cannot be made: ")
    assert full.stderr.count("\n") == 1


@ROOT
def test_a_fifo_in_the_place_of_its_faults_holds_up_nobody(place: Path) -> None:
    with start(HostPlan("v5e-1")) as host:
        path = Path(host.root, faults.FILE)
        path.unlink()
        os.mkfifo(path)
        os.chown(path, USER, USER)
        assert host.sdk_command is not None
        found = subprocess.run(
            host.sdk_command, input=b"null\n", capture_output=True, timeout=LIMIT_S
        )
        assert found.returncode == 0
        assert b'"version": "simulated"' in found.stdout


def test_a_signal_ends_it_while_its_job_does_not_get_ready(place: Path) -> None:
    (place / "sitecustomize.py").write_text(
        "import sys, time\nif 'train.py' in sys.orig_argv:\n    time.sleep(60)\n"
    )
    path = os.pathsep.join([str(place), *filter(None, map(os.path.abspath, sys.path))])
    process = subprocess.Popen(
        [*TPUSMI, "serve", "--simulate", "v5e-1", "--port", "0"],
        env={**environment(place), "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    until(lambda: any("tpusmi.simulate" in one for one in _children(process.pid)), 30, "a keeper")
    time.sleep(0.3)
    with Stopwatch() as end:
        process.terminate()
        assert process.wait(40) == 0
    assert end.seconds() < 10
    assert process.stderr is not None
    process.stderr.close()


def test_a_job_without_threads_says_so_at_once_whatever_grpc_waits_for() -> None:
    code = (
        "import threading, time\n"
        "from tpusmi.simulate import job\n"
        "def serve(*_):\n"
        "    threading.Thread(target=time.sleep, args=(60,)).start()\n"
        '    raise RuntimeError("can\'t start new thread")\n'
        "job._serve = serve\n"
        "job._serve_or_say_why(None, 0, 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=40)
    assert done.returncode == 1
    assert done.stderr.startswith("no threads can be started for its metrics server: see ulimit")


def _children(pid: int) -> list[str]:
    """The commands of its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [_cmdline(int(child)).decode() for child in children]
