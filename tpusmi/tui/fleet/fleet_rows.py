"""The rows of the fleet's tables: groups of hosts, with what is shown of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tpusmi.fleet.fleet_figures import FleetHost, FleetSnapshot, HostState
from tpusmi.fleet.groups.fleet_groups import FleetGroup, groups
from tpusmi.fleet.groups.fleet_orders import natural
from tpusmi.fleet.groups.group_members import Member


class FleetRow(NamedTuple):
    """A job, a slice or a host."""

    group: FleetGroup
    figures: FleetGroup
    """The same; of a group without a live host, with the numbers that it had last."""
    is_old: bool
    """No host of it is live."""
    title: str
    """Its name, with more where others have the same."""

    @property
    def key(self) -> str:
        """Unlike that of any other row of the table, and the same at every look."""
        return self.group.key


def rows_of(s: FleetSnapshot, by: str) -> list[FleetRow]:
    """The rows of all hosts of it, by name."""
    return sorted(_rows(s, by), key=_place)


def inside(s: FleetSnapshot, group: FleetGroup) -> FleetSnapshot:
    """The hosts of a group alone, each with what is of the group."""
    return s._replace(hosts=tuple(map(part_of, group.members)))


def part_of(m: Member) -> FleetHost:
    """The host with only what is of the group."""
    return m.host._replace(devices=m.devices, processes=m.processes, notices=m.notices)


def _place(row: FleetRow) -> tuple[object, ...]:
    """By name. Hosts without a job or a slice come last: their group has no key."""
    return not row.key, natural(row.group.name), row.group.detail


def _rows(s: FleetSnapshot, by: str) -> Iterator[FleetRow]:
    made = groups(s, by)
    names = Counter(g.name for g in made)
    old = {g.key for g in made if not g.in_state(HostState.LIVE)}
    last = {g.key: g for g in groups(_as_live(s, made, old), by)} if old else {}
    for g in made:
        title = f"{g.name} {g.detail}" if names[g.name] > 1 and g.detail else g.name
        yield FleetRow(group=g, figures=last.get(g.key, g), is_old=g.key in old, title=title)


def _as_live(s: FleetSnapshot, made: Iterable[FleetGroup], old: set[str]) -> FleetSnapshot:
    """The hosts of those groups, as if their numbers were of the present."""
    hosts = {m.host.key: m.host for g in made if g.key in old for m in g.members}
    live = (h._replace(state=HostState.LIVE) for h in hosts.values())
    return s._replace(hosts=tuple(live))
