"""The nouns every other module speaks: metrics, readings, devices, processes, snapshots.

No I/O, no clock. Modules that declare named tuples do without `from __future__ import annotations`:
with it each annotation is compiled at import, which costs every command its time. What this module
imports, it exports.
"""

from tpusmi.model.history import HISTORY_S, UNKEPT, History
from tpusmi.model.metrics import (
    AGENT,
    ASKED_OF_LIBTPU,
    CHIP,
    CHIP_METRICS,
    DEVICE,
    DEVICE_METRICS,
    LIBTPU,
    LIBTPU_SDK,
    METRICS,
    NOMINAL,
    PHASE,
    PROCESS,
    PROCESS_METRICS,
    PROFILE,
    SOLE_HOLDER,
    TRACED,
    TRACED_FLOPS,
    TRACED_HBM,
    TRACED_PEAK_FLOPS,
    TRACED_PEAK_HBM,
    VIEWER,
    Metric,
    metric,
    trust_rank,
)
from tpusmi.model.notice import STALE_HOLDER, SUSPECT_HOLDER, Notice
from tpusmi.model.nouns import (
    FRESH_LEAST_S,
    HOLDERS,
    HOST_CPU,
    HOST_KEY,
    HOST_LOAD,
    HOST_MEMORY,
    SDK_SERVER,
    SYSFS,
    Chip,
    ChipKey,
    Device,
    DeviceKey,
    Host,
    LockFile,
    Number,
    Outcome,
    Reading,
    RowKey,
    Subject,
    TracedKey,
    Visibility,
    fresh_for_s,
    within,
)
from tpusmi.model.process import (
    ENDING_CODES,
    LOST_AFTER_S,
    LOST_CODES,
    OTHER_MOUNTS,
    PROCESS_FACTS,
    Allocation,
    Life,
    MemoryProfile,
    Missing,
    Place,
    Process,
    ProcessKey,
    Sign,
    Site,
)
from tpusmi.model.series import UNKNOWN, Series
from tpusmi.model.servers import Core, Latency, Link, Percentiles, Server
from tpusmi.model.snapshot import HostFacts, Snapshot, Value
from tpusmi.model.states import (
    ABSENT,
    DENIED,
    FAILED,
    OK,
    PHASES,
    UNJUDGED,
    VERDICT_WORDS,
    Holding,
    LockState,
    Phase,
    SliceState,
    State,
    Status,
    Verdict,
)
