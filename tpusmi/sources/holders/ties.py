"""What ties a process that has lost its launcher to a living process, or may do so.

What cannot be found out counts as a tie: a process that something may wait for is left alone.
"""

import os
import select
import stat as modes
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tpusmi.sources import sockets
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.life import INIT, TERMINALS, stream_terminal
from tpusmi.sources.holders.procfs import Stat
from tpusmi.sources.holders.scan import sees_every_process
from tpusmi.text import clean

LOOK_MOST_S = 0.5
"""For the search for other processes that have an output open: a machine may have very many."""
_NOWHERE = ("/dev/null", "/dev/zero", "/dev/full")
_OUTPUTS = (1, 2)
THREADS_MOST = 1024
"""Threads of one process that are looked at."""
_AT_WORK = {"R": "the processor", "D": "a disk"}
"""States of threads that are working, and what they may be waiting for."""

CpuTicks = Mapping[tuple[int, int], int]
"""Ticks of processor time by pid and start time."""


class Ties(NamedTuple):
    """The ties of one process, in words."""

    words: tuple[str, ...]
    ports: tuple[int, ...]
    """TCP ports on which it listens, on any address."""


class Kin:
    """Every process that can be seen, and its parent, at one moment: what a process has started
    works for it.
    """

    def __init__(self, proc: str) -> None:
        stats = {int(name): procfs.read_stat(f"{proc}/{name}") for name in _pids(proc)}
        self.stats: dict[int, Stat] = {
            pid: stat
            for pid, stat in stats.items()
            if stat and not (stat.of_kernel or stat.is_gone)
        }
        self._children: dict[int, list[int]] = {}
        for pid, stat in self.stats.items():
            self._children.setdefault(stat.parent, []).append(pid)

    def below(self, pid: int) -> frozenset[int]:
        """The process, its children, their children, and so on."""
        family, waiting = {pid}, [pid]
        while waiting:
            more = [child for child in self._children.get(waiting.pop(), ()) if child not in family]
            family.update(more)
            waiting += more
        return frozenset(family)

    def cpu_ticks(self, pids: Iterable[int]) -> CpuTicks:
        """The processor time that these processes have used since their start."""
        pairs = ((pid, self.stats[pid]) for pid in pids if pid in self.stats)
        return {(pid, stat.start_ticks): stat.cpu_ticks for pid, stat in pairs}


def used_ticks(before: CpuTicks, now: CpuTicks) -> int:
    """Ticks that were used between two looks; for a new process, all of its own."""
    return sum(max(0, ticks - before.get(key, 0)) for key, ticks in now.items())


def _pids(proc: str) -> list[str]:
    try:
        return [name for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return []


class _Opener(NamedTuple):
    """A process that has one of the outputs open."""

    pid: int
    reads: bool


class _Openers(NamedTuple):
    """The processes that have each output open, by the text of its link."""

    by_text: Mapping[str, Sequence[_Opener]]
    is_complete: bool
    """False when some process could not be inspected."""


def ties(proc: str, suspects: Sequence[int], kin: Kin) -> dict[int, Ties]:
    """The ties of each suspect, by its pid."""
    outputs = {pid: _outputs(f"{proc}/{pid}") for pid in suspects}
    texts = {text for links in outputs.values() for text in links or () if _has_openers(text)}
    openers = _openers(proc, texts, kin) if texts else _Openers({}, True)
    left = frozenset(pid for suspect in suspects for pid in kin.below(suspect))
    by_pid = {}
    for pid in suspects:
        stat = kin.stats.get(pid)
        if stat is not None:
            suspect = _Suspect(proc, pid, stat, kin, left)
            words = [*suspect.work(), *suspect.session(), *suspect.outputs(outputs[pid], openers)]
            ports, more = suspect.clients()
            by_pid[pid] = Ties((*words, *more), ports)
    return by_pid


class _Suspect:
    """One process that looks left behind, and what may tie it to a living one."""

    def __init__(self, proc: str, pid: int, stat: Stat, kin: Kin, left: frozenset[int]) -> None:
        """`left` are all suspects and what they started: they do not read each other's output."""
        self._proc, self._pid, self._stat, self._kin, self._left = proc, pid, stat, kin, left
        self._path = f"{proc}/{pid}"
        self._own = kin.below(pid)

    def work(self) -> Iterator[str]:
        """A thread of it that could run at once, or waits for a disk: on a busy machine it works
        although it uses no processor time.
        """
        for pid in sorted(self._own):
            for thread in procfs.threads(f"{self._proc}/{pid}")[:THREADS_MOST]:
                stat = procfs.read_stat(thread)
                if stat is not None and stat.state in _AT_WORK:
                    yield f"{self._named(pid)} waits for {_AT_WORK[stat.state]}"
                    return

    def session(self) -> Iterator[str]:
        """A leader of its session that is alive, and a terminal."""
        leader = self._stat.session
        if leader <= 0:
            yield "whether the leader of its session is alive cannot be seen from this container"
        elif leader != self._pid and (stat := self._kin.stats.get(leader)) and not stat.has_ended:
            yield f"the leader of its session, {self._named(leader)}, is alive"
        terminal = stream_terminal(self._path)
        if terminal or self._stat.has_terminal:
            yield f"it has a terminal, {terminal}" if terminal else "it has a terminal"

    def outputs(self, outputs: Mapping[str, int] | None, openers: _Openers) -> Iterator[str]:
        """Where its standard output and error go, if another process has that open."""
        if outputs is None:
            yield "where its output goes cannot be seen"
            return
        for text, number in outputs.items():
            if text.startswith("pipe:["):
                yield from self._pipe(text, number, openers)
            elif text.startswith("socket:["):
                yield from self._socket(text)
            elif _has_openers(text):
                yield from self._file(text, openers)

    def clients(self) -> tuple[tuple[int, ...], list[str]]:
        """TCP ports on which it listens, and unix sockets in words."""
        own = sockets.sockets_of(self._path)
        ports = None if own is None else sockets.tcp_ports(self._path, own)
        names = None if own is None else sockets.unix_names(self._path, own)
        if ports is None or names is None:
            return ports or (), ["whether it listens for clients cannot be found out"]
        return ports, [f"it listens for clients on the unix socket {name}" for name in names]

    def _pipe(self, text: str, number: int, openers: _Openers) -> Iterator[str]:
        is_read = _is_read(f"{self._path}/fd/{number}")
        if is_read is False:
            return
        readers = [o for o in openers.by_text.get(text, ()) if o.reads]
        others = [o.pid for o in readers if o.pid not in self._own]
        if others:
            yield f"its output goes to a pipe that {self._named(others[0])} reads"
        elif not openers.is_complete or (is_read and not readers):
            yield "its output goes to a pipe, and whether a process reads it cannot be seen"

    def _socket(self, text: str) -> Iterator[str]:
        is_connected = sockets.is_connected(self._path, int(text[8:-1]))
        if is_connected is None:
            yield "its output goes to a socket, and whether that is connected cannot be seen"
        elif is_connected:
            yield "its output goes to a socket that another process has open"

    def _file(self, text: str, openers: _Openers) -> Iterator[str]:
        """Processes that were started together write to one file, which is not a tie."""
        name = clean(text, 80)
        others = [
            o.pid
            for o in openers.by_text.get(text, ())
            if o.pid not in self._own and (o.reads or not self._is_left(o.pid))
        ]
        if others:
            yield f"{self._named(others[0])} has its output {name} open"
        elif not openers.is_complete:
            yield f"whether another process has its output {name} open cannot be seen"

    def _is_left(self, pid: int) -> bool:
        """True for a process that was left behind with it."""
        stat = self._kin.stats.get(pid)
        return pid in self._left or (stat is not None and stat.session == self._stat.session)

    def _named(self, pid: int) -> str:
        comm = clean(procfs.read(f"{self._proc}/{pid}/comm"), 40)
        return f"process {pid}{f' ({comm})' if comm else ''}"


def _outputs(process: str) -> dict[str, int] | None:
    """The descriptor of each output, by the text of its link; None where that cannot be seen."""
    numbers: dict[str, int] = {}
    for number in _OUTPUTS:
        try:
            numbers.setdefault(os.readlink(f"{process}/fd/{number}"), number)
        except FileNotFoundError:
            continue  # closed
        except OSError:
            return None
    return numbers


def _has_openers(text: str) -> bool:
    """True if it matters which other processes have it open. A terminal and the other end of a
    socket are found in other ways.
    """
    return not text.startswith(("socket:[", *_NOWHERE, *TERMINALS))


def _is_read(link: str) -> bool | None:
    """Whether any process has the other end of a pipe open, which the kernel tells a writer. None
    where we may not write to it. Nothing is written, and nothing but a pipe is opened.
    """
    try:
        handle = os.open(link, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not modes.S_ISFIFO(os.fstat(handle).st_mode):
            return None  # it has become another file
        pipe = os.open(f"/proc/self/fd/{handle}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    finally:
        os.close(handle)
    try:
        poll = select.poll()
        poll.register(pipe, 0)
        return not any(events & select.POLLERR for _, events in poll.poll(0))
    finally:
        os.close(pipe)


def _openers(proc: str, texts: set[str], kin: Kin) -> _Openers:
    """One pass over what every process has open."""
    by_text: dict[str, list[_Opener]] = {}
    until_s = time.monotonic() + LOOK_MOST_S
    is_complete = sees_every_process() is True and INIT in kin.stats
    for pid in kin.stats:
        if time.monotonic() > until_s:
            return _Openers(by_text, False)
        try:
            for text, reads in _open_of(f"{proc}/{pid}", texts):
                by_text.setdefault(text, []).append(_Opener(pid, reads))
        except FileNotFoundError:
            continue  # it has ended
        except OSError:
            is_complete = is_complete and pid == INIT  # some machines let nothing inspect it
    return _Openers(by_text, is_complete)


def _open_of(process: str, texts: set[str]) -> Iterator[tuple[str, bool]]:
    """Which of those links a process has open, and whether for reading. Raises OSError."""
    for name in os.listdir(f"{process}/fd"):
        try:
            text = os.readlink(f"{process}/fd/{name}")
        except FileNotFoundError:
            continue
        if text in texts:
            try:
                flags = procfs.flags_and_mount(process, name)[0]
            except OSError:
                flags = os.O_RDWR  # closed meanwhile: it may have been reading
            yield text, flags & os.O_ACCMODE != os.O_WRONLY
