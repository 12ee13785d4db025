"""Which ports may serve libtpu's metrics, and whose they are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tpusmi.model import Host, Process, ProcessKey
from tpusmi.sources.sockets import listening_sockets, open_sockets

PORTS_VARIABLE = "TPU_RUNTIME_METRICS_PORTS"
USUAL = range(8431, 8439)
NAMED_MOST = GUESSES_MOST = 16
"""Ports of one holder that are asked: those it names, and those it happens to listen on."""
NEVER = frozenset((*range(8470, 8483), 8353, 8466, 9012, 9999))
"""Other services of a TPU host: slice builder, coordinator, vbar agent, profiler."""


class Place(NamedTuple):
    """A port to ask."""

    port: int
    process: ProcessKey | None
    """Who listens there; if that cannot be seen, who names it in its environment."""
    socket: int | None
    """Inode of the listening socket: another one is another server."""
    is_guess: bool
    """True when nobody named it: a holder just happens to listen there."""


class Found(NamedTuple):
    """The ports to ask, and the holders that cannot be reached."""

    places: tuple[Place, ...]
    elsewhere: tuple[ProcessKey, ...] = ()
    """In other network namespaces than ours."""


def find(host: Host, holders: Sequence[Process], listening: Mapping[int, int]) -> Found:
    """The ports of every holder that we can reach, then those of the host.

    `listening` are the sockets of this network namespace, by port.
    """
    near = [p for p in holders if not _is_elsewhere(host, p.pid)]
    # A forked child has its parent's sockets, too: the holder that is named first keeps them.
    fds = ((p.key, host.path(f"/proc/{p.pid}/fd")) for p in reversed(near))
    owners = {inode: key for key, path in fds for inode in open_sockets(path)}
    named = {p.key: named_ports(p.environment.get(PORTS_VARIABLE, "")) for p in near}
    told = [port for ports in named.values() for port in ports] + list(host.metrics_ports)
    guessed: list[int] = []
    for p in near:
        own = sorted(port for port, inode in listening.items() if owners.get(inode) == p.key)
        if not set(own) & set(told):
            guessed += [port for port in own if port not in NEVER][:GUESSES_MOST]
    places = {
        port: Place(
            port,
            owners.get(listening.get(port, -1)) or _only_namer(named, port),
            listening.get(port),
            is_guess=port not in told,
        )
        for port in (*told, *guessed)
        if port not in NEVER
    }
    return Found(tuple(places.values()), tuple(p.key for p in holders if p not in near))


def find_own(named: str) -> tuple[Place, ...]:
    """The ports on which this very process serves: of those it names, and of the usual ones."""
    listening = listening_sockets()
    own = open_sockets("/proc/self/fd")
    ports = dict.fromkeys((*named_ports(named), *USUAL))
    mine = [port for port in ports if listening.get(port) in own]
    return tuple(Place(port, None, listening[port], is_guess=False) for port in mine)


def named_ports(text: str) -> list[int]:
    """The ports in a list such as `8431,8432`; what is no port is left out."""
    words = (word.strip() for word in text.split(",")[:NAMED_MOST])
    numbers = (int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 6)
    return [port for port in dict.fromkeys(numbers) if 0 < port < 65536 and port not in NEVER]


def _only_namer(named: dict[ProcessKey, list[int]], port: int) -> ProcessKey | None:
    keys = [key for key, ports in named.items() if port in ports]
    return keys[0] if len(keys) == 1 else None


def _is_elsewhere(host: Host, pid: int) -> bool:
    """True when the process is known to live in another network namespace than we do."""
    try:
        return os.readlink(host.path(f"/proc/{pid}/ns/net")) != os.readlink("/proc/self/ns/net")
    except OSError:
        return False
