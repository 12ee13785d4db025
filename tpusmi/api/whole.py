"""The methods of a snapshot: a process, its devices, a value, a sum, and a table for pandas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from tpusmi.api.item import Item, meant
from tpusmi.api.parts import headline
from tpusmi.model.metrics import DEVICE_METRICS

if TYPE_CHECKING:
    import pandas

    from tpusmi import model
    from tpusmi.api.objects import Chip, Device, Process

    Rows = Literal["devices", "processes", "sites", "chips", "warnings", "sources"]

MEASURED = {m.name: m for m in DEVICE_METRICS if "." not in m.name}


class Whole(Item):
    """The methods of a snapshot."""

    __slots__ = ("_model",)
    _model: model.Snapshot
    if TYPE_CHECKING:

        @property
        def devices(self) -> tuple[Device, ...]: ...
        @property
        def processes(self) -> tuple[Process, ...]: ...

    def process(self, pid: int) -> Process:
        """The process with that pid.

        Where several have it (an ended one, and one that only a file claims to exist), the one that
        the kernel shows. Raises TypeError when `pid` is not an integer, and LookupError when no
        process of the snapshot has it.

        >>> s.process(s.processes[0].pid) is s.processes[0]
        True
        """
        if not _is_pid(pid):
            raise TypeError(f"process() takes a pid, not {_named(pid)}")
        several = [p for p in self.processes if p.pid == pid]
        if several:
            return next((p for p in several if p.verified), several[0])
        there = ", ".join(str(p.pid) for p in self.processes) or "none"
        raise LookupError(f"no process {pid} in this snapshot; its processes: {there}")

    def devices_of(self, process: int | Process) -> tuple[Device, ...]:
        """The devices of a process, given by its pid or as an object of any snapshot.

        Empty when the process is there and no device of it is known. Raises TypeError for anything
        else than a pid or a process, and LookupError when this snapshot does not have it.

        >>> s.devices_of(s.processes[0].pid) == s.processes[0].devices
        True
        """
        from tpusmi.api.objects import Process

        if isinstance(process, Process):
            return self._same(process).devices
        if not _is_pid(process):
            hint = "; its process is `device.process`" if type(process).__name__ == "Device" else ""
            raise TypeError(f"devices_of() takes a pid or a process, not {_named(process)}{hint}")
        return self.process(process).devices

    def _same(self, process: Process) -> Process:
        """This process in this snapshot, which may be a later one."""
        for p in self.processes:
            if p is process:
                return p
        who = (process.pid, process.start_ticks, process.verified)
        for p in self.processes:
            if (p.pid, p.start_ticks, p.verified) == who:
                return p
        raise LookupError(f"{process!r} is not in this snapshot")

    def value(self, name: str, of: Device | Process | Chip) -> Any:
        """The attribute of that name, which may be one of a part: `step_time_s.p95`.

        None when it, or what it is a part of, is unknown. Raises TypeError for arguments of other
        kinds, and AttributeError, with the nearest name, where there is no such attribute.

        >>> s.value("step_time_s.p95", s.processes[0]) == s.processes[0].step_time_s.p95
        True
        """
        if not isinstance(name, str) or not isinstance(of, Item):
            expected = 'value("hbm_used_bytes", device): a name, then a device, process or chip'
            raise TypeError(f"{expected}; not {_named(name)} and {_named(of)}")
        return of._at(name)

    def total(self, name: str, devices: Iterable[Device] | None = None) -> int | None:
        """The sum of bytes or counts over these devices, over all of the snapshot by default.

        **None when it is unknown for any of them**, and when there is no device: a sum of the known
        ones would look like the whole. Raises ValueError when `name` is not a count of a device,
        with the nearest one, and TypeError when `devices` are not devices.

        >>> f"{100 * s.total('hbm_used_bytes') / s.total('hbm_limit_bytes'):.0f} % full"
        '... % full'
        """
        values = self._measured(name, devices, "total", ("bytes", "count"))
        return None if values is None else int(sum(values))

    def mean(self, name: str, devices: Iterable[Device] | None = None) -> float | None:
        """The mean of a measured number over these devices, over all of the snapshot by default.

        None when it is unknown for any of them. Raises what `total()` raises.

        >>> 0 <= s.mean("duty_cycle_percent") <= 100
        True
        """
        values = self._measured(name, devices, "mean")
        return None if values is None else sum(values) / len(values)

    def _measured(
        self,
        name: str,
        devices: Iterable[Device] | None,
        method: str,
        units: tuple[str, ...] | None = None,
    ) -> list[float] | None:
        """The values of all these devices; None when one is unknown."""
        if not isinstance(name, str):
            raise TypeError(f'{method}("hbm_used_bytes") takes a name, not {_named(name)}')
        if name not in MEASURED:
            fitting = [m.name for m in MEASURED.values() if units is None or m.unit in units]
            raise ValueError(f"{name!r} is not a measured number of a device{meant(name, fitting)}")
        if units is not None and MEASURED[name].unit not in units:
            unit = MEASURED[name].unit
            raise ValueError(f"{name} ({unit}) cannot be added up; use mean({name!r})")
        values = [getattr(d, name) for d in _devices(devices, self.devices, method)]
        return None if not values or None in values else values

    def to_pandas(self, rows: Rows = "devices") -> pandas.DataFrame:
        """A pandas DataFrame with a row for each of the `devices`, `processes`, `sites` (lines of
        code that hold memory, with the pid), `chips`, `warnings` or `sources`.

        Its columns are the names of the JSON, parts as `step_time_s.p95`, after the time and the
        host. Unknown values are missing (NA), which pandas leaves out of sums: `total()` does not.
        Raises ImportError where pandas is not installed, and ValueError for other rows.

        >>> s.to_pandas()[["name", "hbm_used_bytes"]].shape
        (8, 2)
        >>> list(s.to_pandas("processes")["phase"])
        ['running']
        """
        from tpusmi.api.frames import frame

        return frame(self._plain, rows)

    def __repr__(self) -> str:
        return headline(self._plain)

    def _repr_html_(self) -> str:
        """How a notebook shows it: as `tpusmi.show()` does."""
        from tpusmi.report.html import fragment

        return str(fragment(self._model))


def _is_pid(value: object) -> bool:
    """True also for an integer of NumPy, as in a table of pandas."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _devices(
    devices: Iterable[Device] | None, default: tuple[Device, ...], method: str
) -> list[Device]:
    from tpusmi.api.objects import Device

    if devices is None:
        return [*default]
    try:
        given = [*devices]
    except TypeError:
        given = [devices]  # type: ignore[list-item]
    for device in given:
        if not isinstance(device, Device):
            expected = f"{method}(name, devices) takes device objects, such as process.devices"
            raise TypeError(f"{expected}, not {_named(device)}")
    return given


def _named(value: object) -> str:
    """A wrong argument in a message: what it is."""
    if isinstance(value, Item):
        return repr(value)
    return f"{type(value).__name__} {value!r}"[:80]
