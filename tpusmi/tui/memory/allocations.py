"""What a memory profile holds, as a tree: function, line of code, buffers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tpusmi.model import Allocation, MemoryProfile
from tpusmi.report import words

EXECUTABLE = "executable"
GROUP, FUNCTION, LINE, BUFFERS = "group", "function", "line", "buffers"
BYTES, COUNT, CHANGE, CHANGE_COUNT = "BYTES", "COUNT", "CHANGE", "+/-"
ORDERS = (BYTES, CHANGE, CHANGE_COUNT, COUNT)
"""What the tree can be sorted by; the most comes first."""
CHANGES = (CHANGE, CHANGE_COUNT)
"""Those that there are only since a mark."""

Key = tuple[object, ...]
"""The way to a node from the root: that of its parent, and more."""
Leaf = tuple[str, str, int, str, int | None]
"""Function, file, line, kind, device."""


class Held(NamedTuple):
    """Bytes, None when nobody knows them (programs on a TPU), and how many buffers they are in."""

    bytes: int | None
    count: int  # type: ignore[assignment]  # hides tuple.count


NOTHING = Held(0, 0)


class Node(NamedTuple):
    """A row of the tree: a function, one of its lines, or what a line keeps on one device."""

    key: Key
    level: str
    function: str
    file: str
    line: int
    """Of a function of several lines the one that holds the most."""
    kind: str
    device: int | None
    held: Held
    before: Held | None
    """The same at the mark; None without a mark."""
    children: tuple[Node, ...] = ()

    @property
    def change_bytes(self) -> int | None:
        """Bytes more than at the mark; None when that is unknown."""
        before = None if self.before is None else self.before.bytes
        return None if before is None or self.held.bytes is None else self.held.bytes - before

    @property
    def change_count(self) -> int | None:
        """Buffers more than at the mark."""
        return None if self.before is None else self.held.count - self.before.count

    @property
    def is_new(self) -> bool:
        """It was not there at the mark."""
        return self.before is not None and self.before.count == 0 and self.held.count > 0

    @property
    def is_gone(self) -> bool:
        """It was there at the mark, and is not now."""
        return self.before is not None and self.held.count == 0


class Wanted(NamedTuple):
    """What the tree is to be of."""

    profile: MemoryProfile
    mark: MemoryProfile | None = None
    """The profile to compare with."""
    device: int | None = None
    """Global id; None is the sum of all."""
    filter: str = ""
    """Only lines of code that contain this are in the tree."""
    order: str = BYTES


class Tree(NamedTuple):
    """The tree, and what it adds up to whatever the filter is."""

    nodes: tuple[Node, ...]
    live: Held
    """All buffers of the device, or of all, with those that are left out."""
    live_before: Held | None
    left_out: Held | None
    """The smallest, which the profile has no room for; None when nobody knows."""
    new: int
    """Lines of code that were not there at the mark."""
    gone: int
    is_sure: bool
    """What the mark does not list was not there then."""


class Trees:
    """Builds a tree when what is wanted is another one, and not for every tick."""

    def __init__(self) -> None:
        self.built = 0
        self._made: tuple[Wanted, Tree] | None = None

    def of(self, wanted: Wanted) -> Tree:
        """The tree; the very same as before when nothing has changed."""
        if self._made is None or not _same(self._made[0], wanted):
            self._made = wanted, tree(wanted)
            self.built += 1
        return self._made[1]


def _same(a: Wanted, b: Wanted) -> bool:
    # A profile is never compared value by value: a newer one is another object.
    return a.profile is b.profile and a.mark is b.mark and a[2:] == b[2:]


def tree(w: Wanted) -> Tree:
    """Everything that is held now, or was at the mark."""
    now = _sums(w.profile, w.device)
    before = None if w.mark is None else _sums(w.mark, w.device)
    text = w.filter.casefold()
    leaves = [
        _leaf(key, now.get(key, NOTHING), None if before is None else before.get(key, NOTHING))
        for key in dict.fromkeys((*now, *(before or ())))
        if text in f"{key[0]} {key[1]}:{key[2]}".casefold()
    ]
    buffers = _functions((n for n in leaves if n.kind != EXECUTABLE), w.order)
    programs = _functions((n for n in leaves if n.kind == EXECUTABLE), w.order, (EXECUTABLE,))
    group = [_over((EXECUTABLE,), GROUP, programs)] if programs else []
    lines = [line for f in buffers for line in (f.children if _has_lines(f) else (f,))]
    return Tree(
        (*buffers, *group),
        _live(w.profile, now, w.device),
        None if w.mark is None or before is None else _live(w.mark, before, w.device),
        _left_out(w.profile),
        sum(n.is_new for n in lines),
        sum(n.is_gone for n in lines),
        w.mark is not None and _left_out(w.mark) == NOTHING,
    )


def is_by_device(profile: MemoryProfile) -> bool:
    """True when the profile tells what each device holds."""
    return any(a.device is not None for a in profile.allocations)


def at_line(node: Node) -> str:
    """Where the code of the node is, as an editor opens it; empty for what is nowhere."""
    return f"{node.file}:{node.line}" if node.file else ""


def _has_lines(function: Node) -> bool:
    return function.children[0].level == LINE


def _sums(profile: MemoryProfile, device: int | None) -> dict[Leaf, Held]:
    rows: Iterable[Allocation] = profile.allocations or (
        Allocation(*s[:4], None, s.bytes, s.count) for s in profile.sites
    )
    sums: dict[Leaf, Held] = {}
    for a in rows:
        # A program names no device: it is loaded on all of them.
        everywhere = a.device is None and a.kind == EXECUTABLE
        if device is None or a.device == device or everywhere:
            found = sums.get(a[:5])
            here = Held(a.bytes, a.count)
            sums[a[:5]] = here if found is None else _total((found, here))
    return sums


def _live(profile: MemoryProfile, sums: Mapping[Leaf, Held], device: int | None) -> Held:
    listed = [held for key, held in sums.items() if key[3] != EXECUTABLE]
    rest = _left_out(profile) if device is None else None
    return _total([*listed, rest or NOTHING])


def _left_out(profile: MemoryProfile) -> Held | None:
    size, count = profile.allocations_left_out_bytes, profile.allocations_left_out_count
    # Sites alone are the largest ones of a list whose length nobody told.
    return None if size is None or count is None or not profile.allocations else Held(size, count)


def _total(every: Iterable[Held]) -> Held:
    """The sum; of bytes one of which is unknown it is unknown."""
    size: int | None = 0
    count = 0
    for held in every:
        size = None if size is None or held.bytes is None else size + held.bytes
        count += held.count
    return Held(size, count)


def _leaf(key: Leaf, held: Held, before: Held | None) -> Node:
    function, file, line, kind, device = key
    return Node(key, BUFFERS, function, file, line, kind, device, held, before)


def _functions(leaves: Iterable[Node], order: str, root: Key = ()) -> list[Node]:
    """A node for each function, the largest first. One of several lines has a node for each."""
    by_line: dict[tuple[str, str, int], list[Node]] = {}
    for leaf in leaves:
        by_line.setdefault((leaf.function, leaf.file, leaf.line), []).append(
            leaf._replace(key=(*root, *leaf.key))
        )
    by_function: dict[tuple[str, str], list[Node]] = {}
    for where, found in by_line.items():
        line = _over((*root, *where), LINE, _sorted(found, order))
        by_function.setdefault(where[:2], []).append(line)
    functions = []
    for name, lines in by_function.items():
        below = lines[0].children if len(lines) == 1 else _sorted(lines, order)
        functions.append(_over((*root, *name), FUNCTION, below))
    return _sorted(functions, order)


def _over(key: Key, level: str, children: Sequence[Node]) -> Node:
    """A node that holds what its children hold."""
    first = children[0]
    held = _total(n.held for n in children)
    before = [n.before for n in children if n.before is not None]
    place = ("", "", 0) if level == GROUP else (first.function, first.file, first.line)
    return Node(
        key,
        level,
        *place,
        first.kind,
        None,
        held,
        _total(before) if before else None,
        tuple(children),
    )


def _sorted(nodes: Iterable[Node], order: str) -> list[Node]:
    """The most first. Those that read the same stay in the order of their names: a tree that is
    looked at does not move with every small change.
    """

    def rank(n: Node) -> tuple[object, ...]:
        keys = {
            BYTES: n.held.bytes,
            COUNT: n.held.count,
            CHANGE: n.change_bytes,
            CHANGE_COUNT: n.change_count,
        }
        # Of programs, whose sizes nobody knows, their number decides.
        unsized = _most_first(n.held.count if n.held.bytes is None else 0)
        chosen = (_most_first(keys[order]), _most_first(n.held.bytes), unsized)
        return (*chosen, n.file, n.function, n.line, n.kind, -1 if n.device is None else n.device)

    return sorted(nodes, key=rank)


def _most_first(value: int | None) -> tuple[bool, float]:
    """By the number as it is shown; unknown ones last."""
    if not value:
        return value is None, 0.0
    number, _ = words.scaled(abs(value))
    return False, -round(number, 1) * value / number
