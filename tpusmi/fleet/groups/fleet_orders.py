"""In which order groups of a fleet are listed. Unknown values come last. Pure.

Worst first: most hosts that are down, then most with old numbers, then most stragglers, then most
problems, then most idle held chips, then memory that is almost full, then the lowest TensorCore
utilization, in tens of percent; then by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tpusmi.fleet.fleet_figures import HostState
from tpusmi.fleet.groups.fleet_groups import MEMORY_PERCENT, FleetGroup

FULL_PERCENT, FULL_STEP = 90.0, 2.0
"""From how full the memory counts, and in which steps."""
BUSY_STEP = 10.0
NAME_MOST = 200


class FleetOrder(NamedTuple):
    """An order of groups."""

    title: str
    rank: Callable[[FleetGroup], tuple[Any, ...]]
    """What is compared; None in the first place is unknown."""
    largest_first: bool = False


def _mean(metric: str) -> Callable[[FleetGroup], tuple[float | None]]:
    return lambda g: (g.means[metric].value,)


def severity(g: FleetGroup) -> tuple[float, ...]:
    """How bad it is: the worst is the largest. Unknown values are the least bad. Memory and
    utilization count in steps: groups that are as good as each other keep their places from one
    look to the next.
    """
    full = g.fullest_percent or 0.0
    busy = g.means["tensorcore_utilization_percent"].value
    return (
        g.in_state(HostState.DOWN),
        g.in_state(HostState.OLD),
        len(g.stragglers),
        g.problems,
        g.idle_held_chips.value or 0,
        full // FULL_STEP if full >= FULL_PERCENT else 0,
        -math.inf if busy is None else -(busy // BUSY_STEP),
    )


# fmt: off
ORDERS: Mapping[str, FleetOrder] = {
    "worst": FleetOrder("worst first", severity, largest_first=True),
    "name": FleetOrder("name", lambda g: (natural(g.name), g.detail)),
    "hosts": FleetOrder("hosts", lambda g: (g.hosts,), largest_first=True),
    "chips": FleetOrder("chips", lambda g: (g.chips.value,), largest_first=True),
    "memory": FleetOrder("memory", _mean(MEMORY_PERCENT), largest_first=True),
    "mxu": FleetOrder("MXU", _mean("tensorcore_utilization_percent")),
    "duty": FleetOrder("duty", _mean("duty_cycle_percent")),
    "bandwidth": FleetOrder("bandwidth", _mean("hbm_bandwidth_utilization_percent")),
    "idle": FleetOrder("idle chips held", lambda g: (g.idle_held_chips.value,), largest_first=True),
    "step": FleetOrder("step time", lambda g: (g.step_time_s,), largest_first=True),
    "problems": FleetOrder("problems", lambda g: (g.problems,), largest_first=True),
}
# fmt: on
"""By their names. Of quantities the groups that need a look come first."""


def in_order(groups: Iterable[FleetGroup], order: str) -> tuple[FleetGroup, ...]:
    """The groups in that order; those of which the quantity is unknown come last. Raises KeyError
    for an order that does not exist.
    """
    rank, largest_first = ORDERS[order].rank, ORDERS[order].largest_first
    by_name = sorted(groups, key=lambda g: (natural(g.name), g.detail, g.key))
    known = [g for g in by_name if rank(g)[0] is not None]
    unknown = [g for g in by_name if rank(g)[0] is None]
    return (*sorted(known, key=rank, reverse=largest_first), *unknown)


def natural(text: str) -> list[tuple[int, str]]:
    """A key that puts `w-2` before `w-10`."""
    parts: list[tuple[int, str]] = []
    word = ""
    for char in text[:NAME_MOST]:
        if word and char.isdecimal() != word[-1].isdecimal():
            parts.append(_part(word))
            word = ""
        word += char
    return [*parts, _part(word)] if word else parts


def _part(word: str) -> tuple[int, str]:
    return (int(word), "") if word.isdecimal() and len(word) < 30 else (-1, word.casefold())
