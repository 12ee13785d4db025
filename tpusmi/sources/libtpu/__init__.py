"""libtpu's own metrics, over gRPC and through its SDK."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from tpusmi.model import ABSENT, FAILED, LIBTPU, OK, Host, Missing, Outcome, Process, Server
from tpusmi.sources.libtpu.channel import AnyChannel, Channel
from tpusmi.sources.libtpu.client import NOT_INSTALLED
from tpusmi.sources.libtpu.memory import Memory
from tpusmi.sources.libtpu.pool import Answered, Pool
from tpusmi.sources.libtpu.ports import PORTS_VARIABLE, find, named_ports
from tpusmi.sources.sockets import listening_sockets
from tpusmi.text import clean

NOTES_MOST = 16
ADDRESSES_VARIABLE = "TPU_PROCESS_ADDRESSES"


class Libtpu:
    """The metrics servers of this host."""

    name = LIBTPU
    period_s = 1.0

    def __init__(
        self,
        host: Host,
        holders: Callable[[], Sequence[Process]],
        with_programs: bool = False,
        connect: Callable[[str], AnyChannel] = Channel,
    ) -> None:
        """`holders` gives the processes that hold a TPU, to find their servers by."""
        self.with_programs = with_programs
        """True asks what the cores run, too: expensive. May be changed at any time."""
        self._host = host
        self._holders = holders
        self._holding: tuple[Process, ...] = ()
        self._found = find(host, (), {})
        self._listening: dict[int, int] = {}
        self._pool = Pool(connect=connect)
        self._memory = Memory()
        self._lock = threading.Lock()

    def read(self, now_s: float) -> Outcome:
        """Every server's rows as it names them. ABSENT when nothing serves libtpu's metrics."""
        with self._lock:
            started_s = time.monotonic()
            self._look_for_places()
            answered = self._pool.ask(self._found.places, now_s, self.with_programs)
            completed = self._memory.completed(answered, now_s)
            return self._outcome(completed, time.monotonic() - started_s)

    def close(self) -> None:
        """Close every connection, unless a read is under way: its deadline ends it."""
        if self._lock.acquire(blocking=False):
            self._pool.close()
            self._lock.release()

    def _look_for_places(self) -> None:
        """Look through the descriptors of the holders, when they or who listens have changed."""
        holding = tuple(p for p in self._holders() if p.holds)
        listening = listening_sockets()
        keys = [p.key for p in holding]
        if keys != [p.key for p in self._holding] or listening != self._listening:
            self._found = find(self._host, holding, listening)
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
        return Outcome(
            self.name,
            status,
            message,
            took_s,
            readings=tuple(r for a in shown for r in a.told.readings),
            latencies=tuple(found for a in shown for found in a.told.latencies),
            cores=tuple(core for a in told for core in a.told.cores),
            servers=tuple(_server(a) for a in shown),
            notes=tuple(notes[:NOTES_MOST]),
            missing=self._unreachable(answered),
        )

    def _status(
        self, told: list[Answered], failed: list[Answered], answered: list[Answered]
    ) -> tuple[str, str]:
        if told:
            if not any(a.told.readings or a.told.latencies for a in told):
                return OK, "no program loaded yet"
            devices = sum(len(a.told.ids) for a in told)
            return OK, f"{_count(len(told), 'server')}, {_count(devices, 'device')}"
        if failed:
            return FAILED, "; ".join(a.told.message for a in failed)
        missing = [_with_cure(a.told.message) for a in answered if _lacks_package(a)]
        ports = ", ".join(map(str, self._host.metrics_ports))
        nothing = f"nothing serves libtpu metrics{f' on port {ports}' if ports else ''}"
        return ABSENT, missing[0] if missing else nothing

    def _mute_holders(self, shown: list[Answered], answered: list[Answered]) -> list[str]:
        """A sentence for each holder that serves no metrics, as far as that is known."""
        serving = {a.place.process for a in shown}
        return [
            f"pid {p.pid} {self._why_mute(p, answered)}"
            for p in self._holding
            # A server that is nobody's may be anybody's, except of those who cannot be reached.
            if p.key in self._found.elsewhere or not serving & {p.key, None}
        ]

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
        named = named_ports(process.environment.get(PORTS_VARIABLE, ""))
        for a in answered:
            if _lacks_package(a) and (a.place.process == process.key or a.place.port in named):
                return f"cannot be asked for its metrics: {a.told.message}"
        return ""

    def _why_mute(self, process: Process, answered: list[Answered]) -> str:
        """Why nothing is known of a holder: what stands in our way comes before its own doing."""
        if why := self._in_our_way(process, answered):
            return why
        named = named_ports(process.environment.get(PORTS_VARIABLE, ""))
        if process.environment.get(ADDRESSES_VARIABLE) == "local":
            return f"serves no metrics: {ADDRESSES_VARIABLE}=local"
        taken = [port for port in named if port in self._listening]
        if taken:
            return f"serves no metrics: another process listens on its port {taken[0]}"
        return _unserved(process)


def _server(answered: Answered) -> Server:
    place, told = answered
    address = f"localhost:{place.port}"
    return Server(address, place.process, told.ids, told.status, told.message, told.is_service)


def _lacks_package(answered: Answered) -> bool:
    """True for a port that listens, and that we have no package to ask with."""
    return answered.told.message.endswith(NOT_INSTALLED)


def _with_cure(message: str) -> str:
    package = message.removesuffix(NOT_INSTALLED)
    return f"{message}: HBM, duty cycle and more cannot be asked (pip install {package})"


def _unserved(process: Process) -> str:
    ports = process.environment.get(PORTS_VARIABLE)
    if ports:
        return f"serves no metrics: nothing listens on {PORTS_VARIABLE}={clean(ports, 80)}"
    unset = f": {PORTS_VARIABLE} is not set" if process.environment else ""
    return f"serves no metrics{unset}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
