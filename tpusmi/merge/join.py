"""Which device or chip each row is about: agents and libtpu number them in their own ways. Pure.

Rows are joined by id where both sides know ids, else by rank; where counts disagree they are not
joined but listed separately. What libtpu measured per chip stays with the chip.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from tpusmi.merge.machine import Machine, disbelieved, laid_over, owners_of
from tpusmi.merge.match import Match, counted_values, unexpected
from tpusmi.merge.processes import (
    by_process,
    is_claim,
    joined,
    of_claims,
    process_of,
    proven,
    with_names,
)
from tpusmi.model import (
    AGENT,
    LIBTPU,
    LIBTPU_SDK,
    PROFILE,
    SDK_SERVER,
    Device,
    DeviceKey,
    Outcome,
    ProcessKey,
    Reading,
    RowKey,
    Server,
    Subject,
    trust_rank,
)
from tpusmi.model.history import Key

DROP_AFTER_S = 60.0
"""A value is dropped this long after it is too old to be current, unless its process is dead."""
Rows = dict[str, dict[int, Reading]]
"""Metric, ids in order, each with its reading."""


class Join:
    """The devices of one moment, and the readings that are shown of them.

    In this order: what the machine has by its chips; over it each agent's devices; onto these the
    rows of each server, by the ids that the agents have; then the best reading of each value.
    """

    def __init__(self, outcomes: Sequence[Outcome], now_s: float, simulated: bool = False) -> None:
        self.outcomes, self.at_s, self.simulated = proven(outcomes), now_s, simulated
        self.notes: dict[str, list[str]] = {s: [] for s in (AGENT, LIBTPU, LIBTPU_SDK, PROFILE)}
        """What could not be joined, by the source that it came from."""
        self.ignored: frozenset[str] = frozenset()
        """Addresses of servers whose numbers are not this machine's."""
        self.processes = joined(p for o in self.outcomes for p in o.processes)
        reported = by_process(d for o in self.outcomes for d in o.devices)
        self._claimed = {key: own for key, own in reported.items() if is_claim(key)}
        self._agents = {key: own for key, own in reported.items() if not is_claim(key)}
        self._machine = Machine(self.outcomes, self.processes, self._agents)
        self.chips, self.dead = self._machine.chips, self._machine.dead
        self._shown: dict[Subject, Device] = {d.key: d for d in self._machine.devices}
        self._canonical: dict[DeviceKey, DeviceKey] = {}
        """Keys of the machine's devices, with those of the agents' devices that lie over them."""
        self._row_places: dict[Hashable, DeviceKey] = {}
        self._of_subjects: list[tuple[Subject, Reading]] = []
        """The readings of known subjects: a row's of the device or chip that the row is about."""
        for process, devices in self._agents.items():
            self._adopt(process, devices)
        self._join_rows()
        self.readings = self._best()
        """The reading that is shown of each value; those of the phases of processes as well."""
        for key in disbelieved(self.readings, self._shown.values(), self.chips, self.outcomes):
            del self.readings[key]

    @property
    def devices(self) -> tuple[tuple[Device, ...], tuple[Device, ...]]:
        """Every device of living processes and of the machine once; and those of dead processes
        and of claims alone.
        """
        has_own = bool(self._shown or self._machine.holds)
        claimed, apart = of_claims(self._claimed, self.processes, has_own)
        dead: list[Device] = []
        living: list[Device] = []
        for d in (*self._shown.values(), *claimed):
            (dead if d.key.process in self.dead else living).append(d)
        return tuple(with_names(living)), (*dead, *apart)

    @property
    def places(self) -> dict[Hashable, DeviceKey]:
        """The devices by what stays the same when a job's agent begins or ends: their index on the
        machine, or the row of a server where no chips can be seen.
        """
        places = self._row_places.copy()
        places.update((d.index, d.key) for d in self._shown.values() if d.chip is not None)
        return places

    @property
    def owners(self) -> dict[Subject, tuple[ProcessKey, ...]]:
        """The processes that have each device, and each chip of devices."""
        return owners_of(self._shown.values())

    def _adopt(self, process: ProcessKey | None, devices: list[Device]) -> None:
        """Lay an agent's devices over those of the machine, if it is certain which they are."""
        machine = self._machine.of(process) if self._is_on_tpu(process, devices) else []
        if len(machine) != len(devices):
            if self._machine.devices and self._is_on_tpu(process, devices):
                count = unexpected(len(devices), len(machine))
                self.notes[AGENT].append(f"pid {process.pid if process else '?'} reports {count}")
            owners = (process,) if process else ()
            self._shown.update({d.key: d._replace(owners=owners) for d in devices})
            return
        ordered = sorted(devices, key=lambda d: (d.index if d.id is None else d.id, d.index))
        for place, own in zip(machine, ordered, strict=True):
            self._shown.pop(self._canonical.get(place.key, place.key), None)
            self._canonical[place.key] = own.key
            self._shown[own.key] = laid_over(place, own)

    def _is_on_tpu(self, process: ProcessKey | None, devices: list[Device]) -> bool:
        """A simulated host's job runs on the CPU and stands for one on its chips."""
        tpu = all(d.platform == "tpu" for d in devices)
        is_held = process in self._machine.holds
        return process not in self.dead and (tpu or (self.simulated and is_held))

    def _join_rows(self) -> None:
        servers = {s.address: s for o in self.outcomes for s in o.servers}
        rows = self._rows()
        for server in self._strangers(servers.values()):
            if rows.pop(server.address, None) is not None:
                owner = f"pid {server.stranger} of user {server.user}, which holds no TPU"
                self._note(server, f"{server.address} belongs to {owner}: its numbers are left out")
        for address, by_metric in rows.items():
            server = servers.get(address, Server(address, None))
            if self._has_ended(server.process):
                continue  # a server's last answer is kept for a while
            alone = len(rows) - (SDK_SERVER in rows) == 1
            targets = self._targets(server, alone)
            certain = server.process is not None or self._may_be_theirs(server)
            if alone and certain and len(targets) < len(server.ids) == len(self._machine.devices):
                targets = self._shown_of(self._machine.of(server.process, with_bare=True))
            self._join_server(server, by_metric, targets)

    def _rows(self) -> dict[str, Rows]:
        """The rows of each server, by metric. All other readings have their subjects already."""
        servers: dict[str, Rows] = {}
        for o in self.outcomes:
            for r in o.readings if o.source != PROFILE else self._of_captures(o.readings):
                row = r.subject
                if not isinstance(row, RowKey):
                    self._of_subjects.append((row, r))
                    continue
                rows = servers.setdefault(row.server, {}).setdefault(r.metric, {})
                rival = rows.setdefault(row.id, r)
                if rival is not r and _is_better(r, rival, self.at_s):
                    rows[row.id] = r
        for by_metric in servers.values():
            for metric, rows in by_metric.items():
                by_metric[metric] = {i: rows[i] for i in sorted(rows)}
        return servers

    def _of_captures(self, readings: Iterable[Reading]) -> list[Reading]:
        from tpusmi.merge.traced import of_devices

        return of_devices(readings, self._agents, self._machine, self._shown_of, self.notes)

    def _strangers(self, servers: Iterable[Server]) -> list[Server]:
        """Servers of processes that hold no TPU, on a machine that has one: elsewhere it may be a
        tunnel, or a simulator.
        """
        has_tpu = bool(self._machine.devices or self._machine.holds)
        strangers = [s for s in servers if has_tpu and s.stranger is not None]
        self.ignored = frozenset(s.address for s in strangers)
        return strangers

    def _has_ended(self, process: ProcessKey | None) -> bool:
        """True for one that is gone, or that has let go of its chips and has no agent."""
        if process is None or process in self._agents:
            return False
        return process in self.dead or all(p.key != process for p in self.processes)

    def _targets(self, server: Server, alone: bool) -> list[Device]:
        """The devices that a server's rows can be, in order; empty when that is not certain."""
        if server.process is not None and server.process in self._agents:
            own = [self._shown[d.key] for d in self._agents[server.process] if d.key in self._shown]
            return sorted(own, key=lambda d: d.index if d.id is None else d.id)
        if server.process not in self._machine.holds and not alone and server.address != SDK_SERVER:
            return []
        if server.process is None and not self._may_be_theirs(server):
            return []
        machine = self._shown_of(self._machine.of(server.process))
        agents = [k for k in self._agents if k not in self.dead]
        if self._machine.devices or len(agents) != 1:
            return machine
        return [d for d in self._agents[agents[0]] if d.platform == "tpu"]

    def _may_be_theirs(self, server: Server) -> bool:
        """False for a server of another user than those that can be seen to have devices."""
        return all(
            server.may_be_of(p)
            for p in self.processes
            if (p.key in self._machine.holds or p.key in self._agents) and p.key not in self.dead
        )

    def _shown_of(self, machine: Iterable[Device]) -> list[Device]:
        """The machine's devices as they are shown: an agent's lies over its own."""
        keys = (self._canonical.get(d.key, d.key) for d in machine)
        return [self._shown[key] for key in keys if key in self._shown]

    def _join_server(self, server: Server, by_metric: Rows, targets: list[Device]) -> None:
        match = Match(server, by_metric, targets, self.chips)
        left = self._matched(match, by_metric)
        if match.names_devices:
            self._name(server.address, match.universe, targets)
        if any(match.is_apart(metric, row) for metric, row in left.items()):
            apart = self._set_apart(server, match.universe, len(targets))
            rest = {m: row for m, row in left.items() if match.is_of_devices(m, row)}
            lost = self._matched(Match(server, rest, apart, ()), rest)
            left = {m: row for m, row in left.items() if m not in rest or m in lost}
        if left:
            self._note(server, f"{counted_values(left)} ignored: they match no device")

    def _matched(self, match: Match, by_metric: Rows) -> Rows:
        """Note the subject of every row. The rows whose subject is not certain, by metric."""
        left: Rows = {}
        for metric, row in by_metric.items():
            subjects = match.subjects(metric, row)
            for (i, r), subject in zip(row.items(), subjects, strict=True):
                if subject is None:
                    left.setdefault(metric, {})[i] = r
                else:
                    self._of_subjects.append((subject, r))
        return left

    def _note(self, server: Server, text: str) -> None:
        self.notes[LIBTPU_SDK if server.address == SDK_SERVER else LIBTPU].append(text)

    def _name(self, address: str, ids: list[int], targets: list[Device]) -> None:
        """Give devices the global ids that libtpu has for them."""
        for i, target in zip(ids, targets, strict=True):
            device = self._shown[target.key]
            if device.id is None:
                self._shown[device.key] = device._replace(id=i)
            if device.chip is None:
                self._row_places[RowKey(address, i)] = device.key

    def _set_apart(self, server: Server, ids: Sequence[int], expected: int) -> list[Device]:
        """Rows that fit no device are devices of their own, and a note says why."""
        if expected or self._machine.devices:
            self._note(server, f"{server.address} reports {unexpected(len(ids), expected)}")
        nodes = self._machine.nodes_of(server.process, len(ids))
        devices = [
            Device(
                key=DeviceKey(None, i, server.address),
                index=index,
                id=i,
                platform="tpu",
                kind=None,
                coords=None,
                core_on_chip=None,
                node=node,
                owners=(server.process,) if server.process else (),
            )
            for index, (i, node) in enumerate(zip(ids, nodes, strict=True), len(self._shown))
        ]
        self._shown.update((d.key, d) for d in devices)
        self._row_places.update((RowKey(server.address, d.key.index), d.key) for d in devices)
        return devices

    def _best(self) -> dict[Key, Reading]:
        """The first fresh reading of every value in its order of trust, of the known subjects.

        This runs for every number on the screen at every tick: most have one witness and no rival.
        """
        best: dict[Key, Reading] = {}
        dead, now_s = self.dead, self.at_s
        for subject, r in self._of_subjects:
            is_old = now_s - r.at_s > r.fresh_s + DROP_AFTER_S and r.source != PROFILE
            if is_old and process_of(subject) not in dead:
                continue
            rival = best.setdefault((subject, r.metric), r)
            if rival is not r and _is_better(r, rival, now_s):
                best[subject, r.metric] = r
        if self._machine.holds:
            from tpusmi.merge.sole_holder import of_sole_holders

            devices = [*self._shown.values()]
            best.update(of_sole_holders(best, self.processes, devices, self.chips, self.outcomes))
        return best


def _is_better(r: Reading, rival: Reading, now_s: float) -> bool:
    """Fresh before stale, then by trust, then the newer."""
    is_stale, was_stale = now_s - r.at_s > r.fresh_s, now_s - rival.at_s > rival.fresh_s
    if is_stale != was_stale:
        return was_stale
    rank, rival_rank = trust_rank(r.metric, r.source), trust_rank(rival.metric, rival.source)
    return rank < rival_rank or (rank == rival_rank and r.at_s > rival.at_s)
