"""Processes under the processes that started them, as a tree. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tpusmi.model import Process, ProcessKey

BRANCH, LAST, DOWN = "├─ ", "└─ ", "│  "
TREE_ASCII = str.maketrans({"├": "|", "└": "`", "─": "-", "│": "|"})

WALKS_MOST = 4096
"""Most steps down the tree to find what is below launchers: users can nest processes deeply."""

Node = int | ProcessKey
"""A listed process, or the pid of one that is there only because of what it started."""


class Branch(NamedTuple):
    """A line of the tree."""

    pid: int
    command: str
    process: Process | None
    """None for one that has only started others."""
    indent: str
    """What is drawn in front of its command."""
    below: tuple[Process, ...] = ()
    """Listed processes under one that has only started others; empty if they are too many."""

    @property
    def key(self) -> ProcessKey | None:
        """Whose values are its; None for one that has only started others."""
        return None if self.process is None else self.process.key


def tree(processes: Sequence[Process]) -> Iterator[Branch]:
    """The processes under those that started them, back to the leader of their session.

    Those with the same parent stay in the order given; a parent that is not among the processes has
    the place of the first that it started.
    """
    return _Family(processes).branches()


class _Family:
    """The processes, their ancestors, and who is above whom."""

    def __init__(self, processes: Sequence[Process]) -> None:
        self._processes = {p.key: p for p in processes}
        # The pid of one that has ended, or that only a file names, may be another one's.
        self._keys = {p.pid: p.key for p in processes if not p.is_dead and p.is_verified}
        self._commands: dict[Node, str] = {}
        self._walks_left = WALKS_MOST
        self._above: dict[Node, Node] = {}
        self._children: dict[Node | None, list[Node]] = {}
        for p in processes:
            self._add_line(p)
        self._places: dict[Node, int] = {p.key: n for n, p in enumerate(processes)}
        for node in self._processes:
            self._place(node)
        for children in self._children.values():
            children.sort(key=self._places.__getitem__)

    def branches(self) -> Iterator[Branch]:
        """Top to bottom."""
        # Not by recursion: a hostile user can nest processes deeper than Python nests calls.
        waiting = [(node, "", "") for node in reversed(self._children.get(None, []))]
        while waiting:
            node, mark, inner = waiting.pop()
            yield self._branch(node, mark)
            children = self._children.get(node, [])
            for child in reversed(children):
                last = child == children[-1]
                below = inner + ("   " if last else DOWN)
                waiting.append((child, inner + (LAST if last else BRANCH), below))

    def _branch(self, node: Node, indent: str) -> Branch:
        if isinstance(node, int):
            below = self._below(node)
            return Branch(node, self._commands[node], None, indent, below=below)
        p = self._processes[node]
        return Branch(p.pid, p.command, p, indent)

    def _below(self, top: Node) -> tuple[Process, ...]:
        """The processes under it. All such walks together are limited."""
        processes, waiting = [], [*self._children.get(top, [])]
        while waiting and self._walks_left > 0:
            self._walks_left -= 1
            node = waiting.pop()
            waiting += self._children.get(node, [])
            if not isinstance(node, int):
                processes.append(self._processes[node])
        return () if waiting else tuple(processes)

    def _add_line(self, p: Process) -> None:
        below: Node = p.key
        for pid, command in self._line_of(p):
            above = self._keys.get(pid, pid)
            if self._is_under(above, below):
                return  # the ancestors were not read in one moment, and a pid was used again
            self._above[below] = above
            self._commands.setdefault(above, command)
            below = above

    def _line_of(self, p: Process) -> Sequence[tuple[int, str]]:
        """Its ancestors up to the leader of its session, or to the last that is listed: not the
        whole machine.
        """
        if p.life is None or p.is_dead:
            return ()
        pids = [pid for pid, _ in p.life.ancestors]
        listed = max((n for n, pid in enumerate(pids, 1) if pid in self._keys), default=0)
        leader = 0
        if p.life.session != p.pid:
            leader = pids.index(p.life.session) + 1 if p.life.session in pids else len(pids)
        return p.life.ancestors[: max(listed, leader)]

    def _is_under(self, node: Node, other: Node) -> bool:
        at: Node | None = node
        while at is not None and at != other:
            at = self._above.get(at)
        return at == other

    def _place(self, first: Node) -> None:
        """Put it, and what is above it, beside its siblings."""
        node: Node | None = first
        while node is not None:
            self._places.setdefault(node, self._places[first])
            above = self._above.get(node)
            children = self._children.setdefault(above, [])
            if node not in children:
                children.append(node)
            node = above
