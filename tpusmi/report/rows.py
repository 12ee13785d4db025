"""What a device's row shows beside its own values: those of its whole chip, and its owner's."""

from collections.abc import Sequence
from typing import NamedTuple

from tpusmi.model import SOLE_HOLDER, Device, Process, ProcessKey, Snapshot, Value
from tpusmi.model.several import total
from tpusmi.report import words
from tpusmi.report.concerns import Concerns

MIB = 1024 * 1024
DITTO = '"'
"""Shown in place of a value of the whole chip, which is in the row of its first device."""
DITTO_LEGEND = f"{DITTO} = value of the whole chip, shown in the row above"


class DeviceValue(NamedTuple):
    """A value for a row."""

    value: Value | None
    repeats: bool = False
    """True when it is the whole chip's, and is shown in the row of the chip's first device."""


def device_value(s: Snapshot, d: Device, name: str) -> DeviceValue:
    """The device's own value; where only its chip was measured, the chip's."""
    own = s.values.get((d.key, name))
    if own is not None:
        return DeviceValue(own)
    whole = s.of_chip(name, d)
    return DeviceValue(whole, repeats=whole is not None and bool(d.core_on_chip))


class DeviceMemory(NamedTuple):
    """The memory of a device, or of its whole chip: values of the two are never combined."""

    used: Value | None
    limit: Value | None
    peak: Value | None
    repeats: bool

    @property
    def share(self) -> float | None:
        """Used of the limit, 0 to 1."""
        return self._of_limit(self.used)

    @property
    def peak_share(self) -> float | None:
        return self._of_limit(self.peak)

    @property
    def peak_text(self) -> str:
        """`peak 7.5 GiB`; empty where it is unknown."""
        peak = self.peak
        return "" if peak is None else f"peak {words.source_mark(peak)}{words.size(peak.value)}"

    @property
    def text(self) -> str:
        return words.used_of_limit(self.used, self.limit)

    def _of_limit(self, value: Value | None) -> float | None:
        if value is None or self.limit is None or not self.limit.value:
            return None
        return value.value / self.limit.value


def memory(s: Snapshot, d: Device) -> DeviceMemory:
    """Used, limit and peak of the device; of its chip where only that was measured."""
    read, key = s.values.get, d.key  # every device at every tick
    used = read((key, "hbm_used_bytes"))
    if used is None and (whole := device_value(s, d, "hbm_used_bytes")).value is not None:
        return DeviceMemory(whole.value, _chip_limit(s, d), None, whole.repeats)
    limit = read((key, "hbm_limit_bytes"))
    if used is None and limit is None:
        of_chip = device_value(s, d, "hbm_limit_bytes")
        return DeviceMemory(None, of_chip.value, None, of_chip.repeats)
    return DeviceMemory(used, limit, read((key, "hbm_peak_bytes")), False)


def share(s: Snapshot, d: Device, metric: str) -> tuple[float | None, bool]:
    """The quantity of a device as a share, and whether its reading is old: memory in use of the
    limit, else a percentage. None if unknown.
    """
    if metric == "hbm_used_bytes":
        full = memory(s, d)
        return (None, False) if full.used is None else (full.share, full.used.stale)
    value = device_value(s, d, metric).value
    return (None, False) if value is None else (value.value / 100, value.stale)


def _chip_limit(s: Snapshot, d: Device) -> Value | None:
    """The limit of the whole chip: as measured, else the sum over its devices."""
    whole = s.of_chip("hbm_limit_bytes", d)
    if whole is not None:
        return whole
    return total(s, "hbm_limit_bytes", [x for x in s.devices if x.chip == d.chip])


class IndexedSnapshot:
    """A snapshot, and the devices of each process in it: tables ask for them row by row."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._devices: dict[ProcessKey, list[Device]] | None = None
        self._concerns: Concerns | None = None

    @property
    def concerns(self) -> Concerns:
        """Its notices by what they are about."""
        if self._concerns is None:
            self._concerns = Concerns(self.snapshot)
        return self._concerns

    def devices_of(self, process: ProcessKey) -> Sequence[Device]:
        """As `Snapshot.devices_of`."""
        if self._devices is None:
            self._devices = _by_owner(self.snapshot)
        return self._devices.get(process, ())


def _by_owner(s: Snapshot) -> dict[ProcessKey, list[Device]]:
    by_owner: dict[ProcessKey, list[Device]] = {}
    for d in (*s.devices, *s.dead_devices):
        for owner in {*d.owners, d.key.process}:
            if owner is not None:
                by_owner.setdefault(owner, []).append(d)
    return by_owner


def memory_of_process(s: Snapshot, p: Process) -> tuple[Value | None, str]:
    """What it has in use on all its devices, with ` chips` where it is that of all chips that it
    holds alone; else its live arrays, and ` live`.
    """
    used = s.values.get((p.key, "hbm_used_bytes"))
    if used is None:
        return s.values.get((p.key, "live_array_bytes")), " live"
    return used, " chips" if used.source == SOLE_HOLDER else ""


def mfu(s: Snapshot, d: Device) -> Value | None:
    """MFU of the job that owns the device; None when it is unknown, or several jobs own it."""
    values = [s.values.get((owner, "mfu_percent")) for owner in d.owners]
    of_jobs = [v for v in values if v is not None]
    return of_jobs[0] if len(of_jobs) == 1 else None


def worst_link(s: Snapshot, d: Device) -> int | None:
    """Health of the worst link of the device's chip, 0 healthy to 10 unusable; None without one."""
    return max((link.health for link in s.links_of(d)), default=None)


def free_mib(used_bytes: float | None, limit_bytes: float | None) -> int | None:
    """The free memory in MiB; None unless both are known.

    Each is rounded first, so that used and free memory add up to the limit, as in nvidia-smi.
    """
    if used_bytes is None or limit_bytes is None:
        return None
    return max(0, round(limit_bytes / MIB) - round(used_bytes / MIB))


def pids(d: Device) -> str:
    """Its owners: `4321`, or `4321+2` when two more processes hold it; empty for none."""
    if not d.owners:
        return ""
    more = len(d.owners) - 1
    return f"{d.owners[0].pid}+{more}" if more else str(d.owners[0].pid)


def node(d: Device) -> str:
    """Its device node without the directory: `vfio/0`, `accel3`; empty for none."""
    return (d.node or "").removeprefix("/dev/")
