"""What sources find: a host to read, and the devices, processes and readings on it.

No I/O, no clock.
"""

from typing import NamedTuple

from tpusmi.model.process import Missing, Process, ProcessKey
from tpusmi.model.servers import Core, Latency, Link, Server
from tpusmi.model.states import LockState, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.model.slice_hosts import Slice
else:
    Slice = tuple  # its module is loaded where there is one

SDK_SERVER = "sdk"
"""The server in every RowKey of libtpu's SDK, whose rows have no ids: they are numbered by their
place in its lists.
"""
HOLDERS = "holders"
"""Name of the source that looks for who holds a TPU."""
SYSFS = "sysfs"
"""Name of the source that looks for the chips."""

FRESH_LEAST_S, FRESH_PERIODS = 5.0, 3
"""A value may be believed for this many of its own periods, and at least for this time."""

Number = float | int


def within(value: Number | None, most: float) -> Number | None:
    """The value if it is known, finite, not negative and at most `most`; otherwise None."""
    # Minus zero becomes zero: it would be printed as -0.0.
    return value + 0 if value is not None and 0 <= value <= most else None


class Host(NamedTuple):
    """Where this machine's facts are read; a test hands the sources another one."""

    root: str = "/"
    segment_dir: str | None = None
    """The only directory searched for segments (TPUSMI_DIR); None searches the usual places."""
    metrics_ports: tuple[int, ...] = (8431,)
    """Ports asked for libtpu's metrics, besides those of the holders of the TPU."""
    sdk_command: tuple[str, ...] | None = None
    """Command of the child that reads libtpu's SDK; None starts our own child, () none at all."""
    simulated: bool = False
    own_proc: str = "/proc"
    """Where the machine's own loadavg, meminfo and uptime are. A simulated host has the processes
    of the real one in its /proc, but a load and a memory of its own.
    """
    older_s: float = 0.0
    """Added to the age of its processes: a simulated job has run for a while."""

    def path(self, absolute: str) -> str:
        """That absolute path under this host's root."""
        return absolute if self.root == "/" else self.root.rstrip("/") + absolute


class DeviceKey(NamedTuple):
    """One device of one process; of a metrics server, where it is not known which device its
    number means; or of the machine.
    """

    process: ProcessKey | None
    index: int  # type: ignore[assignment]  # hides tuple.index, which has no use here
    server: str = ""
    """Address of the metrics server that numbers it; empty for every device that is known."""


class ChipKey(NamedTuple):
    """One chip of the machine, by its index in PCI order."""

    index: int  # type: ignore[assignment]  # hides tuple.index


class RowKey(NamedTuple):
    """One row of a libtpu metrics server or of its SDK, which number rows in their own way.

    Merge finds the device or chip that it is about.
    """

    server: str
    """Address of the server, or SDK_SERVER."""
    id: int


class TracedKey(NamedTuple):
    """One device of a trace, which numbers the devices of its process.

    Merge finds the device that it is about.
    """

    process: ProcessKey
    index: int  # type: ignore[assignment]  # hides tuple.index
    id: int | None
    """Global id; None where the trace does not say."""
    devices: int
    """How many devices the trace has."""
    platform: str | None
    """`tpu`, `gpu` or `cpu`."""


class HostKey(NamedTuple):
    """The machine itself."""

    name: str = "host"


HOST_KEY = HostKey()
HOST_CPU, HOST_LOAD = "host_cpu_percent", "host_load"
HOST_MEMORY = "host_memory_used_bytes"
"""What the history has of it."""
Subject = ProcessKey | DeviceKey | ChipKey | RowKey | TracedKey | HostKey


class Reading(NamedTuple):
    """What one source measured once.

    `at_s` is CLOCK_MONOTONIC; `fresh_s` how long it may be believed.
    """

    metric: str
    subject: Subject
    value: Number
    at_s: float
    source: str
    fresh_s: float


def fresh_for_s(period_s: float) -> float:
    """How long a value may be believed that is measured every `period_s` seconds."""
    return max(FRESH_LEAST_S, FRESH_PERIODS * period_s)


class Device(NamedTuple):
    """What JAX and libtpu number: a core on v2 and v3, a chip on v4 to v6e, a chiplet on 7x, or a
    CPU or GPU.
    """

    key: DeviceKey
    index: int  # type: ignore[assignment]
    """Local number, counted from 0."""
    id: int | None
    """Global id of JAX and libtpu; None when unknown."""
    platform: str | None
    kind: str | None
    coords: tuple[int, ...] | None
    core_on_chip: int | None
    chip: int | None = None
    error: str | None = None
    """Why this device could not be read, in a sentence."""
    node: str | None = None
    """Its chip's device node: `/dev/vfio/0`. A chip of two nodes gives each device its own."""
    owners: tuple[ProcessKey, ...] = ()
    """Every process that holds the node, or whose agent reports the device."""
    by_index: bool = False
    """True where devices of the machine share their ids: each of four processes calls its own 0."""
    apart_by: str = ""
    """Pid or port that distinguishes it from another device of the same name; empty when no other
    device has its name.
    """

    @property
    def name(self) -> str:
        """What every screen calls it: `tpu:0`, and `cpu:3@4321` where two are `cpu:3`."""
        return f"{self.own_name}@{self.apart_by}" if self.apart_by else self.own_name

    @property
    def own_name(self) -> str:
        """The name among the devices of its own process: `cpu:3`."""
        return f"{self.platform or 'device'}:{self.number}"

    @property
    def is_tpu(self) -> bool:
        """False for a CPU or GPU device of a job."""
        return self.chip is not None or self.platform == "tpu"

    @property
    def number(self) -> int:
        """The one in its name: the global id, as far as that tells devices apart."""
        return self.index if self.id is None or self.by_index else self.id


class Chip(NamedTuple):
    """One TPU package as the kernel shows it."""

    index: int  # type: ignore[assignment]
    """Place in PCI order, counted from 0."""
    generation: str | None
    """`v5e`; None for a TPU that this version does not know."""
    kind: str
    """`TPU v5e`, or `unknown TPU 0x1234`."""
    pci_addresses: tuple[str, ...]
    """One for each PCI function: two on a 7x."""
    nodes: tuple[str, ...]
    """One device node for each function that has one."""
    devices: int
    """How many devices JAX and libtpu number on it."""
    numa_node: int | None = None
    pcie_link: str | None = None
    """`16.0 GT/s x16`; with the most it could do when that is more."""
    hbm_nominal_bytes: int | None = None
    notes: tuple[str, ...] = ()
    """One sentence for each thing about it that is missing or could not be read."""
    other_nodes: tuple[tuple[str, str], ...] = ()
    """Pairs of nodes that open the same: `("/dev/vfio/0", "/dev/vfio/devices/vfio0")`."""
    driver: str | None = None
    """Driver that the kernel has bound to it: `vfio-pci`."""
    driver_version: str | None = None
    """None when the driver has no version of its own."""
    cpus: str | None = None
    """The processors near it: `0-47,96-143`."""

    @property
    def key(self) -> ChipKey:
        return ChipKey(self.index)


class Visibility(NamedTuple):
    """How much of who holds the TPU this user can see."""

    nodes: tuple[str, ...] = ()
    """Device nodes whose holders were looked for."""
    closed_nodes: tuple[str, ...] = ()
    """Nodes that this user has no permission to open."""
    not_inspected: int = 0
    """Number of processes that may hold a TPU and could not be inspected."""
    own_pid_namespace: bool = False
    """True when only the processes of this container can be seen."""
    reason: str = ""
    """Why not everything could be inspected, and what helps; empty when everything could."""

    @property
    def is_complete(self) -> bool:
        """True when every process that may hold a TPU was inspected."""
        return not self.not_inspected and not self.own_pid_namespace


class LockFile(NamedTuple):
    """libtpu's lock file, which decides whether another process may start on the TPU."""

    path: str
    state: LockState
    owner: str | None
    """User whose file it is."""
    pids: tuple[int, ...]
    """Processes that lock it, or still have the deleted file open."""
    message: str


class Outcome(NamedTuple):
    """A source's answer: what it found, or why it found nothing.

    Sources answer; they do not raise.
    """

    source: str
    status: Status
    message: str = ""
    took_s: float = 0.0
    readings: tuple[Reading, ...] = ()
    past: tuple[Reading, ...] = ()
    """Older readings of what the source meets for the first time, oldest first."""
    devices: tuple[Device, ...] = ()
    processes: tuple[Process, ...] = ()
    notes: tuple[str, ...] = ()
    """One sentence for each thing that could not be read, beside what could."""
    chips: tuple[Chip, ...] = ()
    servers: tuple[Server, ...] = ()
    latencies: tuple[Latency, ...] = ()
    links: tuple[Link, ...] = ()
    cores: tuple[Core, ...] = ()
    libtpu_version: str | None = None
    lock_files: tuple[LockFile, ...] = ()
    visibility: Visibility = Visibility()
    missing: tuple[Missing, ...] = ()
    """Witnesses that could not be asked whether a holder works, besides sources that FAILED."""
    slices: tuple[Slice, ...] = ()
    """All processes of each job of several hosts, as an agent here has read them."""
