"""The keys of a group in `tpusmi fleet --json`: each total says how much of it is known."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.fleet.fleet_figures import FleetSnapshot, HostState
from tpusmi.fleet.groups.fleet_groups import MEANS, FleetGroup, groups
from tpusmi.fleet.groups.fleet_orders import in_order
from tpusmi.fleet.groups.group_members import JOB, SLICE
from tpusmi.fleet.groups.totals import Total
from tpusmi.model.jsonobject import (
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    WHOLE,
    WHOLE_OR_NULL,
    JsonKey,
    JsonObject,
    key,
    keys,
    rounded,
)

GROUPED_BY = (JOB, SLICE)
"""A host is a group of its own in `hosts`."""


def groups_of(s: FleetSnapshot) -> Iterator[FleetGroup]:
    """The jobs, then the slices, the worst of each first."""
    for by in GROUPED_BY:
        yield from in_order(groups(s, by), "worst")


def _value(total: Total) -> float | int | None:
    """Whole where it is a sum of whole numbers."""
    value = total.value
    return int(value) if value is not None and value == int(value) else rounded(value)


_TOTAL = JsonObject(
    key(
        "value",
        NUMBER_OR_NULL,
        "The sum or mean of the known ones; null where none is known.",
        lambda s, total: _value(total),
    ),
    key("known", WHOLE, "How many are known."),
    key("of", WHOLE, "How many there are."),
)


def _total(name: str, help: str) -> JsonKey:
    return key(name, _TOTAL, help)


def _mean(name: str) -> JsonKey:
    return key(name, _TOTAL, "Mean over its devices.", lambda s, g: g.means[name])


def _seconds(name: str, help: str) -> JsonKey:
    return key(name, NUMBER_OR_NULL, help, lambda s, x: rounded(getattr(x, name)))


_STATES = JsonObject(
    *(key(state, WHOLE, "", lambda s, g, state=state: g.in_state(state)) for state in HostState)  # type: ignore[misc]
)
_STRAGGLER = JsonObject(
    key("host", TEXT, "", lambda s, x: x.name),
    key("pid", WHOLE),
    key("step_time_s", NUMBER, "", lambda s, x: rounded(x.step_time_s)),
    key("usual_s", NUMBER, "The median of its job.", lambda s, x: rounded(x.usual_s)),
)
_COUNT = JsonObject(
    key("code", TEXT, "As in docs/notices.md.", lambda s, pair: pair[0]),
    key("problems", WHOLE, "", lambda s, pair: pair[1]),
)


def _names(name: str, help: str) -> JsonKey:
    return keys(name, TEXT, help)


# fmt: off
GROUP = JsonObject(
    key("by", {"enum": [*GROUPED_BY]}),
    key("name", TEXT, "The job or the slice; `no job` and `no slice` for what has none."),
    key("detail", TEXT, "What tells it from others of its name: a user, a slice."),
    _names("users", "Users of its processes."),
    _names("jobs", "Names of its jobs."),
    _names("slices", "Its slices."),
    keys("hosts", TEXT, "Names of its hosts.", lambda s, g: [m.host.name for m in g.members]),
    key("states", _STATES, "How many hosts are in each state.", lambda s, g: g),
    key("unreported_hosts", WHOLE_OR_NULL, "Hosts of a job that no exporter reports, at least so "
        "many: its processes say how many they are. They are not in `hosts` and `states`."),
    _total("chips", "How many chips its hosts have. `known` and `of` count hosts."),
    _total("held_chips", "How many of its chips a process holds."),
    _total("idle_held_chips", "How many of the held chips have been idle for 15 minutes or more."),
    _total("hbm_used_bytes", "The sum over its devices."),
    _total("hbm_limit_bytes", "The sum over its devices."),
    *map(_mean, MEANS),
    key("fullest_percent", NUMBER_OR_NULL, "Memory in use on its fullest device.",
        lambda s, g: rounded(g.fullest_percent)),
    _seconds("step_time_s", "Median of its processes."),
    _seconds("slowest_step_s", "The longest of its processes."),
    keys("stragglers", _STRAGGLER, "Processes that its job waits for, the slowest first."),
    keys("notices", _COUNT, "How many problems it has of each code.",
         lambda s, g: g.notices.items()),
)
# fmt: on
