"""The figures of many hosts at one time. None is unknown, and never 0."""

from collections.abc import Mapping
from typing import NamedTuple

from tpusmi.model.servers import Link
from tpusmi.model.states import Word
from tpusmi.model.torus import Wraps


class HostState(Word):
    """Whether a host's numbers can be believed to be current."""

    LIVE = "live"
    OLD = "old"
    """Its exporter answers, but its numbers are old."""
    DOWN = "down"
    """Its exporter does not answer."""
    PENDING = "pending"
    """It has not been asked for long enough to say."""


class FleetDevice(NamedTuple):
    """A device of a host."""

    chip: int | None
    name: str
    """The label `device`: its index, or the name of a device without a chip."""
    kind: str | None
    coords: tuple[int, ...] | None
    core_on_chip: int | None
    pid: int | None
    job: str | None
    """The label `job_name` of the process that owns it."""
    values: Mapping[str, float]
    """By the names of `tpusmi.model.DEVICE_METRICS` (and of CHIP_METRICS for its chip), in the
    units of the model: bytes, percent, seconds. Unknown values are not in it.
    """
    platform: str | None = None
    """`tpu`, or `cpu` for a device that a job on the CPU has."""
    of_chip: Mapping[str, float] = {}
    """Memory that is only known of its whole chip, which it shares with other devices. In `values`
    of each of them it would be counted twice.
    """
    holders: int | None = None
    """How many processes hold its chip; None where that is unknown."""


def shown_name(d: FleetDevice) -> str:
    """`tpu:3`, as on its host; the name of a device without a chip."""
    return f"tpu:{d.name}" if d.name.isdecimal() else d.name


class FleetProcess(NamedTuple):
    """A process with devices."""

    pid: int
    job: str | None
    user: str | None
    command: str | None
    phase: str | None
    state: str | None
    verdict: str | None
    process_index: int | None
    process_count: int | None
    values: Mapping[str, float]
    """By the names of `tpusmi.model.PROCESS_METRICS`, in the units of the model."""
    slice_job: str | None = None
    """The same in all processes of a job of several hosts; None for other jobs."""

    @property
    def likeness(self) -> tuple[str | None, str | None, int | None]:
        """What all processes of a job have in common; two jobs may have the same."""
        return self.job, self.user, self.process_count


class FleetNotice(NamedTuple):
    """Something a person can act on."""

    code: str
    chip: int | None
    device: str | None
    pid: int | None
    problems: int
    """How many there are of this code."""
    age_s: float | None


class FleetHost(NamedTuple):
    """A host, or an address that should be one."""

    key: str
    """Unlike that of any other host, and the same at every look."""
    name: str
    """The name of the machine; the address where that is unknown."""
    address: str | None
    """Where its exporter is asked: the label `instance`, or the address that the user gave."""
    state: HostState
    reason: str
    """Why it is not live, in a sentence; empty for a live host."""
    age_s: float | None
    """How old its numbers are."""
    slice: str | None
    topology: str | None
    """`4x4x8`, from the environment of its job."""
    worker: int | None
    """Its number in the slice."""
    accelerator_type: str | None
    simulated: bool
    chips: int | None
    """How many it has; None where that is unknown."""
    held_chips: int | None
    """How many of them a process holds."""
    devices: tuple[FleetDevice, ...]
    processes: tuple[FleetProcess, ...]
    notices: tuple[FleetNotice, ...]
    links: tuple[Link, ...]
    wraps: Wraps | None = None
    """Whether the ends of each axis of the slice are joined, from the environment of its job."""
    boot: str | None = None
    """The id of the machine's boot."""


def without_numbers(
    key: str, name: str, address: str | None, state: HostState, reason: str
) -> FleetHost:
    """A host of which nothing is known but where it should be, and why that is all."""
    return FleetHost(
        key=key,
        name=name,
        address=address,
        state=state,
        reason=reason,
        age_s=None,
        slice=None,
        topology=None,
        worker=None,
        accelerator_type=None,
        simulated=False,
        chips=None,
        held_chips=None,
        devices=(),
        processes=(),
        notices=(),
        links=(),
    )


class FleetSnapshot(NamedTuple):
    """All hosts at one time."""

    at_s: float
    """Unix time."""
    source: str
    """Who was asked: the address without credentials, or `12 exporters`."""
    hosts: tuple[FleetHost, ...]
    problems: tuple[str, ...]
    """Sentences about what could not be read."""
    took_s: float
    """How long it took to read it."""
    unreported: Mapping[tuple[str, ...], int] | None = None
    """Where hosts have been left out: how many hosts of each job were not in the whole snapshot."""
    is_partial: bool = False
    """It is without what a first screen does not show, such as links: the next one has that."""


class HostHistory(NamedTuple):
    """Values of one quantity of a host over time, the newest last."""

    first_s: float
    """Unix time of the first value."""
    step_s: float
    """Time between two values."""
    values: tuple[float | None, ...]
    """Mean over its devices, in the unit of the model; None where it is unknown."""
