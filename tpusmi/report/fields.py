"""What `--query-tpu` and `--query-compute-apps` can be asked for, in the manner of nvidia-smi."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tpusmi.model import DEVICE_METRICS, PROCESS_METRICS, Device, Metric, Number, Process, Snapshot
from tpusmi.report.select import identifier

MIB = 1024 * 1024

Cell = str | Number | None


class Field(NamedTuple):
    """One column: its names (the first is the real one), unit, scope, meaning, how to get it."""

    names: tuple[str, ...]
    unit: str
    scope: str
    help: str
    of: Callable[[Snapshot, Device | Process], Cell]


def device_fields() -> dict[str, Field]:
    """Every field of a device, by each of its names."""
    return _by_name((*_HOST, *_DEVICE, *map(_metric, DEVICE_METRICS), *_NVIDIA, *_NEVER))


def process_fields() -> dict[str, Field]:
    """Every field of a process, by each of its names."""
    return _by_name((*_HOST, *_PROCESS, *map(_metric, PROCESS_METRICS)))


def help_text(fields: dict[str, Field]) -> str:
    """One quoted name per line with its meaning below, as programs parse it."""
    parts = []
    for field in dict.fromkeys(fields.values()):
        names = " or ".join(f'"{name}"' for name in field.names)
        parts.append(f"{names}\n{field.help} Unit: {field.unit or 'none'}. Scope: {field.scope}.\n")
    return "\n".join(parts)


def _by_name(fields: tuple[Field, ...]) -> dict[str, Field]:
    return {name: field for field in fields for name in field.names}


def _metric(m: Metric) -> Field:
    def value(s: Snapshot, row: Device | Process) -> Cell:
        return s.value(m.name, row.key)

    unit = "" if m.unit == "count" else {"percent": "%", "bytes": "B"}.get(m.unit, m.unit)
    return Field((m.name,), unit, m.scope, m.help, value)


def _mib(names: tuple[str, ...], metric: str, help: str, scope: str = "device") -> Field:
    def value(s: Snapshot, row: Device | Process) -> Cell:
        found = s.value(metric, row.key)
        return None if found is None else round(found / MIB)

    return Field(names, "MiB", scope, help, value)


def _percent(names: tuple[str, ...], metric: str, help: str) -> Field:
    def value(s: Snapshot, row: Device | Process) -> Cell:
        found = s.value(metric, row.key)
        return None if found is None else round(found)

    return Field(names, "%", "device", help, value)


def _free(s: Snapshot, row: Device | Process) -> Cell:
    used, limit = s.value("hbm_used_bytes", row.key), s.value("hbm_limit_bytes", row.key)
    return None if used is None or limit is None else round(max(0, limit - used) / MIB)


def _of_device(get: Callable[[Device], Cell]) -> Callable[[Snapshot, Device | Process], Cell]:
    return lambda s, row: get(row) if isinstance(row, Device) else None


def _of_process(get: Callable[[Process], Cell]) -> Callable[[Snapshot, Device | Process], Cell]:
    return lambda s, row: get(row) if isinstance(row, Process) else None


def _timestamp(s: Snapshot, row: Device | Process) -> Cell:
    return s.host.time.rstrip("Z").replace("-", "/").replace("T", " ")


def _libtpu(s: Snapshot, row: Device | Process) -> Cell:
    key = row.key if isinstance(row, Process) else row.key.process
    return next((p.facts.get("libtpu_version") for p in s.processes if p.key == key), None)


_HOST = (
    Field(("timestamp",), "", "host", "When the snapshot was taken, UTC.", _timestamp),
    Field(("hostname",), "", "host", "Name of the host.", lambda s, row: s.host.name),
    Field(("libtpu_version",), "", "process", "libtpu of the owning process.", _libtpu),
)

_DEVICE = (
    Field(("index",), "", "device", "Local index of the device.", _of_device(lambda d: d.index)),
    Field(
        ("id",),
        "",
        "device",
        "Global id of the device, as JAX and libtpu say.",
        _of_device(lambda d: d.id),
    ),
    Field(
        ("name", "gpu_name", "tpu_name"),
        "",
        "device",
        "Kind of device, as JAX calls it.",
        _of_device(lambda d: d.kind),
    ),
    Field(
        ("uuid", "gpu_uuid"),
        "",
        "device",
        "A name no other device of this host has.",
        _of_device(identifier),
    ),
    Field(
        ("platform",),
        "",
        "device",
        "Platform: tpu, gpu or cpu.",
        _of_device(lambda d: d.platform),
    ),
    Field(("chip",), "", "device", "Index of the TPU chip.", _of_device(lambda d: d.chip)),
    Field(
        ("core_on_chip",),
        "",
        "device",
        "Core on its chip.",
        _of_device(lambda d: d.core_on_chip),
    ),
    Field(
        ("coords",),
        "",
        "device",
        "Coordinates in the slice.",
        _of_device(lambda d: None if d.coords is None else " ".join(map(str, d.coords))),
    ),
    Field(
        ("pid",),
        "",
        "device",
        "Process that owns the device.",
        _of_device(lambda d: None if d.key.process is None else d.key.process.pid),
    ),
)

_NVIDIA = (
    _mib(("memory.used",), "hbm_used_bytes", "Device memory in use."),
    _mib(("memory.total",), "hbm_limit_bytes", "Device memory that may be used."),
    Field(("memory.free",), "MiB", "device", "memory.total less memory.used.", _free),
    _mib(("memory.peak",), "hbm_peak_bytes", "Most device memory in use at once."),
    _percent(
        ("utilization.gpu", "utilization.duty_cycle"),
        "duty_cycle_percent",
        "Share of time the chip was busy.",
    ),
    _percent(
        ("utilization.tensorcore",),
        "tensorcore_utilization_percent",
        "Share of the peak matrix throughput.",
    ),
    _percent(
        ("utilization.memory",),
        "hbm_bandwidth_utilization_percent",
        "Share of the peak HBM bandwidth.",
    ),
)

_NEVER = tuple(
    Field((name,), unit, "device", f"{what}: no TPU tells it.", lambda s, row: None)
    for name, unit, what in (
        ("pci.bus_id", "", "PCI address"),
        ("driver_version", "", "Driver version"),
        ("temperature.gpu", "", "Temperature"),
        ("power.draw", "W", "Power"),
        ("power.limit", "W", "Power limit"),
    )
)

_PROCESS = (
    Field(("pid",), "", "process", "Process id.", _of_process(lambda p: p.pid)),
    Field(
        ("process_name", "name", "command"),
        "",
        "process",
        "Command line.",
        _of_process(lambda p: p.command),
    ),
    Field(("user",), "", "process", "Owner.", _of_process(lambda p: p.user)),
    Field(("phase",), "", "process", "What the job is doing.", _of_process(lambda p: p.phase)),
    Field(("state",), "", "process", "live, silent or dead.", _of_process(lambda p: p.state)),
    _mib(
        ("used_memory", "used_gpu_memory"),
        "hbm_used_bytes",
        "Device memory in use, all devices of the process.",
        "process",
    ),
)
