"""Which device or chip each row is about: agents and libtpu number them in their own ways. Pure.

Rows are joined by id where both sides know ids, else by rank; where counts disagree they are not
joined but shown apart. What libtpu measured per chip stays with the chip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tpusmi.merge.machine import is_on, laid_over, machine_devices, order_of
from tpusmi.merge.match import Match
from tpusmi.merge.processes import by_process, is_claim, joined, of_claims, told_apart
from tpusmi.merge.shares import shares, used_first
from tpusmi.model import (
    AGENT,
    HOLDERS,
    LIBTPU,
    LIBTPU_SDK,
    OK,
    SDK_SERVER,
    Device,
    DeviceKey,
    Outcome,
    ProcessKey,
    Reading,
    RowKey,
    Server,
    Subject,
)
from tpusmi.text import counted

UNMATCHED_FROM = 1 << 20
"""Keys of rows that belong to no known device begin here, out of the way of any machine's."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    Rows = dict[str, list[int]]
    """Metric, ids in order."""


class Join:
    """The devices of one moment, and where each row's readings belong."""

    def __init__(self, outcomes: Sequence[Outcome], simulated: bool) -> None:
        self.notes: dict[str, list[str]] = {AGENT: [], LIBTPU: [], LIBTPU_SDK: []}
        """What could not be joined, by the source that it came from."""
        self.ignored: frozenset[str] = frozenset()
        """Servers whose word is not taken for this machine's."""
        self._chips = [c for o in outcomes for c in o.chips]
        self._simulated = simulated
        self.processes = joined(p for o in outcomes for p in o.processes)
        self._holds = {p.key: p.holds for p in self.processes if p.holds}
        self._dead = {p.key for p in self.processes if p.is_dead}
        self._users = {p.key: p.uid for p in self.processes}
        self._sees_holders = any(
            o.source == HOLDERS and o.status == OK and not o.visibility.not_inspected
            for o in outcomes
        )
        told = by_process(d for o in outcomes for d in o.devices)
        self._claimed = {key: own for key, own in told.items() if is_claim(key)}
        self._agents = {key: own for key, own in told.items() if not is_claim(key)}
        machine = machine_devices(self._chips, self._holds)
        self._shares = shares(self.processes, machine, self._chips, self._ids(outcomes))
        """Of holders that have opened the same nodes, the part that each of them uses."""
        self._machine = [used_first(d, self._shares) for d in machine]
        self._shown: dict[Subject, Device] = {d.key: d for d in self._machine}
        self._canonical: dict[DeviceKey, DeviceKey] = {}
        self._subjects: dict[tuple[RowKey, str], Subject] = {}
        for process, devices in self._agents.items():
            self._adopt(process, devices)
        self._join_rows(outcomes)
        rows = self._rows_by_subject()
        for key in rows.keys() & self._shown.keys():
            self._shown[key] = self._shown[key]._replace(rows=tuple(rows[key]))
        self.chips = tuple(c._replace(rows=tuple(rows.get(c.key, ()))) for c in self._chips)

    @property
    def devices(self) -> tuple[tuple[Device, ...], tuple[Device, ...]]:
        """Every device of living processes and of the machine once; and those of dead processes
        and of claims alone.
        """
        has_own = bool(self._shown or self._holds)
        claimed, apart = of_claims(self._claimed, self.processes, has_own)
        every = (*self._shown.values(), *claimed)
        dead = [d for d in every if d.key.process in self._dead]
        living = told_apart(d for d in every if d.key.process not in self._dead)
        return tuple(living), (*dead, *apart)

    def subject(self, r: Reading) -> Subject | None:
        """What a reading is about; None when nobody knows."""
        if isinstance(r.subject, RowKey):
            return self._subjects.get((r.subject, r.metric))
        return r.subject

    def _ids(self, outcomes: Sequence[Outcome]) -> dict[ProcessKey, tuple[int, ...]]:
        """The ids of the devices of each living process, as its server or its agent has them."""
        found = {s.process: s.ids for o in outcomes for s in o.servers if s.process and s.ids}
        for process, devices in self._agents.items():
            ids = [d.id for d in devices if d.platform == "tpu" and d.id is not None]
            if process and ids:
                found.setdefault(process, tuple(sorted(ids)))
        return {key: ids for key, ids in found.items() if key not in self._dead}

    def _rows_by_subject(self) -> dict[Subject, list[tuple[str, RowKey]]]:
        """For History, which has what a row said under the row."""
        found: dict[Subject, list[tuple[str, RowKey]]] = {}
        for (row, metric), subject in self._subjects.items():
            found.setdefault(subject, []).append((metric, row))
        return found

    def _adopt(self, process: ProcessKey | None, devices: list[Device]) -> None:
        """Lay an agent's devices over those of the machine, if it is certain which they are."""
        machine = self._machine_of(process) if self._is_on_tpu(process, devices) else []
        if len(machine) != len(devices):
            if self._machine and self._is_on_tpu(process, devices):
                self.notes[AGENT].append(
                    f"pid {process.pid if process else '?'} has {counted(len(devices), 'device')} "
                    f"where {len(machine)} are expected: shown apart"
                )
            owners = (process,) if process else ()
            self._shown.update({d.key: d._replace(owners=owners) for d in devices})
            return
        ordered = sorted(devices, key=lambda d: (d.index if d.id is None else d.id, d.index))
        for seen, own in zip(machine, ordered, strict=True):
            self._shown.pop(self._canonical.get(seen.key, seen.key), None)
            self._canonical[seen.key] = own.key
            self._shown[own.key] = laid_over(seen, own)

    def _is_on_tpu(self, process: ProcessKey | None, devices: list[Device]) -> bool:
        """A simulated host's job runs on the CPU and stands for one on its chips."""
        tpu = all(d.platform == "tpu" for d in devices)
        return process not in self._dead and (tpu or (self._simulated and process in self._holds))

    def _machine_of(self, process: ProcessKey | None, with_bare: bool = False) -> list[Device]:
        """The machine's devices that only that process's user can have: of the nodes it holds; all
        if the process is unknown, or may hold what cannot be seen. `with_bare` adds those of chips
        without a node, which no process can be seen to hold.
        """
        if process is None:
            return list(self._machine)
        mine = [d for d in self._machine if not self._is_of_others(d, process)]
        if process in self._shares:
            return [d for d in mine if d.index in self._shares[process]]
        held = self._holds.get(process, ())
        if not held and not self._sees_holders:
            return mine
        return [d for d in mine if is_on(d, self._chips, held) or (with_bare and not d.node)]

    def _is_of_others(self, d: Device, process: ProcessKey) -> bool:
        """True when a process of another user holds it: two users' numbers are not one chip's."""
        return any(self._users.get(o) != self._users.get(process) for o in d.owners)

    def _join_rows(self, outcomes: Sequence[Outcome]) -> None:
        servers = {s.address: s for o in outcomes for s in o.servers}
        rows = _rows(r for o in outcomes for r in o.readings)
        for server in self._strangers(servers.values()):
            if rows.pop(server.address, None) is not None:
                self._note(server, f"{_whose(server)}: what it reports is left out")
        for address, by_metric in rows.items():
            server = servers.get(address, Server(address, None))
            if self._has_ended(server.process):
                continue  # what a server said last is kept for a while, and is of nobody now
            alone = len(rows) - (SDK_SERVER in rows) == 1
            targets = self._targets(server, alone)
            certain = server.process is not None or self._may_be_theirs(server)
            if alone and certain and len(targets) < len(server.ids) == len(self._machine):
                targets = self._shown_of(self._machine_of(server.process, with_bare=True))
            self._join_server(server, by_metric, targets)

    def _strangers(self, servers: Iterable[Server]) -> list[Server]:
        """Servers of processes that hold no TPU, on a machine that has one: elsewhere it may be a
        tunnel, or a simulator.
        """
        found = [s for s in servers if s.stranger is not None and (self._machine or self._holds)]
        self.ignored = frozenset(s.address for s in found)
        return found

    def _has_ended(self, process: ProcessKey | None) -> bool:
        """True for one that is gone, or that has let go of its chips and has no agent."""
        if process is None or process in self._agents:
            return False
        return process in self._dead or all(p.key != process for p in self.processes)

    def _targets(self, server: Server, alone: bool) -> list[Device]:
        """The devices that a server's rows can be, in order; empty when that is not certain."""
        if server.process is not None and server.process in self._agents:
            own = [self._shown[d.key] for d in self._agents[server.process] if d.key in self._shown]
            return sorted(own, key=lambda d: d.index if d.id is None else d.id)
        if server.process not in self._holds and not alone and server.address != SDK_SERVER:
            return []
        if server.process is None and not self._may_be_theirs(server):
            return []
        machine = self._shown_of(self._machine_of(server.process))
        agents = [k for k in self._agents if k not in self._dead]
        if self._machine or len(agents) != 1:
            return machine
        return [d for d in self._agents[agents[0]] if d.platform == "tpu"]

    def _may_be_theirs(self, server: Server) -> bool:
        """False for a server of another user than those that can be seen to have devices."""
        having = [p for p in self.processes if p.key in self._holds or p.key in self._agents]
        return all(server.may_be_of(p) for p in having if p.key not in self._dead)

    def _shown_of(self, machine: Iterable[Device]) -> list[Device]:
        """The machine's devices as they are shown: an agent's lies over its own."""
        keys = (self._canonical.get(d.key, d.key) for d in machine)
        return [self._shown[key] for key in keys if key in self._shown]

    def _join_server(self, server: Server, by_metric: Rows, targets: list[Device]) -> None:
        match = Match(server, by_metric, targets, self._chips)
        left = self._matched(server, match, by_metric)
        if match.names_devices:
            self._name(server.address, match.universe, targets)
        if any(match.is_apart(metric, row) for metric, row in left.items()):
            apart = self._set_apart(server, match.universe, len(targets))
            rest = {m: row for m, row in left.items() if match.is_of_devices(m, row)}
            lost = self._matched(server, Match(server, rest, apart, ()), rest)
            left = {m: row for m, row in left.items() if m not in rest or m in lost}
        if left:
            self._note(server, f"left out, as nobody can tell whose they are: {_counted(left)}")

    def _matched(self, server: Server, match: Match, by_metric: Mapping[str, list[int]]) -> Rows:
        """Put every row down to its subject; those whose subject is not certain, by metric."""
        left: Rows = {}
        for metric, row in by_metric.items():
            for i, subject in zip(row, match.subjects(metric, row), strict=True):
                if subject is None:
                    left.setdefault(metric, []).append(i)
                else:
                    self._subjects[RowKey(server.address, i), metric] = subject
        return left

    def _note(self, server: Server, text: str) -> None:
        self.notes[LIBTPU_SDK if server.address == SDK_SERVER else LIBTPU].append(text)

    def _name(self, address: str, ids: list[int], targets: list[Device]) -> None:
        """Give devices the global ids that libtpu has for them."""
        for i, device in zip(ids, targets, strict=True):
            now = self._shown[device.key]
            known = i if now.id is None else now.id
            self._shown[device.key] = now._replace(id=known, aka=(*now.aka, RowKey(address, i)))

    def _set_apart(self, server: Server, ids: Sequence[int], expected: int) -> list[Device]:
        """Rows that fit no device are devices of their own, and the reason is told."""
        if expected or self._machine:
            of = f"where {expected} are expected" if expected else "and nobody knows of which chips"
            count = counted(len(ids), "device")
            self._note(server, f"{server.address} reports {count} {of}: shown apart")
        owners = (server.process,) if server.process else ()
        nodes = self._nodes_of(server.process, len(ids))
        found = []
        for i, node in zip(ids, nodes, strict=True):
            index = len(self._shown)
            key = DeviceKey(None, UNMATCHED_FROM + index)
            aka = (RowKey(server.address, i),)
            self._shown[key] = Device(
                *(key, index, i, "tpu", None, None, None), node=node, owners=owners, aka=aka
            )
            found.append(self._shown[key])
        return found

    def _nodes_of(self, process: ProcessKey | None, count: int) -> Sequence[str | None]:
        """The nodes of so many devices of a process, where no PCI bus tells: those that it holds,
        when they are as many.
        """
        held = self._holds.get(process, ()) if process and not self._machine else ()
        if len(held) != count:
            return [None] * count
        return sorted(held, key=order_of)


def _whose(server: Server) -> str:
    return f"{server.address} belongs to pid {server.stranger} of user {server.user}, no holder"


def _counted(rows: Rows) -> str:
    """`3 × hlo_queue_size`, the parts of one quantity together."""
    counts = {metric.partition(".")[0]: len(row) for metric, row in rows.items()}
    return ", ".join(f"{count} × {name}" for name, count in counts.items())


def _rows(readings: Iterable[Reading]) -> dict[str, Rows]:
    found: dict[str, dict[str, set[int]]] = {}
    for r in readings:
        if isinstance(r.subject, RowKey):
            found.setdefault(r.subject.server, {}).setdefault(r.metric, set()).add(r.subject.id)
    return {s: {m: sorted(ids) for m, ids in metrics.items()} for s, metrics in found.items()}
