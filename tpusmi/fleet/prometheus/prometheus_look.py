"""One look at all hosts that a Prometheus server knows: the queries, their samples as hosts, and
which of these hosts are down.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tpusmi.fleet.fleet_figures import FleetHost, HostState, without_numbers
from tpusmi.fleet.fleet_series import STAMP
from tpusmi.fleet.hosts.clean_labels import TEXT_MOST, text
from tpusmi.fleet.hosts.from_samples import read_hosts
from tpusmi.fleet.hosts.sample_targets import EXPORTED, HOSTS_MOST
from tpusmi.fleet.prometheus.matchers import Matcher
from tpusmi.fleet.prometheus.prometheus_answers import QueryAnswer, QueryAnswerError
from tpusmi.fleet.prometheus.prometheus_api import PrometheusApi, PrometheusError, QueryTime
from tpusmi.fleet.prometheus.prometheus_queries import DOWN, GONE, KEPT_MINUTES, of_fleet, of_gone
from tpusmi.fleet.prometheus.several_queries import answers
from tpusmi.fleet.samples import SeriesSample
from tpusmi.text import clean, clean_or_none, counted, elapsed

SAMPLES_MOST = 2_000_000
PROBLEMS_MOST = 20
LABELS_MOST = 4096
"""Characters of the labels of a host that are remembered: those of 16,000 hosts are 64 MB."""
COMPARED_MOST = 1_000_000
"""Targets that are down and hosts at their addresses, compared in a second. Past that, a target may
be shown beside its host.
"""
Labels = Mapping[str, str]


class HostId(NamedTuple):
    """What a host is known by, in its samples and as a FleetHost."""

    address: str | None
    name: str | None
    slice: str | None


def id_of_host(host: FleetHost) -> HostId:
    """That of a host."""
    return HostId(host.address, host.name, host.slice)


def id_of_labels(labels: Labels) -> HostId:
    """That of the host whose samples have these labels."""
    address = clean_or_none(labels.get(f"{EXPORTED}instance") or labels.get("instance"), TEXT_MOST)
    name = text(labels, f"{EXPORTED}host") or text(labels, "host")
    part = text(labels, f"{EXPORTED}slice") or text(labels, "slice")
    return HostId(address, name or address, part)


class PrometheusLook:
    """One snapshot's worth of queries."""

    def __init__(
        self,
        api: PrometheusApi,
        some: Sequence[Matcher],
        at_s: float,
        until_s: float,
        without: Container[str] = (),
    ) -> None:
        """`at_s` is Unix time, `until_s` of time.monotonic(), `without` series that are not asked
        for.
        """
        self._without = without
        self._api, self._some = api, some
        self._at_s, self._when = at_s, QueryTime(at_s, until_s)
        self.labels: dict[HostId, Labels] = {}
        """The labels of each host's exporter."""
        self.problems: list[str] = []
        self._current: set[HostId] = set()
        """Hosts with current numbers."""
        self._gone: set[HostId] = set()
        """Hosts with numbers of a while ago."""
        self._gone_at: set[str] = set()
        """Where they are asked."""
        self._down: list[Labels] = []
        """Targets that cannot be scraped."""
        self._failed: dict[str, list[str]] = {}
        """Names of series by the reason why they could not be read."""
        self._notes: dict[str, None] = {}
        self._answered = 0

    def hosts(self) -> tuple[FleetHost, ...]:
        """All hosts. Raises PrometheusError if there was no answer at all."""
        read = read_hosts(self._samples(), self._at_s)
        if not self._answered:
            raise PrometheusError(next(iter(self._failed), "it does not answer in time"))
        self.problems += [*self._sentences(), *read.problems]
        del self.problems[PROBLEMS_MOST:]
        return tuple(self._with_down(read.hosts))

    def _samples(self) -> Iterator[SeriesSample]:
        """The samples of all series but those that only say who is down."""
        for count, sample in enumerate(self._all_samples()):
            if count == SAMPLES_MOST:
                self.problems.append(f"only {SAMPLES_MOST:,} samples are read: use --match")
                return
            yield sample

    def _all_samples(self) -> Iterator[SeriesSample]:
        current = of_fleet(self._some)
        yield from self._of_queries({n: q for n, q in current.items() if n not in self._without})
        if self._gone_at:
            yield from self._of_queries(of_gone(self._gone_at, self._some))

    def _of_queries(self, queries: Mapping[str, str]) -> Iterator[SeriesSample]:
        for name, answer in answers(
            (n, partial(self._api.query, q, self._when)) for n, q in queries.items()
        ):
            yield from self._of_answer(name, answer)

    def _of_answer(
        self, name: str, answer: QueryAnswer | PrometheusError
    ) -> Iterator[SeriesSample]:
        if isinstance(answer, PrometheusError):
            self._failed.setdefault(str(answer), []).append(name)
            return
        try:
            for sample in answer.samples(STAMP if name == GONE else name):
                if self._is_shown(name, sample):
                    yield sample
        except QueryAnswerError as error:
            self._failed.setdefault(self._api.safe(str(error)), []).append(name)
            return
        finally:
            self._notes.update(dict.fromkeys(answer.notes))
        self._answered += 1
        if answer.unreadable:
            why = f"{counted(answer.unreadable, 'series', 'series')} of a wrong type are left out"
            self._failed.setdefault(why, []).append(name)

    def _is_shown(self, name: str, sample: SeriesSample) -> bool:
        """Whether it says something of a host itself. Remembers who it is of."""
        if name not in (STAMP, GONE, DOWN):
            return True
        is_short = sum(map(len, sample.labels.values())) <= LABELS_MOST
        if name == DOWN:
            if is_short and len(self._down) < HOSTS_MOST:
                self._down.append(sample.labels)
            return False
        who = id_of_labels(sample.labels)
        if len(self.labels) < HOSTS_MOST:
            if is_short and (name == STAMP or who not in self.labels):
                self.labels[who] = sample.labels
            (self._gone if name == GONE else self._current).add(who)
            if name == GONE:
                self._gone_at.add(sample.labels.get("instance", ""))
        return True

    def _sentences(self) -> Iterator[str]:
        """What could not be read, and what the server says besides."""
        order = [*of_fleet(())]
        for why, unordered in sorted(self._failed.items()):
            names = sorted({*unordered}, key=order.index)
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            what = {GONE: "hosts that are gone", DOWN: "targets that are down"}
            yield f"{what.get(names[0], names[0])}{more} cannot be read: {why}"
        yield from (f"Prometheus notes: {self._api.safe(note)}" for note in self._notes)

    def _former(self, hosts: Iterable[FleetHost]) -> set[str]:
        """Keys of hosts whose exporter has said another name, or another slice, since then: it is
        at the same address, on a machine that has not booted.
        """
        ranked = sorted(
            (host for host in hosts if host.boot is not None),
            key=lambda host: (
                id_of_host(host) not in self._current,
                math.inf if host.age_s is None else host.age_s,
            ),
        )
        former, exporters = set(), set()
        for host in ranked:
            exporter = host.address, host.boot
            if exporter in exporters and id_of_host(host) not in self._current:
                former.add(host.key)
            exporters.add(exporter)
        return former

    def _with_down(self, hosts: Sequence[FleetHost]) -> Iterator[FleetHost]:
        """The hosts, and the targets that cannot be scraped."""
        down: dict[str | None, list[Labels]] = {}
        for labels in self._down:
            down.setdefault(id_of_labels(labels).address, []).append(labels)
        left = COMPARED_MOST
        former = self._former(hosts)
        for host in (host for host in hosts if host.key not in former):
            who = id_of_host(host)
            at_address, own = down.get(host.address, []), self.labels.get(who, {})
            left -= len(at_address)
            others = at_address
            if left >= 0:
                others = [labels for labels in at_address if not _is_target_of(labels, own)]
            down[host.address] = others
            if who in self._current or who not in self._gone:
                yield host
            elif len(others) < len(at_address):
                yield host._replace(state=HostState.DOWN, reason=_DOWN)
            elif host.age_s is not None and host.age_s < 60 * KEPT_MINUTES:
                why = f"Prometheus has had no numbers of it for {elapsed(host.age_s)}"
                yield host._replace(state=HostState.OLD, reason=why)
        for of_address in down.values():
            yield from map(_unheard, of_address)


_DOWN = "Prometheus cannot scrape its exporter"


def _is_target_of(target: Labels, own: Labels) -> bool:
    """Whether samples with these labels can be of that target: two clusters may have one address.
    Names that an exporter also gives are not compared.
    """
    return all(
        own.get(name, value) == value
        for name, value in target.items()
        if name not in ("__name__", "host", "slice")
    )


def _unheard(labels: Labels) -> FleetHost:
    """A target that had no numbers for as long as is looked back."""
    who = id_of_labels(labels)
    name = who.name or "a target without an address"
    others = sorted(set(labels) - {"instance", "__name__"})
    key = "/".join(("down", str(who.address), *(clean(labels[n], TEXT_MOST) for n in others)))
    host = without_numbers(key, name, who.address, HostState.DOWN, _DOWN)
    return host._replace(slice=who.slice)
