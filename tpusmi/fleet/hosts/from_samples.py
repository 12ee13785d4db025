"""Samples of many exporters as hosts: the opposite of `tpusmi.exporter`. Pure, and trusts none of
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import quote

from tpusmi.fleet.fleet_figures import FleetHost, HostState
from tpusmi.fleet.hosts.from_parts import (
    chips_of,
    devices_of,
    links_of,
    notices_of,
    place_of,
    processes_of,
)
from tpusmi.fleet.hosts.same_host import Reported, one_of_each, reported
from tpusmi.fleet.hosts.sample_targets import Targets
from tpusmi.fleet.samples import SeriesSample
from tpusmi.text import counted, elapsed

OLD_AFTER_S = 150.0
"""From this age on numbers are old. How often a server scrapes is not known: Prometheus does so
each minute unless its configuration says otherwise, and one scrape may fail. An exporter that is
asked directly is old sooner: see UNCHANGED_AFTER_S of `exporter_record`.
"""
NO_TIME = "it does not say of which time its numbers are"
"""Why numbers without a time are old, with Prometheus and without: their age is unknown."""
PROBLEMS_MOST = 20
"""Sentences about what could not be read."""


class HostsRead(NamedTuple):
    """The hosts, and what could not be read of them."""

    hosts: tuple[FleetHost, ...]
    problems: tuple[str, ...]
    """Sentences, PROBLEMS_MOST at most."""


def hosts_from(samples: Iterable[SeriesSample], now_s: float) -> tuple[FleetHost, ...]:
    """The hosts that these samples are of, by their names. `now_s` is Unix time."""
    return read_hosts(samples, now_s).hosts


def read_hosts(samples: Iterable[SeriesSample], now_s: float) -> HostsRead:
    """The same, with sentences about what was left out.

    Of several exporters of one machine one counts. Hosts with numbers that are older than
    OLD_AFTER_S, or of an unknown time, are HostState.OLD.
    """
    targets = Targets()
    targets.add_all(samples)
    all_reported = [reported(target, now_s, OLD_AFTER_S) for target in targets.targets()]
    machines, problems = one_of_each(all_reported)
    keys = _keys(machines)
    hosts = [_host(r, key, now_s) for r, key in zip(machines, keys, strict=True)]
    problems = [*_left_out(targets), *problems]
    if len(problems) > PROBLEMS_MOST:
        more = len(problems) - PROBLEMS_MOST + 1
        problems[PROBLEMS_MOST - 1 :] = [f"and {counted(more, 'more problem')} of this kind"]
    return HostsRead(hosts=tuple(hosts), problems=tuple(problems))


def _keys(machines: Sequence[Reported]) -> list[str]:
    """A key for each: its name, slice and address, and more labels where that is not enough."""
    keys = [_key(r.name, r.slice, r.address) for r in machines]
    often = Counter(keys)
    full = [
        key if often[key] == 1 else f"{key}/{_key(r.boot, *(v for _, v in r.others))}"
        for key, r in zip(keys, machines, strict=True)
    ]
    again: Counter[str] = Counter()
    unique = []
    for key in full:
        again[key] += 1
        unique.append(key if again[key] == 1 else f"{key}/{again[key]}")
    return unique


def _key(*parts: str | None) -> str:
    return "/".join(quote((part or "")[:256], safe=":", errors="replace") for part in parts)


def _left_out(targets: Targets) -> list[str]:
    problems = []
    if targets.hosts_left_out:
        count = counted(len(targets.hosts_left_out), "address", "addresses")
        problems.append(f"hosts of {count} are left out: there are too many of them")
    if targets.room.left_out:
        count = counted(targets.room.left_out, "sample")
        problems.append(f"{count} of too many chips, processes or notices are left out")
    if targets.unreadable:
        problems.append(f"{counted(targets.unreadable, 'sample')} of a wrong type are left out")
    return problems


def _host(r: Reported, key: str, now_s: float) -> FleetHost:
    chips = chips_of(r.parts)
    devices = devices_of(r.parts, chips)
    place = place_of(r.parts, devices)
    reason = _why_old(r, now_s)
    return FleetHost(
        key=key,
        name=r.name or r.address or "a host without a name",
        address=r.address,
        state=HostState.OLD if reason else HostState.LIVE,
        reason=reason,
        age_s=r.age_s,
        slice=r.slice,
        topology=place.topology,
        worker=place.worker,
        accelerator_type=place.accelerator_type,
        simulated=r.simulated,
        chips=chips.count,
        held_chips=chips.held,
        devices=devices,
        processes=processes_of(r.parts),
        notices=notices_of(r.parts),
        links=links_of(r.parts),
        wraps=place.wraps,
        boot=r.boot,
    )


def _why_old(r: Reported, now_s: float) -> str:
    """Why its numbers cannot be believed to be of the present; empty if they can."""
    if r.at_s is None:
        return NO_TIME
    if r.age_s is None:
        ahead = elapsed(r.at_s - now_s)
        return f"its clock is {ahead} ahead, so the age of its numbers is not known"
    if r.age_s > OLD_AFTER_S:
        return f"its numbers are {elapsed(r.age_s)} old, or its clock is that late"
    return ""
