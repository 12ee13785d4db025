"""libtpu's own metrics, over gRPC and through its SDK."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from itertools import chain

from tpusmi.model import ABSENT, FAILED, LIBTPU, OK, Host, Missing, Outcome, Process, Server, Status
from tpusmi.sources.libtpu.pool import Pool
from tpusmi.sources.libtpu.ports import (
    PORTS_VARIABLE,
    Endpoint,
    EndpointReply,
    ServerReply,
    SocketOwners,
    find,
    named_ports,
)
from tpusmi.sources.sockets import Listener, listeners
from tpusmi.sources.users import user_name
from tpusmi.text import clean, counted

NOTES_MOST = 16
ADDRESSES_VARIABLE = "TPU_PROCESS_ADDRESSES"
_NOT_ASKED = "cannot be asked for its metrics: "
_LO = " can be made (is the loopback interface up?)"


class Libtpu:
    """The metrics servers of this host."""

    name = LIBTPU
    period_s = 1.0

    def __init__(
        self, host: Host, holders: Callable[[], Sequence[Process]], with_programs: bool = False
    ) -> None:
        """`holders` gives the processes that hold a TPU, to find their servers by."""
        self.with_programs = with_programs
        """True also asks what the cores run, which is expensive. May be changed at any time."""
        self._host = host
        self._holders = holders
        self._holding: tuple[Process, ...] = ()
        self._owners = SocketOwners(host.path("/proc"))
        self._endpoints = find(host, (), {}, self._owners)
        self._listening: dict[int, Listener] | None = {}
        self._pool = Pool()
        self._lock = threading.Lock()
        self._lacking: frozenset[str] = frozenset()
        self._has_looked = threading.Event()

    def read(self, now_s: float) -> Outcome:
        """Every server's rows as it names them. ABSENT when nothing serves libtpu's metrics."""
        with self._lock:
            started_s = time.monotonic()
            self._find_endpoints()
            # Where a holder is known, no other process has its numbers.
            usable = self._endpoints.usable
            endpoints = [e for e in usable if e.stranger is None or not self._holding]
            answers = self._pool.ask(endpoints, now_s, self.with_programs)
            self._lacking = _lacking(answers)
            self._has_looked.set()
            return self._outcome(answers, time.monotonic() - started_s)

    def lacking(self, wait_s: float) -> frozenset[str]:
        """The metrics that no server reported at the last look, though one has reported others, or
        could not be asked for because a package is missing. Waits for the first look at most that
        long.
        """
        self._has_looked.wait(wait_s)
        return self._lacking

    def close(self) -> None:
        """Close every connection, unless a read is under way: its deadline ends it."""
        if self._lock.acquire(blocking=False):
            self._pool.close()
            self._lock.release()

    def _find_endpoints(self) -> None:
        """Look through the holders' descriptors when the holders or the listeners have changed."""
        holding = tuple(p for p in self._holders() if p.holds)
        listening = listeners()
        keys = [p.key for p in holding]
        if keys != [p.key for p in self._holding] or listening != self._listening:
            self._endpoints = find(self._host, holding, listening, self._owners)
        self._holding, self._listening = holding, listening

    def _outcome(self, answers: list[EndpointReply], took_s: float) -> Outcome:
        """Everything there is to show. A guessed port that fails is not mentioned."""
        good = [a for a in answers if a.reply.status == OK]
        failed = [a for a in answers if a.reply.status == FAILED and not a.endpoint.is_guess]
        gone = [a for a in answers if a.reply.status == ABSENT and a.reply.readings]
        listed = good + failed + gone
        status, message = self._status(good, failed, answers)
        notes = [note for a in good for note in a.reply.notes]
        notes += [a.reply.message for a in failed + gone if status == OK]
        notes += self._mute_holders(good + failed, answers)
        servers = (*(_server(a) for a in listed), *self._unasked(listed))
        notes += [s.message for s in servers if s.stranger is not None and self._holding]
        return Outcome(
            self.name,
            status,
            message,
            took_s,
            readings=tuple(chain.from_iterable(a.reply.readings for a in listed)),
            latencies=tuple(x for a in listed for x in a.reply.latencies),
            cores=tuple(core for a in good for core in a.reply.cores),
            servers=servers,
            notes=tuple(notes[:NOTES_MOST]),
            missing=self._unreachable(answers),
        )

    def _unasked(self, listed: list[EndpointReply]) -> list[Server]:
        """The ports of strangers, listed without having been asked."""
        ports = {a.endpoint.port for a in listed}
        servers = []
        for e in self._endpoints.usable:
            if e.stranger is not None and e.port not in ports:
                why = f"port {e.port} belongs to {_listener(e)}, which holds no TPU"
                servers.append(_server(EndpointReply(e, ServerReply(ABSENT, why))))
        return servers

    def _status(
        self, good: list[EndpointReply], failed: list[EndpointReply], answers: list[EndpointReply]
    ) -> tuple[Status, str]:
        if good:
            if not any(a.reply.readings or a.reply.latencies for a in good):
                return OK, "no program loaded yet"
            devices = sum(len(a.reply.ids) for a in good)
            return OK, f"{counted(len(good), 'server')}, {counted(devices, 'device')}"
        if failed:
            return FAILED, "; ".join(a.reply.message for a in failed)
        for a in answers:
            if a.reply.lacks_package:
                return ABSENT, f"HBM, duty cycle and more cannot be asked: {a.reply.message}"
        ports = ", ".join(map(str, self._host.metrics_ports))
        return ABSENT, f"nothing serves libtpu metrics{f' on port {ports}' if ports else ''}"

    def _mute_holders(self, listed: list[EndpointReply], answers: list[EndpointReply]) -> list[str]:
        """A sentence for each holder that serves no metrics, as far as that is known."""
        serving = {a.endpoint.process for a in listed}
        return [
            f"pid {p.pid} {self._why_mute(p, answers)}"
            for p in self._holding
            if p.key in self._endpoints.elsewhere
            or not (p.key in serving or self._may_serve(p, listed))
        ]

    def _may_serve(self, process: Process, listed: list[EndpointReply]) -> bool:
        """True when a server whose process cannot be seen may belong to that process."""
        if self._listening is not None and process.key not in self._endpoints.closed:
            return False
        unowned = [
            a.endpoint for a in listed if a.endpoint.process is None and a.endpoint.stranger is None
        ]
        return any(e.uid in (None, process.uid) for e in unowned)

    def _unreachable(self, answers: list[EndpointReply]) -> tuple[Missing, ...]:
        """An entry for each holder that we cannot ask: its server's numbers are not known."""
        reasons = ((p, self._in_our_way(p, answers)) for p in self._holding)
        return tuple(
            Missing(self.name, f"pid {p.pid} {why}", p.uid, p.key) for p, why in reasons if why
        )

    def _in_our_way(self, process: Process, answers: list[EndpointReply]) -> str:
        """What keeps us from asking a holder's server; empty when nothing does."""
        if process.key in self._endpoints.elsewhere:
            return "is in another network namespace: its metrics cannot be reached from here"
        if process.key in self._endpoints.unasked:
            return f"{_NOT_ASKED}holders have too many ports"
        named = named_ports(process.environment.get(PORTS_VARIABLE, ""))
        for endpoint, reply in answers:
            is_own = endpoint.process == process.key
            if reply.lacks_package and (is_own or endpoint.port in named):
                return f"{_NOT_ASKED}{reply.message}"
            listener = (self._listening or {}).get(endpoint.port)  # else the server has ended
            if reply.status == ABSENT and is_own and listener and listener.inode == endpoint.socket:
                return f"{_NOT_ASKED}no connection to port {endpoint.port}{_LO}"
        return ""

    def _why_mute(self, process: Process, answers: list[EndpointReply]) -> str:
        """Why a holder reports nothing: our own obstacles first, then its settings."""
        if why := self._in_our_way(process, answers):
            return why
        variable = process.environment.get(PORTS_VARIABLE, "")
        if process.environment.get(ADDRESSES_VARIABLE) == "local":
            return f"serves no metrics: {ADDRESSES_VARIABLE}=local"
        named = named_ports(variable)
        for e in self._endpoints.usable:
            if e.process != process.key and e.port in named and e.socket:
                return f"serves no metrics: {_listener(e)} listens on its port {e.port}"
        if variable:
            return f"serves no metrics: nothing listens on {PORTS_VARIABLE}={clean(variable, 80)}"
        unset = _may_read_variables(self._host, process)
        return "serves no metrics" + (f": {PORTS_VARIABLE} is not set" if unset else "")


def _lacking(answers: list[EndpointReply]) -> frozenset[str]:
    own = [a.reply for a in answers if a.endpoint.stranger is None and a.reply.status != ABSENT]
    metrics = {r.metric for reply in own for r in reply.readings}
    reported = {metric.partition(".")[0] for metric in metrics}
    reported |= {latency.name for reply in own for latency in reply.latencies}
    if not reported and not any(a.reply.lacks_package for a in answers):
        return frozenset()
    from tpusmi.sources.libtpu.names import NAMES

    return frozenset(n.metric for n in NAMES if n.grpc and n.metric not in reported)


def _server(answer: EndpointReply) -> Server:
    endpoint, reply = answer
    return Server(
        address=f"localhost:{endpoint.port}",
        process=endpoint.process,
        ids=reply.ids,
        status=reply.status,
        message=reply.message,
        is_service=reply.is_service,
        uid=endpoint.uid,
        user=None if endpoint.uid is None else user_name(endpoint.uid),
        stranger=endpoint.stranger,
        silent_s=reply.silent_s,
    )


def _listener(endpoint: Endpoint) -> str:
    """The process that listens there, as far as the kernel tells."""
    if endpoint.uid is None:
        return "another process"
    if endpoint.stranger is None:
        return f"another process, of user {user_name(endpoint.uid)},"
    return f"pid {endpoint.stranger} of user {user_name(endpoint.uid)}"


def _may_read_variables(host: Host, process: Process) -> bool:
    """False where no variables are known because they cannot be read."""
    try:
        os.close(os.open(host.path(f"/proc/{process.pid}/environ"), os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return bool(process.environment)
    return True
