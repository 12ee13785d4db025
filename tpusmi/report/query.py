"""What `--query-tpu` and `--query-compute-apps` accept, and the CSV that they print."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
    Value,
)
from tpusmi.report import rows
from tpusmi.report.device_names import uuid

MISSING = "[N/A]"
MIB = 1024 * 1024

FieldValue = str | Number | None
Getter = Callable[[Snapshot, Any], FieldValue]
"""From a snapshot, and a device or process of it."""


class Field(NamedTuple):
    """One column that can be asked for."""

    names: tuple[str, ...]
    """The first is the real one."""
    help: str
    get: Getter
    scope: str = "device"
    unit: str = ""


class Layout(NamedTuple):
    """`--format=csv[,noheader][,nounits]`."""

    header: bool = True
    units: bool = True


class QueryError(ValueError):
    """A query or format that cannot be answered, with the reason in a sentence."""


def device_fields() -> dict[str, Field]:
    """Every field of a device, by each of its names."""
    own, of_chips = map(_metric, DEVICE_METRICS), map(_chip_metric, CHIP_METRICS)
    return _by_name((*_HOST, *_DEVICE, *own, *of_chips, *_NVIDIA))


def process_fields() -> dict[str, Field]:
    """Every field of a process, by each of its names."""
    return _by_name((*_HOST, *_PROCESS, *map(_metric, PROCESS_METRICS)))


def _by_name(fields: tuple[Field, ...]) -> dict[str, Field]:
    return {name: field for field in fields for name in field.names}


def help_text(fields: dict[str, Field]) -> str:
    """One quoted name per line with its meaning below, as programs parse it."""
    parts = []
    for field in dict.fromkeys(fields.values()):
        names = " or ".join(f'"{name}"' for name in field.names)
        unit = f" Unit: {field.unit}." if field.unit else ""
        parts.append(f"{names}\n{field.help}{unit} Scope: {field.scope}.\n")
    return "\n".join(parts)


def parse_query(text: str, fields: dict[str, Field]) -> list[tuple[str, Field]]:
    """The fields named in `a,b,c`, each under the name it was asked by. Raises QueryError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in fields]
    if unknown or not names:
        raise QueryError(f'Field "{unknown[0] if unknown else ""}" is not a valid field to query.')
    return [(name, fields[name]) for name in names]


def parse_format(text: str) -> Layout:
    """The layout named by `csv[,noheader][,nounits]`. Raises QueryError."""
    words = [word.strip() for word in text.split(",")]
    unknown = [w for w in words if w not in ("csv", "noheader", "nounits")]
    if unknown or "csv" not in words:
        raise QueryError(f'format "{text}" is not csv[,noheader][,nounits]')
    return Layout("noheader" not in words, "nounits" not in words)


def csv_header(columns: Sequence[tuple[str, Field]], layout: Layout) -> str:
    """The first line: names with their units."""
    return ", ".join(f"{n} [{f.unit}]" if f.unit and layout.units else n for n, f in columns) + "\n"


def csv_rows(
    s: Snapshot,
    items: Sequence[Device | Process],
    columns: Sequence[tuple[str, Field]],
    layout: Layout,
) -> str:
    """One line per device or process."""
    lines = (", ".join(_cell(f.get(s, item), f.unit, layout) for _, f in columns) for item in items)
    return "".join(line + "\n" for line in lines)


def _cell(value: FieldValue, unit: str, layout: Layout) -> str:
    if value is None:
        return MISSING
    text = f"{value:.6g}" if isinstance(value, float) else str(value).replace(",", ";")
    return f"{text} {unit}" if unit and layout.units else text


# -- how fields are made


def _field(names: str, help: str, get: Getter | None = None, **more: str) -> Field:
    """A field with those names, apart by blanks: what `get` returns, else the item's attribute of
    the first name.
    """
    name, *others = names.split()
    return Field((name, *others), help, get or (lambda s, item: getattr(item, name)), **more)


def _metric(m: Metric) -> Field:
    def value(s: Snapshot, item: Device | Process) -> FieldValue:
        return s.value(m.name, item.key)

    return Field((m.name,), m.help, value, scope=m.scope, unit=_unit(m))


def _chip_metric(m: Metric) -> Field:
    """What was measured of the device's whole chip, under a name that says so."""
    return Field((f"chip.{m.name}",), m.help, _of_chip(m.name), scope=m.scope, unit=_unit(m))


def _unit(m: Metric) -> str:
    return "" if m.unit == "count" else {"percent": "%", "bytes": "B"}.get(m.unit, m.unit)


def _chip(get: Callable[[Chip], FieldValue]) -> Getter:
    def of_chip(s: Snapshot, d: Device) -> FieldValue:
        chip = s.chip_of(d)
        return None if chip is None else get(chip)

    return of_chip


def _number(measured: Value | None) -> FieldValue:
    return None if measured is None else measured.value


def _of_chip(metric: str) -> Getter:
    return lambda s, d: _number(s.of_chip(metric, d))


def _rounded(metric: str, unit: int = 1) -> Getter:
    """The value in whole units."""

    def value(s: Snapshot, item: Device | Process) -> FieldValue:
        measured = s.value(metric, item.key)
        return None if measured is None else round(measured / unit)

    return value


def _free(s: Snapshot, d: Device) -> FieldValue:
    used, limit = s.value("hbm_used_bytes", d.key), s.value("hbm_limit_bytes", d.key)
    return None if used is None or limit is None else round(max(0, limit - used) / MIB)


def _libtpu(s: Snapshot, item: Device | Process) -> FieldValue:
    keys = (item.key,) if isinstance(item, Process) else item.owners
    versions = (p.facts.get("libtpu_version") for p in s.processes if p.key in keys)
    return next((version for version in versions if version), s.host.libtpu_version)


# -- the tables: names, meaning, getter

# fmt: off
_HOST = (
    _field("timestamp", "When the snapshot was taken, UTC.", scope="host",
           get=lambda s, item: s.host.time.rstrip("Z").replace("-", "/").replace("T", " ")),
    _field("hostname", "Name of the host.", lambda s, item: s.host.name, scope="host"),
    _field("driver_version", "Version of the chips' kernel driver, if it has one.",
           lambda s, item: s.host.tpu_driver_version, scope="host"),
    _field("libtpu_version", "libtpu of the owning process.", _libtpu, scope="process"),
)
_DEVICE = (
    _field("index", "Local index of the device."),
    _field("id", "Global id of the device, as JAX and libtpu report it."),
    _field("name gpu_name tpu_name",
           "Kind of device, as JAX calls it in its job, else the chip's name.",
           lambda s, d: d.kind),
    _field("uuid gpu_uuid", "Unique and stable name of the device.", uuid),
    _field("platform", "Platform: tpu, gpu or cpu."),
    _field("chip", "Index of the TPU chip."),
    _field("core_on_chip", "Core on its chip."),
    _field("coords", "Coordinates in the slice.",
           lambda s, d: None if d.coords is None else " ".join(map(str, d.coords))),
    _field("pid", "Process that owns the device, the first of several.",
           lambda s, d: d.owners[0].pid if d.owners else None),
    _field("pids", "Every process that owns the device.",
           lambda s, d: " ".join(str(owner.pid) for owner in d.owners) or None),
    _field("node", "Its device node."),
    _field("generation", "TPU generation: v5e.", _chip(lambda c: c.generation), scope="chip"),
    _field("pci.bus_id pci_address", "PCI address of the chip, the first of two on a 7x.",
           _chip(lambda c: c.pci_addresses[0] if c.pci_addresses else None), scope="chip"),
    _field("numa_node", "NUMA node.", _chip(lambda c: c.numa_node), scope="chip"),
    _field("pcie_link", "Speed and width of the link.", _chip(lambda c: c.pcie_link), scope="chip"),
    _field("mfu_percent", "MFU of the job that owns the device.",
           lambda s, d: _number(rows.mfu(s, d)), scope="process", unit="%"),
    _field("ici.health.worst", "Worst of its links: 0 healthy, 10 unusable.", scope="chip",
           get=lambda s, d: max((link.health for link in s.links if link.chip == d.chip),
                                default=None)),
)
_NVIDIA = (
    _field("memory.used", "Device memory in use.", _rounded("hbm_used_bytes", MIB), unit="MiB"),
    _field("memory.total", "Device memory that may be used.",
           _rounded("hbm_limit_bytes", MIB), unit="MiB"),
    _field("memory.free", "memory.total less memory.used.", _free, unit="MiB"),
    _field("memory.peak", "Most device memory in use at once.",
           _rounded("hbm_peak_bytes", MIB), unit="MiB"),
    _field("utilization.gpu utilization.duty_cycle", "Share of time the chip was busy.",
           _rounded("duty_cycle_percent"), unit="%"),
    _field("utilization.tensorcore", "Share of the peak matrix throughput.",
           _rounded("tensorcore_utilization_percent"), unit="%"),
    _field("throttle.score", "How far the chip slows itself down.",
           _of_chip("throttle_percent"), scope="chip", unit="%"),
    _field("utilization.memory", "Share of the peak HBM bandwidth.",
           _rounded("hbm_bandwidth_utilization_percent"), unit="%"),
    _field("temperature.gpu", "Temperature: not reported by any TPU.", lambda s, d: None),
    _field("power.draw", "Power: not reported by any TPU.", lambda s, d: None, unit="W"),
    _field("power.limit", "Power limit: not reported by any TPU.", lambda s, d: None, unit="W"),
)
_PROCESS = (
    _field("pid", "Process id.", scope="process"),
    _field("process_name name command", "Command line.", lambda s, p: p.command, scope="process"),
    _field("user", "Owner.", scope="process"),
    _field("verified", "False: only a file names it.",
           lambda s, p: str(p.is_verified), scope="process"),
    _field("phase", "What the job is doing.", scope="process"),
    _field("state", "live, silent, dead or unknown.", scope="process"),
    _field("used_memory used_gpu_memory", "Device memory in use, all devices of the process.",
           _rounded("hbm_used_bytes", MIB), scope="process", unit="MiB"),
)
