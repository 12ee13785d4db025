"""Builds the tree of what a memory profile holds: function, line of code, buffers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tpusmi.model import Allocation, MemoryProfile, Place
from tpusmi.report import words

EXECUTABLE = "executable"
GROUP, FUNCTION, LINE, BUFFERS = "group", "function", "line", "buffers"
BYTES, COUNT, CHANGE, CHANGE_COUNT, RATE = "BYTES", "COUNT", "CHANGE", "+/-", "RATE"
ORDERS = (BYTES, CHANGE, CHANGE_COUNT, COUNT, RATE)
"""Sort orders of the tree; the largest comes first."""
CHANGES = (CHANGE, CHANGE_COUNT)
"""Orders that exist only once there is a mark."""

Key = tuple[object, ...]
"""The path to a node from the root: its parent's key, and more."""
Leaf = tuple[str, str, int, str, int | None]
"""Function, file, line, kind, device."""


class Amount(NamedTuple):
    """Bytes, None if unknown (programs on a TPU), and the number of buffers."""

    bytes: int | None
    count: int  # type: ignore[assignment]  # hides tuple.count


NOTHING = Amount(0, 0)


class Node(NamedTuple):
    """A row of the tree: a function, one of its lines, or what a line keeps on one device."""

    key: Key
    level: str
    function: str
    file: str
    line: int
    """For a function with several lines, the line that holds the most."""
    kind: str
    device: int | None
    held: Amount
    before: Amount | None
    """The amount at the mark; None without a mark."""
    children: tuple[Node, ...] = ()
    bytes_per_s: float | None = None
    """How fast it grows; None until that is known, and for parts of a line of code."""

    @property
    def change_bytes(self) -> int | None:
        """Growth in bytes since the mark; None if unknown."""
        before = None if self.before is None else self.before.bytes
        return None if before is None or self.held.bytes is None else self.held.bytes - before

    @property
    def change_count(self) -> int | None:
        """Growth in buffers since the mark; None without a mark."""
        return None if self.before is None else self.held.count - self.before.count

    @property
    def has_lines(self) -> bool:
        """True for a function of which several lines hold memory."""
        return self.level == FUNCTION and self.children[0].level == LINE

    @property
    def is_new(self) -> bool:
        """True if it did not exist at the mark."""
        return self.before is not None and self.before.count == 0 and self.held.count > 0

    @property
    def is_gone(self) -> bool:
        """True if it existed at the mark, and no longer does."""
        return self.before is not None and self.held.count == 0


class TreeQuery(NamedTuple):
    """What the tree shows, and how."""

    profile: MemoryProfile
    mark: MemoryProfile | None = None
    """The profile to compare with."""
    device: int | None = None
    """Global id; None is the sum of all."""
    filter: str = ""
    """Only lines of code that contain this are in the tree."""
    order: str = BYTES


class Tree(NamedTuple):
    """The tree, and totals that do not depend on the filter."""

    nodes: tuple[Node, ...]
    live: Amount
    """All buffers of the device, or of all devices, listed or not."""
    live_before: Amount | None
    left_out: Amount | None
    """The smallest buffers, which the profile has no room for; None if unknown."""
    new: int
    """Lines of code that are new since the mark."""
    gone: int
    is_sure: bool
    """The mark lists all buffers: one that it does not list is new."""


class Trees:
    """Keeps the last tree, and builds another only if the query has changed."""

    def __init__(self) -> None:
        self.built = 0
        self._made: tuple[TreeQuery, Tree] | None = None

    def of(self, query: TreeQuery) -> Tree:
        """The tree; the very same object as before if nothing has changed."""
        if self._made is None or not _same(self._made[0], query):
            self._made = query, tree(query)
            self.built += 1
        return self._made[1]


def _same(a: TreeQuery, b: TreeQuery) -> bool:
    # A profile is never compared value by value: a newer one is another object.
    return a.profile is b.profile and a.mark is b.mark and a[2:] == b[2:]


def tree(query: TreeQuery) -> Tree:
    """The tree of everything held now, or at the mark."""
    profile, mark, device, text, order = query
    now = _sums(profile, device)
    before = None if mark is None else _sums(mark, device)
    leaves = [
        _leaf(key, now.get(key, NOTHING), None if before is None else before.get(key, NOTHING))
        for key in dict.fromkeys((*now, *(before or ())))
        if text.casefold() in f"{key[0]} {key[1]}:{key[2]}".casefold()
    ]
    # Rates are of all devices together.
    rates = profile.rates if device is None else {}
    buffers = _functions((n for n in leaves if n.kind != EXECUTABLE), order, rates)
    programs = _functions((n for n in leaves if n.kind == EXECUTABLE), order, {}, (EXECUTABLE,))
    group = [_over((EXECUTABLE,), GROUP, programs)] if programs else []
    lines = [line for f in buffers for line in (f.children if f.has_lines else (f,))]
    return Tree(
        nodes=(*buffers, *group),
        live=_live(profile, now, device),
        live_before=None if mark is None or before is None else _live(mark, before, device),
        left_out=_left_out(profile),
        new=sum(n.is_new for n in lines),
        gone=sum(n.is_gone for n in lines),
        is_sure=mark is not None and _left_out(mark) == NOTHING,
    )


def is_by_device(profile: MemoryProfile) -> bool:
    """True if the profile lists the buffers of each device."""
    return any(a.device is not None for a in profile.allocations)


def at_line(node: Node) -> str:
    """The node's code as `file:line`, as an editor opens it; empty if it has no file."""
    return f"{node.file}:{node.line}" if node.file else ""


def _sums(profile: MemoryProfile, device: int | None) -> dict[Leaf, Amount]:
    rows: Iterable[Allocation] = profile.allocations or (
        Allocation._make((*site[:4], None, site.bytes, site.count)) for site in profile.sites
    )
    sums: dict[Leaf, Amount] = {}
    for a in rows:
        # A program has no device: it is loaded on all of them.
        everywhere = a.device is None and a.kind == EXECUTABLE
        if device is None or a.device == device or everywhere:
            sums[a[:5]] = _total((sums.get(a[:5], NOTHING), Amount(a.bytes, a.count)))
    return sums


def _live(profile: MemoryProfile, sums: Mapping[Leaf, Amount], device: int | None) -> Amount:
    listed = [held for key, held in sums.items() if key[3] != EXECUTABLE]
    rest = _left_out(profile) if device is None else None
    return _total([*listed, rest or NOTHING])


def _left_out(profile: MemoryProfile) -> Amount | None:
    size, count = profile.allocations_left_out_bytes, profile.allocations_left_out_count
    # Sites alone are the largest ones of a list of unknown length.
    return None if size is None or count is None or not profile.allocations else Amount(size, count)


def _total(amounts: Iterable[Amount]) -> Amount:
    """The sum; its bytes are unknown if any are."""
    size: int | None = 0
    count = 0
    for held in amounts:
        size = None if size is None or held.bytes is None else size + held.bytes
        count += held.count
    return Amount(size, count)


def _leaf(key: Leaf, held: Amount, before: Amount | None) -> Node:
    function, file, line, kind, device = key
    return Node(
        key=key,
        level=BUFFERS,
        function=function,
        file=file,
        line=line,
        kind=kind,
        device=device,
        held=held,
        before=before,
    )


def _functions(
    leaves: Iterable[Node],
    order: str,
    rates: Mapping[Place, float | None],
    root: Key = (),
) -> list[Node]:
    """A node for each function, the largest first, with a node for each of several lines."""
    by_line: dict[tuple[str, str, int], list[Node]] = {}
    for leaf in leaves:
        by_line.setdefault((leaf.function, leaf.file, leaf.line), []).append(
            leaf._replace(key=(*root, *leaf.key))
        )
    by_function: dict[tuple[str, str], list[Node]] = {}
    for where, of_line in by_line.items():
        line = _over((*root, *where), LINE, _sorted(of_line, order))
        line = line._replace(bytes_per_s=rates.get(where))
        by_function.setdefault(where[:2], []).append(line)
    functions = []
    for name, lines in by_function.items():
        below = lines[0].children if len(lines) == 1 else _sorted(lines, order)
        rate = _sum_of_all(line.bytes_per_s for line in lines)
        functions.append(_over((*root, *name), FUNCTION, below)._replace(bytes_per_s=rate))
    return _sorted(functions, order)


def _sum_of_all(rates: Iterable[float | None]) -> float | None:
    """The sum; None if any is unknown."""
    total = 0.0
    for rate in rates:
        if rate is None:
            return None
        total += rate
    return total


def _over(key: Key, level: str, children: Sequence[Node]) -> Node:
    """A node that holds what its children hold."""
    first = children[0]
    before = [n.before for n in children if n.before is not None]
    node = first._replace(
        key=key,
        level=level,
        device=None,
        held=_total(n.held for n in children),
        before=_total(before) if before else None,
        children=tuple(children),
    )
    return node._replace(function="", file="", line=0) if level == GROUP else node


def _sorted(nodes: Iterable[Node], order: str) -> list[Node]:
    """The largest first. Nodes that read the same stay in the order of their names, so that the
    tree does not move with every small change.
    """

    def rank(n: Node) -> tuple[object, ...]:
        keys = {
            BYTES: n.held.bytes,
            COUNT: n.held.count,
            CHANGE: n.change_bytes,
            CHANGE_COUNT: n.change_count,
            RATE: n.bytes_per_s,
        }
        # Programs, whose sizes are unknown, are sorted by their number.
        unsized = _most_first(n.held.count if n.held.bytes is None else 0)
        chosen = (_most_first(keys[order]), _most_first(n.held.bytes), unsized)
        return (*chosen, n.file, n.function, n.line, n.kind, -1 if n.device is None else n.device)

    return sorted(nodes, key=rank)


def _most_first(value: float | None) -> tuple[bool, float]:
    """A sort key by the number as it is shown; unknown numbers come last."""
    if not value:
        return value is None, 0.0
    number, _ = words.scaled(abs(value))
    return False, -round(number, 1) * value / number
