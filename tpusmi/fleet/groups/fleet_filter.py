"""Filters of a fleet, in the language of `report/filters.py`: a host must match each word. Pure.

`job=` and `user=` also leave out the devices and processes of other jobs and users. Words with a
mistake are still being typed: they leave out nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from tpusmi.fleet.fleet_figures import (
    FleetDevice,
    FleetHost,
    FleetProcess,
    FleetSnapshot,
    HostState,
)
from tpusmi.fleet.fleet_series import SHOWN_METRICS
from tpusmi.fleet.groups.group_members import part_of_host
from tpusmi.fleet.groups.slice_jobs import with_slice_jobs
from tpusmi.fleet.groups.stragglers import STEP
from tpusmi.fleet.groups.totals import is_tpu, memory_percent
from tpusmi.fleet.groups.unreported import unreported_hosts
from tpusmi.model import (
    CHIP_METRICS,
    DEVICE_METRICS,
    PROCESS,
    PROCESS_METRICS,
    Metric,
    metric,
)
from tpusmi.report.comparisons import HBM, ComparisonError, comparison
from tpusmi.report.filters import SHOWN_MOST, FilterWordError, first_problem
from tpusmi.report.patterns import PatternError, searcher

OF_PART = ("job", "user")
OF_HOST = ("host", "slice", "state")
STILL_TYPED = ("", "~", *(f"{name}=" for name in (*OF_PART, *OF_HOST)))
"""Words that match each host: the opposite would hide all while a person goes on typing."""
_STATES = tuple(str(state) for state in HostState)
STALE = "stale"
TEXT_MOST = 4096
"""Characters of a host that words are looked for in."""


def _typed(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """Metrics that a snapshot of a fleet has, by titles that can be typed as a part of one word."""
    titles = ((m.title.casefold(), m) for m in metrics if m.name in SHOWN_METRICS)
    return {title: m for title, m in titles if " " not in title}


_DEVICE = _typed((*CHIP_METRICS, *DEVICE_METRICS))
_PROCESS = {**_typed(PROCESS_METRICS), "step": metric(PROCESS, STEP)}
"""STEP of a fleet is the mean: it has no medians."""
UNITS = {
    **{title: m.unit for title, m in (*_PROCESS.items(), *_DEVICE.items())},
    HBM: "percent",
    "age": "s",
    "chips": "count",
    "problems": "count",
}
"""The units of what can be compared: titles of columns in small letters."""


class FleetWord(NamedTuple):
    """One word of a filter."""

    host: Callable[[FleetHost], bool] | None = None
    """Whether it is true of a host."""
    part: Callable[[str, str], bool] | None = None
    """Whether it is true of a process with that job and that user."""
    is_opposite: bool = False


def filtered(s: FleetSnapshot, text: str) -> FleetSnapshot:
    """The hosts that match a filter: `job=train`, `slice=v5e-a`, `host=t1v`, `user=ann` (or the
    beginning of each), `down`, `old`, `stale`, a comparison as `mxu<30`, a pattern as
    `~train.*v2`, or any word; `!word` for the opposite. Case does not matter.
    """
    words = [*_words(text)]
    if not words:
        return s
    all_hosts = with_slice_jobs(s.hosts)
    unreported = unreported_hosts(all_hosts) if s.unreported is None else s.unreported
    kept = (_kept(host, words) for host in all_hosts)
    hosts = tuple(host for host in kept if host is not None)
    return s._replace(hosts=hosts, unreported=unreported)


def problem(text: str) -> str:
    """What is wrong with the first word that is not right; empty if all are."""
    return first_problem(text, _word)


def _words(text: str) -> Iterator[FleetWord]:
    for word in text.split():
        with suppress(FilterWordError):
            read = _word(word)
            if read.host is not None or read.part is not None:
                yield read


def _kept(host: FleetHost, words: Collection[FleetWord]) -> FleetHost | None:
    """The host without what the filter leaves out; None if that is all of it."""
    for word in words:
        if word.host is not None and word.host(host) == word.is_opposite:
            return None
        if word.part is not None:
            part = _part(host, word)
            if part is None:
                return None
            host = part
    return host


def _part(host: FleetHost, word: FleetWord) -> FleetHost | None:
    test = word.part
    assert test is not None
    processes = [p for p in host.processes if _fits(test, p.job, p.user) != word.is_opposite]
    owners = {p.pid: p for p in host.processes}
    devices = [
        d for d in host.devices if _has(test, d, owners.get(d.pid or -1)) != word.is_opposite
    ]
    if len(devices) == len(host.devices) and len(processes) == len(host.processes):
        # Only the opposite is true of a host without any device and process that is known.
        return host if devices or processes or word.is_opposite else None
    return part_of_host(host, devices, processes) if devices or processes else None


def _has(test: Callable[[str, str], bool], d: FleetDevice, owner: FleetProcess | None) -> bool:
    return _fits(test, d.job, None) if owner is None else _fits(test, owner.job, owner.user)


def _fits(test: Callable[[str, str], bool], job: str | None, user: str | None) -> bool:
    return test((job or "").casefold(), (user or "").casefold())


def _word(word: str) -> FleetWord:
    """What a word tests; nothing while it is still typed. Raises FilterWordError."""
    bare = word.lstrip("!")
    if bare.casefold() in STILL_TYPED:
        return FleetWord()
    test = _pattern(bare[1:]) if bare.startswith("~") else _plain(bare.casefold())
    return test._replace(is_opposite=(len(word) - len(bare)) % 2 == 1)


def _pattern(text: str) -> FleetWord:
    try:
        is_in = searcher(text)
    except PatternError as error:
        raise FilterWordError(f"~{text[:SHOWN_MOST]}: {error}") from None
    return FleetWord(host=lambda host: any(map(is_in, _texts(host))))


def _plain(word: str) -> FleetWord:
    name, equals, value = word.partition("=")
    if equals and name in (*OF_PART, *OF_HOST):
        return _named(name, value)
    if word in _STATES:
        return FleetWord(host=lambda host: host.state == word)
    if word == STALE:
        return FleetWord(host=lambda host: any(p.verdict == STALE for p in host.processes))
    return _compared(word) or FleetWord(
        host=lambda host: any(word in text.casefold() for text in _texts(host))
    )


def _named(name: str, value: str) -> FleetWord:
    if name == "job":
        return FleetWord(part=lambda job, user: job.startswith(value))
    if name == "user":
        return FleetWord(part=lambda job, user: user.startswith(value))
    if name == "state":
        return FleetWord(host=lambda host: host.state.startswith(value))
    if name == "slice":
        return FleetWord(host=lambda host: (host.slice or "").casefold().startswith(value))
    return FleetWord(
        host=lambda host: any(
            text.casefold().startswith(value) for text in (host.name, host.address or "")
        )
    )


def _compared(word: str) -> FleetWord | None:
    try:
        compared = comparison(word, UNITS)
    except ComparisonError as error:
        raise FilterWordError(str(error)) from None
    if compared is None:
        return None
    return FleetWord(host=lambda host: compared.holds([*values(host, compared.name)]))


def values(host: FleetHost, name: str) -> Iterator[float]:
    """The known values of that column: of the host, its processes or its devices. Numbers of a host
    that is not live are not of the present, and only its age is known.
    """
    if name == "age":
        yield from [] if host.age_s is None else [host.age_s]
    elif name == "chips":
        yield from [] if host.chips is None else [host.chips]
    elif host.state != HostState.LIVE:
        return
    elif name == "problems":
        yield sum(n.problems for n in host.notices)
    else:
        yield from (v for v in _measured(host, name) if v is not None)


def _measured(host: FleetHost, name: str) -> Iterator[float | None]:
    devices = [d for d in host.devices if is_tpu(d)]
    if name == HBM:
        yield from map(memory_percent, devices)
    elif name in _DEVICE:
        yield from (d.values.get(_DEVICE[name].name) for d in devices)
    else:
        yield from (p.values.get(_PROCESS[name].name) for p in host.processes)


def _texts(host: FleetHost) -> Iterator[str]:
    """All text that is shown about it."""
    yield " ".join(
        text
        for text in (host.name, host.address, host.slice, host.state, host.accelerator_type,
                     host.topology, host.reason)
        if text
    )  # fmt: skip
    yield " ".join(n.code for n in host.notices)[:TEXT_MOST]
    for p in host.processes:
        yield f"{p.pid} {p.user or ''} {p.job or ''} {p.command or ''} {p.phase or ''}"
    for d in host.devices:
        yield f"{d.kind or ''} {d.job or ''}"
