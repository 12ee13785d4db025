"""What `--query-tpu` and `--query-compute-apps` accept, as in nvidia-smi."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from collections.abc import Callable
from typing import NamedTuple

from tpusmi.model import (
    CHIP_METRICS,
    DEVICE_METRICS,
    PROCESS_METRICS,
    Chip,
    Device,
    Metric,
    Number,
    Process,
    Snapshot,
)
from tpusmi.report import rows
from tpusmi.report.select import uuid

MIB = 1024 * 1024

FieldValue = str | Number | None
Getter = Callable[[Snapshot, Device | Process], FieldValue]


class Field(NamedTuple):
    """One column: its names (the first is the real one), unit, scope, meaning, how to get it."""

    names: tuple[str, ...]
    unit: str
    scope: str
    help: str
    of: Getter


def device_fields() -> dict[str, Field]:
    """Every field of a device, by each of its names."""
    own = map(_metric, DEVICE_METRICS)
    return _by_name((*_HOST, *_DEVICE, *own, *map(_of_chip, CHIP_METRICS), *_NVIDIA, *_NEVER))


def process_fields() -> dict[str, Field]:
    """Every field of a process, by each of its names."""
    return _by_name((*_HOST, *_PROCESS, *map(_metric, PROCESS_METRICS)))


def help_text(fields: dict[str, Field]) -> str:
    """One quoted name per line with its meaning below, as programs parse it."""
    parts = []
    for field in dict.fromkeys(fields.values()):
        names = " or ".join(f'"{name}"' for name in field.names)
        unit = f" Unit: {field.unit}." if field.unit else ""
        parts.append(f"{names}\n{field.help}{unit} Scope: {field.scope}.\n")
    return "\n".join(parts)


def _by_name(fields: tuple[Field, ...]) -> dict[str, Field]:
    return {name: field for field in fields for name in field.names}


def _metric(m: Metric) -> Field:
    def value(s: Snapshot, row: Device | Process) -> FieldValue:
        return s.value(m.name, row.key)

    return Field((m.name,), _unit(m), m.scope, m.help, value)


def _of_chip(m: Metric) -> Field:
    """What was measured of the device's whole chip, under a name that says so."""
    return Field((f"chip.{m.name}",), _unit(m), m.scope, m.help, _chip_value(m.name))


def _unit(m: Metric) -> str:
    return "" if m.unit == "count" else {"percent": "%", "bytes": "B"}.get(m.unit, m.unit)


# -- getters


def _device(get: Callable[[Device], FieldValue]) -> Getter:
    return lambda s, row: get(row) if isinstance(row, Device) else None


def _process(get: Callable[[Process], FieldValue]) -> Getter:
    return lambda s, row: get(row) if isinstance(row, Process) else None


def _chip(get: Callable[[Chip], FieldValue]) -> Getter:
    def of_chip(s: Snapshot, row: Device | Process) -> FieldValue:
        chip = s.chip_of(row) if isinstance(row, Device) else None
        return None if chip is None else get(chip)

    return of_chip


def _chip_value(metric: str) -> Getter:
    def value(s: Snapshot, row: Device | Process) -> FieldValue:
        measured = s.of_chip(metric, row) if isinstance(row, Device) else None
        return None if measured is None else measured.value

    return value


def _rounded(metric: str, unit: int = 1) -> Getter:
    """The value in whole units."""

    def value(s: Snapshot, row: Device | Process) -> FieldValue:
        measured = s.value(metric, row.key)
        return None if measured is None else round(measured / unit)

    return value


def _free(s: Snapshot, row: Device | Process) -> FieldValue:
    used, limit = s.value("hbm_used_bytes", row.key), s.value("hbm_limit_bytes", row.key)
    return None if used is None or limit is None else round(max(0, limit - used) / MIB)


def _mfu(s: Snapshot, row: Device | Process) -> FieldValue:
    measured = rows.mfu(s, row) if isinstance(row, Device) else None
    return None if measured is None else measured.value


def _largest_fault(s: Snapshot, row: Device | Process) -> FieldValue:
    chip = row.chip if isinstance(row, Device) else None
    return max((link.health for link in s.links if link.chip == chip), default=None)


def _uuid(s: Snapshot, row: Device | Process) -> FieldValue:
    return uuid(s, row) if isinstance(row, Device) else None


def _timestamp(s: Snapshot, row: Device | Process) -> FieldValue:
    return s.host.time.rstrip("Z").replace("-", "/").replace("T", " ")


def _libtpu(s: Snapshot, row: Device | Process) -> FieldValue:
    keys = (row.key,) if isinstance(row, Process) else row.owners
    versions = (p.facts.get("libtpu_version") for p in s.processes if p.key in keys)
    return next((version for version in versions if version), s.host.libtpu_version)


def _unknown(s: Snapshot, row: Device | Process) -> FieldValue:
    return None


# -- the tables: names, unit, scope, meaning, getter

# fmt: off
_HOST = (
    Field(("timestamp",), "", "host", "When the snapshot was taken, UTC.", _timestamp),
    Field(("hostname",), "", "host", "Name of the host.", lambda s, row: s.host.name),
    Field(("driver_version",), "", "host", "Version of the chips' kernel driver, if it has one.",
          lambda s, row: s.host.tpu_driver_version),
    Field(("libtpu_version",), "", "process", "libtpu of the owning process.", _libtpu),
)
_DEVICE = (
    Field(("index",), "", "device", "Local index of the device.", _device(lambda d: d.index)),
    Field(("id",), "", "device", "Global id of the device, as JAX and libtpu report it.",
          _device(lambda d: d.id)),
    Field(("name", "gpu_name", "tpu_name"), "", "device",
          "Kind of device, as JAX calls it in its job, else the chip's name.",
          _device(lambda d: d.kind)),
    Field(("uuid", "gpu_uuid"), "", "device",
          "Unique and stable name of the device.", _uuid),
    Field(("platform",), "", "device", "Platform: tpu, gpu or cpu.",
          _device(lambda d: d.platform)),
    Field(("chip",), "", "device", "Index of the TPU chip.", _device(lambda d: d.chip)),
    Field(("core_on_chip",), "", "device", "Core on its chip.",
          _device(lambda d: d.core_on_chip)),
    Field(("coords",), "", "device", "Coordinates in the slice.",
          _device(lambda d: None if d.coords is None else " ".join(map(str, d.coords)))),
    Field(("pid",), "", "device", "Process that owns the device, the first of several.",
          _device(lambda d: d.owners[0].pid if d.owners else None)),
    Field(("pids",), "", "device", "Every process that owns the device.",
          _device(lambda d: " ".join(str(owner.pid) for owner in d.owners) or None)),
    Field(("node",), "", "device", "Its device node.", _device(lambda d: d.node)),
    Field(("generation",), "", "chip", "TPU generation: v5e.", _chip(lambda c: c.generation)),
    Field(("pci.bus_id", "pci_address"), "", "chip",
          "PCI address of the chip, the first of two on a 7x.",
          _chip(lambda c: c.pci_addresses[0] if c.pci_addresses else None)),
    Field(("numa_node",), "", "chip", "NUMA node.", _chip(lambda c: c.numa_node)),
    Field(("pcie_link",), "", "chip", "Speed and width of the link.",
          _chip(lambda c: c.pcie_link)),
    Field(("mfu_percent",), "%", "process", "MFU of the job that owns the device.", _mfu),
    Field(("ici.health.worst",), "", "chip", "Worst of its links: 0 healthy, 10 unusable.",
          _largest_fault),
)
_NVIDIA = (
    Field(("memory.used",), "MiB", "device", "Device memory in use.",
          _rounded("hbm_used_bytes", MIB)),
    Field(("memory.total",), "MiB", "device", "Device memory that may be used.",
          _rounded("hbm_limit_bytes", MIB)),
    Field(("memory.free",), "MiB", "device", "memory.total less memory.used.", _free),
    Field(("memory.peak",), "MiB", "device", "Most device memory in use at once.",
          _rounded("hbm_peak_bytes", MIB)),
    Field(("utilization.gpu", "utilization.duty_cycle"), "%", "device",
          "Share of time the chip was busy.", _rounded("duty_cycle_percent")),
    Field(("utilization.tensorcore",), "%", "device", "Share of the peak matrix throughput.",
          _rounded("tensorcore_utilization_percent")),
    Field(("throttle.score",), "%", "chip", "How far the chip slows itself down.",
          _chip_value("throttle_percent")),
    Field(("utilization.memory",), "%", "device", "Share of the peak HBM bandwidth.",
          _rounded("hbm_bandwidth_utilization_percent")),
)
_NEVER = (
    Field(("temperature.gpu",), "", "device", "Temperature: not reported by any TPU.", _unknown),
    Field(("power.draw",), "W", "device", "Power: not reported by any TPU.", _unknown),
    Field(("power.limit",), "W", "device", "Power limit: not reported by any TPU.", _unknown),
)
_PROCESS = (
    Field(("pid",), "", "process", "Process id.", _process(lambda p: p.pid)),
    Field(("process_name", "name", "command"), "", "process", "Command line.",
          _process(lambda p: p.command)),
    Field(("user",), "", "process", "Owner.", _process(lambda p: p.user)),
    Field(("verified",), "", "process", "False: only a file names it.",
          _process(lambda p: str(p.is_verified))),
    Field(("phase",), "", "process", "What the job is doing.", _process(lambda p: p.phase)),
    Field(("state",), "", "process", "live, silent, dead or unknown.",
          _process(lambda p: p.state)),
    Field(("used_memory", "used_gpu_memory"), "MiB", "process",
          "Device memory in use, all devices of the process.", _rounded("hbm_used_bytes", MIB)),
)
