"""The fleet as CSV: a line for each device, in the form that nvidia-smi prints. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tpusmi.fleet.fleet_figures import FleetDevice, FleetHost, FleetProcess, FleetSnapshot
from tpusmi.fleet.report.fleetkeys import timestamp
from tpusmi.report.query import Layout, cell, csv_header
from tpusmi.report.query_fields import Field, FieldValue, csv_time
from tpusmi.report.rows import MIB


class CsvLine(NamedTuple):
    """A device of a host; of a host without any, the host alone."""

    host: FleetHost
    device: FleetDevice | None
    process: FleetProcess | None


def _field(name: str, get: Callable[[CsvLine], FieldValue], unit: str = "") -> Field:
    def read(s: Any, line: CsvLine) -> FieldValue:
        return get(line)

    return Field((name,), "", read, unit=unit)


def _of_device(name: str, get: Callable[[FleetDevice], FieldValue]) -> Field:
    return _field(name, lambda x: None if x.device is None else get(x.device))


def _value(name: str, metric: str, unit: str, size: int = 1) -> Field:
    """A metric of the device, in whole units."""

    def of_device(x: CsvLine) -> FieldValue:
        value = None if x.device is None else x.device.values.get(metric)
        return None if value is None else round(value / size)

    return _field(name, of_device, unit)


def _step_ms(x: CsvLine) -> FieldValue:
    step_s = None if x.process is None else x.process.values.get("step_time_s.mean")
    return None if step_s is None else round(1000 * step_s)


# fmt: off
FIELDS = (
    Field(("timestamp",), "", lambda s, x: csv_time(timestamp(s.at_s))),
    _field("hostname", lambda x: x.host.name),
    _field("address", lambda x: x.host.address),
    _field("state", lambda x: str(x.host.state)),
    _field("age", lambda x: None if x.host.age_s is None else round(x.host.age_s), "s"),
    _field("slice", lambda x: x.host.slice),
    _field("worker", lambda x: x.host.worker),
    _of_device("job", lambda d: d.job),
    _field("user", lambda x: None if x.process is None else x.process.user),
    _of_device("pid", lambda d: d.pid),
    _of_device("index", lambda d: d.name),
    _of_device("chip", lambda d: d.chip),
    _of_device("name", lambda d: d.kind),
    _of_device("coords", lambda d: None if d.coords is None else " ".join(map(str, d.coords))),
    _value("memory.used", "hbm_used_bytes", "MiB", MIB),
    _value("memory.total", "hbm_limit_bytes", "MiB", MIB),
    _value("utilization.tensorcore", "tensorcore_utilization_percent", "%"),
    _value("utilization.gpu", "duty_cycle_percent", "%"),
    _value("utilization.memory", "hbm_bandwidth_utilization_percent", "%"),
    _value("idle", "idle_s", "s"),
    _value("throttle.score", "throttle_percent", "%"),
    _field("phase", lambda x: None if x.process is None else x.process.phase),
    _field("step.time", _step_ms, "ms"),
)
# fmt: on
_COLUMNS = [(field.names[0], field) for field in FIELDS]


def csv_text(s: FleetSnapshot, layout: Layout, with_header: bool) -> str:
    """A line for each device of each host, after a line with the names if that is asked for."""
    lines = [csv_header(_COLUMNS, layout)] if with_header and layout.header else []
    for host in s.hosts:
        processes = {p.pid: p for p in host.processes}
        for device in host.devices or (None,):
            pid = None if device is None else device.pid
            line = CsvLine(host, device, None if pid is None else processes.get(pid))
            cells = (cell(field, field.get(s, line), layout) for field in FIELDS)  # type: ignore[arg-type]
            lines.append(", ".join(cells) + "\n")
    return "".join(lines)
