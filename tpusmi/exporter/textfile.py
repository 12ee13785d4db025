"""Writes the text into a directory of node_exporter's textfile collector, again and again."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

NAME = "tpusmi.prom"
UNFINISHED = f".{NAME}.new"
"""node_exporter reads the names that end in `.prom`."""
MODE = 0o644
"""node_exporter runs as another user."""
SAY_AGAIN_S = 60.0


def write(directory: str, text: bytes) -> None:
    """Put the text there in one step: a reader sees the old one or the new one. Raises OSError."""
    unfinished = os.path.join(directory, UNFINISHED)
    _remove(unfinished)  # of a writer that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(unfinished, flags, MODE), "wb") as file:
            file.write(text)
            os.fchmod(file.fileno(), MODE)  # whatever the umask is
        os.replace(unfinished, os.path.join(directory, NAME))
    except OSError:
        _remove(unfinished)
        raise


def keep_writing(
    directory: str,
    text: Callable[[], bytes],
    every_s: float,
    end: threading.Event,
    say: Callable[[str], object],
) -> None:
    """Write until `end`, then remove the file: nothing would show that its numbers are old."""
    said_at_s = None
    due_s = time.monotonic()
    try:
        while not end.is_set():
            try:
                write(directory, text())
            except OSError as error:
                now_s = time.monotonic()
                if said_at_s is None or now_s - said_at_s >= SAY_AGAIN_S:
                    say(f"{directory}/{NAME} cannot be written: {error.strerror}")
                    said_at_s = now_s
            due_s = max(due_s + every_s, time.monotonic())
            end.wait(due_s - time.monotonic())
    finally:
        _remove(os.path.join(directory, NAME))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
