"""A command on a real pseudo-terminal, with an emulator that knows what is on its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyte

DEADLINE_S = 60.0
LEFT_ALTERNATE_SCREEN = b"\x1b[?1049l"


class Terminal:
    """A child on a terminal of that size; what it writes is drawn on `screen`."""

    def __init__(
        self, command: Sequence[str], env: dict[str, str], columns: int, lines: int
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.child = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=env
        )
        os.close(theirs)
        self.written = b""
        self.screen = pyte.Screen(columns or 80, lines or 24)
        self._stream = pyte.ByteStream(self.screen)

    @property
    def text(self) -> str:
        """The screen, a line per row."""
        return "\n".join(self.screen.display)

    def resize(self, columns: int, lines: int) -> None:
        """Make the terminal another size; the child is told."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._ours, keys.encode())

    def see(self, text: str, gone: bool = False) -> None:
        """Wait until the screen shows this text, or does not any more."""
        self._until(lambda: (text in self.text) is not gone, f"{text!r} {'gone' if gone else ''}")

    def see_match(self, pattern: str) -> None:
        """Wait until the screen matches this regular expression."""
        self._until(lambda: re.search(pattern, self.text), repr(pattern))

    def wait_for(self, written: bytes) -> None:
        """Wait until the child has written these bytes."""
        self._until(lambda: written in self.written, repr(written))

    def take(self, for_s: float) -> None:
        """Draw what the child writes in that time; what it writes must be taken, or it waits."""
        until_s = time.monotonic() + for_s
        while (left_s := until_s - time.monotonic()) > 0:
            if self._has_written(left_s):
                self._read()

    def end(self) -> int:
        """Wait for the child to end, reading what it writes: its exit code."""
        self._until(lambda: self.child.poll() is not None, "the end")
        return self.child.returncode

    def close(self) -> None:
        """End the child and hang up."""
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        os.close(self._ours)

    def _until(self, done: object, what: str) -> None:
        until_s = time.monotonic() + DEADLINE_S
        while not done():  # type: ignore[operator]
            assert time.monotonic() < until_s, f"no {what} on\n{self.text}"
            if self._has_written(0.05):
                self._read()

    def _has_written(self, within_s: float) -> bool:
        poll = select.poll()  # select() takes no descriptor above 1023
        poll.register(self._ours, select.POLLIN)
        return bool(poll.poll(within_s * 1000))

    def _read(self) -> None:
        try:
            written = os.read(self._ours, 65536)
        except OSError:  # the child has closed its side
            time.sleep(0.01)
            return
        self.written += written
        # pyte does not know private modes with a prefix, and prints them.
        self._stream.feed(written.replace(b"\x1b[>", b"\x1b[?").replace(b"\x1b[<", b"\x1b[?"))


@contextmanager
def terminal(
    command: Sequence[str], env: dict[str, str], columns: int = 100, lines: int = 30
) -> Iterator[Terminal]:
    """A terminal that is closed at the end, and its child with it."""
    found = Terminal(command, env, columns, lines)
    try:
        yield found
    finally:
        found.close()
