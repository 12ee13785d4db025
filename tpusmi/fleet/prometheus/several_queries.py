"""Several queries at a time, whose answers come one by one: no more of them are in memory than are
asked at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import NamedTuple

from tpusmi.fleet.prometheus.prometheus_answers import QueryAnswer
from tpusmi.fleet.prometheus.prometheus_api import PrometheusError

AT_A_TIME = 4
Ask = Callable[[], QueryAnswer]
"""Gives the answer to a question. Raises PrometheusError."""


class QueryOutcome(NamedTuple):
    """A question, and what came of it."""

    name: str
    answer: QueryAnswer | PrometheusError


def answers(questions: Iterable[tuple[str, Ask]]) -> Iterator[QueryOutcome]:
    """What came of each of these questions with a name, as it comes: one that is not answered
    keeps back no more than its own answer.
    """
    came: SimpleQueue[QueryOutcome] = SimpleQueue()
    open_questions = 0
    for name, ask in questions:
        if open_questions == AT_A_TIME:
            yield came.get()
            open_questions -= 1
        _begin(name, ask, came)
        open_questions += 1
    for _ in range(open_questions):
        yield came.get()


def _begin(name: str, ask: Ask, came: SimpleQueue[QueryOutcome]) -> None:
    """Have what comes of it in `came`, within the time that the question has."""

    def run() -> None:
        try:
            came.put(QueryOutcome(name, ask()))
        except PrometheusError as error:
            came.put(QueryOutcome(name, error))
        except BaseException as error:  # the reader waits for it: a mistake must not block it
            came.put(
                QueryOutcome(name, PrometheusError(f"the question failed: {type(error).__name__}"))
            )
            raise

    try:
        # A daemon: the end of the program does not wait for a server.
        threading.Thread(target=run, name="tpusmi-query", daemon=True).start()
    except RuntimeError:  # no more threads
        run()
