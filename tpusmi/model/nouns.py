"""What sources find: a host to read, and the devices, processes and readings on it.

No I/O, no clock.
"""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

from collections.abc import Mapping
from typing import Any, NamedTuple

OK, ABSENT, DENIED, FAILED = "ok", "absent", "denied", "failed"

Number = float | int


class Host(NamedTuple):
    """Where this machine's facts are read; a test hands the sources another one."""

    root: str = "/"
    segment_dir: str | None = None
    """The only directory searched for segments (TPUSMI_DIR); None searches the usual places."""

    def path(self, absolute: str) -> str:
        """That absolute path under this host's root."""
        return absolute if self.root == "/" else self.root.rstrip("/") + absolute


class ProcessKey(NamedTuple):
    """A process that cannot be confused with a later one of the same number."""

    pid: int
    start_ticks: int


class DeviceKey(NamedTuple):
    """One device of one process, or of the machine when `process` is None."""

    process: ProcessKey | None
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody wants here


Subject = ProcessKey | DeviceKey


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


class Site(NamedTuple):
    """A line of code and what it keeps alive on the devices."""

    function: str
    file: str
    line: int
    kind: str
    """`buffer` or `executable`."""
    bytes: int | None
    """None when the backend does not know the size (executables on a TPU)."""
    count: int  # type: ignore[assignment]  # hides tuple.count


class MemoryProfile(NamedTuple):
    """The newest device memory profile of a process, largest sites first."""

    at_s: float
    sites: tuple[Site, ...]


class Device(NamedTuple):
    """What JAX and libtpu number: a core on v2 and v3, a chip on v4 to v6e, a chiplet on 7x, or a
    CPU or GPU.
    """

    key: DeviceKey
    index: int  # type: ignore[assignment]
    """Local, counted from 0."""
    id: int | None
    """Global, as JAX and libtpu say."""
    platform: str | None
    kind: str | None
    coords: tuple[int, ...] | None
    core_on_chip: int | None
    chip: int | None = None
    error: str | None = None
    """Why this device could not be read, in a sentence."""

    @property
    def name(self) -> str:
        """Short name a person would say: `cpu:3`, `tpu:0`."""
        return f"{self.platform or 'device'}:{self.index if self.id is None else self.id}"


class Notice(NamedTuple):
    """Something a person can act on."""

    code: str
    message: str
    pid: int | None = None


PROCESS_FACTS = (
    "platform",
    "device_kind",
    "process_index",
    "process_count",
    "python_version",
    "jax_version",
    "jaxlib_version",
    "libtpu_version",
    "recompiled",
)
"""What a job says of itself once: strings and integers, None when it does not say."""


class Process(NamedTuple):
    """A process with devices, and what it said of itself."""

    key: ProcessKey
    user: str | None
    command: str
    state: str
    """`live`, `silent` (alive, but its agent stopped writing), or `dead`."""
    phase: str | None
    """`starting`, `compiling`, `running`, `idle` or `ended`; None when unknown."""
    sampled_at_s: float | None
    interval_s: float
    facts: Mapping[str, Any]
    """PROCESS_FACTS by name."""
    profile: MemoryProfile | None = None
    warnings: tuple[Notice, ...] = ()
    holds: tuple[str, ...] = ()
    loaded_only: bool = False
    stale: bool | None = None
    stale_reason: str | None = None

    @property
    def pid(self) -> int:
        return self.key.pid


class Outcome(NamedTuple):
    """A source's answer: what it found, or why it found nothing.

    Sources answer; they do not raise.
    """

    source: str
    status: str
    message: str = ""
    took_s: float = 0.0
    readings: tuple[Reading, ...] = ()
    past: tuple[Reading, ...] = ()
    """Older readings of what the source meets for the first time, oldest first."""
    devices: tuple[Device, ...] = ()
    processes: tuple[Process, ...] = ()
    notes: tuple[str, ...] = ()
    """One sentence for each thing that could not be read, beside what could."""
