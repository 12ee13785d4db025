"""Whether a host's TPU is free: of each device node, and of all of them together."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from typing import NamedTuple

from tpusmi.model.nouns import HOLDERS
from tpusmi.model.servers import FAILED
from tpusmi.model.snapshot import Snapshot

FREE, HELD, STALE, RELEASING = "free", "held", "stale", "releasing"
NOT_VISIBLE, NO_PERMISSION = "not_visible", "no_permission"
NO_NODE, NO_TPU = "no_node", "no_tpu"


class NodeState(NamedTuple):
    """One device node, and who holds it."""

    node: str
    chip: int | None
    """None where no PCI bus tells."""
    state: str
    """`free`; `held`; `stale` when every holder is; `releasing` when every holder is ending;
    `not_visible` when no holder is seen, but not every process could be inspected; `no_permission`
    when it is free, and not for me: I may not open it.
    """
    pids: tuple[int, ...]


def node_states(s: Snapshot) -> tuple[NodeState, ...]:
    """Every node of the TPUs that has been seen, in the order of the chips."""
    chips = {node: chip.index for chip in s.chips for node in chip.nodes}
    return tuple(_state(s, node, chips.get(node)) for node in dict.fromkeys((*chips, *s.nodes)))


def status(s: Snapshot) -> str:
    """`stale` when any holder is stale, else `held` when there is one; `not_visible` when none was
    seen, but not every process could be inspected; `no_permission` when I may not open a node;
    `free`; `no_node` when there are chips and no device node of them; `no_tpu`.
    """
    states = node_states(s)
    pids = {pid for n in states for pid in n.pids}
    if pids:
        return STALE if any(p.stale for p in s.processes if p.pid in pids) else HELD
    if not states:
        return NOT_VISIBLE if blind(s) else NO_NODE if s.chips else NO_TPU
    found = {n.state for n in states}
    return next(state for state in (NOT_VISIBLE, NO_PERMISSION, FREE) if state in found)


def _state(s: Snapshot, node: str, chip: int | None) -> NodeState:
    holders = [p for p in s.processes if node in p.holds and p.state != "dead"]
    pids = tuple(p.pid for p in holders)
    if not holders:
        seen = node in s.nodes and not s.hidden and not s.own_namespace
        free = NO_PERMISSION if node in s.closed_nodes else FREE
        return NodeState(node, chip, free if seen else NOT_VISIBLE, ())
    if all(p.stale_code == "releasing" for p in holders):
        return NodeState(node, chip, RELEASING, pids)
    return NodeState(node, chip, STALE if all(p.stale for p in holders) else HELD, pids)


def blind(s: Snapshot) -> str:
    """Why nobody could look for holders at all; empty when somebody did."""
    found = next((o for o in s.sources if o.source == HOLDERS), None)
    if found is None or found.status != FAILED:
        return ""
    return f"holders could not be looked for: {found.message}"
