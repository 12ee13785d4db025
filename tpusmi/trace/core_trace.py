"""What one device did, as its plane shows it: the same for TPUs, GPUs and CPU devices."""

from typing import NamedTuple

from tpusmi.trace.operation_facts import OperationFacts

PS_PER_S = 1e12


class DeviceStep(NamedTuple):
    """One step on one device, in picoseconds of the trace's clock."""

    name: str
    start: int
    end: int
    operations: int | None
    """How many began in it; None when they were not counted."""


class OperationRow(NamedTuple):
    """One operation on one device."""

    facts: OperationFacts
    runs: int
    self_ps: int


class ProgramRow(NamedTuple):
    """The runs of one program on one device."""

    name: str
    id: int | None
    total_ps: int
    starts: tuple[int, ...]
    """Sorted, of at most some thousand runs."""
    runs: int


class CoreTrace(NamedTuple):
    """One device. Times are in picoseconds."""

    plane: str
    local_index: int | None
    id: int | None
    device_type: str | None
    captured_ps: int
    busy_ps: int
    duty_ps: int
    """On duty: with an operation other than a wait for its host."""
    duty_span_ps: int
    """What that is a share of: from its first program or operation to the end of the last."""
    peak_flops_per_s: float | None
    peak_hbm_bytes_per_s: float | None
    operations: tuple[OperationRow, ...]
    programs: tuple[ProgramRow, ...] = ()
    steps: tuple[DeviceStep, ...] = ()
    has_counters: bool = False
    """True when the plane has hardware counters, which xprof alone can read."""
    infeed: tuple[tuple[int, int], ...] = ()
    """Start and end of each wait for input."""
