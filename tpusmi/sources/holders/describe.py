"""The processes that a pass has found, as the model knows them."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tpusmi.model import Life, Process, ProcessKey
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.life import ancestors, life_of
from tpusmi.sources.holders.procfs import Stat
from tpusmi.sources.holders.suspects import Suspects
from tpusmi.sources.users import user_name

AGAIN_S = 2.0
"""What a process says of itself is read again after that."""
SLOW_AGAIN_S = 30.0
"""What takes a look at every descriptor, after that."""
SLICE_PORT_VARIABLE = "TPU_PROCESS_PORT"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.sources.holders.usage import Meter
else:
    Meter = object  # loaded where there is something to measure


class _Slow(NamedTuple):
    """What takes long to ask."""

    at_s: float
    ancestors: tuple[tuple[int, str], ...]
    ports: tuple[int, ...]


class _Known(NamedTuple):
    """A process as it was described last."""

    process: Process
    at_s: float
    launcher: int
    """The parent that it was first seen with."""
    asleep_since_s: float | None
    """Since when it has been seen in uninterruptible sleep, and nothing else."""
    words: tuple[str, ...]
    """Its command line."""
    meter: Meter | None
    slow: _Slow | None


class Describer:
    """Remembers each process: who started it, since when it sleeps, what it used before."""

    def __init__(self, proc: str, detailed: bool, older_s: float = 0.0) -> None:
        """`older_s` is how much older they are than the kernel says."""
        self._proc = proc
        self._detailed = detailed
        self._older_s = older_s
        self._known: dict[ProcessKey, _Known] = {}
        self._suspects = Suspects(proc)
        self._listening: dict[int, int] | None = None
        """Which socket listens on each port, once it was asked in a look."""

    def processes(
        self, holders: Mapping[int, tuple[str, ...]], loaded: Iterable[int], now_s: float
    ) -> tuple[Process, ...]:
        """Those that have only loaded libtpu, then the holders."""
        before, self._known, self._listening = self._known, {}, None
        wanted = {**dict.fromkeys(loaded, ()), **holders}
        for pid, held in wanted.items():
            stat = procfs.read_stat(f"{self._proc}/{pid}")
            if stat is None or stat.is_gone:
                continue
            if not held and _is_our_reader(f"{self._proc}/{pid}", stat):
                continue
            key = ProcessKey(pid, stat.start_ticks)
            known = before.get(key)
            if known is not None and stat.state != "D":
                known = known._replace(asleep_since_s=None)
            if known is None or now_s - known.at_s >= AGAIN_S:
                known = self._described(key, stat, known, now_s)
            process = known.process._replace(holds=held, loaded_only=not held)
            self._known[key] = known._replace(process=process)
        return self.again()

    @property
    def wait_s(self) -> float:
        """So long it takes until it shows whether suspects work; 0 when it has been seen."""
        return self._suspects.wait_s

    def again(self) -> tuple[Process, ...]:
        """The same processes; of suspects with what has shown since."""
        self._suspects.look({key: known.process.life for key, known in self._known.items()})
        return tuple(map(self._with_evidence, self._known.values()))

    def _with_evidence(self, known: _Known) -> Process:
        process = known.process
        if process.life is None:
            return process
        life = self._suspects.told(process.key, process.life)
        return process._replace(life=life._replace(client_ports=_client_ports(process, life)))

    def _described(
        self, key: ProcessKey, stat: Stat, before: _Known | None, now_s: float
    ) -> _Known:
        path = f"{self._proc}/{key.pid}"
        launcher = stat.parent if before is None else before.launcher
        asleep_since_s = before.asleep_since_s if before and stat.state == "D" else None
        if stat.state == "D" and asleep_since_s is None:
            asleep_since_s = now_s
        words, variables = _told(path, stat, before)
        status = procfs.read_status(path)
        asleep_s = 0.0 if asleep_since_s is None else now_s - asleep_since_s
        life = life_of(path, (stat, status), words, launcher, asleep_s, self._older_s)
        meter, slow = (before.meter, before.slow) if before is not None else (None, None)
        if slow is None or now_s - slow.at_s >= SLOW_AGAIN_S:
            slow = self._slow(key.pid, stat, now_s)
        life = life._replace(ports=slow.ports, ancestors=slow.ancestors)
        if self._detailed:
            from tpusmi.sources.holders.usage import Meter

            meter = meter or Meter(self._proc, key.pid)
            life = life._replace(**meter.read(life.age_s)._asdict())
        uid = status.uid
        process = Process(
            key=key,
            user=None if uid is None else user_name(uid),
            command=procfs.command_of(words, path),
            environment=variables,
            life=life,
            uid=uid,
        )
        return _Known(process, now_s, launcher, asleep_since_s, words, meter, slow)

    def _slow(self, pid: int, stat: Stat, now_s: float) -> _Slow:
        from tpusmi.sources.sockets import listening_sockets, open_sockets

        if self._listening is None:  # one table for all of them: any user may make it long
            self._listening = listening_sockets()
        own = open_sockets(f"{self._proc}/{pid}/fd")
        ports = sorted(port for port, inode in self._listening.items() if inode in own)
        above = ancestors(self._proc, stat.parent) if self._detailed else ()
        return _Slow(now_s, above, tuple(ports))


def _told(
    path: str, stat: Stat, before: _Known | None
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Its command line and its variables, from before while it sleeps uninterruptibly: they stand
    in its memory, which may be locked, and who asks then would sleep with it.
    """
    if stat.state != "D":
        return tuple(procfs.arguments(path)), procfs.environment(path)
    return (before.words, before.process.environment) if before is not None else ((), {})


def _is_our_reader(process: str, stat: Stat) -> bool:
    """True for our own child that reads libtpu's SDK."""
    if stat.parent != os.getpid():
        return False
    return any("tpusmi" in word for word in procfs.arguments(process))


def _client_ports(process: Process, life: Life) -> tuple[int, ...]:
    """The ports on which a process listens that libtpu does not."""
    if not life.ports:
        return ()
    from tpusmi.sources.libtpu.ports import NEVER, PORTS_VARIABLE, USUAL, named_ports

    named = (process.environment.get(name, "") for name in (PORTS_VARIABLE, SLICE_PORT_VARIABLE))
    own = {*NEVER, *USUAL, *(port for text in named for port in named_ports(text))}
    return tuple(port for port in life.ports if port not in own)
