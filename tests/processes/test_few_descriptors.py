"""A process that may open few files: it shows what it can, says what it leaves out, and takes no
job for dead because nothing could be asked.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.commands import environment
from support.hosts import running

from tpusmi.agent import output
from tpusmi.wire import identity, places

TRAINING = """
import time, tpusmi
tpusmi.start(interval_s=0.2)
until_s = time.monotonic() + 60
while not [n for n in os.listdir(os.environ["TPUSMI_DIR"]) if n.startswith(f"{os.getpid()}-")]:
    assert time.monotonic() < until_s
    time.sleep(0.02)
say("ready")
wait()
"""
JOBS = 6


@contextmanager
def jobs(directory: Path, count: int) -> Iterator[list[int]]:
    if not count:
        yield []
        return
    with running(TRAINING, env={"TPUSMI_DIR": str(directory)}) as one:
        assert one.line() == "ready"
        with jobs(directory, count - 1) as others:
            yield [one.pid, *others]


def limited(most: int, directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    return subprocess.run(
        [sys.executable, "-m", "tpusmi", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(directory),
        preexec_fn=limit,
    )


def test_with_few_descriptors_a_part_is_shown_the_rest_is_named_and_none_is_dead(
    tmp_path: Path,
) -> None:
    with jobs(tmp_path, JOBS) as pids:
        for most in (8, 10, 12, 16):
            shown = limited(most, tmp_path, "--json")
            assert "Traceback" not in shown.stderr, most
            told = json.loads(shown.stdout)
            states = {p["pid"]: p["state"] for p in told["processes"]}
            assert set(states) < set(pids), most
            assert set(states.values()) <= {"live"}, most
            assert states or most < 12
            (agent,) = (s for s in told["sources"] if s["name"] == "agent")
            assert "may not open many more files" in " ".join(agent["notes"])
        whole = json.loads(limited(64, tmp_path, "--json").stdout)
        assert {p["pid"] for p in whole["processes"]} == set(pids)


MANY = """
import os, resource, tpusmi
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
print(len(tpusmi.snapshot(simulate="v5e-1").devices))
from tpusmi.tui.capturing.profile_child import _readable
read_end, write_end = os.pipe()
with open(read_end, "rb") as stream:
    print(_readable([stream], 0.0))
    os.write(write_end, b"x")
    print(_readable([stream], 60.0) == [stream])
"""


def test_a_process_with_more_than_a_thousand_descriptors_starts_and_hears_others(
    tmp_path: Path,
) -> None:
    """As a job with as many shards open, or the dashboard of as many jobs."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2000:
        pytest.skip("no process has so many here")
    done = subprocess.run(
        [sys.executable, "-c", MANY],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("1\n[]\nTrue\n", "")


def test_a_process_that_cannot_be_asked_for_is_not_gone() -> None:
    own = os.getpid()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            identity.start_ticks_if_there("/proc", own)
        assert identity.start_ticks("/proc", own) is None
        assert output._runs(places.SegmentFile("", own, 0, os.getuid(), 0, 0.0))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert identity.start_ticks_if_there("/proc", own) is not None
    assert identity.start_ticks_if_there("/proc", 2**22 + 1) is None
