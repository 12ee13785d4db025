"""A real program in the place of the simulated job: it holds the chips, its output is passed on.

Its metrics are made up, so a process of the host serves them: the program gets a copy of the
socket that listens, and the port is then the program's for the kernel.
"""

from __future__ import annotations

import ctypes
import os
import select
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tpusmi.simulate import host_files
from tpusmi.simulate.host import die_with
from tpusmi.sources.sockets import listeners

TERMINATE_S, KILL_S = 2.0, 5.0
LAST_WORDS_LINES, LAST_WORDS_BYTES = 8, 2000
_PIDFD_GETFD = 438


class Program:
    """The program, from its start until it is ended with its host."""

    def __init__(
        self, directory: str, described: dict[str, Any], arguments: list[str], env: dict[str, str]
    ) -> None:
        keeper = os.getpid()
        lockfile = host_files.open_lockfile(directory)
        nodes = [node for chip in described["chips"] for node in chip["nodes"]]
        own = [lockfile, *host_files.open_nodes(directory, nodes)]
        own += [fd for process in described["processes"] for fd in _shared(process)]

        def prepare() -> None:  # in the child; safe: this process has one thread
            die_with(keeper)
            host_files.lock(lockfile)

        self._log = open(f"{directory}/program.log", "w+b", buffering=0)  # noqa: SIM115  # until end()
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            pass_fds=own,
            preexec_fn=prepare,
        )
        for descriptor in own:
            os.close(descriptor)  # the program's now

    def pass_on(self, until: int, say: Callable[[str], None]) -> None:
        """Say what it prints, and how it ended if it does, until that descriptor can be read."""
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        watched, ready = [until, output], list[int]()
        while until not in ready:
            ready = select.select(watched, [], [])[0]
            if output not in ready:
                continue
            data = os.read(output, 4096)
            if not data:
                watched.remove(output)
            text = data.decode("utf-8", "replace") if data else self._obituary()
            if text.strip():  # an empty line does not end it
                say(text.strip())

    def end(self) -> None:
        """End it, if it still runs."""
        self._process.terminate()
        try:
            self._process.wait(TERMINATE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(KILL_S)
        self._log.close()

    def _obituary(self) -> str:
        """How it ended, and its last lines on stderr."""
        try:
            status = self._process.wait(KILL_S)
        except subprocess.TimeoutExpired:
            return "The job closed its output."
        how = f"with status {status}" if status >= 0 else f"by signal {-status}"
        log = self._log.fileno()
        start = max(0, os.fstat(log).st_size - LAST_WORDS_BYTES)
        lines = os.pread(log, LAST_WORDS_BYTES, start).decode("utf-8", "replace").splitlines()
        return "\n  ".join([f"The job ended {how}.", *lines[-LAST_WORDS_LINES:]])


def _shared(process: dict[str, Any]) -> list[int]:
    """A copy of the socket of its metrics server; none where the kernel does not give it."""
    listener = (listeners() or {}).get(process["port"])
    if listener is None:
        return []
    try:
        return [_copied(process["pid"], f"socket:[{listener.inode}]")]
    except OSError:
        return []


def _copied(pid: int, link: str) -> int:
    """A descriptor of our own of what a process has open. Raises OSError."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        if os.readlink(f"/proc/{pid}/fd/{name}") == link:
            break
    else:
        raise OSError(f"process {pid} has no {link}")
    handle = os.pidfd_open(pid)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        copy = int(libc.syscall(_PIDFD_GETFD, handle, int(name), 0))
    finally:
        os.close(handle)
    if copy < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return copy
