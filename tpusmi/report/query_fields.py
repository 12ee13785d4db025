"""The fields that a query can ask for: names, meaning and getter of each.

nvidia-smi's other names are in `nvidia_fields.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tpusmi.chips import by_kind
from tpusmi.model import NOMINAL, Chip, Device, Metric, Number, Process, Snapshot, Value
from tpusmi.report.device_names import uuid
from tpusmi.report.rows import MIB, free_mib, mfu, worst_link

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
    of_share: Getter | None = None
    """What it is in a row of one device of a process, where that differs: from a Share."""


class Share(NamedTuple):
    """A process on one of its devices; None for a process without any."""

    process: Process
    device: Device | None


def _field(
    names: str, help: str, get: Getter | None = None, scope: str = "device", unit: str = ""
) -> Field:
    """A field with those names, apart by blanks: what `get` returns, else the item's attribute of
    the first name.
    """
    name, *others = names.split()
    read = get or (lambda s, item: getattr(item, name))
    return Field((name, *others), help, read, scope=scope, unit=unit)


def of_metric(m: Metric) -> Field:
    def value(s: Snapshot, item: Device | Process) -> FieldValue:
        return s.value(m.name, item.key)

    return Field((m.name,), m.help, value, scope=m.scope, unit=_unit(m))


def of_chip_metric(m: Metric) -> Field:
    """What was measured of the device's whole chip, under a name that says so."""
    return Field((f"chip.{m.name}",), m.help, _of_chip(m.name), scope=m.scope, unit=_unit(m))


def _unit(m: Metric) -> str:
    return "" if m.unit == "count" else {"percent": "%", "bytes": "B"}.get(m.unit, m.unit)


def _chip(get: Callable[[Chip], FieldValue]) -> Getter:
    def of_chip(s: Snapshot, d: Device) -> FieldValue:
        chip = s.chip_of(d)
        return None if chip is None else get(chip)

    return of_chip


def pci_address(s: Snapshot, d: Device) -> str | None:
    """The PCI address of the device's chip, the first of several; None where no bus shows it."""
    chip = s.chip_of(d)
    return chip.pci_addresses[0] if chip is not None and chip.pci_addresses else None


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
    return free_mib(s.value("hbm_used_bytes", d.key), s.value("hbm_limit_bytes", d.key))


def _total_bytes(s: Snapshot, d: Device) -> Number | None:
    """Memory of the device by its kind, the same with and without a job; None for other kinds."""
    chip = s.chip_of(d)
    if chip is not None and chip.hbm_nominal_bytes is not None:
        return chip.hbm_nominal_bytes // chip.devices
    generation = None if d.kind is None else by_kind(d.kind)
    return None if generation is None else generation.hbm_bytes // generation.devices_per_chip


def _total(s: Snapshot, d: Device) -> FieldValue:
    total = _total_bytes(s, d) or s.value("hbm_limit_bytes", d.key)
    return None if total is None else round(total / MIB)


def _reserved(s: Snapshot, d: Device) -> FieldValue:
    """None where no limit was measured, and where that is more than the device has."""
    total, limit = _total_bytes(s, d), s.values.get((d.key, "hbm_limit_bytes"))
    if total is None or limit is None or limit.source == NOMINAL or limit.value > total:
        return None
    return round(total / MIB) - round(limit.value / MIB)


def _of_process(s: Snapshot, p: Process) -> FieldValue:
    """As the table's MEMORY: without an agent the sum over the devices that are its alone."""
    used = s.value("hbm_used_bytes", p.key)
    return None if used is None else round(used / MIB)


def _of_device(s: Snapshot, share: Share) -> FieldValue:
    """Memory in use on one device; None where several processes have it."""
    d = share.device
    used = None if d is None or len(d.owners) > 1 else s.value("hbm_used_bytes", d.key)
    return None if used is None else round(used / MIB)


def _libtpu(s: Snapshot, item: Device | Process) -> FieldValue:
    keys = (item.key,) if isinstance(item, Process) else item.owners
    versions = (p.facts.get("libtpu_version") for p in s.processes if p.key in keys)
    return next((version for version in versions if version), s.host.libtpu_version)


def csv_time(rfc3339: str) -> str:
    """`2026/07/28 09:30:00.123`, as nvidia-smi prints a time."""
    return rfc3339.rstrip("Z").replace("-", "/").replace("T", " ")


# -- the tables: names, meaning, getter

# fmt: off
HOST_FIELDS = (
    _field("timestamp", "When the snapshot was taken, UTC.", scope="host",
           get=lambda s, item: csv_time(s.host.time)),
    _field("hostname", "Name of the host.", lambda s, item: s.host.name, scope="host"),
    _field("driver_version", "Version of the chips' kernel driver, if it has one.",
           lambda s, item: s.host.tpu_driver_version, scope="host"),
    _field("libtpu_version", "libtpu of the owning process.", _libtpu, scope="process"),
)
DEVICE_FIELDS = (
    _field("index", "Local index of the device."),
    _field("id", "Global id of the device, as JAX and libtpu report it."),
    _field("name gpu_name tpu_name", "Kind of device: TPU v5e.", lambda s, d: d.kind),
    _field("uuid gpu_uuid", "Unique name of the device, the same with and without a job.", uuid),
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
    _field("pci.bus_id gpu_bus_id pci_address", "PCI address of the chip, the first of a 7x's two.",
           pci_address, scope="chip"),
    _field("numa_node", "NUMA node.", _chip(lambda c: c.numa_node), scope="chip"),
    _field("pcie_link", "Speed and width of the link.", _chip(lambda c: c.pcie_link), scope="chip"),
    _field("mfu_percent", "MFU of the job that owns the device.",
           lambda s, d: _number(mfu(s, d)), scope="process", unit="%"),
    _field("ici.health.worst", "Worst of its links: 0 healthy, 10 unusable.", worst_link,
           scope="chip"),
    _field("memory.used", "Device memory in use.", _rounded("hbm_used_bytes", MIB), unit="MiB"),
    _field("memory.total", "Memory of the device, by its kind; else what may be used of it.",
           _total, unit="MiB"),
    _field("memory.reserved", "What libtpu keeps for itself: memory.total less what may be used.",
           _reserved, unit="MiB"),
    _field("memory.free", "What may be used less memory.used.", _free, unit="MiB"),
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
PROCESS_FIELDS = (
    _field("pid", "Process id.", scope="process"),
    _field("process_name name command", "Command line.", lambda s, p: p.command, scope="process"),
    _field("user", "Owner.", scope="process"),
    _field("verified", "False: only a file names it.",
           lambda s, p: str(p.is_verified), scope="process"),
    _field("phase", "What the job is doing.", scope="process"),
    _field("state", "live, silent, dead or unknown.", scope="process"),
    _field("used_memory used_gpu_memory",
           "Device memory in use, all devices of the process; beside gpu_uuid, of that device.",
           _of_process, scope="process", unit="MiB")._replace(of_share=_of_device),
)
