"""What a run of the tests has left on the machine: there should be nothing."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import time
from pathlib import Path

RUN = "TPUSMI_TEST_RUN"
"""In the environment of all that a run of the tests starts; its value is that run's alone."""

LIMIT_S = 15.0
"""For what was ended to be gone."""


def segment_directory() -> str:
    """A new directory for the segments of each job of this run that is told of no other: its user's
    own, in /dev/shm, would be left there, and the jobs of other runs would be seen in it. All users
    may write to it, as to /dev/shm.
    """
    path = tempfile.mkdtemp(prefix="tpusmi-tests-")
    os.chmod(path, 0o1777)
    return path


def names() -> set[str]:
    """This user's paths of tpusmi in the places where it puts files unless told otherwise."""
    return {
        entry.path
        for directory in ("/dev/shm", tempfile.gettempdir())
        for entry in os.scandir(directory)
        if re.match(r"tpusmi-(\d|simulated-|profile-)", entry.name) and _is_ours(entry)
    }


def _is_ours(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except FileNotFoundError:
        return False


def processes() -> list[str]:
    """The living processes of this run but its own workers, each with its command."""
    mark = f"{RUN}={os.environ[RUN]}".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            words = Path(f"/proc/{pid}/cmdline").read_bytes()[:200].replace(b"\0", b" ")
        except OSError:
            continue
        if mark in environment and pid != str(os.getpid()):
            found.append(f"process {pid}: {words.decode(errors='replace')}")
    return found


def _is_in_use(path: str) -> bool:
    """True for the directory of a simulated host that runs: a host of ours is among the processes,
    and another run on this machine may have one.
    """
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(directory)
    return False


def left(before: set[str]) -> list[str]:
    """What was not there before, after a wait for what is still ending."""
    until_s = time.monotonic() + LIMIT_S
    while time.monotonic() < until_s:
        files = sorted(name for name in names() - before if not _is_in_use(name))
        found = [*processes(), *files]
        if not found:
            break
        time.sleep(0.1)
    return found
