"""A segment whose file went away under its job is made again: real jobs, users, file systems."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import mounts, run_as
from support.commands import TPUSMI, USER, environment
from support.jobs import Job, collector, job, seen
from support.users import ROOT
from support.waits import until

from tpusmi.agent import output
from tpusmi.collect import open_collector
from tpusmi.model import Host, Process, Snapshot
from tpusmi.wire import identity, places
from tpusmi.wire.layout import SegmentError
from tpusmi.wire.reader import SegmentReader

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no JAX here")

QUICK = """
from tpusmi.agent import segment
segment.CHECK_S, segment.RETRY_S, segment.RETRY_MOST_S = 0.3, 0.3, 0.5
"""
TRAINING = """
tpusmi.start(interval_s=0.1)
import jax, jax.numpy as jnp
kept = jnp.ones(3000)
for _ in range(5): tpusmi.step()
say("ready")
while True:
    words = hear().split()
    if words[0] == "close": os.closerange(3, 256)
    tpusmi.step()
    say("done")
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    place = tmp_path / "segments"
    place.mkdir()
    return place


def stepped(count: int) -> Callable[[Snapshot, Process], bool]:
    def is_whole(s: Snapshot, p: Process) -> bool:
        is_known = p.state == "live" and p.profile is not None and len(s.devices_of(p.key)) == 2
        return is_known and s.value("steps", p.key) == count

    return is_whole


def segment_of(running: Job, directory: Path) -> Path:
    return next(directory.glob(f"{running.pid}-*.seg"))


def replace_by_link(path: Path) -> None:
    path.unlink()
    victim = path.parent.parent / "victim"
    victim.write_bytes(b"precious")
    path.symlink_to(victim)


def replace_by_copy(path: Path) -> None:
    shutil.copy(path, path.parent / "copy")
    os.rename(path.parent / "copy", path)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_directory(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.mkdir()


LOSSES: dict[str, Callable[[Path], None]] = {
    "file deleted": os.unlink,
    "directory deleted": lambda path: shutil.rmtree(path.parent),
    "directory replaced": replace_directory,
    "replaced by a copy": replace_by_copy,
    "replaced by a link": replace_by_link,
    "replaced by a pipe": replace_by_pipe,
    "cut to nothing": lambda path: os.truncate(path, 0),
    "cut short": lambda path: os.truncate(path, 700),
}


def test_whatever_became_of_the_file_the_job_is_seen_again_with_all_its_numbers(
    directory: Path,
) -> None:
    with job(directory, QUICK + TRAINING) as trainer:
        assert trainer.hear() == "ready"
        seen(collector(directory), trainer.pid, stepped(5))
        for count, (what, lose) in enumerate(LOSSES.items(), 6):
            path = segment_of(trainer, directory)
            lose(path)
            trainer.tell("step")
            assert trainer.hear() == "done"
            _, process = seen(collector(directory), trainer.pid, stepped(count))
            assert "-c" in process.command, what
            assert os.listdir(directory) == [path.name], what
        assert (directory.parent / "victim").read_bytes() == b"precious"
        assert trainer.end() == 0
        assert trainer.stderr == ""


def test_a_directory_that_cannot_be_made_again_is_waited_for_with_one_line(directory: Path) -> None:
    with job(directory, QUICK + TRAINING) as trainer:
        assert trainer.hear() == "ready"
        reader = collector(directory)
        seen(reader, trainer.pid, stepped(5))
        shutil.rmtree(directory)
        directory.touch()
        until(lambda: trainer.stderr)
        directory.unlink()
        trainer.tell("step")
        seen(reader, trainer.pid, stepped(6))
        assert trainer.end() == 0
        (line,) = trainer.stderr.splitlines()
        assert line.startswith("tpusmi: agent switched off: ")
        assert line.endswith("(it tries again later)")


PRIVATE = ["unshare", "-m", "--propagation", "private", "sh", "-c"]
OWN_PLACES = f"""
mount -t tmpfs -o mode=1777 none /dev/shm
{shlex.join([sys.executable, mounts.__file__])} /tmp
exec "$@"
"""
AS_USER = [sys.executable, run_as.__file__, str(USER)]


def taken_by_another_user(usual: Path) -> None:
    shutil.rmtree(usual)
    usual.mkdir(0o700)
    os.chown(usual, 65534, 65534)


@ROOT
@pytest.mark.parametrize("user", [0, USER])
def test_a_directory_that_another_user_took_is_left_for_another_one(
    tmp_path: Path, user: int
) -> None:
    run_as.another_user(USER)  # or there is no way to become one here
    prefix = [*PRIVATE, OWN_PLACES, "sh", *(AS_USER if user else [])]
    more = {"TPUSMI_DIR": None, "XDG_RUNTIME_DIR": None, "HOME": "/"}
    with job(tmp_path / "none", QUICK + TRAINING, *prefix, **more) as trainer:
        assert trainer.hear() == "ready"
        root = f"/proc/{trainer.pid}/root"
        host = Host(root=root, metrics_ports=())
        seen(open_collector(host), trainer.pid, stepped(5))
        usual = Path(f"{root}/dev/shm/tpusmi-{user}")
        taken_by_another_user(usual)
        trainer.tell("step")
        assert trainer.hear() == "done"
        seen(open_collector(host), trainer.pid, stepped(6))
        assert list(usual.iterdir()) == []
        (used,) = (path for path in usual.parent.iterdir() if path != usual)
        assert used.name.startswith(f"tpusmi-{user}.")
        assert trainer.end() == 0
        assert trainer.stderr == ""


FULL = 'mount -t tmpfs -o size={size} none "{where}"; head -c {size} /dev/zero >"{where}/full"; '


@ROOT
def test_a_full_directory_is_tried_again_and_the_job_is_told_once(directory: Path) -> None:
    script = FULL.format(size="64m", where=directory) + 'exec "$@"'
    with job(directory, QUICK + TRAINING, *PRIVATE, script, "sh") as trainer:
        assert trainer.hear() == "ready"
        inside = Path(f"/proc/{trainer.pid}/root{directory}")
        until(lambda: trainer.stderr)
        trainer.tell("step")
        assert trainer.hear() == "done"
        assert os.listdir(inside) == ["full"]
        (inside / "full").unlink()
        seen(collector(inside), trainer.pid, stepped(6))
        assert trainer.end() == 0
        assert trainer.stderr.count("\n") == 1
        assert "No space left on device" in trainer.stderr


@ROOT
def test_a_segment_that_is_deleted_on_a_full_file_system_comes_back_in_the_next_best_place(
    directory: Path, tmp_path: Path
) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir()
    script = 'mount -t tmpfs -o size=8m none /dev/shm; exec "$@"'
    more = {"TPUSMI_DIR": None, "XDG_RUNTIME_DIR": str(runtime)}
    with job(directory, QUICK + TRAINING, *PRIVATE, script, "sh", **more) as trainer:
        assert trainer.hear() == "ready"
        shared = Path(f"/proc/{trainer.pid}/root/dev/shm")
        seen(collector(shared / "tpusmi-0"), trainer.pid, stepped(5))
        shutil.rmtree(shared / "tpusmi-0")
        filling = ["dd", "if=/dev/zero", f"of={shared}/full", "bs=64k"]
        assert subprocess.run(filling, capture_output=True).returncode == 1
        trainer.tell("step")
        assert trainer.hear() == "done"
        seen(collector(runtime / "tpusmi-0"), trainer.pid, stepped(6))
        assert trainer.end() == 0
        assert trainer.stderr == ""


def test_a_viewer_that_has_it_open_follows(directory: Path) -> None:
    with job(directory, QUICK + TRAINING) as trainer:
        assert trainer.hear() == "ready"
        seen(collector(directory), trainer.pid, stepped(5))
        loop = subprocess.Popen(
            [*TPUSMI, "--json", "--loop-ms", "100"],
            env=environment(directory),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert loop.stdout is not None

            def steps(line: str) -> list[float | None]:
                return [p["steps"] for p in json.loads(line)["processes"]]

            assert steps(loop.stdout.readline()) == [5]
            shutil.rmtree(directory)
            trainer.tell("step")
            assert trainer.hear() == "done"
            found = [steps(loop.stdout.readline())]
            while found[-1] != [6]:
                found.append(steps(loop.stdout.readline()))
                assert len(found) < 300
            assert [5] in found or found == [[6]]
            assert [] not in found  # its agent held on to it: it was there all the time
        finally:
            loop.kill()
            loop.communicate()


@ROOT
def test_a_job_that_changes_its_root_keeps_the_segment_outside(
    directory: Path, tmp_path: Path
) -> None:
    code = TRAINING.replace('== "close": os.closerange(3, 256)', '== "chroot": os.chroot(words[1])')
    inside = tmp_path / "root"
    inside.mkdir()
    with job(directory, QUICK + code) as trainer:
        assert trainer.hear() == "ready"
        seen(collector(directory), trainer.pid, stepped(5))
        trainer.tell(f"chroot {inside}")
        assert trainer.hear() == "done"
        time.sleep(1.0)
        seen(collector(directory), trainer.pid, stepped(6))
        assert locks(directory) == [True]
        assert os.listdir(inside) == []


def locks(directory: Path) -> list[bool | None]:
    found = []
    for path in sorted(directory.glob("*.seg")):
        try:
            reader = SegmentReader(str(path))
        except SegmentError:
            continue  # replaced meanwhile
        found.append(reader.is_locked())
        reader.close()
    return found


FORKING = """
{start}
children = []
for _ in range({count}):
    children.append(os.fork())
    if not children[-1]:
        os.close(1)
        while True: signal.pause()
say(*children); hear()
"""
AT_ONCE = "import signal; tpusmi.start(0.05)"
LATER = "import signal, time; tpusmi.start(0.05); time.sleep(0.7)"


def keeps_a_lock(pid: int) -> bool:
    """True while a process may write to a segment, which keeps its lock; or closes descriptors."""
    try:
        for path in Path(f"/proc/{pid}/fd").iterdir():
            if ".seg" in os.path.basename(os.readlink(path)):
                flags = Path(f"/proc/{pid}/fdinfo/{path.name}").read_text().split("flags:")[1]
                if int(flags.split()[0], 8) & os.O_ACCMODE:
                    return True
    except FileNotFoundError:
        return True
    return False


@pytest.mark.parametrize(("start", "count"), [(AT_ONCE, 30), (LATER, 1)])
def test_a_forked_child_neither_drops_nor_keeps_the_lock(
    directory: Path, start: str, count: int
) -> None:
    with job(directory, FORKING.format(start=start, count=count)) as parent:
        children = [int(word) for word in parent.hear().split()]
        try:
            until(lambda: locks(directory) == [True])
            until(lambda: not any(map(keeps_a_lock, children)))
            assert locks(directory) == [True]
            parent.process.send_signal(signal.SIGKILL)
            parent.process.wait()
            assert locks(directory) == [False]
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)


def test_a_job_that_became_another_program_has_let_go(directory: Path) -> None:
    code = TRAINING.replace(
        "tpusmi.step()\n    say", 'os.execvp("sleep", ["sleep", "60"])\n    say'
    )
    with job(directory, code) as trainer:
        assert trainer.hear() == "ready"
        seen(collector(directory), trainer.pid, stepped(5))
        assert locks(directory) == [True]
        trainer.tell("exec")
        until(lambda: Path(f"/proc/{trainer.pid}/comm").read_text() == "sleep\n")
        assert locks(directory) == [False]
        reader = collector(directory)
        snapshot, process = seen(reader, trainer.pid, lambda s, p: p.is_dead)
        assert (process.phase, snapshot.devices) == ("ended", ())
        place = places.segments(str(directory), os.getuid())[0][0]
        assert output.is_dead(place, identity.me())


def test_a_job_that_starts_itself_again_is_seen_from_its_first_step(
    directory: Path, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys, tpusmi\n"
        "tpusmi.start(0.1)\n"
        "import jax; kept = jax.numpy.ones(10)\n"
        "for _ in range(int(sys.argv[1])): tpusmi.step()\n"
        "sys.stdin.readline()\n"
        "os.execv(sys.executable, [sys.executable, __file__, '3', 'resumed'])\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script), "40"],
        env=environment(directory, JAX_PLATFORMS="cpu"),
        stdin=subprocess.PIPE,
        text=True,
    ) as trainer:
        try:
            assert trainer.stdin is not None
            reader = collector(directory)
            seen(reader, trainer.pid, lambda s, p: s.value("steps", p.key) == 40)
            trainer.stdin.write("again\n")
            trainer.stdin.flush()
            _, process = seen(reader, trainer.pid, lambda s, p: s.value("steps", p.key) == 3)
            assert (process.state, process.command.split()[-1]) == ("live", "resumed")
            assert len(os.listdir(directory)) == 1
        finally:
            trainer.kill()


def test_start_that_is_called_again_tries_at_once(directory: Path) -> None:
    code = """
    from tpusmi.agent import segment
    segment.RETRY_S = 1000.0
    say(tpusmi.start(0.1).running); hear()
    say(tpusmi.agent.Agent().running)
    tpusmi.start(); hear()
    say(tpusmi.agent.Agent().running)
    """
    directory.rmdir()
    directory.touch()
    with job(directory, code) as starting:
        starting.hear()
        until(lambda: starting.stderr)
        starting.tell("go")
        assert starting.hear() == "False"
        directory.unlink()
        until(lambda: directory.is_dir() and locks(directory) == [True])
        starting.tell("go")
        assert starting.hear() == "True"
        assert starting.stderr.count("\n") == 1


def test_an_agent_that_failed_keeps_its_lock_until_it_is_started_again(directory: Path) -> None:
    code = """
    from tpusmi.agent import jaxread
    real, jaxread.backend_is_visible = jaxread.backend_is_visible, lambda: False
    tpusmi.start(0.1); hear()
    jaxread.backend_is_visible = real
    tpusmi.start(0.1); say(tpusmi.agent.Agent().running); hear()
    tpusmi.stop(); say("stopped"); hear()
    """
    with job(directory, code) as failing:
        reader = collector(directory)
        seen(reader, failing.pid, lambda s, p: s.warnings)
        assert locks(directory) == [True]  # the process lives
        failing.tell("again")
        assert failing.hear() == "True"
        seen(reader, failing.pid, lambda s, p: p.state == "live" and not s.warnings)
        assert locks(directory) == [True]
        failing.tell("stop")
        assert failing.hear() == "stopped"
        assert os.listdir(directory) == []
        assert failing.stderr.count("\n") == 1
