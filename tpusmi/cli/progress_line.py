"""What a long command is doing: one line on the terminal, rewritten; or plain lines."""

from __future__ import annotations

import sys
import threading
import time

from tpusmi.cli.exits import talk
from tpusmi.text import clean

COLUMNS_LEAST = 20
CLEARED = "\r\x1b[K"


class ProgressLine:
    """Takes sentences from any thread. Without a terminal on stderr it prints nothing, unless each
    sentence is to be a line of its own.
    """

    def __init__(self, as_lines: bool) -> None:
        self._as_lines = as_lines
        self._is_shown = not as_lines and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._has_text = False
        self._since_s = time.monotonic()

    def __call__(self, sentence: str) -> None:
        text = clean(sentence, 1000)
        with self._lock:
            if self._as_lines:
                talk(text)
            elif self._is_shown:
                waited = f" ({time.monotonic() - self._since_s:.0f} s)"
                sys.stderr.write(f"{CLEARED}{text[: _room() - len(waited)]}{waited}")
                sys.stderr.flush()
                self._has_text = True

    def clear(self) -> None:
        """Remove the line, before anything else is printed."""
        with self._lock:
            if self._has_text:
                sys.stderr.write(CLEARED)
                sys.stderr.flush()
            self._has_text = False


def _room() -> int:
    from os import get_terminal_size

    try:
        return max(COLUMNS_LEAST, get_terminal_size(2).columns - 1)
    except OSError:
        return 79
