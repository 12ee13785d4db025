"""How every command ends: all its output is written, or the exit code says that it is not."""

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

    from tpusmi.model import Holding

TAKEN_WITHIN_S = 30.0
"""How long to wait for the reader of a full non-blocking pipe to read something."""


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


def exit_of(holding: Holding) -> Exit:
    """The exit code of `tpusmi ps` for that state of the chips in question."""
    from tpusmi.model import Holding  # here, because --version does not need it

    return {
        Holding.FREE: Exit.ANSWERED,
        Holding.NO_TPU: Exit.NOTHING_HERE,
        Holding.NO_NODE: Exit.NO_NODE,
        Holding.NOT_VISIBLE: Exit.PERMISSION,
        Holding.NO_PERMISSION: Exit.PERMISSION,
        Holding.HELD: Exit.BUSY,
        Holding.STALE: Exit.STALE,
    }[holding]


def ended(command: Callable[[], int]) -> int:
    """Run a command; its exit code, once all its output is written.

    Every way out passes here: an answer, argparse's exit, an interrupt, a reader that has left, a
    full disk. If stdout cannot be written the code is CANNOT_WRITE; stderr never changes the code.
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
        talk(f"cannot write: {out.failure.strerror}")
        return Exit.CANNOT_WRITE
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def end_on_signals(code: int) -> None:
    """Let SIGTERM and SIGHUP end the command with that code, through its clean-up. A signal that is
    ignored from the start stays so: under nohup the command outlives its terminal.
    """
    import signal

    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:
            signal.signal(ending, lambda number, frame: sys.exit(code))


def talk(text: str) -> None:
    """Write a message for the user, not for scripts: a line on stderr."""
    sys.stderr.write(f"tpusmi: {text}\n")
    sys.stderr.flush()


def is_stderr_written() -> bool:
    """False once a message could not be written to stderr."""
    written = getattr(getattr(sys.stderr, "buffer", None), "raw", None)
    return not isinstance(written, _Written) or written.failure is None


class _Written(io.RawIOBase):
    """Writes to a descriptor. It keeps the first failure, and drops all later output."""

    def __init__(self, descriptor: int, is_stderr: bool) -> None:
        self._descriptor = descriptor
        self._is_stderr = is_stderr
        self.failure: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: ReadableBuffer, /) -> int:
        """How many bytes were written. Raises OSError the first time, and never for stderr."""
        size = memoryview(data).nbytes
        try:
            return size if self.failure else self._write(data)
        except OSError as failure:
            self.failure = failure
            if self._is_stderr:
                return size
            raise
        except BaseException:  # of a signal handler: the data may be written already
            self.failure = InterruptedError()
            raise

    def _write(self, data: ReadableBuffer) -> int:
        while True:
            try:
                return os.write(self._descriptor, data)
            except BlockingIOError:
                self._wait()

    def _wait(self) -> None:
        """Wait until there is room. Raises OSError when there is none in time."""
        from select import POLLOUT, poll

        room = poll()
        room.register(self._descriptor, POLLOUT)
        if not room.poll(TAKEN_WITHIN_S * 1000):
            reason = f"its reader has read nothing for {TAKEN_WITHIN_S:.0f} s"
            raise OSError(errno.ETIMEDOUT, reason)


_QUIET = (BrokenPipeError, InterruptedError)
"""A reader that has left has read enough, and so has a user who interrupts."""


def _taken_over(name: str) -> _Written | None:
    """Write stdout or stderr ourselves; None if it has been replaced already.

    Python's own stream loses data on a pipe that does not block, and without a buffer on a full
    disk.
    """
    stream: TextIO | None = getattr(sys, name)
    is_stderr = name == "stderr"
    if stream is None:
        # Lost data has to be noticed; lost messages need not be.
        stream = _in_place_of_closed("w" if is_stderr else "r")
    elif stream is not getattr(sys, f"__{name}__"):
        return None
    written = _Written(stream.fileno(), is_stderr)
    text = io.TextIOWrapper(
        io.BufferedWriter(written),
        stream.encoding,
        "backslashreplace" if is_stderr else "replace",
        line_buffering=is_stderr or written.isatty(),
    )
    setattr(sys, name, text)
    return written


def _in_place_of_closed(mode: str) -> TextIO:
    """/dev/null on the lowest closed descriptor, so that no other file gets that number."""
    nowhere = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
    return io.TextIOWrapper(io.FileIO(nowhere, mode, closefd=False), "utf-8")


def _code(command: Callable[[], int], out: _Written | None) -> int:
    """The exit code of a command that has ended and whose buffers are written."""
    code: int = Exit.ANSWERED
    try:
        code = _outcome(command)
        sys.stdout.flush()
    except KeyboardInterrupt:
        if out is not None:
            out.failure = InterruptedError()  # the rest is not written: writing may hang
        return Exit.INTERRUPTED
    except SystemExit as done:  # of a signal handler
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
        from tpusmi.interpreter import WHERE, is_none_left

        if not is_none_left(error):
            raise
        talk(f"no thread can be started: {WHERE}")
        return Exit.SOURCE_FAILED


def _code_of(done: SystemExit) -> int:
    if done.code is None:
        return Exit.ANSWERED
    return done.code if isinstance(done.code, int) else Exit.USAGE
