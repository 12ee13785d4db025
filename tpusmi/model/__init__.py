"""The nouns every other module speaks: metrics, readings, devices, processes, snapshots.

No I/O, no clock.
"""

from tpusmi.model.history import (
    HISTORY_S,
    History,
)
from tpusmi.model.metrics import (
    AGENT,
    DEVICE,
    DEVICE_METRICS,
    LIBTPU,
    LIBTPU_SDK,
    METRICS,
    PROCESS,
    PROCESS_METRICS,
    PROFILE,
    Metric,
    metric,
)
from tpusmi.model.nouns import (
    ABSENT,
    DENIED,
    FAILED,
    OK,
    PROCESS_FACTS,
    Device,
    DeviceKey,
    Host,
    MemoryProfile,
    Notice,
    Number,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    Site,
    Subject,
)
from tpusmi.model.snapshot import (
    SCHEMA,
    HostFacts,
    Snapshot,
    Value,
)

__all__ = [
    "ABSENT",
    "AGENT",
    "DENIED",
    "DEVICE",
    "DEVICE_METRICS",
    "FAILED",
    "HISTORY_S",
    "LIBTPU",
    "LIBTPU_SDK",
    "METRICS",
    "OK",
    "PROCESS",
    "PROCESS_FACTS",
    "PROCESS_METRICS",
    "PROFILE",
    "SCHEMA",
    "Device",
    "DeviceKey",
    "History",
    "Host",
    "HostFacts",
    "MemoryProfile",
    "Metric",
    "Notice",
    "Number",
    "Outcome",
    "Process",
    "ProcessKey",
    "Reading",
    "Site",
    "Snapshot",
    "Subject",
    "Value",
    "metric",
]
