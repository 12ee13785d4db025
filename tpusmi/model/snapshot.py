"""One moment of a host, with a witness for every value, and the plain object that scripts get."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tpusmi.model.notice import Notice
from tpusmi.model.nouns import Chip, ChipKey, Device, LockFile, Number, Outcome, Subject, Visibility
from tpusmi.model.process import Missing, Process, ProcessKey
from tpusmi.model.servers import Core, Latency, Link, Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.model.slice_hosts import Slice
else:
    Slice = tuple  # its module is loaded where there is one


class HostFacts(NamedTuple):
    """This machine, as the snapshot shows it. None means that it could not be read."""

    name: str
    time: str
    """RFC 3339, UTC."""
    boot_id: str | None
    container: bool | None
    libtpu_version: str | None = None
    load_averages: tuple[float, float, float] | None = None
    """Tasks that ran, wanted to or waited for a disk, over the last 1, 5 and 15 minutes."""
    cpus: int | None = None
    """Number of processors that are online."""
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    """What programs can still have without swapping, as the kernel estimates it."""
    uptime_s: float | None = None
    kernel: str | None = None
    """Release of the kernel: `6.8.0-1015-gcp`."""
    tpu_driver: str | None = None
    """Driver of the chips: `vfio-pci`."""
    tpu_driver_version: str | None = None
    """None for a driver without a version of its own."""
    idle_s: float | None = None
    """Seconds that its processors have been idle since the start, all of them together."""
    machine_id: str | None = None
    """systemd's id of this installation, which no boot changes. Meant to be shown only hashed."""


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
    slices: tuple[Slice, ...] = ()
    """All processes of each job of several hosts that runs here, those on the TPU first."""

    @property
    def slice(self) -> Slice | None:
        """The first of them; None without one."""
        return next(iter(self.slices), None)

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

    def links_of(self, device: Device) -> tuple[Link, ...]:
        """The links of the device's chip to other chips."""
        return tuple(link for link in self.links if link.chip == device.chip)

    def devices_of(self, process: ProcessKey) -> tuple[Device, ...]:
        """The devices of one process, living or dead, in local order: those its agent reports, or
        those of the nodes it holds.
        """
        devices = (*self.devices, *self.dead_devices)
        return tuple(d for d in devices if d.key.process == process or process in d.owners)

    def labelled_latencies(self) -> list[tuple[str, Latency]]:
        """Each latency with a label that is unique among those of its name."""
        if len({x.reporter for x in self.latencies}) < 2:
            return [(x.label, x) for x in self.latencies]
        return [(f"{x.label or 'all'} {x.reporter}".strip(), x) for x in self.latencies]

    def to_dict(self) -> dict[str, Any]:
        """The object `tpusmi --json` prints: plain numbers, strings, lists, dicts and None."""
        from tpusmi.model.jsonkeys import SNAPSHOT

        return SNAPSHOT.value(self, self)
