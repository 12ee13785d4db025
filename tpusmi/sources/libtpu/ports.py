"""Which ports may serve libtpu's metrics, and whose they are."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tpusmi.model import Host, Process, ProcessKey
from tpusmi.sources.libtpu.strangers import Strangers
from tpusmi.sources.sockets import Listener, listening_sockets, open_sockets, visible_sockets

PORTS_VARIABLE = "TPU_RUNTIME_METRICS_PORTS"
USUAL = range(8431, 8439)
NAMED_MOST = GUESSES_MOST = 16
"""Ports of one holder that are asked: those it names, and those it happens to listen on."""
OF_USER_MOST, OF_OTHERS_MOST = 16, 64
"""Ports of a user that are asked, and of all such users: of any but root and the one who asks. A
machine has a server for each chip at most, and asking one takes a thread and megabytes.
"""
NEVER = frozenset((*range(8470, 8483), 8353, 8466, 9012, 9999))
"""Other services of a TPU host: slice builder, coordinator, vbar agent, profiler."""


class Place(NamedTuple):
    """A port to ask."""

    port: int
    process: ProcessKey | None
    """The holder that listens there. Where the kernel does not tell, the one that names it."""
    socket: int | None
    """Inode of the listening socket: another one is another server."""
    is_guess: bool
    """True when nobody named it: a holder just happens to listen there."""
    uid: int | None = None
    """Whose socket it is, by the kernel."""
    stranger: int | None = None
    """The process that listens there and holds no TPU; None when that is not certain."""


class Found(NamedTuple):
    """The ports to ask, and the holders that cannot be reached."""

    places: tuple[Place, ...]
    elsewhere: tuple[ProcessKey, ...] = ()
    """In other network namespaces than ours."""
    closed: tuple[ProcessKey, ...] = ()
    """Holders whose descriptors we may not see."""
    unasked: frozenset[ProcessKey] = frozenset()
    """Holders with ports that are not asked: there are too many."""


def find(
    host: Host,
    holders: Sequence[Process],
    listening: Mapping[int, Listener] | None,
    strangers: Strangers,
) -> Found:
    """The ports of every holder that we can reach, then those of the host.

    `listening` are the sockets of this network namespace, by port; None where it is not told.
    """
    near = [p for p in holders if not _is_elsewhere(host, p.pid)]
    seen = _Holders(host, near)
    told = [port for ports in seen.named.values() for port in ports] + list(host.metrics_ports)
    guessed = [port for p in near for port in seen.guesses(p.key, told, listening or {})]
    usual = _usual(host, listening or {})
    places = {
        port: seen.place(port, listening, strangers)._replace(is_guess=port not in told)
        for port in (*told, *guessed, *usual)
        if port not in NEVER
    }
    strangers.keep(set((listening or {}).values()))
    wanted = [p for p in places.values() if p.stranger is None or not p.is_guess]
    asked = _bounded(wanted, seen.users)
    return Found(
        tuple(asked),
        tuple(p.key for p in holders if p not in near),
        tuple(key for key, sockets in seen.sockets.items() if sockets is None),
        frozenset(p.process for p in wanted if p.process is not None and p not in asked),
    )


def _bounded(places: Sequence[Place], users: Mapping[ProcessKey, int | None]) -> dict[Place, None]:
    """Those within the limits. A port on which nothing listens has no user."""
    trusted = (0, os.geteuid())
    counts: Counter[int | None] = Counter()
    asked: dict[Place, None] = {}
    for place in places:
        uid = place.uid if place.uid is not None or not place.process else users[place.process]
        if uid not in trusted:
            counts[uid] += 1
            others = sum(count for user, count in counts.items() if user is not None)
            if counts[uid] > OF_USER_MOST or others > OF_OTHERS_MOST:
                counts[uid] -= 1
                continue
        asked[place] = None
    return asked


class _Holders:
    """The holders, the sockets that they have open, and the ports that they name."""

    def __init__(self, host: Host, near: Sequence[Process]) -> None:
        self.users = {p.key: p.uid for p in near}
        self.named = {p.key: named_ports(p.environment.get(PORTS_VARIABLE, "")) for p in near}
        self.sockets = {p.key: visible_sockets(host.path(f"/proc/{p.pid}/fd")) for p in near}
        # A forked child has its parent's sockets, too: the holder that is named first keeps them.
        every = reversed(self.sockets.items())
        self._owners = {inode: key for key, inodes in every for inode in inodes or ()}

    def guesses(
        self, key: ProcessKey, told: Sequence[int], listening: Mapping[int, Listener]
    ) -> list[int]:
        """Ports on which it happens to listen, where it listens on none that is told."""
        own = sorted(port for port, it in listening.items() if self._owners.get(it.inode) == key)
        if set(own) & set(told):
            return []
        return [port for port in own if port not in NEVER][:GUESSES_MOST]

    def place(
        self, port: int, listening: Mapping[int, Listener] | None, strangers: Strangers
    ) -> Place:
        """The port, and whose it is."""
        if listening is None:
            return Place(port, self._only_namer(port), None, False)
        found = listening.get(port)
        if found is None:
            return Place(port, None, None, False)
        owner = self._owners.get(found.inode) or self._only_namer(port, found.uid)
        stranger = None if owner is not None else strangers.pid(found)
        return Place(port, owner, found.inode, False, found.uid, stranger)

    def _only_namer(self, port: int, uid: int | None = None) -> ProcessKey | None:
        """The only holder that names the port. With a user, of those alone that are that user's and
        whose descriptors we may not see: what we see decides.
        """
        keys = [key for key, ports in self.named.items() if port in ports]
        if uid is not None:
            keys = [k for k in keys if self.sockets[k] is None and self.users[k] == uid]
        return keys[0] if len(keys) == 1 else None


def _usual(host: Host, listening: Mapping[int, Listener]) -> list[int]:
    """Of the usual ports those that listen: their owners may be out of sight, also of root's, who
    is in a container with the network of its host.
    """
    if not set(host.metrics_ports) & set(USUAL):
        return []
    return [port for port in USUAL if port in listening]


def find_own(named: str) -> tuple[Place, ...]:
    """The ports on which this very process serves: of those it names, and of the usual ones."""
    listening = listening_sockets()
    own = open_sockets("/proc/self/fd")
    ports = dict.fromkeys((*named_ports(named), *USUAL))
    mine = [port for port in ports if listening.get(port) in own]
    return tuple(Place(port, None, listening[port], is_guess=False) for port in mine)


def named_ports(text: str) -> list[int]:
    """The ports in a list such as `8431,8432`; what is not a port is left out."""
    words = (word.strip() for word in text.split(",")[:NAMED_MOST])
    numbers = (int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 6)
    return [port for port in dict.fromkeys(numbers) if 0 < port < 65536 and port not in NEVER]


def _is_elsewhere(host: Host, pid: int) -> bool:
    """True when the process is known to live in another network namespace than we do."""
    try:
        return os.readlink(host.path(f"/proc/{pid}/ns/net")) != os.readlink("/proc/self/ns/net")
    except OSError:
        return False
