"""What a long command is doing: one line on the terminal, rewritten; or plain lines, also on a
terminal that cannot rewrite one.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from tpusmi.cli.exits import talk
from tpusmi.cli.looks import is_in_cell
from tpusmi.text import clean

COLUMNS_LEAST, COLUMNS_USUAL = 20, 80
CLEARED = "\r\x1b[K"
TICK_S = 1.0


class ProgressLine:
    """Takes sentences from any thread. Without a terminal on stderr it prints nothing, unless each
    sentence is to be a line of its own.
    """

    def __init__(self, as_lines: bool) -> None:
        is_shown = sys.stderr.isatty() and not is_in_cell()
        is_plain = is_shown and os.environ.get("TERM", "dumb") == "dumb"
        self._as_lines = as_lines or is_plain
        self._is_shown = is_shown and not self._as_lines
        self._lock = threading.Lock()
        self._text = ""
        """The sentence on the terminal; empty when there is none."""
        self._since_s = 0.0
        self._ticker: threading.Thread | None = None

    def __call__(self, sentence: str) -> None:
        text = clean(sentence, 1000)
        if self._as_lines:
            with self._lock:
                talk(text)
        elif self._is_shown:
            with self._lock:
                self._text, self._since_s = text, time.monotonic()
                self._draw()
            self._start_ticker()

    def clear(self) -> None:
        """Remove the line, before anything else is printed."""
        with self._lock:
            if self._text:
                sys.stderr.write(CLEARED)
                sys.stderr.flush()
            self._text = ""

    def _start_ticker(self) -> None:
        """Count the seconds, on a daemon thread; without one the line stays as it is."""
        if self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, name="tpusmi-progress", daemon=True)
            try:
                self._ticker.start()
            except RuntimeError:
                pass

    def _tick(self) -> None:
        while True:
            time.sleep(TICK_S)
            with self._lock:
                if self._text:
                    self._draw()

    def _draw(self) -> None:
        waited_s = time.monotonic() - self._since_s
        waited = f" ({waited_s:.0f} s)" if waited_s >= TICK_S else ""
        sys.stderr.write(f"{CLEARED}{self._text[: _room() - len(waited)]}{waited}")
        sys.stderr.flush()


def _room() -> int:
    """Columns for the line. The last one stays empty: some terminals would begin another line."""
    try:
        columns = os.get_terminal_size(2).columns
    except OSError:
        columns = 0
    return max(COLUMNS_LEAST, columns or COLUMNS_USUAL) - 1
