"""Several queries at a time, whose answers come one by one and in order: no more of them are in
memory than are asked at a time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import NamedTuple

from tpusmi.fleet.prometheus_answers import Answer
from tpusmi.fleet.prometheus_api import QueryError

AT_A_TIME = 4
Ask = Callable[[], Answer]
"""Gives the answer to a question. Raises QueryError."""


class Asked(NamedTuple):
    """A question, and what came of it."""

    name: str
    answer: Answer | QueryError


def answers(questions: Iterable[tuple[str, Ask]]) -> Iterator[Asked]:
    """What came of each of these questions with a name."""
    ahead: deque[SimpleQueue[Asked]] = deque()
    for name, ask in questions:
        if len(ahead) == AT_A_TIME:
            yield ahead.popleft().get()
        ahead.append(_begun(name, ask))
    while ahead:
        yield ahead.popleft().get()


def _begun(name: str, ask: Ask) -> SimpleQueue[Asked]:
    """A place where its answer will be, within the time that the question has."""
    place: SimpleQueue[Asked] = SimpleQueue()

    def run() -> None:
        try:
            place.put(Asked(name, ask()))
        except QueryError as error:
            place.put(Asked(name, error))
        except BaseException as error:  # the reader waits for it: a mistake must not block it
            place.put(Asked(name, QueryError(f"the question failed: {type(error).__name__}")))
            raise

    try:
        # A daemon: the end of the program does not wait for a server.
        threading.Thread(target=run, name="tpusmi-query", daemon=True).start()
    except RuntimeError:  # no more threads
        run()
    return place
