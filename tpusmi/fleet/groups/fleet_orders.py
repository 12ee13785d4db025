"""In which order groups of a fleet are listed. Unknown values come last. Pure.

Worst first: most hosts that are down, then most with old numbers, then most stragglers, then most
problems, then most idle held chips, then the fullest memory, then the lowest TensorCore
utilization.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tpusmi.fleet.fleet_figures import HostState
from tpusmi.fleet.groups.fleet_groups import MEMORY_PERCENT, FleetGroup


class FleetOrder(NamedTuple):
    """An order of groups."""

    title: str
    rank: Callable[[FleetGroup], tuple[float | str | None, ...]]
    """What is compared; a None is not known."""
    largest_first: bool = False


def _mean(metric: str) -> Callable[[FleetGroup], tuple[float | None]]:
    return lambda g: (g.means[metric].value,)


def _worst(g: FleetGroup) -> tuple[float | None, ...]:
    busy = g.means["tensorcore_utilization_percent"].value
    return (
        -g.in_state(HostState.DOWN),
        -g.in_state(HostState.OLD),
        -len(g.stragglers),
        -g.problems,
        -(g.idle_held_chips.value or 0),
        None if g.fullest_percent is None else -g.fullest_percent,
        busy,
    )


# fmt: off
ORDERS: Mapping[str, FleetOrder] = {
    "worst": FleetOrder("worst first", _worst),
    "name": FleetOrder("name", lambda g: (g.name, g.detail)),
    "hosts": FleetOrder("hosts", lambda g: (g.hosts,), largest_first=True),
    "chips": FleetOrder("chips", lambda g: (g.chips.value,), largest_first=True),
    "memory": FleetOrder("memory", _mean(MEMORY_PERCENT), largest_first=True),
    "mxu": FleetOrder("MXU", _mean("tensorcore_utilization_percent")),
    "duty": FleetOrder("duty", _mean("duty_cycle_percent")),
    "bandwidth": FleetOrder("bandwidth", _mean("hbm_bandwidth_utilization_percent")),
    "idle": FleetOrder("idle chips held", lambda g: (g.idle_held_chips.value,), largest_first=True),
    "step": FleetOrder("step time", lambda g: (g.slowest_step_s,), largest_first=True),
    "problems": FleetOrder("problems", lambda g: (g.problems,), largest_first=True),
}
# fmt: on
"""By their names. Of quantities the groups that need a look come first."""


def in_order(
    groups: Iterable[FleetGroup], order: str, is_reversed: bool = False
) -> tuple[FleetGroup, ...]:
    """The groups in that order, or the other way around; unknown values last in both. Raises
    KeyError for an order that does not exist.
    """
    by_name = sorted(groups, key=lambda g: (g.name, g.detail, g.key))
    rank = ORDERS[order].rank
    known: list[FleetGroup] = []
    unknown: list[FleetGroup] = []
    for g in by_name:
        (unknown if rank(g)[0] is None else known).append(g)
    known.sort(
        key=lambda g: _comparable(rank(g)), reverse=ORDERS[order].largest_first != is_reversed
    )
    return (*known, *unknown)


def _comparable(rank: tuple[float | str | None, ...]) -> tuple[object, ...]:
    return tuple((value is None, value if value is not None else 0) for value in rank)
