"""The questions to Prometheus: one expression for each series, so that also servers that take no
pattern for a name answer, and each answer is small.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from tpusmi.fleet.fleet_series import (
    CHIPS,
    HOLDERS,
    OF_CHIPS,
    OF_METRIC,
    SHOWN_SERIES,
    STAMP,
    STATES,
    series,
)
from tpusmi.fleet.prometheus.matchers import Matcher, selector
from tpusmi.model import CHIP, DEVICE, PROCESS
from tpusmi.model.series_names import PREFIX, converted

GONE, DOWN = "gone", "down"
GONE_MINUTES, KEPT_MINUTES = 60, 15
"""For how long a host is remembered that has no current numbers: one that Prometheus still tries to
scrape, and any other. The second is also for how long the facts of its devices are.
"""
_FACTS = series(
    "chip_info",
    "device_info",
    "process_info",
    "slice_info",
    "slice_expected_processes",
    "host_info",
    "host_uptime_seconds",
)
"""What a host is, where, and of which job: its row is that of the job while it is down."""
_EXPORTER = "job, instance, host"
NAMED_MOST, NAMES_CHARACTERS = 200, 4000
"""So many exporters are named in a query: it is sent in the first line of a request."""
_UNREAD = series("build_info")
_USUAL_JOB = Matcher("job", "=~", "(.*/)?tpusmi")
"""As in deploy/alerts.yml."""


def of_fleet(some: Sequence[Matcher]) -> Mapping[str, str]:
    """The expressions of a snapshot, by the names of their series; GONE for the last samples of
    STAMP of exporters without a current one, and DOWN for targets that cannot be scraped.
    """
    stamp = selector(STAMP, some)
    last = f"last_over_time({stamp}[{GONE_MINUTES}m])"
    is_named = any(one.label == "job" for one in some)
    up = selector("up", some if is_named else (*some, _USUAL_JOB))
    return {
        STAMP: stamp,
        GONE: f"{last} unless on ({_EXPORTER}) {stamp}",
        DOWN: f"{up} == 0 or (up == 0 and on (job, instance) {last})",
        **{name: of_series(name, some) for name in SHOWN_SERIES if name not in (STAMP, *_UNREAD)},
    }


def of_series(name: str, some: Sequence[Matcher]) -> str:
    """The current samples of that series that are read."""
    one = selector(name, some)
    if name in STATES:
        return f"{one} == 1"
    if name == CHIPS:
        # Most chips are known by the number of their holders, and these samples are long.
        return f"{one} unless ignoring ({', '.join(OF_CHIPS)}) {selector(HOLDERS, some)}"
    return one


def of_gone(instances: Collection[str], some: Sequence[Matcher]) -> Mapping[str, str]:
    """The last facts of exporters without current numbers, by the names of their series."""
    named = "|".join(map(re.escape, sorted(instances)))
    if len(instances) <= NAMED_MOST and len(named) <= NAMES_CHARACTERS:
        some = (*some, Matcher("instance", "=~", named))
    is_current = f"unless on ({_EXPORTER}) {selector(STAMP, some)}"
    return {
        name: f"last_over_time({selector(name, some)}[{KEPT_MINUTES}m]) {is_current}"
        for name in _FACTS
    }


def of_host(some: Iterable[Matcher]) -> str:
    """All samples of one exporter."""
    return selector("", (Matcher("__name__", "=~", f"{PREFIX}.+"), *some))


def of_metric(metric: str, some: Sequence[Matcher]) -> tuple[str, float] | None:
    """The mean of a metric over a host's devices, or its chips where its devices have none, or its
    processes; and the factor that makes it one of the model. None for a name that is not a metric.
    """
    by_scope = {s.scope: (name, s.factor) for name, s in OF_METRIC.items() if s.metric == metric}
    scopes = [scope for scope in (DEVICE, CHIP) if scope in by_scope]
    scopes = scopes or [scope for scope in (PROCESS,) if scope in by_scope]
    if not scopes:
        return None
    means = (f"avg({selector(by_scope[scope][0], some)})" for scope in scopes)
    factor = by_scope[scopes[0]][1]
    return " or ".join(means), 1.0 if factor == 1.0 else converted(1.0, 1 / factor)
