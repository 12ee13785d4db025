"""One moment of a host, with a witness for every value, and the plain object that scripts get."""

# No `from __future__ import annotations`: see `model/__init__.py`.

from collections.abc import Mapping
from typing import Any, NamedTuple

from tpusmi.model.host import HostFacts
from tpusmi.model.memory_profile import MemoryProfile
from tpusmi.model.metrics import CHIP_METRICS, DEVICE_METRICS, PROCESS_METRICS, Metric
from tpusmi.model.nouns import Chip, ChipKey, Device, Number, Outcome, Subject, Visibility
from tpusmi.model.process import (
    PROCESS_FACTS,
    Life,
    LockFile,
    Missing,
    Notice,
    Process,
    ProcessKey,
)
from tpusmi.model.servers import Core, Latency, Link, Server

SCHEMA = 1


class Value(NamedTuple):
    """A measured value with its witness. `age_s` is how long ago it was true."""

    value: Number
    source: str
    age_s: float
    stale: bool


class Snapshot(NamedTuple):
    """Everything known at one moment. Absent means unknown, never zero."""

    tpusmi_version: str
    simulated: bool
    at_s: float
    host: HostFacts
    devices: tuple[Device, ...]
    """Devices of the machine and of living processes."""
    processes: tuple[Process, ...]
    sources: tuple[Outcome, ...]
    warnings: tuple[Notice, ...]
    values: Mapping[tuple[Subject, str], Value]
    dead_devices: tuple[Device, ...] = ()
    """Devices of dead processes, with what they held when they ended, for a post-mortem; and of
    processes that are not verified, where better ones are known.
    """
    chips: tuple[Chip, ...] = ()
    servers: tuple[Server, ...] = ()
    latencies: tuple[Latency, ...] = ()
    links: tuple[Link, ...] = ()
    cores: tuple[Core, ...] = ()
    """What each core runs; empty unless asked for."""
    lock_files: tuple[LockFile, ...] = ()
    """libtpu's lock file in its state; empty where there is no TPU."""
    visibility: Visibility = Visibility()
    missing: tuple[Missing, ...] = ()
    """Witnesses that could not be asked whether a holder works."""

    def value(self, name: str, subject: Subject) -> Number | None:
        """The value of that metric for a device or process key; None when it was not measured."""
        found = self.values.get((subject, name))
        return None if found is None else found.value

    def of_chip(self, name: str, device: Device) -> Value | None:
        """What was measured on the device's whole chip; None when nothing was.

        Never show it as if it were the device's own.
        """
        return None if device.chip is None else self.values.get((ChipKey(device.chip), name))

    def chip_of(self, device: Device) -> Chip | None:
        """The device's chip as the kernel shows it; None where no PCI bus tells."""
        return next((c for c in self.chips if c.index == device.chip), None)

    def devices_of(self, process: ProcessKey) -> tuple[Device, ...]:
        """The devices of one process, living or dead, in local order: those its agent reports, or
        those of the nodes it holds.
        """
        every = (*self.devices, *self.dead_devices)
        return tuple(d for d in every if d.key.process == process or process in d.owners)

    def labelled_latencies(self) -> list[tuple[str, Latency]]:
        """Each latency with a label that is unique among those of its name."""
        if len({x.reporter for x in self.latencies}) < 2:
            return [(x.label, x) for x in self.latencies]
        return [(f"{x.label or 'all'} {x.reporter}".strip(), x) for x in self.latencies]

    def to_dict(self) -> dict[str, Any]:
        """The object `tpusmi --json` prints: plain numbers, strings, lists, dicts and None."""
        return {
            "schema": SCHEMA,
            "tpusmi_version": self.tpusmi_version,
            "simulated": self.simulated,
            "host": {**self.host.to_dict(), "dcn": self._dcn()},
            "chips": [self._chip(c) for c in self.chips],
            "devices": [self._device(d) for d in self.devices],
            "processes": [self._process(p) for p in self.processes],
            "sources": [_source(o) for o in self.sources],
            "servers": [_server(s) for s in self.servers],
            "cores": [c._asdict() for c in self.cores],
            "holding": self._holding(),
            "warnings": [n._asdict() for n in self.warnings],
        }

    def _holding(self) -> dict[str, Any]:
        """Whether the TPU is free, by node; what could not be seen; the lock file."""
        from tpusmi.model.holding import node_states, status

        return {
            "status": status(self),
            "nodes": [node._asdict() for node in node_states(self)],
            "not_inspected": self.visibility.not_inspected,
            "own_pid_namespace": self.visibility.own_pid_namespace,
            "lock_files": [file._asdict() for file in self.lock_files],
        }

    def _dcn(self) -> dict[str, Any]:
        """Name, then label, then numbers."""
        found: dict[str, Any] = {}
        for label, latency in self.labelled_latencies():
            numbers = {n: _rounded(v) for n, v in latency.percentiles._asdict().items()}
            found.setdefault(latency.name, {})[label or "all"] = numbers
        return found

    def _chip(self, c: Chip) -> dict[str, Any]:
        return {
            "index": c.index,
            "generation": c.generation,
            "kind": c.kind,
            "pci_address": c.pci_addresses[0] if c.pci_addresses else None,
            "pci_addresses": list(c.pci_addresses),
            "node": c.nodes[0] if c.nodes else None,
            "nodes": list(c.nodes),
            "numa_node": c.numa_node,
            "pcie_link": c.pcie_link,
            "hbm_nominal_bytes": c.hbm_nominal_bytes,
            "notes": list(c.notes),
            "ici_links": [
                {"name": link.name, "health": link.health}
                for link in self.links
                if link.chip == c.index
            ],
            **self._measured(CHIP_METRICS, c.key),
        }

    def _device(self, d: Device) -> dict[str, Any]:
        return {
            "index": d.index,
            "id": d.id,
            "chip": d.chip,
            "core_on_chip": d.core_on_chip,
            "coords": None if d.coords is None else list(d.coords),
            "kind": d.kind,
            "platform": d.platform,
            "name": d.name,
            "node": d.node,
            "pid": d.owners[0].pid if d.owners else None,
            "pids": [owner.pid for owner in d.owners],
            "error": d.error,
            **self._measured(DEVICE_METRICS, d.key),
        }

    def _process(self, p: Process) -> dict[str, Any]:
        sampled = p.sampled_at_s
        return {
            "pid": p.pid,
            "start_ticks": p.key.start_ticks,
            "user": p.user,
            "uid": p.uid,
            "verified": p.is_verified,
            "command": p.command,
            "devices": [d.index for d in self.devices_of(p.key)],
            "last_devices": [self._device(d) for d in self.dead_devices if d.key.process == p.key],
            "holds": list(p.holds),
            "environment": dict(p.environment),
            "loaded_only": p.loaded_only,
            "stale": p.stale,
            "verdict": p.verdict,
            "stale_code": p.stale_code,
            "stale_reason": p.stale_reason,
            "signs": [sign._asdict() for sign in p.signs],
            **_life(p.life),
            "phase": p.phase,
            "state": p.state,
            "sample_age_s": None if sampled is None else _rounded(max(0.0, self.at_s - sampled)),
            "interval_s": p.interval_s,
            **{name: p.facts.get(name) for name in PROCESS_FACTS},
            "memory_profile": None if p.profile is None else self._profile(p.profile),
            **self._measured(PROCESS_METRICS, p.key),
        }

    def _profile(self, profile: MemoryProfile) -> dict[str, Any]:
        return {
            "age_s": _rounded(max(0.0, self.at_s - profile.at_s)),
            "sites": [site._asdict() for site in profile.sites],
        }

    def _measured(self, metrics: tuple[Metric, ...], subject: Subject) -> dict[str, Any]:
        """Every metric of a scope, None where unknown, and the provenance of the known."""
        fields: dict[str, Any] = {}
        provenance: dict[str, Any] = {}
        for m in metrics:
            found = self.values.get((subject, m.name))
            value = None if found is None else _rounded(found.value)
            name, _, part = m.name.partition(".")
            if part:
                fields.setdefault(name, {})[part] = value
            else:
                fields[name] = value
            if found is not None:
                provenance[name] = {
                    "source": found.source,
                    "age_s": _rounded(found.age_s),
                    "stale": found.stale,
                }
        return {**fields, "provenance": provenance}


_LIFE = Life("", *(None,) * 5)


def _life(life: Life | None) -> dict[str, Any]:
    """What the kernel says of a process, null where there is nothing to say."""
    told = life or _LIFE
    return {
        "os_state": told.state or None,
        "parent_pid": told.parent,
        "process_group": told.group,
        "session": told.session,
        "age_s": _rounded(told.age_s),
        "threads": told.threads,
        "terminal": told.terminal,
        "cpu_percent": _rounded(told.cpu_percent),
        "rss_bytes": told.rss_bytes,
        "cwd": told.cwd,
        "container_id": told.container,
        "inner_pid": told.inner_pid,
        "role": told.role,
        "listens_on": list(told.ports),
    }


def _source(o: Outcome) -> dict[str, Any]:
    return {
        "name": o.source,
        "status": o.status,
        "message": o.message,
        "took_s": _rounded(o.took_s),
        "notes": list(o.notes),
    }


def _server(s: Server) -> dict[str, Any]:
    return {
        "address": s.address,
        "pid": s.stranger if s.process is None else s.process.pid,
        "user": s.user,
        "holds_tpu": s.holds_tpu,
        "device_ids": list(s.ids),
        "status": s.status,
        "message": s.message,
    }


def _rounded(value: Number | None) -> Number | None:
    """Nine significant digits are beyond any source's precision and keep the JSON short."""
    return float(f"{value:.9g}") if isinstance(value, float) else value
