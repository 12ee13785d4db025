"""How every command ends: all that it printed is written, or the exit code says that it is not."""

from __future__ import annotations

import errno
import io
import os
import sys
from enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from _typeshed import ReadableBuffer

TAKEN_WITHIN_S = 30.0
"""The reader of a full non-blocking pipe has so long to take something."""


class Exit(IntEnum):
    """Exit codes of every command. docs/commands.md explains them."""

    ANSWERED = 0
    NOTHING_HERE = 1
    USAGE = 2
    PERMISSION = 3
    SOURCE_FAILED = 4
    BUSY = 5
    STALE = 6
    NO_NODE = 7
    CANNOT_WRITE = 74
    INTERRUPTED = 130


def ended(command: Callable[[], int]) -> int:
    """Run a command; its exit code, once all that it printed is written.

    Every way out passes here: an answer, argparse's, an interrupt, a reader that has left, a disk
    that is full. Data that cannot be written to stdout make it CANNOT_WRITE; stderr is talk, and
    never changes the code.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    if sys.stdin is None:
        sys.stdin = _in_place_of_closed("r")
    out = _taken_over("stdout")
    _taken_over("stderr")
    try:
        code = _code(command, out)
        if out is None or out.failure is None or isinstance(out.failure, _QUIET):
            return code
        sys.stderr.write(f"tpusmi: cannot write: {out.failure.strerror}\n")
        return Exit.CANNOT_WRITE
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def is_stderr_written() -> bool:
    """False once something that was said on stderr could not be written there."""
    written = getattr(getattr(sys.stderr, "buffer", None), "raw", None)
    return not isinstance(written, _Written) or written.failure is None


class _Written(io.RawIOBase):
    """A descriptor that is written to. It keeps the first failure, and drops what follows."""

    def __init__(self, descriptor: int, is_talk: bool) -> None:
        self._descriptor = descriptor
        self._is_talk = is_talk
        self.failure: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: ReadableBuffer, /) -> int:
        """How much of it was written. Raises OSError the first time, and never for talk."""
        size = memoryview(data).nbytes
        try:
            return size if self.failure else self._write(data)
        except OSError as failure:
            self.failure = failure
            if self._is_talk:
                return size
            raise
        except BaseException:  # of a signal's handler: it may be written, and must not be twice
            self.failure = InterruptedError()
            raise

    def _write(self, data: ReadableBuffer) -> int:
        while True:
            try:
                return os.write(self._descriptor, data)
            except BlockingIOError:
                self._wait()

    def _wait(self) -> None:
        """Until there is room. Raises OSError when there is none in time."""
        from select import POLLOUT, poll

        room = poll()
        room.register(self._descriptor, POLLOUT)
        if not room.poll(TAKEN_WITHIN_S * 1000):
            reason = f"its reader has taken nothing for {TAKEN_WITHIN_S:.0f} s"
            raise OSError(errno.ETIMEDOUT, reason)


_QUIET = (BrokenPipeError, InterruptedError)
"""A reader that has left has read enough, and so has who interrupts."""


def _taken_over(name: str) -> _Written | None:
    """Write stdout or stderr ourselves; None where it is not that of the process.

    Python's own loses data on a pipe that does not block, and without a buffer on a full disk.
    """
    stream: TextIO | None = getattr(sys, name)
    is_talk = name == "stderr"
    if stream is None:
        # Data written to nowhere would be lost, which has to be seen. Talk may be.
        stream = _in_place_of_closed("w" if is_talk else "r")
    elif stream is not getattr(sys, f"__{name}__"):
        return None
    written = _Written(stream.fileno(), is_talk)
    text = io.TextIOWrapper(
        io.BufferedWriter(written),
        stream.encoding,
        "backslashreplace" if is_talk else "replace",
        line_buffering=is_talk or written.isatty(),
    )
    setattr(sys, name, text)
    return written


def _in_place_of_closed(mode: str) -> TextIO:
    """Nothing, at the lowest descriptor that is closed: no other file comes to be there."""
    nowhere = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
    return io.TextIOWrapper(io.FileIO(nowhere, mode, closefd=False), "utf-8")


def _code(command: Callable[[], int], out: _Written | None) -> int:
    """The exit code, of a command that has ended and of whose output nothing is in a buffer."""
    code: int = Exit.ANSWERED
    try:
        code = _outcome(command)
        sys.stdout.flush()
    except KeyboardInterrupt:
        if out is not None:
            out.failure = InterruptedError()  # what is left is not written: it may hang there
        return Exit.INTERRUPTED
    except SystemExit as done:  # of a signal's handler
        return _code_of(done)
    except OSError as error:
        if out is None or error is not out.failure:
            raise
    return code


def _outcome(command: Callable[[], int]) -> int:
    try:
        return command()
    except SystemExit as done:
        return _code_of(done)
    except RuntimeError as error:
        from tpusmi.threads import WHERE, is_none_left

        if not is_none_left(error):
            raise
        sys.stderr.write(f"tpusmi: no thread can be started: {WHERE}\n")
        return Exit.SOURCE_FAILED


def _code_of(done: SystemExit) -> int:
    if done.code is None:
        return Exit.ANSWERED
    return done.code if isinstance(done.code, int) else Exit.USAGE
