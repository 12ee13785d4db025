"""What a server prints about errors: each sentence once a minute, whatever its clients cause."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError

AGAIN_S = 60.0
SENTENCES_MOST = 256
LENGTH_MOST = 200
LIBRARIES = ("aiohttp", "asyncio")
CLIENT_ERRORS = (ConnectionError, HttpProcessingError, RequestPayloadError)
"""The client closed the connection early, does not speak HTTP, or sent a broken body."""


class Log:
    """Prints each sentence at most once in AGAIN_S: anyone who reaches the server can cause some of
    the errors.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._printed_at_s: dict[str, float] = {}

    def __call__(self, sentence: str) -> None:
        now_s = time.monotonic()
        printed_at_s = self._printed_at_s.get(sentence)
        if printed_at_s is not None and now_s - printed_at_s < AGAIN_S:
            return
        if len(self._printed_at_s) >= SENTENCES_MOST:
            self._printed_at_s.clear()
        self._printed_at_s[sentence] = now_s
        self._say(sentence)

    def take_over(self) -> None:
        """Print the libraries' errors without tracebacks. Not those of textual-serve: they are
        about dashboards, which this server reports itself.
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
        if record.exc_info and isinstance(record.exc_info[1], CLIENT_ERRORS):
            return
        line = record.getMessage().partition("\n")[0][:LENGTH_MOST]
        failure = record.exc_info[0] if record.exc_info else None
        self._log(f"{line}: {failure.__name__}" if failure else line)
