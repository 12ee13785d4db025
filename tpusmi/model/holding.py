"""Whether a host's TPU is free: of each device node, and of all of them together."""

from typing import TYPE_CHECKING, NamedTuple

from tpusmi.model.nouns import HOLDERS
from tpusmi.model.states import Holding, Status

if TYPE_CHECKING:
    from tpusmi.model.snapshot import Snapshot


class NodeState(NamedTuple):
    """One device node, and who holds it."""

    node: str
    chip: int | None
    """None where no PCI bus tells."""
    state: Holding
    pids: tuple[int, ...]


def node_states(s: "Snapshot") -> tuple[NodeState, ...]:
    """Every node of the TPUs that has been seen, in the order of the chips."""
    chips = {node: chip.index for chip in s.chips for node in chip.nodes}
    nodes = dict.fromkeys((*chips, *s.visibility.nodes))
    return tuple(_state(s, node, chips.get(node)) for node in nodes)


def status(s: "Snapshot") -> Holding:
    """Whether the TPU is free: `stale` when any holder is stale, else `held` when there is one."""
    states = node_states(s)
    pids = {pid for n in states for pid in n.pids}
    if pids:
        has_stale = any(p.stale for p in s.processes if p.pid in pids)
        return Holding.STALE if has_stale else Holding.HELD
    if not states:
        if blind(s):
            return Holding.NOT_VISIBLE
        return Holding.NO_NODE if s.chips else Holding.NO_TPU
    of_nodes = {n.state for n in states}
    order = (Holding.NOT_VISIBLE, Holding.NO_PERMISSION, Holding.FREE)
    return next(state for state in order if state in of_nodes)


def _state(s: "Snapshot", node: str, chip: int | None) -> NodeState:
    holders = [p for p in s.processes if node in p.holds and not p.is_dead]
    pids = tuple(p.pid for p in holders)
    if not holders:
        looked_for = node in s.visibility.nodes and s.visibility.is_complete
        free = Holding.NO_PERMISSION if node in s.visibility.closed_nodes else Holding.FREE
        return NodeState(node, chip, free if looked_for else Holding.NOT_VISIBLE, ())
    if all(p.stale_code == "releasing" for p in holders):
        return NodeState(node, chip, Holding.RELEASING, pids)
    state = Holding.STALE if all(p.stale for p in holders) else Holding.HELD
    return NodeState(node, chip, state, pids)


def blind(s: "Snapshot") -> str:
    """Why holders could not be looked for at all; empty when they were."""
    outcome = next((o for o in s.sources if o.source == HOLDERS), None)
    if outcome is None or outcome.status != Status.FAILED:
        return ""
    return f"holders could not be looked for: {outcome.message}"
