"""Runs a command as a child: its lines on stderr as they come, its whole output, all within limits.

The child ends with the dashboard, even when that is killed, and is then asked to end as by Ctrl-C:
it removes what it has stored.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple

from tpusmi.sources.child_process import signal_group

OUTPUT_BYTES_MOST = 16 * 1024 * 1024
LINE_BYTES_MOST = 4096
"""Only the end of a longer line on stderr is read."""
CHUNK_BYTES = 65536
LOOK_EVERY_S, REAP_EVERY_S = 0.1, 0.01
ENDS_WITHIN_S = 3.0
"""A child that has been asked to end is killed after that time."""
REAPED_WITHIN_S = 1.0


class EndedChild(NamedTuple):
    """How a child ended, and what it printed."""

    code: int
    """Its exit code; the negative number of the signal that ended it."""
    output: bytes
    last_line: str
    """The last on its stderr; empty when it printed nothing."""
    trouble: str = ""
    """Why it was ended before it was done, in a sentence; else empty."""


class ProfileChild:
    """One child, from its start until it is reaped. Raises OSError when it cannot be started."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], on_line: Callable[[str], object]
    ) -> None:
        self._process = subprocess.Popen(
            command,
            env=dict(env),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._on_line = on_line
        self._output, self._line = bytearray(), bytearray()
        self._last_line = self._passed_on = ""
        self._pass_on_at_s = 0.0

    def run(self, until_s: float, is_cancelled: Callable[[], bool]) -> EndedChild:
        """Read until the child ends; end it when the time is up, or nothing is to come of it."""
        trouble = "-"
        try:
            trouble = self._read(until_s, is_cancelled)
        finally:
            self._end(0.0 if trouble else ENDS_WITHIN_S)
        code = self._process.returncode
        return EndedChild(
            code=-signal.SIGKILL if code is None else code,
            output=bytes(self._output),
            last_line=self._last_line,
            trouble=trouble,
        )

    def _read(self, until_s: float, is_cancelled: Callable[[], bool]) -> str:
        """Read both pipes to their ends; why it stopped before, in a sentence, or nothing."""
        streams = self._streams()
        while streams:
            if is_cancelled():
                return "the capture was cancelled"
            if time.monotonic() > until_s:
                return "the capture took too long, and was ended"
            if len(self._output) > OUTPUT_BYTES_MOST:
                return "the capture printed too much, and was ended"
            self._read_some(streams, LOOK_EVERY_S)
            self._pass_on()
            if self._process.poll() is not None and not _readable(streams, 0.0):
                break  # a process that it started holds the pipes open
        self._take_talk(b"\n")
        return ""

    def _streams(self) -> list[IO[bytes]]:
        return [s for s in (self._process.stdout, self._process.stderr) if s is not None]

    def _read_some(self, streams: list[IO[bytes]], wait_s: float) -> None:
        """Read from the pipes what arrives within that time; one that has ended is taken out."""
        for stream in _readable(streams, wait_s):
            if not self._took_some(stream):
                streams.remove(stream)

    def _pass_on(self) -> None:
        """Pass the newest line on, no more often than a person can read."""
        now_s = time.monotonic()
        if self._last_line != self._passed_on and now_s >= self._pass_on_at_s:
            self._pass_on_at_s = now_s + LOOK_EVERY_S
            self._passed_on = self._last_line
            self._on_line(self._last_line)

    def _took_some(self, stream: IO[bytes]) -> bool:
        """False at the end of the stream."""
        chunk = os.read(stream.fileno(), CHUNK_BYTES)
        if stream is self._process.stdout:
            self._output += chunk
        else:
            self._take_talk(chunk)
        return bool(chunk)

    def _take_talk(self, chunk: bytes) -> None:
        *lines, rest = (self._line + chunk).split(b"\n")
        self._line = bytearray(rest[-LINE_BYTES_MOST:])
        for line in lines:
            text = line[-LINE_BYTES_MOST:].decode("utf-8", "replace").strip()
            self._last_line = text or self._last_line

    def _end(self, wait_s: float) -> None:
        """Wait for the end of the child, ask for it, kill it where it does not end, and reap it."""
        process = self._process
        if not self._has_ended_in(wait_s):
            signal_group(process.pid, signal.SIGINT)
            if not self._has_ended_in(ENDS_WITHIN_S):
                signal_group(process.pid, signal.SIGKILL)
                self._has_ended_in(REAPED_WITHIN_S)
        for stream in self._streams():
            stream.close()

    def _has_ended_in(self, wait_s: float) -> bool:
        """Whether it ends within that time. What it prints meanwhile is read: it must not wait."""
        until_s, streams = time.monotonic() + wait_s, self._streams()
        while self._process.poll() is None:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return False
            self._read_some(streams, min(left_s, REAP_EVERY_S))
            del self._output[OUTPUT_BYTES_MOST:]
        return True


def _readable(streams: Sequence[IO[bytes]], wait_s: float) -> list[IO[bytes]]:
    """The streams that have something to read, or have ended, within that time. select() takes no
    descriptor above 1023, and a dashboard has one for each job.
    """
    poll = select.poll()
    for stream in streams:
        poll.register(stream, select.POLLIN)
    ready = {descriptor for descriptor, _ in poll.poll(wait_s * 1000)}
    return [stream for stream in streams if stream.fileno() in ready]
