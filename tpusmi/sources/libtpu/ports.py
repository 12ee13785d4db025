"""Which ports may serve libtpu's metrics, and whose they are."""

import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tpusmi.model import Core, Host, Latency, Process, ProcessKey, Reading, Status
from tpusmi.sources.sockets import Listener, listening_sockets, visible_sockets
from tpusmi.wire import identity, places

PORTS_VARIABLE = "TPU_RUNTIME_METRICS_PORTS"
USUAL = range(8431, 8439)
NAMED_MOST = GUESSES_MOST = 16
"""Ports of one holder that are asked: those it names, and those it happens to listen on."""
OF_USER_MOST, OF_OTHERS_MOST = 16, 64
"""Ports that are asked of each user, and of all such users together; root and the user who asks are
not limited. A machine has a server for each chip at most, and asking one takes a thread and
megabytes.
"""
NEVER = frozenset((*range(8470, 8483), 8353, 8466, 9012, 9999))
"""Other services of a TPU host: slice builder, coordinator, vbar agent, profiler."""
CONNECT_S = 0.1
"""The time to connect on this machine: the kernel answers, and only a full backlog takes longer."""
PROCESSES_MOST = 32768
CPU_MOST_S, LOOK_MOST_S = 0.05, 0.1
"""CPU time of one look through the descriptors of a user's processes, and of all in one read."""
AGAIN_S = 10.0
"""The owner of a socket that was not found is looked for again after that."""


class Endpoint(NamedTuple):
    """A port to ask."""

    port: int
    process: ProcessKey | None
    """The holder that listens there; where the kernel does not show it, the one that names it."""
    socket: int | None
    """Inode of the listening socket: another inode means another server."""
    is_guess: bool
    """True when no setting names the port: a holder just happens to listen there."""
    uid: int | None = None
    """The user that owns the socket, as the kernel reports."""
    stranger: int | None = None
    """The process that listens there and holds no TPU; None when that is not certain."""


class ServerReply(NamedTuple):
    """What a server reported last, or why it reported nothing."""

    status: Status
    """ABSENT: nothing listens. FAILED: a process listens, and `message` says what is wrong."""
    message: str = ""
    is_service: bool = True
    """False when what answers is not libtpu."""
    readings: tuple[Reading, ...] = ()
    latencies: tuple[Latency, ...] = ()
    cores: tuple[Core, ...] = ()
    ids: tuple[int, ...] = ()
    """Every device id that the server has reported since we first met it."""
    notes: tuple[str, ...] = ()
    lacks_package: bool = False
    """True where a port listens, and no protobuf is installed here to ask it with."""
    silent_s: float | None = None
    """For how long a server that FAILED has done so."""


class EndpointReply(NamedTuple):
    """An endpoint and the newest reply of the server there."""

    endpoint: Endpoint
    reply: ServerReply


class Endpoints(NamedTuple):
    """The ports to ask, and the holders that cannot be reached."""

    usable: tuple[Endpoint, ...]
    elsewhere: tuple[ProcessKey, ...] = ()
    """Holders in other network namespaces than ours."""
    closed: tuple[ProcessKey, ...] = ()
    """Holders whose descriptors we may not see."""
    unasked: frozenset[ProcessKey] = frozenset()
    """Holders with ports that are not asked because there are too many."""


class SocketOwners:
    """The processes behind sockets that no holder owns, remembered between reads."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._pids: dict[Listener, tuple[int | None, float]] = {}
        self._left_s = LOOK_MOST_S

    def pid(self, listener: Listener) -> int | None:
        """The process that listens there; None when it cannot be seen."""
        pid, at_s = self._pids.get(listener, (None, -math.inf))
        now_s = time.monotonic()
        if pid is None and now_s - at_s >= AGAIN_S and self._left_s > 0:
            began_s = time.thread_time()
            pid = self._find(listener)
            self._left_s -= time.thread_time() - began_s
            self._pids[listener] = (pid, now_s)
        return pid

    def keep(self, listeners: set[Listener]) -> None:
        """Forget all others. The next look has its own time."""
        self._left_s = LOOK_MOST_S
        self._pids = {of: pid for of, pid in self._pids.items() if of in listeners}

    def _find(self, listener: Listener) -> int | None:
        until_s = time.thread_time() + CPU_MOST_S
        for name in places.names(self._proc, PROCESSES_MOST):
            if time.thread_time() > until_s:
                break
            if name.isdigit() and self._is_of(name, listener.uid):
                sockets = visible_sockets(f"{self._proc}/{name}/fd")
                if sockets is not None and listener.inode in sockets:
                    return int(name)
        return None

    def _is_of(self, name: str, uid: int) -> bool:
        """True for a process of that user. Root owns the directories of processes that hide."""
        try:
            owner = os.stat(f"{self._proc}/{name}").st_uid
        except OSError:
            return False
        return owner == uid or (owner == 0 and identity.real_uid(self._proc, int(name)) == uid)


def find(
    host: Host,
    holders: Sequence[Process],
    listening: Mapping[int, Listener] | None,
    owners: SocketOwners,
) -> Endpoints:
    """The ports of every holder that we can reach, then those of the host.

    `listening` are the sockets of this network namespace, by port; None where they are not known.
    """
    near = [p for p in holders if not _is_elsewhere(host, p.pid)]
    sockets = _HolderSockets(host, near)
    named = [port for ports in sockets.named.values() for port in ports] + list(host.metrics_ports)
    guessed = [port for p in near for port in sockets.guesses(p.key, named, listening or {})]
    # The usual ports are asked where a process listens. Their owners may be out of sight, even for
    # root: in a container with the network of its host.
    is_usual = not set(host.metrics_ports).isdisjoint(USUAL)
    usual = [port for port in USUAL if is_usual and port in (listening or {})]
    endpoints = {
        port: sockets.endpoint(port, listening, owners)._replace(is_guess=port not in named)
        for port in (*named, *guessed, *usual)
        if port not in NEVER
    }
    owners.keep(set((listening or {}).values()))
    candidates = [e for e in endpoints.values() if e.stranger is None or not e.is_guess]
    usable = _bounded(candidates, sockets.users)
    return Endpoints(
        tuple(usable),
        elsewhere=tuple(p.key for p in holders if p not in near),
        closed=tuple(key for key, inodes in sockets.inodes.items() if inodes is None),
        unasked=frozenset(
            e.process for e in candidates if e.process is not None and e not in usable
        ),
    )


def _bounded(
    endpoints: Sequence[Endpoint], users: Mapping[ProcessKey, int | None]
) -> dict[Endpoint, None]:
    """The endpoints within the limits. A port on which no process listens has no user."""
    trusted = (0, os.geteuid())
    counts: Counter[int | None] = Counter()
    usable: dict[Endpoint, None] = {}
    for e in endpoints:
        uid = e.uid if e.uid is not None or not e.process else users[e.process]
        if uid not in trusted:
            counts[uid] += 1
            others = sum(count for user, count in counts.items() if user is not None)
            if counts[uid] > OF_USER_MOST or others > OF_OTHERS_MOST:
                counts[uid] -= 1
                continue
        usable[e] = None
    return usable


class _HolderSockets:
    """The sockets that the holders have open, and the ports that they name."""

    def __init__(self, host: Host, near: Sequence[Process]) -> None:
        self.users = {p.key: p.uid for p in near}
        self.named = {p.key: named_ports(p.environment.get(PORTS_VARIABLE, "")) for p in near}
        self.inodes = {p.key: visible_sockets(host.path(f"/proc/{p.pid}/fd")) for p in near}
        # A forked child has its parent's sockets as well: the holder named first keeps them.
        backwards = reversed(self.inodes.items())
        self._owners = {inode: key for key, inodes in backwards for inode in inodes or ()}

    def guesses(
        self, key: ProcessKey, named: Sequence[int], listening: Mapping[int, Listener]
    ) -> list[int]:
        """Ports on which a holder happens to listen, where it listens on none that is named."""
        own = sorted(port for port, it in listening.items() if self._owners.get(it.inode) == key)
        if set(own) & set(named):
            return []
        return [port for port in own if port not in NEVER][:GUESSES_MOST]

    def endpoint(
        self, port: int, listening: Mapping[int, Listener] | None, owners: SocketOwners
    ) -> Endpoint:
        """The port, and the process and user that it belongs to."""
        if listening is None:
            return Endpoint(port, self._only_namer(port), None, is_guess=False)
        listener = listening.get(port)
        if listener is None:
            return Endpoint(port, None, None, is_guess=False)
        owner = self._owners.get(listener.inode) or self._only_namer(port, listener.uid)
        return Endpoint(
            port,
            owner,
            listener.inode,
            is_guess=False,
            uid=listener.uid,
            stranger=None if owner is not None else owners.pid(listener),
        )

    def _only_namer(self, port: int, uid: int | None = None) -> ProcessKey | None:
        """The only holder that names the port. With a user, only that user's holders count whose
        descriptors we may not see: where we can see, the sockets decide.
        """
        keys = [key for key, ports in self.named.items() if port in ports]
        if uid is not None:
            keys = [k for k in keys if self.inodes[k] is None and self.users[k] == uid]
        return keys[0] if len(keys) == 1 else None


def find_own(named: str) -> tuple[Endpoint, ...]:
    """The ports on which this very process serves: of those it names, and of the usual ones."""
    listening = listening_sockets()
    own = visible_sockets("/proc/self/fd") or ()
    ports = dict.fromkeys((*named_ports(named), *USUAL))
    mine = [port for port in ports if listening.get(port) in own]
    return tuple(Endpoint(port, None, listening[port], is_guess=False) for port in mine)


def named_ports(text: str) -> list[int]:
    """The ports in a list such as `8431,8432`; anything else is left out."""
    words = (word.strip() for word in text.split(",")[:NAMED_MOST])
    numbers = (int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 6)
    return [port for port in dict.fromkeys(numbers) if 0 < port < 65536 and port not in NEVER]


def target_of(port: int) -> str | None:
    """The gRPC target of the process that listens on that port here; None when none does."""
    # The C half of `socket`, which itself imports half as much as bare Python does.
    from _socket import AF_INET, AF_INET6, socket

    loopbacks = ((AF_INET, "127.0.0.1", "ipv4:127.0.0.1"), (AF_INET6, "::1", "ipv6:[::1]"))
    for family, host, name in loopbacks:
        try:
            probe = socket(family)
        except OSError:  # no IPv6 here
            continue
        try:
            probe.settimeout(CONNECT_S)
            probe.connect((host, port))
            # A connect to a free port can meet itself: the kernel gave it that very port.
            if probe.getsockname() != probe.getpeername():
                return f"{name}:{port}"
        except TimeoutError:
            return f"{name}:{port}"
        except (OSError, OverflowError):
            continue
        finally:
            probe.close()
    return None


def _is_elsewhere(host: Host, pid: int) -> bool:
    """True when the process is known to live in another network namespace than we do."""
    try:
        return os.readlink(host.path(f"/proc/{pid}/ns/net")) != os.readlink("/proc/self/ns/net")
    except OSError:
        return False
