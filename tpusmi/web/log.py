"""What the server says while it serves: a sentence for a fault, and the same one not again and
again. Anybody can cause some of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from aiohttp.http_exceptions import HttpProcessingError

AGAIN_S = 60.0
SENTENCES_MOST = 256
LENGTH_MOST = 200
LIBRARIES = ("aiohttp", "asyncio")
THEIR_FAULT = (ConnectionError, HttpProcessingError)
"""Of who leaves early, or speaks no HTTP."""


class Log:
    """Says each sentence once in AGAIN_S."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._said_at_s: dict[str, float] = {}

    def __call__(self, sentence: str) -> None:
        now_s = time.monotonic()
        said_at_s = self._said_at_s.get(sentence)
        if said_at_s is not None and now_s - said_at_s < AGAIN_S:
            return
        if len(self._said_at_s) >= SENTENCES_MOST:
            self._said_at_s.clear()
        self._said_at_s[sentence] = now_s
        self._say(sentence)

    def take_over(self) -> None:
        """Say what the libraries log, less its traceback. textual-serve only knows of dashboards,
        of which we know more.
        """
        for name in LIBRARIES:
            logger = logging.getLogger(name)
            logger.handlers[:] = [_Lines(self)]
            logger.propagate = False
        logging.getLogger("textual-serve").disabled = True


class _Lines(logging.Handler):
    """The first line of each error."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and isinstance(record.exc_info[1], THEIR_FAULT):
            return
        line = record.getMessage().partition("\n")[0][:LENGTH_MOST]
        failure = record.exc_info[0] if record.exc_info else None
        self._log(f"{line}: {failure.__name__}" if failure else line)
