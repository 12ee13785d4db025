"""A child process that answers a line with a line, and every way in which it can fail."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import threading
import time
from collections.abc import Sequence

ANSWER_BYTES_MOST = 1024 * 1024
TALK_BYTES_MOST = 1024 * 1024
"""The most that is read from stderr in one go: a child that prints more is not answering."""
TALK_BYTES_KEPT = 8192
CHUNK_BYTES = 65536
LOOK_EVERY_S = 0.1
LOOK_MOST_S = 0.5
"""The most that a look counts for: one that took longer stood still, and so may the child have."""
REAPED_WITHIN_S = 1.0
LAST_WORDS_WITHIN_S = 0.2
THEIRS_FROM = 10
"""Our ends of the pipes stay clear of descriptors 0 to 3, which are the child's."""


class ChildProcess:
    """A running child with four pipes: requests, answers, talk, and a lifeline that ends with us.

    It gets no other descriptor, and no signal of our terminal.
    """

    def __init__(self, command: Sequence[str], answer_bytes_most: int = ANSWER_BYTES_MOST) -> None:
        """Start it. Raises OSError when that fails."""
        self._answer_bytes_most = answer_bytes_most
        self.broken = ""
        """Why the child no longer answers; empty while it may."""
        self._line = bytearray()
        self._talk = bytearray()
        self._ended: str | None = None
        self._killing = threading.RLock()
        self._ours: list[int] = []
        theirs: list[int] = []
        try:
            self._pipes(theirs)
            self.pid = _spawn(command, theirs)
        except OSError:
            self._close_pipes()
            raise
        finally:
            for fd in theirs:
                os.close(fd)

    def ask(self, line: bytes) -> None:
        """Send one line, shorter than a pipe is long."""
        self._talk.clear()
        gone = select.poll()
        gone.register(self._requests, 0)
        if gone.poll(0):
            return  # it has closed the pipe: a write would raise SIGPIPE. listen() finds out why
        try:
            os.write(self._requests, line)
        except BlockingIOError:
            self.broken = self.broken or "does not read its requests"
        except OSError:
            pass  # it has ended: listen() finds out why

    def listen(self, until_s: float) -> bytes | None:
        """The next line as soon as it arrives; None when none does until then, or ever will."""
        allowed = TALK_BYTES_MOST
        while True:
            end = self._line.find(b"\n")
            if end >= 0:
                line = bytes(self._line[:end])
                del self._line[: end + 1]
                return line
            looked_s = time.monotonic()
            left_s = until_s - looked_s
            if self.broken or left_s <= 0:
                return None
            allowed -= self._read_some(min(left_s, LOOK_EVERY_S), allowed > 0)
            until_s += max(0.0, time.monotonic() - looked_s - LOOK_MOST_S)

    def talk(self) -> list[str]:
        """The last lines on its stderr since the last request."""
        return self._talk.decode("utf-8", "replace").splitlines()

    def close(self) -> None:
        """End it and let go of the pipes."""
        self.end()
        self._close_pipes()

    def end(self) -> None:
        """Kill it and what it forked, and reap it, if the kernel lets go of it in time."""
        until_s = time.monotonic() + REAPED_WITHIN_S
        with self._killing:
            if self._is_ended():
                return
            signal_group(self.pid)
            os.kill(self.pid, signal.SIGKILL)
            while not self._is_ended() and time.monotonic() < until_s:
                time.sleep(0.002)

    def _pipes(self, theirs: list[int]) -> None:
        self._requests = self._pipe(theirs, child_reads=True)
        self._answers = self._pipe(theirs, child_reads=False)
        self._errors = self._pipe(theirs, child_reads=False)
        self._pipe(theirs, child_reads=True)
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._poll.register(self._errors, select.POLLIN)

    def _pipe(self, theirs: list[int], child_reads: bool) -> int:
        reading, writing = os.pipe()
        try:
            theirs.append(_moved(reading if child_reads else writing))
            ours = _moved(writing if child_reads else reading)
        finally:
            os.close(reading)
            os.close(writing)
        self._ours.append(ours)
        os.set_blocking(ours, False)
        return ours

    def _read_some(self, wait_s: float, with_talk: bool) -> int:
        """Read whatever arrives within that time; returns how many bytes of it are talk."""
        ready = {fd for fd, _ in self._poll.poll(max(1.0, wait_s * 1000))}
        talked = self._read_talk() if with_talk and self._errors in ready else 0
        if self._answers in ready:
            chunk = _read(self._answers)
            if chunk == b"":
                self.broken = self.broken or self._how_it_ended()
            self._line += chunk or b""
            if len(self._line) > self._answer_bytes_most:
                self.broken = self.broken or "answers without end"
        elif ready and not talked:
            time.sleep(min(wait_s, LOOK_EVERY_S))  # it prints too much, or has closed its output
        elif not ready and self._is_ended():  # and another process holds its pipes open
            self.broken = self.broken or self._how_it_ended()
        return talked

    def _read_talk(self) -> int:
        chunk = _read(self._errors)
        if chunk == b"":
            self._poll.unregister(self._errors)
            return 0
        self._talk += chunk or b""
        del self._talk[:-TALK_BYTES_KEPT]
        return len(chunk or b"")

    def _how_it_ended(self) -> str:
        until_s = time.monotonic() + LAST_WORDS_WITHIN_S
        while not self._is_ended() and time.monotonic() < until_s:
            time.sleep(0.002)
        last = _read(self._errors)
        self._talk += last or b""
        del self._talk[:-TALK_BYTES_KEPT]
        return self._ended or "has closed its output"

    def _is_ended(self) -> bool:
        """True once it is reaped. With the lock: its pid may be reused after that."""
        with self._killing:
            if self._ended is not None:
                return True
            try:
                if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    return False
                # Its own children go with it, while its pid cannot be reused yet.
                signal_group(self.pid)
                self._ended = _exit_words(os.waitpid(self.pid, 0)[1])
            except ChildProcessError:  # reaped by the kernel, as SIGCHLD is ignored
                self._ended = "has ended"
            return True

    def _close_pipes(self) -> None:
        while self._ours:
            os.close(self._ours.pop())


def _spawn(command: Sequence[str], theirs: Sequence[int]) -> int:
    """Start the command with those descriptors as its 0, 1, 2, …: its pid.

    Not with subprocess: importing that costs a one-shot command more than all this.
    """
    actions: list[tuple[int, int] | tuple[int, int, int]] = [
        (os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable(len(theirs))
    ]
    actions += [(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in enumerate(theirs)]
    return os.posix_spawnp(
        command[0],
        list(command),
        os.environ,
        file_actions=actions,
        setpgroup=0,
        setsigmask=(),
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
    )


def signal_group(leader: int, number: int = signal.SIGKILL) -> None:
    """Signal a child that is not reaped yet, and what it has forked: it leads its own group."""
    try:
        os.killpg(leader, number)
    except OSError:
        pass  # it has left that group


def _inheritable(first: int) -> list[int]:
    """Descriptors from that number on which a program we start would get."""
    inheritable = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            if int(entry) >= first and os.get_inheritable(int(entry)):
                inheritable.append(int(entry))
        except OSError:
            pass  # it was the directory's own
    return inheritable


def _moved(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, THEIRS_FROM)


def _read(fd: int) -> bytes | None:
    """The bytes that have arrived; empty at the end, None when there are none now."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _exit_words(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"crashed (signal {-code})" if code < 0 else f"ended (exit code {code})"
