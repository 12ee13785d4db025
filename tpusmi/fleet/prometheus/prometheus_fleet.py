"""The fleet as a Prometheus server knows it: a FleetSource."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from tpusmi.configuration_file import ConfigurationError
from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostHistory, HostState
from tpusmi.fleet.fleet_series import FLEET_SERIES, series
from tpusmi.fleet.fleet_source import FleetError
from tpusmi.fleet.hosts.from_samples import read_hosts
from tpusmi.fleet.http.http_config import read_http_config
from tpusmi.fleet.http.http_secrets import unencrypted
from tpusmi.fleet.prometheus import prometheus_queries
from tpusmi.fleet.prometheus.matchers import Matcher, exactly, matchers
from tpusmi.fleet.prometheus.prometheus_answers import QueryAnswer, QueryAnswerError
from tpusmi.fleet.prometheus.prometheus_api import (
    PrometheusApi,
    PrometheusError,
    QueryTime,
    prometheus_address,
)
from tpusmi.fleet.prometheus.prometheus_history import grid, history_of
from tpusmi.fleet.prometheus.prometheus_look import HostId, Labels, PrometheusLook, id_of_host
from tpusmi.fleet.prometheus.several_queries import answers
from tpusmi.fleet.samples import SeriesSample

SNAPSHOT_S = 10.0
"""The longest that all queries of a snapshot may take together."""
HOST_S = 5.0
"""The same for the queries about one host."""
LATER = series(
    "ici_link_health",
    "process_state",
    "process_steps_total",
    "process_since_last_step_seconds",
    "process_hbm_used_bytes",
    "process_mfu_ratio",
)
"""A third of all samples, and not on the first screen."""
CLOCK_MOST_S = 1e11


class PrometheusFleet:
    """The hosts whose exporters a Prometheus server scrapes, or those of them that fit matchers."""

    no_past = ""

    def __init__(
        self,
        url: str,
        match: Sequence[str] = (),
        http_config: str | None = None,
        timeout_s: float = SNAPSHOT_S,
        is_patient: bool = True,
    ) -> None:
        """`is_patient`: whether the first look has all series, or leaves out LATER because other
        looks follow. `match` are texts after `--match`, `http_config` is the path after
        `--http-config`. Asks nothing yet. Raises FleetError for what cannot be used.
        """
        try:
            address = prometheus_address(url)
            self._matchers: tuple[Matcher, ...] = matchers(match)
            config = read_http_config(http_config)
        except (ValueError, ConfigurationError) as error:
            raise FleetError(str(error)) from None
        self.label = str(address)
        self.warnings = (*config.warnings, *unencrypted([address.server], config))
        """Sentences for the user about how it is asked."""
        self._api = PrometheusApi(address, config)
        self._timeout_s = timeout_s
        self._without: tuple[str, ...] = () if is_patient else LATER
        self._ahead_s: float | None = None
        """How far the server's clock is ahead of time.monotonic(), which no one sets."""
        self._labels: Mapping[HostId, Labels] = {}

    def __repr__(self) -> str:
        return f"PrometheusFleet({self.label!r})"

    def snapshot(self, at_s: float | None = None) -> FleetSnapshot:
        """All hosts now, or at that time. Raises FleetError when nothing can be read at all."""
        began_s = time.monotonic()
        until_s = began_s + self._timeout_s
        is_past = at_s is not None
        without = () if is_past else self._without  # the past is looked at once
        try:
            at_s = self._server_time_s(until_s) if at_s is None else at_s
            look = PrometheusLook(self._api, self._matchers, at_s, until_s, without)
            hosts = look.hosts()
        except PrometheusError as error:
            raise self._error(error) from None
        self._labels, self._without = look.labels, ()
        return FleetSnapshot(
            at_s=at_s,
            source=self.label,
            hosts=hosts,
            problems=(*self._problems(look, hosts, is_past), *self.warnings),
            took_s=time.monotonic() - began_s,
            is_partial=bool(without),
        )

    def details(self, host: FleetHost, at_s: float | None = None) -> FleetHost:
        """The host with every metric that is known of it. Raises FleetError."""
        until_s = time.monotonic() + min(HOST_S, self._timeout_s)
        try:
            at_s = self._now_s(until_s) if at_s is None else at_s
            samples = self._of_host(self._selects(host), QueryTime(at_s, until_s))
            read = read_hosts(samples, at_s).hosts
        except PrometheusError as error:
            raise self._error(error) from None
        if not read:
            reason = host.reason or "Prometheus has no current numbers of it"
            is_live = host.state is HostState.LIVE
            return host._replace(state=HostState.OLD if is_live else host.state, reason=reason)
        same = next((one for one in read if id_of_host(one) == id_of_host(host)), read[0])
        return same._replace(key=host.key)

    def history(
        self,
        host: FleetHost,
        metrics: Sequence[str],
        span_s: float,
        points: int,
        at_s: float | None = None,
    ) -> Mapping[str, HostHistory]:
        """The past of these metrics, as means over the host's devices. Raises FleetError if there
        is no answer to any of the queries.
        """
        until_s = time.monotonic() + min(HOST_S, self._timeout_s)
        try:
            at_s = self._now_s(until_s) if at_s is None else at_s
            times = grid(at_s, span_s, points)
            return history_of(self._api, metrics, self._selects(host), times, until_s)
        except PrometheusError as error:
            raise self._error(error) from None

    def close(self) -> None:
        """Nothing is kept open: each query has a connection of its own, and a deadline."""

    def _server_time_s(self, until_s: float) -> float:
        """Unix time by the server's clock, by which ages are counted. Raises PrometheusError."""
        try:
            now_s = self._api.query("time()", QueryTime(None, until_s)).scalar()
        except QueryAnswerError as error:
            raise PrometheusError(self._api.safe(str(error))) from None
        if now_s is None or not 0 < now_s < CLOCK_MOST_S:
            raise PrometheusError("its answer is not a time")
        self._ahead_s = now_s - time.monotonic()
        return now_s

    def _now_s(self, until_s: float) -> float:
        if self._ahead_s is None:
            return self._server_time_s(until_s)
        return time.monotonic() + self._ahead_s

    def _selects(self, host: FleetHost) -> tuple[Matcher, ...]:
        """What fits the samples of that host and no other."""
        labels = self._labels.get(id_of_host(host))
        if labels is None:
            who = {"instance": host.address, "host": host.name, "slice": host.slice}
            if host.address == host.name:
                del who["host"]
            labels = {name: value for name, value in who.items() if value}
        return exactly({name: v for name, v in labels.items() if name != "__name__"})

    def _of_host(self, some: Sequence[Matcher], when: QueryTime) -> Iterator[SeriesSample]:
        """All samples of a host: in one answer, or series by series where a server wants names.
        Raises PrometheusError.
        """
        one = prometheus_queries.of_host(some)
        try:
            yield from self._samples(self._api.query(one, when), None)
            return
        except PrometheusError as error:
            if not error.is_rejected:
                raise
        queries = ((name, prometheus_queries.of_series(name, some)) for name in FLEET_SERIES)
        for name, answer in answers((n, partial(self._api.query, q, when)) for n, q in queries):
            if isinstance(answer, PrometheusError):
                raise answer
            yield from self._samples(answer, name)

    def _samples(self, answer: QueryAnswer, name: str | None) -> Iterator[SeriesSample]:
        try:
            yield from answer.samples(name)
        except QueryAnswerError as error:
            raise PrometheusError(self._api.safe(str(error))) from None

    def _problems(
        self, look: PrometheusLook, hosts: Sequence[FleetHost], is_past: bool
    ) -> Sequence[str]:
        if hosts or look.problems:
            return look.problems
        return [self._why_empty(is_past)]

    def _why_empty(self, is_past: bool) -> str:
        if self._matchers:
            return f"it has no hosts with {{{','.join(map(str, self._matchers))}}}: see --match"
        if is_past:
            return "it has no numbers of tpusmi from that time: does it keep them long enough?"
        return "it has no numbers of tpusmi: does it scrape `tpusmi serve`? See docs/serve.md"

    def _error(self, error: PrometheusError) -> FleetError:
        return FleetError(f"{self.label}: {error}")
