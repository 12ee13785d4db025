"""The past of a host's metrics from Prometheus' range queries, one for each metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tpusmi.fleet.fleet_figures import HostHistory
from tpusmi.fleet.prometheus.matchers import Matcher
from tpusmi.fleet.prometheus.prometheus_answers import QueryAnswer, QueryAnswerError
from tpusmi.fleet.prometheus.prometheus_api import PrometheusApi, PrometheusError
from tpusmi.fleet.prometheus.prometheus_queries import of_metric
from tpusmi.fleet.prometheus.several_queries import answers
from tpusmi.model.series_names import converted

POINTS_MOST = 2000
METRICS_MOST = 32
SPAN_MOST_S = 366 * 86400.0
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)


class TimeGrid(NamedTuple):
    """Points in time with the same distance."""

    first_s: float
    step_s: float
    points: int

    @property
    def last_s(self) -> float:
        return self.first_s + (self.points - 1) * self.step_s


def grid(now_s: float, span_s: float, points: int) -> TimeGrid:
    """At most that many points in that span, on whole steps: they are the same at the next look."""
    points = max(1, min(points, POINTS_MOST))
    span_s = min(max(span_s, 1.0), SPAN_MOST_S)
    least_s = span_s / points
    step_s = next((s for s in STEPS_S if s >= least_s), math.ceil(least_s / 86400) * 86400)
    count = max(1, min(points, int(span_s // step_s) or 1))
    last_s = math.floor(now_s / step_s) * step_s
    return TimeGrid(first_s=last_s - (count - 1) * step_s, step_s=step_s, points=count)


def history_of(
    api: PrometheusApi,
    metrics: Sequence[str],
    some: Sequence[Matcher],
    times: TimeGrid,
    until_s: float,
) -> Mapping[str, HostHistory]:
    """Their values at these times. Metrics without any are left out. Raises PrometheusError if no
    query has an answer.
    """
    span = (times.first_s, times.last_s, times.step_s)
    queries = {
        metric: of_metric(metric, some) for metric in [*dict.fromkeys(metrics)][:METRICS_MOST]
    }
    factors = {metric: query[1] for metric, query in queries.items() if query is not None}
    questions = (
        (metric, partial(api.query_range, query[0], span, until_s))
        for metric, query in queries.items()
        if query is not None
    )
    histories, failures = {}, []
    for metric, answer in answers(questions):
        try:
            values = _values(answer, factors[metric], times)
        except (QueryAnswerError, PrometheusError) as error:
            failures.append(error)
            continue
        if any(value is not None for value in values):
            histories[metric] = HostHistory(
                first_s=times.first_s, step_s=times.step_s, values=tuple(values)
            )
    if failures and len(failures) == len(factors):
        raise PrometheusError(api.safe(str(failures[0])))
    return {metric: histories[metric] for metric in queries if metric in histories}


def _values(
    answer: QueryAnswer | PrometheusError, factor: float, times: TimeGrid
) -> list[float | None]:
    """One for each time."""
    if isinstance(answer, PrometheusError):
        raise answer
    values: list[float | None] = [None] * times.points
    for place, value in _points(answer.series(), times):
        values[place] = converted(value, factor)
    return values


def _points(series: Iterator[Any], times: TimeGrid) -> Iterator[tuple[int, float]]:
    """Places in the grid and finite values of the first series; the others are passed over."""
    is_first = True
    for element in series:
        if is_first and isinstance(element, dict) and isinstance(element.get("values"), list):
            is_first = False
            yield from filter(None, (_point(pair, times) for pair in element["values"]))


def _point(pair: Any, times: TimeGrid) -> tuple[int, float] | None:
    try:
        at_s, value = float(pair[0]), float(pair[1])
        place = round((at_s - times.first_s) / times.step_s)
    except (TypeError, ValueError, LookupError, OverflowError):
        return None
    is_right = math.isfinite(value) and 0 <= place < times.points
    return (place, value) if is_right else None
