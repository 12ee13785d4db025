"""What libtpu reports about a machine: metrics servers, network, links, cores. No I/O."""

from typing import NamedTuple

from tpusmi.model.process import Process, ProcessKey
from tpusmi.model.states import Status


class Server(NamedTuple):
    """One metrics server of libtpu, and whose it is."""

    address: str
    process: ProcessKey | None
    """Holder that listens there; None when none could be seen."""
    ids: tuple[int, ...] = ()
    """Every device id that it has ever reported, sorted."""
    status: Status = Status.OK
    message: str = ""
    is_service: bool = True
    """False when what answers there is not libtpu's metrics service."""
    uid: int | None = None
    """User of the socket that listens there, by the kernel; None when unknown."""
    user: str | None = None
    """That user's name."""
    stranger: int | None = None
    """Pid of the process that listens there and holds no TPU; None when that is not certain."""
    silent_s: float | None = None
    """For how long it has failed; None while it answers."""

    @property
    def holds_tpu(self) -> bool | None:
        """Whether the process that listens there holds a TPU; None when that is not certain."""
        if self.process is not None:
            return True
        return None if self.stranger is None else False

    def may_be_of(self, process: Process) -> bool:
        """True when the process listens there, and when it may: the listener cannot be seen."""
        if self.process is not None or self.stranger is not None:
            return self.process == process.key
        return None in (self.uid, process.uid) or self.uid == process.uid


class Percentiles(NamedTuple):
    """A distribution in numbers; every one but the count is None when the count is 0."""

    count: int | None  # type: ignore[assignment]  # hides tuple.count
    """None when unknown: libtpu's SDK prints no counts."""
    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p999: float | None


class Latency(NamedTuple):
    """One distribution of the data center network, as libtpu keeps it since the job's start."""

    name: str
    """`buffer_transfer_latency_us`."""
    label: str
    """`8MB+`, `2MB+-ALL_REDUCE`; empty where there is only one."""
    percentiles: Percentiles
    at_s: float
    source: str
    process: ProcessKey | None
    server: str | None = None
    """Address of the server that reported it; None for the SDK."""

    @property
    def reporter(self) -> str:
        """Whose server reported it: `pid 4321`, else `port 8431`; empty for the SDK."""
        if self.process is not None:
            return f"pid {self.process.pid}"
        return f"port {self.server.rpartition(':')[2]}" if self.server else ""


PASSING_MOST, UNUSABLE = 5, 10
"""The worst health of a link with a fault that passes, and that of one which cannot be used."""


class Link(NamedTuple):
    """One inter-chip link: 0 healthy, 1 to 5 transient, 6 to 9 persistent, 10 unusable."""

    chip: int
    name: str
    health: int

    @property
    def port(self) -> str:
        """Its name on its chip: `ici0` of `tray1.chip3.ici0.int`; the whole name where it is
        another.
        """
        return next((part for part in self.name.split(".") if part.startswith("ici")), self.name)


class Core(NamedTuple):
    """What one core is running. Asked only on request: it is expensive."""

    server: str
    id: int
    """Global core id."""
    chip_id: int | None
    type: str | None
    """`TENSOR_CORE`, `SPARSE_CORE`."""
    index: int | None  # type: ignore[assignment]
    """Number among the cores of this type on its chip."""
    hlo_location: str | None
    program_fingerprint: str | None
    """Fingerprint in hexadecimal."""
    queued_programs: int | None
    error: str | None
