"""`tpusmi -q`: everything about each device as text, in the layout of `nvidia-smi -q`."""

from collections.abc import Iterator, Sequence

from tpusmi.model import Device, Holding, ProcessKey, Snapshot
from tpusmi.model.holding import node_states
from tpusmi.report import query, words
from tpusmi.report.device_names import hardware_name, listed_name
from tpusmi.report.query_fields import Field, Share

TITLE = "==============TPUSMI LOG=============="
MISSING = "N/A"
COLON_AT = 42
"""The column of the colons, whatever the indent of the line."""
INDENT = "    "

_ABOUT = (
    ("Product Name", "name"),
    ("Product Brand", "platform"),
    ("Generation", "generation"),
    ("Global Id", "id"),
    ("Local Index", "index"),
    ("TPU UUID", "uuid"),
    ("Serial Number", "serial"),
    ("Chip", "chip"),
    ("Core on Chip", "core_on_chip"),
    ("Coordinates", "coords"),
    ("Device Node", "node"),
    ("NUMA Node", "numa_node"),
)
"""What every report without `-d` begins with: titles, and the fields of a query."""
SECTIONS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "PCI": ("PCI", (
        ("Bus", "pci.bus"),
        ("Device", "pci.device"),
        ("Domain", "pci.domain"),
        ("Bus Id", "pci.bus_id"),
        ("Link Generation", "pcie.link.gen.current"),
        ("Link Width", "pcie.link.width.current"),
    )),
    "MEMORY": ("HBM Memory Usage", (
        ("Total", "memory.total"),
        ("Reserved", "memory.reserved"),
        ("Used", "memory.used"),
        ("Free", "memory.free"),
        ("Peak", "memory.peak"),
    )),
    "UTILIZATION": ("Utilization", (
        ("Duty Cycle", "utilization.duty_cycle"),
        ("Chip Duty Cycle", "chip.duty_cycle_percent"),
        ("TensorCore", "utilization.tensorcore"),
        ("HBM Bandwidth", "utilization.memory"),
        ("MFU", "mfu_percent"),
        ("Idle", "idle_s"),
        ("HLO Queue", "hlo_queue_size"),
    )),
    "PERFORMANCE": ("Performance", (("Throttle Score", "throttle.score"),)),
    "LINKS": ("ICI Links", (("Worst Health", "ici.health.worst"),)),
    "TEMPERATURE": ("Temperature", (("TPU Current Temp", "temperature.gpu"),)),
    "POWER": ("Power Readings", (("Power Draw", "power.draw"), ("Power Limit", "power.limit"))),
    "PIDS": ("Processes", ()),
}  # fmt: skip
"""What `-d` chooses, with the titles and the fields of each."""
WITHOUT = (
    "ECC", "CLOCK", "COMPUTE", "SUPPORTED_CLOCKS", "PAGE_RETIREMENT", "ACCOUNTING", "ENCODER_STATS",
    "FBC_STATS", "ROW_REMAPPER", "RESET_STATUS", "GSP_FIRMWARE_VERSION", "VOLTAGE",
)  # fmt: skip
"""Sections of nvidia-smi that no TPU has: a script that asks for one is answered N/A."""


def sections_of(text: str) -> tuple[str, ...]:
    """The sections of a list such as `MEMORY,UTILIZATION`. Raises QueryError for another word."""
    names = [word.strip().upper() for word in text.split(",") if word.strip()]
    unknown = [name for name in names if name not in SECTIONS and name not in WITHOUT]
    if unknown or not names:
        raise query.QueryError(
            f'"{unknown[0] if unknown else ""}" is not a section; there are {", ".join(SECTIONS)}'
        )
    return tuple(dict.fromkeys(names))


def full_report(s: Snapshot, sections: Sequence[str] = ()) -> str:
    """The report of every device; of these sections only, unless there are none."""
    fields = query.device_fields()
    lines = [
        "",
        TITLE,
        "",
        _line(0, "Timestamp", words.local_time(s.host.time, "%a %b %d %H:%M:%S %Y")),
        _line(0, "Host Name", s.host.name),
        _line(0, "Driver Version", s.host.tpu_driver_version),
        _line(0, "libtpu Version", s.host.libtpu_version),
        "",
        _line(0, "Attached TPUs", sum(d.is_tpu for d in s.devices)),
    ]
    for d in s.devices:
        lines += [_head(s, d), *_of_device(s, d, sections, fields)]
    return "\n".join(lines) + "\n"


def _head(s: Snapshot, d: Device) -> str:
    """`TPU 0000:00:04.0`, with the core where two share it; `CPU 0` for a device of a job alone."""
    hardware = hardware_name(s, d)
    return listed_name(d) if hardware is None else f"TPU {hardware.removeprefix('TPU-')}"


def _of_device(
    s: Snapshot, d: Device, sections: Sequence[str], fields: dict[str, Field]
) -> Iterator[str]:
    def values(depth: int, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
        for title, name in rows:
            field = fields[name]
            value = field.get(s, d)
            if field.unit == "%" and isinstance(value, float):
                value = round(value)
            text = query.cell(field, value, query.Layout())
            yield _line(depth, title, None if text == query.MISSING else text)

    if not sections:
        yield from values(1, _ABOUT)
    for name in sections or SECTIONS:
        title, rows = SECTIONS.get(name) or (name.replace("_", " ").capitalize(), ())
        if rows:
            yield INDENT + title
            yield from values(2, rows)
        else:
            yield from _processes(s, d) if name == "PIDS" else [_line(1, title, None)]
        yield from _links(s, d) if name == "LINKS" else ()


def _links(s: Snapshot, d: Device) -> Iterator[str]:
    """Health of each of its links, from 0 to 10."""
    for link in s.links_of(d):
        yield _line(2, link.name, link.health)


def _processes(s: Snapshot, d: Device) -> Iterator[str]:
    """The processes that have the device, with what each has in use of it."""
    fields = query.process_fields()
    owners: set[ProcessKey] = {*d.owners}
    processes = [p for p in s.processes if p.key in owners]
    if not processes:
        yield _line(1, "Processes", "None" if _is_free(s, d) else None)
        return
    yield f"{INDENT}Processes"
    for p in processes:
        field = fields["used_memory"]
        value = None if field.of_share is None else field.of_share(s, Share(p, d))
        used = None if value is None else query.cell(field, value, query.Layout())
        yield _line(2, "Process ID", p.pid)
        yield _line(3, "User", p.user)
        yield _line(3, "Type", "C")
        yield _line(3, "Name", p.command)
        yield _line(3, "Used TPU Memory", used)


def _is_free(s: Snapshot, d: Device) -> bool:
    """True where its holders were looked for in every process, and there are none."""
    chip = s.chip_of(d)
    nodes = {d.node} if chip is None else {*chip.nodes}
    states = {n.state for n in node_states(s) if n.node in nodes}
    return bool(states) and states <= {Holding.FREE, Holding.NO_PERMISSION}


def _line(depth: int, title: str, value: object) -> str:
    text = MISSING if value in (None, "") else value
    return f"{INDENT * depth}{title}".ljust(COLON_AT) + f": {text}"
