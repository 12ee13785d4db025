"""What `--query-tpu` and `--query-compute-apps` accept, and the CSV that they print."""

from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.model import CHIP_METRICS, DEVICE_METRICS, PROCESS_METRICS, Device, Process, Snapshot
from tpusmi.nearest import nearest
from tpusmi.report.query_fields import (
    DEVICE_FIELDS,
    HOST_FIELDS,
    PROCESS_FIELDS,
    Field,
    FieldValue,
    Share,
    of_chip_metric,
    of_metric,
)
from tpusmi.report.rows import IndexedSnapshot

MISSING = "[N/A]"
ABSENT_HEAD = "nvidia-smi has these fields, and no TPU reports them. They print [N/A]:"

Item = Device | Process | Share
"""What a line of the CSV is about."""


class Layout(NamedTuple):
    """`--format=csv[,noheader][,nounits]`."""

    header: bool = True
    units: bool = True


class QueryError(ValueError):
    """A query or format that cannot be answered, with the reason in a sentence."""


def device_fields() -> dict[str, Field]:
    """Every field of a device, by each of its names; those that no TPU has are last."""
    from tpusmi.report.nvidia_fields import NVIDIA_DEVICE_FIELDS, absent_fields

    own, of_chips = map(of_metric, DEVICE_METRICS), map(of_chip_metric, CHIP_METRICS)
    present = _by_name((*HOST_FIELDS, *DEVICE_FIELDS, *own, *of_chips, *NVIDIA_DEVICE_FIELDS))
    return present | {n: f for n, f in _by_name(absent_fields()).items() if n not in present}


def process_fields() -> dict[str, Field]:
    """Every field of a process, by each of its names."""
    from tpusmi.report.nvidia_fields import NVIDIA_PROCESS_FIELDS

    own = map(of_metric, PROCESS_METRICS)
    return _by_name((*HOST_FIELDS, *PROCESS_FIELDS, *own, *NVIDIA_PROCESS_FIELDS))


def _by_name(fields: tuple[Field, ...]) -> dict[str, Field]:
    return {name: field for field in fields for name in field.names}


def help_text(fields: dict[str, Field]) -> str:
    """One quoted name per line with its meaning below, as programs parse it."""
    parts, absent = [], []
    for field in dict.fromkeys(fields.values()):
        names = " or ".join(f'"{name}"' for name in field.names)
        unit = f" Unit: {field.unit}." if field.unit else ""
        if field.help:
            parts.append(f"{names}\n{field.help}{unit} Scope: {field.scope}.\n")
        else:
            absent.append(f"{names}\n")
    if absent:
        parts.append(f"{ABSENT_HEAD}\n{''.join(absent)}")
    return "\n".join(parts)


def parse_query(
    text: str, fields: dict[str, Field], lister: str = "--help-query-tpu"
) -> list[tuple[str, Field]]:
    """The fields named in `a,b,c`, each under the name it was asked by. `lister` is the option that
    lists them all. Raises QueryError, which names the nearest field.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in fields]
    if unknown or not names:
        name = unknown[0] if unknown else ""
        raise QueryError(
            f'Field "{name}" is not a valid field to query.{_nearest(name, fields)} '
            f"{lister} lists the fields."
        )
    return [(name, fields[name]) for name in names]


def _nearest(name: str, fields: dict[str, Field]) -> str:
    """` Did you mean "memory.used"?`, or nothing."""
    present = [n for n, field in fields.items() if field.help]
    near = nearest(name, present) or nearest(name, fields)
    return f' Did you mean "{near}"?' if near else ""


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
    items: Sequence[Item],
    columns: Sequence[tuple[str, Field]],
    layout: Layout,
) -> str:
    """One line per device or process; one for each device of a process where its devices are asked
    for, as nvidia-smi does.
    """
    if any(f.scope == "device" for _, f in columns):
        items = _shares(s, items)

    def line(item: Item) -> str:
        return ", ".join(cell(f, _value(s, f, item), layout) for _, f in columns)

    return "".join(f"{line(item)}\n" for item in items)


def _shares(s: Snapshot, items: Sequence[Item]) -> list[Item]:
    """Each process once for each of its devices, but not one that has only loaded libtpu; devices
    as they are.
    """
    at, shares = IndexedSnapshot(s), list[Item]()
    for item in items:
        if not isinstance(item, Process):
            shares.append(item)
            continue
        own = at.devices_of(item.key)
        if own or not item.loaded_only:
            shares += [Share(item, device) for device in own or (None,)]
    return shares


def _value(s: Snapshot, field: Field, item: Item) -> FieldValue:
    if not isinstance(item, Share):
        return field.get(s, item)
    return field.get(s, item.process) if field.of_share is None else field.of_share(s, item)


def cell(field: Field, value: FieldValue, layout: Layout) -> str:
    """The value as the CSV has it: with its unit, or `[N/A]`."""
    if value is None:
        return MISSING
    text = f"{value:.6g}" if isinstance(value, float) else str(value).replace(",", ";")
    return f"{text} {field.unit}" if field.unit and layout.units else text
