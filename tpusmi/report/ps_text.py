"""The holders of the TPU, as text and as a plain object: what `tpusmi ps` prints."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tpusmi.model import (
    HOLDERS,
    STALE_HOLDER,
    SYSFS,
    Holding,
    LockState,
    Notice,
    Process,
    Snapshot,
    Verdict,
)
from tpusmi.model.holding import NodeState, blind, node_states, status
from tpusmi.report import concerns, verdicts, words
from tpusmi.report.columns import ColumnSpec
from tpusmi.report.family import TREE_ASCII, tree
from tpusmi.report.select import is_of
from tpusmi.report.text_grid import BOLD, DIM, YELLOW, Row, Sheet, as_text, grid, painted
from tpusmi.text import counted, noun

SUSPECTED = "may be stale (kill --stale leaves them alone; end them by pid):"
_ODD_LOCKS = (LockState.BLOCKING, LockState.DELETED)
_COLUMNS = (
    ColumnSpec("PID", right=True),
    ColumnSpec("USER", rank=1),
    ColumnSpec("CHIPS"),
    ColumnSpec("STALE"),
    ColumnSpec("S", rank=2),
    ColumnSpec("TIME", rank=3, right=True),
    ColumnSpec("CPU", rank=4, right=True),
    ColumnSpec("RSS", rank=5, right=True),
    ColumnSpec("TTY", rank=6),
    ColumnSpec("COMMAND"),
)


class Filters(NamedTuple):
    """Which processes to list. An empty field lists all."""

    users: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    chips: tuple[int, ...] = ()
    stale: bool = False


def narrowed(s: Snapshot, filters: Filters) -> Snapshot:
    """The snapshot with only the chips and processes that match."""
    chips = tuple(c for c in s.chips if not filters.chips or c.index in filters.chips)
    nodes = {node for c in chips for node in c.nodes} if filters.chips else set(s.visibility.nodes)
    processes = tuple(p for p in s.processes if _passes(p, filters, nodes))
    pids = {p.pid for p in processes}
    return s._replace(
        chips=chips,
        visibility=s.visibility._replace(
            nodes=tuple(node for node in s.visibility.nodes if node in nodes)
        ),
        processes=processes,
        warnings=tuple(n for n in s.warnings if _concerns(n, pids, {c.index for c in chips})),
    )


def _concerns(n: Notice, pids: set[int], chips: set[int]) -> bool:
    return (n.pid is None or n.pid in pids) and (n.chip is None or n.chip in chips)


def _passes(p: Process, filters: Filters, nodes: set[str]) -> bool:
    if p.is_dead or not (p.holds or p.loaded_only):
        return False
    return (
        (not filters.users or is_of(p, filters.users))
        and (not filters.pids or p.pid in filters.pids)
        and (not filters.chips or bool(set(p.holds) & nodes))
        and (not filters.stale or p.stale is True)
    )


class Listing(NamedTuple):
    """What to print. A filter on processes does not make a chip free."""

    listed: Snapshot
    on_chips: Snapshot
    """The same chips, with every process on them."""
    jobs_without_tpu: tuple[int, ...] = ()
    """Pids of jobs with an agent that hold no TPU: on the CPU or a GPU."""


def view(s: Snapshot, filters: Filters) -> Listing:
    """The matching processes, and all processes on the matching chips."""
    others = (p for p in s.processes if p.is_living and p.is_verified and not p.holds)
    return Listing(
        listed=narrowed(s, filters),
        on_chips=narrowed(s, Filters(chips=filters.chips)),
        jobs_without_tpu=tuple(p.pid for p in others if p.interval_s is not None),
    )


def to_dict(v: Listing) -> dict[str, Any]:
    """The object of `tpusmi ps --json`: keys as in `tpusmi --json`."""
    whole = {**v.listed.to_dict(), "holding": v.on_chips.to_dict()["holding"]}
    kept = ("schema", "tpusmi_version", "simulated", "host", "holding", "processes", "warnings")
    return {name: whole[name] for name in kept}


def text(v: Listing, sheet: Sheet, ascii_only: bool, as_tree: bool) -> str:
    """Whether the TPU is free, its holders, processes with libtpu loaded, and the lock file."""
    whole = as_text(_lines(v, sheet, as_tree), False)
    return as_text(whole.translate(TREE_ASCII).splitlines(), True) if ascii_only else whole


def summary(s: Snapshot) -> str:
    """Whether the TPU is free, in a sentence. Never `free` when a holder may have been missed."""
    states = node_states(s)
    holding = status(s)
    if holding == Holding.NO_TPU:
        reasons = ", ".join(o.message for o in s.sources if o.source in (SYSFS, HOLDERS))
        return f"no TPU here: {reasons}" if reasons else "no TPU here"
    if holding == Holding.NO_NODE:
        return f"{counted(len(s.chips), 'TPU chip')} without a device node"
    if holding in (Holding.HELD, Holding.STALE):
        pids = {pid for n in states for pid in n.pids}
        by = counted(len(pids), "process", "processes")
        rest = [n for n in states if not n.pids]
        others = f", no holder of {_places_of(rest)}" if rest else ""
        return f"{_places_of([n for n in states if n.pids])} held by {by}{others}"
    if holding == Holding.NOT_VISIBLE:
        why = blind(s) or s.visibility.reason or "holders were not looked for"
        return f"no holder visible ({why})"
    if holding == Holding.NO_PERMISSION:
        closed = [n for n in states if n.state == Holding.NO_PERMISSION]
        but = f"but you have no permission to open {_places_of(closed)}"
        return f"no holder of {_places_of(states)}, {but}"
    return _unheld(s, states)


def _unheld(s: Snapshot, states: Sequence[NodeState]) -> str:
    """That no node is held; without a PCI bus a node may be another device's."""
    if s.chips:
        return f"the TPU is free: no holder of {_places_of(states)}"
    what = "it is a TPU" if len(states) == 1 else "they are TPUs"
    return f"no holder of {_places_of(states)}, and no PCI bus shows whether {what}"


def _places_of(states: Sequence[NodeState]) -> str:
    """`chips 0-3`, or the nodes where no chip is known."""
    chips = [n.chip for n in states if n.chip is not None]
    if len(chips) < len(states):
        return words.nodes([n.node for n in states])
    return f"{noun(len(set(chips)), 'chip')} {words.ranges(chips)}"


def _lines(v: Listing, sheet: Sheet, as_tree: bool) -> Iterator[str]:
    s = v.listed
    label = " (SIMULATED)" if s.simulated else ""
    yield painted(f"{s.host.name}{label}: {summary(v.on_chips)}", BOLD, sheet.color)
    holders = [p for p in s.processes if p.holds]
    if holders:
        rows = list(_tree(s, holders)) if as_tree else [_row(s, p, "") for p in holders]
        pids = {str(p.pid) for p in holders}
        yield ""
        yield from grid(_COLUMNS, rows, sheet, {i for i, r in enumerate(rows) if r[0] not in pids})
    if v.jobs_without_tpu and status(v.on_chips) == Holding.NO_TPU:
        count = len(v.jobs_without_tpu)
        pids_of_jobs = words.ranges(list(v.jobs_without_tpu))
        yield f"{counted(count, 'job')} without a TPU (pid {pids_of_jobs}): see tpusmi -1"
    yield from _remarks(s, holders, sheet)


def _remarks(s: Snapshot, holders: Sequence[Process], sheet: Sheet) -> Iterator[str]:
    remarks = [*_verdicts(s, holders)]
    remarks += [f"  {line}" for p in holders for line in _places(p)]
    shown = ("chip", "lock_file")
    remarks += [line for n in s.warnings if n.code in shown for line in concerns.marked(n)]
    remarks += [
        f"  pid {p.pid} has libtpu loaded and holds no TPU: {words.command(p.command)}"
        for p in s.processes
        if p.loaded_only
    ]
    remarks += [
        f"  {file.path}: {file.message}"
        for file in s.lock_files
        if file.state not in (LockState.ABSENT, *_ODD_LOCKS)
    ]
    remarks += [f"  {s.visibility.reason}"] if holders and s.visibility.reason else []
    for block in (remarks, [*_suspects(holders)]):
        if block:
            yield ""
        for line in block:
            loud = line.startswith(("!", "?", SUSPECTED))
            yield painted(line, YELLOW if loud else DIM, sheet.color)


def _verdicts(s: Snapshot, holders: Sequence[Process]) -> Iterator[str]:
    """The stale holders, remarks on others that are not suspects, then further signs."""
    advice = {n.pid: n.advice for n in s.warnings if n.code == STALE_HOLDER}
    for p in holders:
        if p.stale:
            yield f"! pid {p.pid} {p.judgment}"
            yield from [f"  {concerns.WHAT_TO_DO}{advice[p.pid]}"] if p.pid in advice else []
    for p in holders:
        if p.verdict == Verdict.UNKNOWN:
            yield f"? pid {p.pid} {p.judgment}"
        elif p.stale is False and p.stale_reason:
            yield f"  pid {p.pid} {p.judgment}"
    yield from (f"  pid {p.pid}: {sign}" for p in holders for sign in verdicts.other_signs(p))


def _suspects(holders: Sequence[Process]) -> Iterator[str]:
    """The holders that may be stale, in a block of their own."""
    suspects = [p for p in holders if p.is_suspect]
    if suspects:
        yield SUSPECTED
        yield from (f"  pid {p.pid} {p.judgment}" for p in suspects)


def _places(p: Process) -> Iterator[str]:
    """Its container, and the ports on which it listens."""
    if p.life is None:
        return
    if p.life.container:
        inner = f" as pid {p.life.inner_pid}" if p.life.inner_pid else ""
        yield (
            f"pid {p.pid} runs in container {p.life.container[:12]}{inner}: "
            "better to stop the container (docker stop, kubectl delete pod)"
        )
    if p.life.ports:
        ports = words.ranges(list(p.life.ports))
        yield f"pid {p.pid} listens on TCP port {ports}"


def _row(s: Snapshot, p: Process, indent: str) -> Row:
    life = p.life
    role = f" [{life.role}]" if life is not None and life.role else ""
    command = indent + words.command(p.command) + role
    who = (str(p.pid), p.user or "", chips(s, p), verdicts.mark(p))
    if life is None:
        return (*who, "", "", "", "", "", command)
    cpu = words.UNKNOWN if life.cpu_percent is None else f"{life.cpu_percent:.0f} %"
    numbers = (words.elapsed(life.age_s), cpu, words.size(life.rss_bytes))
    return (*who, life.state, *numbers, life.terminal or "", command)


def chips(s: Snapshot, p: Process) -> str:
    """The chips whose nodes a process holds, as `0-3`; the nodes where no chip is known."""
    numbers = [c.index for c in s.chips if set(c.nodes) & set(p.holds)]
    return words.ranges(numbers) if numbers else words.nodes(p.holds).replace("/dev/", "")


def chips_or_nodes(s: Snapshot, p: Process) -> str:
    """What it holds, in words: `chip 4`, `chips 0-3`; the nodes where no chip is known."""
    numbers = chips(s, p)
    if not any(set(c.nodes) & set(p.holds) for c in s.chips):
        return words.nodes(p.holds)
    return f"chip{'s' if set(numbers) & {'-', ','} else ''} {numbers}"


def _tree(s: Snapshot, holders: Sequence[Process]) -> Iterator[Row]:
    """Holders under the processes that started them."""
    for branch in tree(holders):
        if branch.process is not None:
            yield _row(s, branch.process, branch.indent)
        else:
            command = words.shortened(words.command(branch.command), 60)
            yield (str(branch.pid), *(" ",) * (len(_COLUMNS) - 2), branch.indent + command)
