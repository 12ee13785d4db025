"""libtpu's own metrics, over gRPC and through its SDK."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

from tpusmi.model import ABSENT, FAILED, LIBTPU, OK, Host, Missing, Outcome, Process, Server, Status
from tpusmi.sources.libtpu.channel import AnyChannel, connected
from tpusmi.sources.libtpu.client import Told
from tpusmi.sources.libtpu.memory import Memory
from tpusmi.sources.libtpu.names import NAMES
from tpusmi.sources.libtpu.pool import Answered, Pool
from tpusmi.sources.libtpu.ports import PORTS_VARIABLE, Place, find, named_ports
from tpusmi.sources.libtpu.strangers import Strangers
from tpusmi.sources.sockets import Listener, listeners
from tpusmi.sources.users import user_name
from tpusmi.text import clean, counted

NOTES_MOST = 16
ADDRESSES_VARIABLE = "TPU_PROCESS_ADDRESSES"
_LO = " can be made (is the loopback interface up?)"


class Libtpu:
    """The metrics servers of this host."""

    name = LIBTPU
    period_s = 1.0

    def __init__(
        self,
        host: Host,
        holders: Callable[[], Sequence[Process]],
        with_programs: bool = False,
        connect: Callable[[str], AnyChannel] = connected,
    ) -> None:
        """`holders` gives the processes that hold a TPU, to find their servers by."""
        self.with_programs = with_programs
        """True asks what the cores run, too: expensive. May be changed at any time."""
        self._host = host
        self._holders = holders
        self._holding: tuple[Process, ...] = ()
        self._strangers = Strangers(host.path("/proc"))
        self._found = find(host, (), {}, self._strangers)
        self._listening: dict[int, Listener] | None = {}
        self._pool = Pool(connect=connect)
        self._memory = Memory()
        self._lock = threading.Lock()
        self._lacking: frozenset[str] = frozenset()
        self._has_looked = threading.Event()

    def read(self, now_s: float) -> Outcome:
        """Every server's rows as it names them. ABSENT when nothing serves libtpu's metrics."""
        with self._lock:
            started_s = time.monotonic()
            self._look_for_places()
            # Where a holder is known, no other process has its numbers.
            asked = [p for p in self._found.places if p.stranger is None or not self._holding]
            answered = self._pool.ask(asked, now_s, self.with_programs)
            self._lacking = _lacking(answered)
            self._has_looked.set()
            completed = self._memory.completed(answered, now_s)
            return self._outcome(completed, time.monotonic() - started_s)

    def lacking(self, wait_s: float) -> frozenset[str]:
        """The metrics that no server told at the last look, though one has told others, or could
        not be asked for want of a package. Waits for the first look, but no longer than that.
        """
        self._has_looked.wait(wait_s)
        return self._lacking

    def close(self) -> None:
        """Close every connection, unless a read is under way: its deadline ends it."""
        if self._lock.acquire(blocking=False):
            self._pool.close()
            self._lock.release()

    def _look_for_places(self) -> None:
        """Look through the descriptors of the holders, when they or who listens have changed."""
        holding = tuple(p for p in self._holders() if p.holds)
        listening = listeners()
        keys = [p.key for p in holding]
        if keys != [p.key for p in self._holding] or listening != self._listening:
            self._found = find(self._host, holding, listening, self._strangers)
        self._holding, self._listening = holding, listening

    def _outcome(self, answered: list[Answered], took_s: float) -> Outcome:
        """What there is to show: a port that was only guessed is not missed."""
        told = [a for a in answered if a.told.status == OK]
        failed = [a for a in answered if a.told.status == FAILED and not a.place.is_guess]
        gone = [a for a in answered if a.told.status == ABSENT and a.told.readings]
        shown = told + failed + gone
        status, message = self._status(told, failed, answered)
        notes = [note for a in told for note in a.told.notes]
        notes += [a.told.message for a in failed if status == OK]
        notes += [a.told.message for a in gone if status == OK]
        notes += self._mute_holders(told + failed, answered)
        servers = (*(_server(a) for a in shown), *self._unasked(shown))
        notes += [s.message for s in servers if s.stranger is not None and self._holding]
        return Outcome(
            self.name,
            status,
            message,
            took_s,
            readings=tuple(r for a in shown for r in a.told.readings),
            latencies=tuple(found for a in shown for found in a.told.latencies),
            cores=tuple(core for a in told for core in a.told.cores),
            servers=servers,
            notes=tuple(notes[:NOTES_MOST]),
            missing=self._unreachable(answered),
        )

    def _unasked(self, shown: list[Answered]) -> list[Server]:
        """The ports of strangers, named without having been asked."""
        ports = {a.place.port for a in shown}
        silent = [p for p in self._found.places if p.stranger is not None and p.port not in ports]
        return [_server(Answered(p, Told(ABSENT, _stranger(p)))) for p in silent]

    def _status(
        self, told: list[Answered], failed: list[Answered], answered: list[Answered]
    ) -> tuple[Status, str]:
        if told:
            if not any(a.told.readings or a.told.latencies for a in told):
                return OK, "no program loaded yet"
            devices = sum(len(a.told.ids) for a in told)
            return OK, f"{counted(len(told), 'server')}, {counted(devices, 'device')}"
        if failed:
            return FAILED, "; ".join(a.told.message for a in failed)
        missing = [a.told.message for a in answered if a.told.lacks_package]
        ports = ", ".join(map(str, self._host.metrics_ports))
        nothing = f"nothing serves libtpu metrics{f' on port {ports}' if ports else ''}"
        cannot = "HBM, duty cycle and more cannot be asked"
        return ABSENT, f"{cannot}: {missing[0]}" if missing else nothing

    def _mute_holders(self, shown: list[Answered], answered: list[Answered]) -> list[str]:
        """A sentence for each holder that serves no metrics, as far as that is known."""
        serving = {a.place.process for a in shown}
        return [
            f"pid {p.pid} {self._why_mute(p, answered)}"
            for p in self._holding
            if p.key in self._found.elsewhere or not (p.key in serving or self._may_serve(p, shown))
        ]

    def _may_serve(self, process: Process, shown: list[Answered]) -> bool:
        """True when a server whose process cannot be seen may be that one's."""
        places = [a.place for a in shown if a.place.process is None and a.place.stranger is None]
        if self._listening is not None and process.key not in self._found.closed:
            return False
        return any(place.uid in (None, process.uid) for place in places)

    def _unreachable(self, answered: list[Answered]) -> tuple[Missing, ...]:
        """A witness of each holder that we cannot ask: what its server would say is not known."""
        found = ((p, self._in_our_way(p, answered)) for p in self._holding)
        return tuple(
            Missing(self.name, f"pid {p.pid} {why}", p.uid, p.key) for p, why in found if why
        )

    def _in_our_way(self, process: Process, answered: list[Answered]) -> str:
        """What keeps us from asking a holder's server; empty when nothing does."""
        if process.key in self._found.elsewhere:
            return "is in another network namespace: its metrics cannot be reached from here"
        if process.key in self._found.unasked:
            return "cannot be asked for its metrics: holders have too many ports"
        named = named_ports(process.environment.get(PORTS_VARIABLE, ""))
        for a in answered:
            is_its = a.place.process == process.key or a.place.port in named
            if is_its and a.told.lacks_package:
                return f"cannot be asked for its metrics: {a.told.message}"
            if a.place.process == process.key and a.place.socket and a.told.status == ABSENT:
                return f"cannot be asked for its metrics: no connection to port {a.place.port}{_LO}"
        return ""

    def _why_mute(self, process: Process, answered: list[Answered]) -> str:
        """Why nothing is known of a holder: what stands in our way comes before its own doing."""
        if why := self._in_our_way(process, answered):
            return why
        named = named_ports(process.environment.get(PORTS_VARIABLE, ""))
        if process.environment.get(ADDRESSES_VARIABLE) == "local":
            return f"serves no metrics: {ADDRESSES_VARIABLE}=local"
        places = (place for place in self._found.places if place.process != process.key)
        taken = [place for place in places if place.port in named and place.socket]
        if taken:
            return f"serves no metrics: {_listener(taken[0])} listens on its port {taken[0].port}"
        return _unserved(self._host, process)


def _lacking(answered: list[Answered]) -> frozenset[str]:
    own = [a.told for a in answered if a.place.stranger is None]
    told = {r.metric.partition(".")[0] for it in own for r in it.readings}
    told |= {latency.name for it in own for latency in it.latencies}
    is_asked = bool(told) or any(a.told.lacks_package for a in answered)
    return frozenset(n.metric for n in NAMES if n.grpc and n.metric not in told if is_asked)


def _server(answered: Answered) -> Server:
    place, told = answered
    address = f"localhost:{place.port}"
    user = None if place.uid is None else user_name(place.uid)
    return Server(
        address=address,
        process=place.process,
        ids=told.ids,
        status=told.status,
        message=told.message,
        is_service=told.is_service,
        uid=place.uid,
        user=user,
        stranger=place.stranger,
    )


def _stranger(place: Place) -> str:
    return f"port {place.port} belongs to {_listener(place)}, which holds no TPU"


def _listener(place: Place) -> str:
    """Who listens there, as far as the kernel tells."""
    if place.uid is None:
        return "another process"
    if place.stranger is None:
        return f"another process, of user {user_name(place.uid)},"
    return f"pid {place.stranger} of user {user_name(place.uid)}"


def _unserved(host: Host, process: Process) -> str:
    ports = process.environment.get(PORTS_VARIABLE)
    if ports:
        return f"serves no metrics: nothing listens on {PORTS_VARIABLE}={clean(ports, 80)}"
    unset = f": {PORTS_VARIABLE} is not set" if _may_read_variables(host, process) else ""
    return f"serves no metrics{unset}"


def _may_read_variables(host: Host, process: Process) -> bool:
    """False where none are known because they cannot be read, and not because there are none."""
    try:
        os.close(os.open(host.path(f"/proc/{process.pid}/environ"), os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return bool(process.environment)
    return True
