"""Whether a job lives, where neither its pid, its boot, its clock nor its user is told to us as it
is told to the job: real namespaces, real processes, the real lock.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.commands import TPUSMI, environment
from support.run_as import another_user
from support.terminals import terminal
from support.users import ROOT, reachable
from support.waits import until

from tpusmi.model import Host, Outcome
from tpusmi.sources.segments import Segments

pytestmark = ROOT

TESTS = str(Path(__file__).parent.parent)
USER = 41001
LONG_S = 60.0
"""So long ago, a sample is old."""
JOB = f"""
import os, sys, time
sys.path.insert(0, {TESTS!r})
from support import segments
from tpusmi.wire import identity
writer = segments.segment(sys.argv[1], identity.me(), 1, segments.facts(1, argv=["train.py"]))
def write(age_s=0.0):
    at_s = time.monotonic() - age_s
    writer.append(segments.slot(at_s, segments.RUNNING, [segments.device()], time.time() - age_s))
age_s = float(sys.argv[2])
write(age_s)
def go_on():
    while True: time.sleep(0.2); write()
if not age_s:
    import threading
    threading.Thread(target=go_on, daemon=True).start()
print(os.getpid(), flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
PIDS = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
ONLY_PIDS = "mount -t proc -o subset=pid proc /proc"
OTHER_BOOT = (
    "mount -t tmpfs none /mnt && echo 01234567-89ab-cdef-0123-456789abcdef > /mnt/id"
    " && mount --bind /mnt/id /proc/sys/kernel/random/boot_id"
)


def after(*scripts: str) -> tuple[str, ...]:
    """The beginning of a command that runs in mounts of its own, after those scripts."""
    script = " && ".join((*scripts, 'exec "$@"'))
    return ("unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh")


class Job:
    """A process with a segment that does what it is told in Python."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.line()
        own = process.pid
        found = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        self.pid = int(found[0]) if found else own
        """Its pid here: that of the only child of what made a namespace for it, if one did."""

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def do(self, line: str) -> None:
        """Have it run that line, and wait until it has."""
        self.tell(line)
        assert self.line() == "done"

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def children(self) -> list[int]:
        """Its children."""
        return [
            int(p) for p in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        ]

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait(60)


@contextmanager
def job(directory: Path, *prefix: str, age_s: float = 0.0) -> Iterator[Job]:
    """A job whose newest sample has that age, or that writes all the time; ended at the end."""
    directory.mkdir(exist_ok=True)
    command = [*prefix, sys.executable, "-c", JOB, str(directory), str(age_s)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Job(process)
        finally:
            process.kill()


def seen(directory: Path, *prefix: str) -> dict[str, Any]:
    """What `tpusmi --json` prints."""
    return dict(json.loads(said(directory, *prefix)))


def said(directory: Path, *prefix: str, command: tuple[str, ...] = ("--json",)) -> str:
    """What tpusmi prints with those options."""
    run = subprocess.run(
        [*prefix, *TPUSMI, *command],
        env=environment(directory),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.stderr == ""
    return run.stdout


def states(s: dict[str, Any]) -> list[tuple[str, str, bool, int]]:
    """State, phase and whether it is verified of the process, with the number of devices."""
    devices = len(s["devices"])
    return [(p["state"], p["phase"], p["verified"], devices) for p in s["processes"]]


def here(directory: Path) -> Outcome:
    """What is seen from here, without a command."""
    return Segments(Host(segment_dir=str(directory))).read(time.monotonic())


COLUMNS = "--query-processes=pid,state,verified"


@pytest.mark.parametrize("age_s", [0.0, LONG_S], ids=["writes", "frozen"])
def test_a_job_seen_from_another_pid_namespace_lives_until_it_is_killed(
    tmp_path: Path, age_s: float
) -> None:
    state = "silent" if age_s else "live"
    query = (COLUMNS, "--format=csv,noheader")
    with job(tmp_path / "s", age_s=age_s) as it:
        if age_s:
            os.kill(it.pid, signal.SIGSTOP)
        assert states(seen(tmp_path / "s", *PIDS)) == [(state, "running", False, 1)]
        found = said(tmp_path / "s", *PIDS, command=("-1",))
        assert "in another pid namespace" in found
        assert "not verified" not in found
        told = said(tmp_path / "s", *PIDS, command=query)
        assert told == f"{it.pid}, {state}, False\n"
        it.kill()
        s = seen(tmp_path / "s", *PIDS)
        assert states(s) == [("dead", "ended", False, 0)]
        assert s["devices"] == []
        assert said(tmp_path / "s", *PIDS, command=query) == ""


def test_the_dashboard_in_another_pid_namespace_sees_the_end(tmp_path: Path) -> None:
    directory = tmp_path / "s"
    with job(directory) as it:
        command = [*PIDS, *TPUSMI]
        with terminal(command, environment(directory), 140, 40) as screen:
            screen.see("1 job ")
            screen.see("in another pid namespace")
            it.kill()
            screen.see("ended")
            screen.see("0 jobs")
            screen.press("q")
            screen.end()


def test_a_job_in_a_pid_namespace_ends_for_its_host_while_its_child_has_the_lock(
    tmp_path: Path,
) -> None:
    with job(tmp_path / "s") as it:
        it.do("import ctypes; child = ctypes.CDLL(None).fork() or time.sleep(60)")
        (child,) = it.children()
        try:
            it.kill()
            (process,) = here(tmp_path / "s").processes
            assert process.is_dead
        finally:
            os.kill(child, signal.SIGKILL)


JOB_IS = pytest.mark.parametrize("how", [ONLY_PIDS, OTHER_BOOT], ids=["no boot id", "another"])


@JOB_IS
@pytest.mark.parametrize("age_s", [0.0, LONG_S], ids=["writes", "frozen"])
def test_a_process_that_is_there_lives_whatever_boot_it_is_told(
    tmp_path: Path, how: str, age_s: float
) -> None:
    state = "silent" if age_s else "live"
    with job(tmp_path / "s", *after(how), age_s=age_s) as it:
        assert states(seen(tmp_path / "s")) == [(state, "running", True, 1)]
        assert states(seen(tmp_path / "s", *after(how))) == [(state, "running", True, 1)]
        assert states(seen(tmp_path / "s", *PIDS)) == [(state, "running", False, 1)]
        it.kill()
        assert states(seen(tmp_path / "s")) == [("dead", "ended", True, 0)]
        assert states(seen(tmp_path / "s", *after(how))) == [("dead", "ended", True, 0)]
        assert states(seen(tmp_path / "s", *PIDS)) == [("dead", "ended", False, 0)]


def test_a_viewer_in_a_hardened_service_says_what_proc_lacks_and_works(tmp_path: Path) -> None:
    with job(tmp_path / "s"):
        found = said(tmp_path / "s", *after(ONLY_PIDS), command=("-1",))
        assert "train.py" in found
        assert (
            "agent: /proc/uptime, /proc/loadavg, /proc/meminfo, /proc/sys/kernel/random/boot_id"
            " cannot be read here"
        ) in found
        assert "cannot be read here" not in said(tmp_path / "s", command=("-1",))


@JOB_IS
def test_a_viewer_that_is_told_another_boot_sees_a_living_job(tmp_path: Path, how: str) -> None:
    with job(tmp_path / "s") as it:
        assert states(seen(tmp_path / "s", *after(how))) == [("live", "running", True, 1)]
        it.kill()
        assert states(seen(tmp_path / "s", *after(how))) == [("dead", "ended", True, 0)]


def clock(monotonic_s: int, boottime_s: int) -> tuple[str, ...]:
    """The beginning of a command that runs in a time namespace."""
    prefix = ("unshare", "--time", "--fork", "--kill-child")
    return (*prefix, f"--monotonic={monotonic_s}", f"--boottime={boottime_s}")


CLOCKS = pytest.mark.parametrize(
    ("monotonic_s", "boottime_s"), [(5000, 0), (-500, 0), (100_000, 50_000), (-500, -500)]
)


@CLOCKS
@pytest.mark.parametrize("age_s", [0.0, LONG_S], ids=["writes", "frozen"])
def test_a_job_of_another_time_namespace_lives_and_has_its_age(
    tmp_path: Path, monotonic_s: int, boottime_s: int, age_s: float
) -> None:
    if time.monotonic() < 600:
        pytest.skip("this machine has not been up for long enough")
    state = "silent" if age_s else "live"
    with job(tmp_path / "s", *clock(monotonic_s, boottime_s), age_s=age_s) as it:
        found = here(tmp_path / "s")
        assert found.notes == ()
        (process,) = found.processes
        assert (process.pid, process.state, process.is_verified) == (it.pid, state, True)
        assert process.sampled_at_s == pytest.approx(time.monotonic() - age_s, abs=15)
        it.kill()
        (process,) = here(tmp_path / "s").processes
        assert process.is_dead
        assert process.sampled_at_s == pytest.approx(time.monotonic() - age_s, abs=15)


@CLOCKS
def test_a_viewer_in_another_time_namespace_sees_a_living_job(
    tmp_path: Path, monotonic_s: int, boottime_s: int
) -> None:
    if time.monotonic() < 600:
        pytest.skip("this machine has not been up for long enough")
    with job(tmp_path / "s") as it:
        s = seen(tmp_path / "s", *clock(monotonic_s, boottime_s))
        assert states(s) == [("live", "running", True, 1)]
        assert s["processes"][0]["sample_age_s"] < 10
        it.kill()
        s = seen(tmp_path / "s", *clock(monotonic_s, boottime_s))
        assert states(s) == [("dead", "ended", True, 0)]


def test_who_may_not_look_at_a_job_of_another_time_namespace_sees_that_it_lives(
    tmp_path: Path,
) -> None:
    with job(tmp_path / "s", *clock(100_000, 50_000)) as it, reachable(tmp_path / "s"):
        viewer = another_user(USER)
        assert states(seen(tmp_path / "s", *viewer)) == [("live", "running", False, 1)]
        it.kill()
        assert [p[0] for p in states(seen(tmp_path / "s", *viewer))] == ["dead"]


def test_a_job_that_became_another_program_has_ended_and_its_process_is_not_charged_with_it(
    tmp_path: Path,
) -> None:
    with job(tmp_path / "s", age_s=LONG_S) as it:
        it.tell("os.execvp('sleep', ['sleep', '60'])")
        until(lambda: Path(f"/proc/{it.pid}/comm").read_text() == "sleep\n")
        found = here(tmp_path / "s")
        (process,) = found.processes
        assert (process.state, process.phase) == ("dead", "ended")
        assert (process.pid, process.is_verified) == (it.pid, False)
        assert states(seen(tmp_path / "s")) == [("dead", "ended", False, 0)]


def test_a_job_that_runs_itself_again_is_the_one_of_its_new_segment(tmp_path: Path) -> None:
    source = Segments(Host(segment_dir=str(tmp_path / "s")))
    with job(tmp_path / "s", age_s=LONG_S) as it:
        (before,) = source.read(time.monotonic()).processes
        it.tell("os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:-1], '0.0'])")
        assert int(it.line()) == it.pid
        (process,) = source.read(time.monotonic()).processes
        assert (before.state, process.state) == ("silent", "live")
        assert process.key == before.key
        assert process.is_verified


def test_a_child_without_the_descriptor_does_not_keep_an_ended_job_alive(tmp_path: Path) -> None:
    with job(tmp_path / "s") as it:
        it.do("import subprocess; child = subprocess.Popen(['sleep', '60'], close_fds=False)")
        (child,) = it.children()
        try:
            it.kill()
            assert states(seen(tmp_path / "s", *PIDS)) == [("dead", "ended", False, 0)]
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("hidepid", [1, 2, 4])
def test_behind_hidepid_ones_own_ended_job_has_ended_and_anothers_is_told_by_its_lock(
    tmp_path: Path, hidepid: int
) -> None:
    viewer = (*after(f"mount -t proc -o hidepid={hidepid} proc /proc"), *another_user(USER))
    directory = tmp_path / "s"
    directory.mkdir()
    directory.chmod(0o1777)
    with (
        reachable(directory),
        job(directory, *another_user(USER), age_s=LONG_S) as own,
        job(directory, age_s=LONG_S) as roots,
    ):
        found = {p["uid"]: p for p in seen(directory, *viewer)["processes"]}
        assert [(found[u]["state"], found[u]["verified"]) for u in (USER, 0)] == [
            ("silent", True),
            ("silent", False),
        ]
        assert "hidden by /proc" in said(directory, *viewer, command=("-1",))
        own.kill()
        roots.kill()
        s = seen(directory, *viewer)
        assert {(p["uid"], p["state"]) for p in s["processes"]} == {(USER, "dead"), (0, "dead")}
        assert s["devices"] == []
