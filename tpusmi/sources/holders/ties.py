"""What still ties a process that has lost who started it to a living one, or may.

What cannot be found out is a tie: whoever may be waited for is left alone.
"""

from __future__ import annotations

import os
import select
import stat as modes
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tpusmi.sources.holders import peers, procfs
from tpusmi.sources.holders.kin import Kin
from tpusmi.sources.holders.life import INIT, TERMINALS, stream_terminal
from tpusmi.sources.holders.procfs import Stat
from tpusmi.sources.holders.scan import sees_everybody
from tpusmi.text import clean

LOOK_MOST_S = 0.5
"""For who else has an output open: a machine may have very many processes."""
_NOWHERE = ("/dev/null", "/dev/zero", "/dev/full")
_OUTPUTS = (1, 2)
THREADS_MOST = 1024
"""Threads of one process that are looked at."""
_AT_WORK = {"R": "the processor", "D": "a disk"}
"""States of threads that do something, and what for they may wait."""


class Ties(NamedTuple):
    """Of one process."""

    words: tuple[str, ...]
    ports: tuple[int, ...]
    """TCP ports on which it listens, on whichever address."""


class _Opener(NamedTuple):
    """A process that has one of the outputs open."""

    pid: int
    reads: bool


class _Openers(NamedTuple):
    """Who has what open, by the text of its link."""

    of: Mapping[str, Sequence[_Opener]]
    is_complete: bool
    """False when some process could not be looked at."""


def ties(proc: str, suspects: Sequence[int], kin: Kin) -> dict[int, Ties]:
    """The ties of each suspect, by its pid."""
    outputs = {pid: _outputs(f"{proc}/{pid}") for pid in suspects}
    wanted = {text for found in outputs.values() for text in found or () if _has_openers(text)}
    openers = _openers(proc, wanted, kin) if wanted else _Openers({}, True)
    left = frozenset(pid for suspect in suspects for pid in kin.below(suspect))
    found = {}
    for pid in suspects:
        stat = kin.stats.get(pid)
        if stat is not None:
            look = _Look(proc, pid, stat, kin, left)
            words = [*look.work(), *look.session(), *look.outputs(outputs[pid], openers)]
            ports, more = look.clients()
            found[pid] = Ties((*words, *more), ports)
    return found


class _Look:
    """At one suspect."""

    def __init__(self, proc: str, pid: int, stat: Stat, kin: Kin, left: frozenset[int]) -> None:
        """`left` are all suspects, and what they started: they wait for nobody's output."""
        self._proc, self._pid, self._stat, self._kin, self._left = proc, pid, stat, kin, left
        self._path = f"{proc}/{pid}"
        self._own = kin.below(pid)

    def work(self) -> Iterator[str]:
        """A thread of its that could go on at once, or waits for a disk: where others take all of
        the processor it works, and uses none of it.
        """
        for pid in sorted(self._own):
            for thread in procfs.threads(f"{self._proc}/{pid}")[:THREADS_MOST]:
                stat = procfs.read_stat(thread)
                if stat is not None and stat.state in _AT_WORK:
                    yield f"{self._named(pid)} waits for {_AT_WORK[stat.state]}"
                    return

    def session(self) -> Iterator[str]:
        """A leader of its session that lives, and a terminal."""
        leader = self._stat.session
        if leader <= 0:
            yield "whether the leader of its session is alive cannot be seen from this container"
        elif leader != self._pid and (found := self._kin.stats.get(leader)) and not found.has_ended:
            yield f"the leader of its session, {self._named(leader)}, is alive"
        terminal = stream_terminal(self._path)
        if terminal or self._stat.has_terminal:
            yield f"it has a terminal{f', {terminal}' if terminal else ''}"

    def outputs(self, outputs: Mapping[str, int] | None, openers: _Openers) -> Iterator[str]:
        """Where its standard output and error go, if somebody has that open."""
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
        own = peers.sockets_of(self._path)
        ports = None if own is None else peers.tcp_ports(self._path, own)
        names = None if own is None else peers.unix_names(self._path, own)
        if ports is None or names is None:
            return ports or (), ["whether it listens for clients cannot be found out"]
        return ports, [f"it listens for clients on the unix socket {name}" for name in names]

    def _pipe(self, text: str, number: int, openers: _Openers) -> Iterator[str]:
        is_read = _is_read(f"{self._path}/fd/{number}")
        if is_read is False:
            return
        readers = [o for o in openers.of.get(text, ()) if o.reads]
        others = [o.pid for o in readers if o.pid not in self._own]
        if others:
            yield f"its output goes to a pipe that {self._named(others[0])} reads"
        elif not openers.is_complete or (is_read and not readers):
            yield "its output goes to a pipe, and whether a process reads it cannot be seen"

    def _socket(self, text: str) -> Iterator[str]:
        is_connected = peers.is_connected(self._path, int(text[8:-1]))
        if is_connected is None:
            yield "its output goes to a socket, and whether that is connected cannot be seen"
        elif is_connected:
            yield "its output goes to a socket that another process has open"

    def _file(self, text: str, openers: _Openers) -> Iterator[str]:
        """Those that were started together write to one file: that they do is no tie."""
        name = clean(text, 80)
        others = [
            o.pid
            for o in openers.of.get(text, ())
            if o.pid not in self._own and (o.reads or not self._is_left(o.pid))
        ]
        if others:
            yield f"{self._named(others[0])} has its output {name} open"
        elif not openers.is_complete:
            yield f"whether another process has its output {name} open cannot be seen"

    def _is_left(self, pid: int) -> bool:
        """True for one that was left behind with it."""
        stat = self._kin.stats.get(pid)
        return pid in self._left or (stat is not None and stat.session == self._stat.session)

    def _named(self, pid: int) -> str:
        comm = clean(procfs.read(f"{self._proc}/{pid}/comm"), 40)
        return f"process {pid}{f' ({comm})' if comm else ''}"


def _outputs(process: str) -> dict[str, int] | None:
    """The descriptor of each output, by the text of its link; None where that may not be seen."""
    found: dict[str, int] = {}
    for number in _OUTPUTS:
        try:
            found.setdefault(os.readlink(f"{process}/fd/{number}"), number)
        except FileNotFoundError:
            continue  # closed
        except OSError:
            return None
    return found


def _has_openers(text: str) -> bool:
    """Whether it matters who else has it open: a terminal and the other end of a socket are found
    otherwise.
    """
    return not text.startswith(("socket:[", *_NOWHERE, *TERMINALS))


def _is_read(link: str) -> bool | None:
    """Whether anybody has the other end of a pipe open: the kernel says so to who may write to it.
    None where we may not. Nothing is written, and nothing but a pipe is opened.
    """
    try:
        handle = os.open(link, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not modes.S_ISFIFO(os.fstat(handle).st_mode):
            return None  # another file by now
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


def _openers(proc: str, wanted: set[str], kin: Kin) -> _Openers:
    """One pass over what everybody has open."""
    found: dict[str, list[_Opener]] = {}
    until_s = time.monotonic() + LOOK_MOST_S
    is_complete = sees_everybody() is True and INIT in kin.stats
    for pid in kin.stats:
        if time.monotonic() > until_s:
            return _Openers(found, False)
        try:
            for text, reads in _open_of(f"{proc}/{pid}", wanted):
                found.setdefault(text, []).append(_Opener(pid, reads))
        except FileNotFoundError:
            continue  # it has ended
        except OSError:
            is_complete = is_complete and pid == INIT  # which nobody may look at in some machines
    return _Openers(found, is_complete)


def _open_of(process: str, wanted: set[str]) -> Iterator[tuple[str, bool]]:
    """Which of the wanted a process has open, and whether for reading. Raises OSError."""
    for name in os.listdir(f"{process}/fd"):
        try:
            text = os.readlink(f"{process}/fd/{name}")
        except FileNotFoundError:
            continue
        if text in wanted:
            yield text, procfs.open_flags(process, name) & os.O_ACCMODE != os.O_WRONLY
