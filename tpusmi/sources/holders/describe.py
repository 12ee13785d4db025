"""The processes that a pass has found, as the model knows them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tpusmi.model import ENDING_CODES, Life, Process, ProcessKey
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.life import ancestors, life_of, newest_thread_s
from tpusmi.sources.holders.procfs import Stat
from tpusmi.sources.users import user_name

AGAIN_S = 2.0
"""What a process says of itself is read again after that."""
MOMENT_S = 0.25
"""In so long it shows whether a process works."""
SLOW_AGAIN_S = 30.0
"""What takes a look at every thread and descriptor, after that."""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.sources.holders.usage import Meter


class _Slow(NamedTuple):
    """What takes long to ask."""

    at_s: float
    newest_thread_s: float | None
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

    def __init__(self, proc: str, detailed: bool) -> None:
        self._proc = proc
        self._detailed = detailed
        self._known: dict[ProcessKey, _Known] = {}
        self._cpu: dict[ProcessKey, tuple[float, float]] = {}
        """Of those that look stale: processor time, and when that was."""

    def processes(
        self, holders: Mapping[int, tuple[str, ...]], loaded: Iterable[int], now_s: float
    ) -> tuple[Process, ...]:
        """Those that have only loaded libtpu, then the holders."""
        before, self._known = self._known, {}
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
        self._measure_suspects()
        return tuple(known.process for known in self._known.values())

    def _measure_suspects(self) -> None:
        """What those that look stale use of the processor now: whoever works hard is at work."""
        lives = {key: known.process.life for key, known in self._known.items()}
        suspects = [key for key, life in lives.items() if life is not None and _is_suspect(life)]
        if any(key not in self._cpu for key in suspects):
            self._cpu = {key: self._cpu.get(key) or self._used(key.pid) for key in suspects}
            time.sleep(MOMENT_S)
        for key in suspects:
            known, (before_s, at_s) = self._known[key], self._cpu[key]
            used_s, now_s = self._used(key.pid)
            assert known.process.life is not None
            if now_s - at_s >= MOMENT_S:
                percent = 100 * max(0.0, used_s - before_s) / (now_s - at_s)
                life = known.process.life._replace(recent_cpu_percent=percent)
                self._known[key] = known._replace(process=known.process._replace(life=life))
                self._cpu[key] = (used_s, now_s)
        self._cpu = {key: self._cpu[key] for key in suspects}

    def _used(self, pid: int) -> tuple[float, float]:
        """Seconds of processor time so far, and when that was."""
        stat = procfs.read_stat(f"{self._proc}/{pid}")
        ticks = 0 if stat is None else stat.cpu_ticks
        return ticks / procfs.ticks_per_s(), time.monotonic()

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
        life = life_of(path, (stat, status), words, launcher, asleep_s)
        meter, slow = (before.meter, before.slow) if before is not None else (None, None)
        if self._detailed:
            from tpusmi.sources.holders.usage import Meter

            meter = meter or Meter(self._proc, key.pid)
            if slow is None or now_s - slow.at_s >= SLOW_AGAIN_S:
                slow = self._slow(key.pid, stat, now_s)
            life = life._replace(**_detail(slow, now_s), **meter.read(life.age_s)._asdict())
        uid = status.uid
        process = Process(
            key,
            None if uid is None else user_name(uid),
            procfs.command_of(words, path),
            "live",
            None,
            None,
            None,
            {},
            environment=variables,
            life=life,
            uid=uid,
        )
        return _Known(process, now_s, launcher, asleep_since_s, words, meter, slow)

    def _slow(self, pid: int, stat: Stat, now_s: float) -> _Slow:
        from tpusmi.sources.sockets import listening_sockets, open_sockets

        own = open_sockets(f"{self._proc}/{pid}/fd")
        ports = sorted(port for port, inode in listening_sockets().items() if inode in own)
        return _Slow(
            now_s,
            newest_thread_s(self._proc, pid),
            ancestors(self._proc, stat.parent),
            tuple(ports),
        )


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


def _is_suspect(life: Life) -> bool:
    """True when it makes a difference whether it works."""
    ending = any(sign.code in ENDING_CODES for sign in life.signs)
    return bool(life.signs) and not (ending or life.platform)


def _detail(slow: _Slow, now_s: float) -> dict[str, Any]:
    """The fields of a Life; since it was asked the newest thread has grown older."""
    newest_s = slow.newest_thread_s
    aged_s = None if newest_s is None else newest_s + now_s - slow.at_s
    return {"newest_thread_s": aged_s, "ancestors": slow.ancestors, "ports": slow.ports}
