"""Processes in namespaces of their own, as in a container, a pod or a batch job.

What is run begins with `OWN`, and says its pid first, as the test sees it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import hosts
from support.hosts import Running

OWN = f"""
import ctypes, signal
sys.path[:0] = {[*sys.path, str(Path(__file__).parents[1])]!r}
NEW_MOUNTS, NEW_USER, NEW_PIDS, BIND, PRIVATE = 0x20000, 0x10000000, 0x20000000, 0x1000, 0x44000
libc = ctypes.CDLL(None, use_errno=True)

def checked(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def mount(source, target, kind="", flags=0, data=""):
    words = [word.encode() for word in (source, target, kind)]
    checked(libc.mount(*words, ctypes.c_ulong(flags), data.encode()))

def own_mounts():
    checked(libc.unshare(NEW_MOUNTS))
    mount("", "/", "", PRIVATE)

def own(*places):
    from support import mounts
    own_mounts()
    for place in places or ("/dev/shm",):
        mounts.empty(place, mounts.needed(), "1777")

# In a user namespace, with mounts unless told otherwise, in which this user has that number.
def own_users(inner, kinds=NEW_MOUNTS):
    outer, group = os.getuid(), os.getgid()
    checked(libc.unshare(NEW_USER | kinds))
    maps = (("uid_map", f"{{inner}} {{outer}} 1"), ("gid_map", f"{{inner}} {{group}} 1"))
    for name, line in (("setgroups", "deny"), *maps):
        with open(f"/proc/self/{{name}}", "w") as file:
            file.write(line)
    if kinds & NEW_MOUNTS:
        mount("", "/", "", PRIVATE)

def own_pids():
    checked(libc.unshare(NEW_PIDS))
    inner = os.fork()
    if inner:
        say(inner)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) & 255)
    libc.prctl(1, signal.SIGKILL, 0, 0, 0)
    mount("proc", "/proc", "proc")

def become(user):
    from support import run_as
    run_as.become(user)
    libc.prctl(4, 1, 0, 0, 0)  # its files in /proc are its own again

def start():
    import time, tpusmi
    tpusmi.start()
    until_s = time.monotonic() + 60
    while not any(link.endswith(".seg") for link in links()):
        assert time.monotonic() < until_s
        time.sleep(0.02)

def links():
    for fd in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{{fd}}")
        except OSError:
            pass

def remove():
    paths = [link for link in links() if link.endswith(".seg")]
    if "tpusmi" in sys.modules:
        sys.modules["tpusmi"].stop()  # an agent would make its segment again
    for path in paths:
        try:
            if os.path.exists(path):
                os.unlink(path)
            os.rmdir(os.path.dirname(path))
        except OSError:
            pass

def here():
    say(os.getpid())
"""


@pytest.fixture
def shared() -> Iterator[str]:
    """A directory that every user may reach and write to, as /dev/shm is."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o1777)
        yield directory


@contextmanager
def inside(code: str, *arguments: object, **environment: str) -> Iterator[Running]:
    """A child that runs that code among the functions of OWN; its `pid` is what it says first. Its
    segment is in the usual place unless told otherwise, and it takes it with it.

    Skips the test where no such namespace can be had.
    """
    ready = "say('ready')\nwait()\nremove()"
    variables: dict[str, str | None] = {"TPUSMI_DIR": None, **environment}
    with hosts.running(f"{OWN}{code}\n{ready}", *arguments, env=variables) as child:
        said = child.line()
        if not said.isdigit():
            pytest.skip("no such namespace here")
        child.pid = int(said)
        assert child.line() == "ready"
        try:
            yield child
        finally:
            child.let_go()
