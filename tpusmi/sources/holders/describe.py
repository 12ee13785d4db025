"""The processes that a pass has found, as the model describes them."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tpusmi.model import Life, Process, ProcessKey
from tpusmi.sources.holders import procfs
from tpusmi.sources.holders.life import ancestors, life_of, stream_terminal
from tpusmi.sources.holders.procfs import Stat
from tpusmi.sources.holders.suspects import Suspects
from tpusmi.sources.users import user_name
from tpusmi.text import clean, redacted

AGAIN_S = 2.0
"""A process is described again after this time."""
SLOW_AGAIN_S = 30.0
"""Its ports and ancestors are read again after this time: they take a look at every descriptor."""
SLICE_PORT_VARIABLE = "TPU_PROCESS_PORT"


class Meter:
    """Measures what one process uses of the host, by psutil: for screens, where its import, about
    twice the start of Python, is worth the time. What may not be read is None.
    """

    def __init__(self, proc: str, pid: int) -> None:
        import psutil

        self._path = f"{proc}/{pid}"
        self._process: psutil.Process | None = None
        self._before = (0.0, 0.0)
        """Processor time that it had used, and its age then."""
        if os.path.realpath(proc) != psutil.PROCFS_PATH:
            return  # another path would be set for the whole program, which may not be ours
        try:
            self._process = psutil.Process(pid)
        except (psutil.Error, OSError, ValueError):
            pass

    def measured(self, life: Life) -> Life:
        """The life with its terminal, memory, directory, and use of one core: since its start in
        the first call, then since the last call.
        """
        import psutil

        if self._process is None:
            return life
        try:
            facts = self._process.as_dict(["terminal", "memory_info", "cwd", "cpu_times"])
        except (psutil.Error, OSError, ValueError):
            return life
        return life._replace(
            terminal=_text(facts["terminal"], "/dev/") or stream_terminal(self._path),
            cpu_percent=self._cpu_percent(facts["cpu_times"], life.age_s),
            rss_bytes=getattr(facts["memory_info"], "rss", None),
            cwd=_text(facts["cwd"], ""),
        )

    def _cpu_percent(self, times: Any, age_s: float | None) -> float | None:
        if times is None or age_s is None:
            return None
        used_s = times.user + times.system
        (before_s, at_s), self._before = self._before, (used_s, age_s)
        return 100 * max(0.0, used_s - before_s) / (age_s - at_s) if age_s > at_s else None


class _Description(NamedTuple):
    """The last description of a process, with what the next one builds on."""

    process: Process
    at_s: float
    launcher: int
    """The parent that it was first seen with."""
    asleep_since_s: float | None
    """Since when every look has seen it in uninterruptible sleep."""
    words: tuple[str, ...]
    """Its command line."""
    meter: Meter | None
    slow_at_s: float
    """When its ports and ancestors were read."""


class Describer:
    """Remembers each process: its first parent, how long it has been asleep, what it used."""

    def __init__(self, proc: str, detailed: bool, older_s: float = 0.0) -> None:
        """`older_s` is how much older the processes are than the kernel says."""
        self._proc = proc
        self._detailed = detailed
        self._older_s = older_s
        self._descriptions: dict[ProcessKey, _Description] = {}
        self._suspects = Suspects(proc)
        self._listening: dict[int, int] | None = None
        """The inode of the listening socket on each port; read at most once in a pass."""

    def processes(
        self, holders: Mapping[int, tuple[str, ...]], loaded: Iterable[int], now_s: float
    ) -> tuple[Process, ...]:
        """The processes that have only loaded libtpu, then the holders."""
        before, self._descriptions, self._listening = self._descriptions, {}, None
        for pid, nodes in {**dict.fromkeys(loaded, ()), **holders}.items():
            stat = procfs.read_stat(f"{self._proc}/{pid}")
            if stat is None or stat.is_gone:
                continue
            if not nodes and _is_our_reader(f"{self._proc}/{pid}", stat):
                continue
            key = ProcessKey(pid, stat.start_ticks)
            last = before.get(key)
            if last is not None and stat.state != "D":
                last = last._replace(asleep_since_s=None)
            if last is None or now_s - last.at_s >= AGAIN_S:
                last = self._described(key, stat, last, now_s)
            process = last.process._replace(holds=nodes, loaded_only=not nodes)
            self._descriptions[key] = last._replace(process=process)
        return self.again()

    @property
    def wait_s(self) -> float | None:
        """How long until it shows whether suspects work; None when it shows already."""
        return self._suspects.wait_s

    def again(self) -> tuple[Process, ...]:
        """The same processes, suspects with what has been measured since."""
        self._suspects.look({key: d.process.life for key, d in self._descriptions.items()})
        return tuple(self._with_evidence(d.process) for d in self._descriptions.values())

    def _with_evidence(self, process: Process) -> Process:
        if process.life is None:
            return process
        life = self._suspects.with_evidence(process.key, process.life)
        return process._replace(life=life._replace(client_ports=_client_ports(process, life)))

    def _described(
        self, key: ProcessKey, stat: Stat, last: _Description | None, now_s: float
    ) -> _Description:
        path = f"{self._proc}/{key.pid}"
        launcher = stat.parent if last is None else last.launcher
        asleep_since_s = last.asleep_since_s if last and stat.state == "D" else None
        if stat.state == "D" and asleep_since_s is None:
            asleep_since_s = now_s
        words, variables = _words_and_variables(path, stat, last)
        status = procfs.read_status(path)
        asleep_s = 0.0 if asleep_since_s is None else now_s - asleep_since_s
        life = life_of(path, (stat, status), words, launcher, asleep_s, self._older_s)
        before = None if last is None else last.process.life
        if last is None or before is None or now_s - last.slow_at_s >= SLOW_AGAIN_S:
            above = ancestors(self._proc, stat.parent) if self._detailed else ()
            life, slow_at_s = life._replace(ports=self._ports(path), ancestors=above), now_s
        else:
            life = life._replace(ports=before.ports, ancestors=before.ancestors)
            slow_at_s = last.slow_at_s
        meter = last.meter if last is not None else None
        if self._detailed:
            meter = meter or Meter(self._proc, key.pid)
            life = meter.measured(life)
        process = Process(
            key=key,
            user=None if status.uid is None else user_name(status.uid),
            command=procfs.command_of(words, path),
            environment=variables,
            life=life,
            uid=status.uid,
        )
        return _Description(
            process=process,
            at_s=now_s,
            launcher=launcher,
            asleep_since_s=asleep_since_s,
            words=words,
            meter=meter,
            slow_at_s=slow_at_s,
        )

    def _ports(self, path: str) -> tuple[int, ...]:
        """The TCP ports on which a process listens."""
        from tpusmi.sources.sockets import listening_sockets, visible_sockets

        if self._listening is None:  # one table for all of them: any user may make it long
            self._listening = listening_sockets()
        own = visible_sockets(f"{path}/fd") or ()
        return tuple(sorted(port for port, inode in self._listening.items() if inode in own))


def _text(value: object, prefix: str) -> str | None:
    if not isinstance(value, str) or not value:
        return None
    return clean(redacted(value.removeprefix(prefix)), 400)


def _words_and_variables(
    path: str, stat: Stat, last: _Description | None
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Its command line and its variables. In uninterruptible sleep the last ones: they are in its
    memory, which may be locked, and a reader would then sleep with it.
    """
    if stat.state != "D":
        return tuple(procfs.arguments(path)), procfs.environment(path)
    return (last.words, last.process.environment) if last is not None else ((), {})


def _is_our_reader(process: str, stat: Stat) -> bool:
    """True for our own child that reads libtpu's SDK."""
    if stat.parent != os.getpid():
        return False
    return any("tpusmi" in word for word in procfs.arguments(process))


def _client_ports(process: Process, life: Life) -> tuple[int, ...]:
    """The ports on which a process listens, without those of libtpu."""
    if not life.ports:
        return ()
    from tpusmi.sources.libtpu.ports import NEVER, PORTS_VARIABLE, USUAL, named_ports

    named = (process.environment.get(name, "") for name in (PORTS_VARIABLE, SLICE_PORT_VARIABLE))
    own = {*NEVER, *USUAL, *(port for text in named for port in named_ports(text))}
    return tuple(port for port in life.ports if port not in own)
