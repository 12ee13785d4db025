"""Every series that the exporter has: name, kind, labels, help. The metrics of the model first."""

from typing import NamedTuple

from tpusmi.model import CHIP, DEVICE, PROCESS
from tpusmi.model.series_names import PREFIX, SERIES, in_base_unit
from tpusmi.sources.libtpu.names import NAMES, Shape

GAUGE, COUNTER, INFO = "gauge", "counter", "info"
OF_SCOPE = {CHIP: ("chip",), DEVICE: ("chip", "device"), PROCESS: ("pid", "job_name")}
OF_NOTICE = ("code", "chip", "device", "pid")
OF_SLICE = ("pid", "job_name", "slice_job")
"""`slice_job` is the same on all hosts of a job: sums over hosts would count it many times."""
OF_LATENCY = ("bucket", "pid", "port")
"""The port of its metrics server only where its process is not known."""
EVERYWHERE = {
    "host": "the machine's name, or what `--host-name` says",
    "slice": "what `--slice` says",
    "simulated": "`true` on a simulated host, else absent",
}
"""Labels of every series. The last two only where they say something."""


class SeriesKind(NamedTuple):
    """What one name means."""

    name: str
    """As in the text format: with `_total` for a counter, and `_info`."""
    kind: str
    labels: tuple[str, ...]
    help: str

    @property
    def family(self) -> str:
        """The name without the ending that its kind brings."""
        ending = {COUNTER: "_total", INFO: "_info"}.get(self.kind, "")
        return self.name.removesuffix(ending)


PARTS = {
    "mean": "Mean",
    "p50": "Median",
    "p90": "90th percentile",
    "p95": "95th percentile",
    "p999": "99.9th percentile",
}
"""The parts of a distribution of the network, by the names of their fields."""
LATENCIES = tuple(name.metric for name in NAMES if name.shape == Shape.LATENCY)


def latency_series(latency: str, part: str) -> tuple[str, float]:
    """The name of one part of a distribution, and the factor to its unit."""
    if part == "count":
        stem = latency.rpartition("_")[0]
        return f"{PREFIX}network_{stem}_events_total", 1.0
    name, factor = in_base_unit(f"{latency}.{part}")
    return f"{PREFIX}network_{name}", factor


def _latencies() -> tuple[SeriesKind, ...]:
    kinds = []
    for latency in LATENCIES:
        words = latency.rpartition("_")[0].replace("_", " ")
        for part, what in PARTS.items():
            text = f"{what} of the {words}, as libtpu keeps it since the job's start."
            kinds.append(SeriesKind(latency_series(latency, part)[0], GAUGE, OF_LATENCY, text))
        text = f"Events in the distribution of the {words}."
        kinds.append(SeriesKind(latency_series(latency, "count")[0], COUNTER, OF_LATENCY, text))
    return tuple(kinds)


def _gauge(name: str, labels: str, help: str) -> SeriesKind:
    return SeriesKind(f"{PREFIX}{name}", GAUGE, tuple(labels.split()), help)


def _info(name: str, labels: str, help: str) -> SeriesKind:
    return SeriesKind(f"{PREFIX}{name}_info", INFO, tuple(labels.split()), help)


_MEASURED = tuple(
    SeriesKind(s.name, COUNTER if s.is_counter else GAUGE, OF_SCOPE[m.scope], s.help)
    for m, s in SERIES.items()
)
# fmt: off
_OTHERS = (
    _info("build", "version python_version", "Versions of the exporter."),
    _info("host", "kernel libtpu_version tpu_driver tpu_driver_version boot_id",
          "Versions of the machine's software, and an id that is new after each boot."),
    _info("chip", "chip generation kind pci_address node numa_node pcie_link driver",
          "A TPU chip that the kernel shows."),
    _info("device", "chip device id name kind platform coords core_on_chip node pid job_name",
          "A device, and the process that owns it, the first of several."),
    _info("process",
          "pid job_name user command role container_id platform process_index process_count "
          "jax_version",
          "A process with devices. Its command line is without secrets."),
    _info("slice", "pid job_name accelerator_type topology worker wrap",
          "The slice that a process belongs to, from its environment. `wrap` says of each axis "
          "whether its ends are joined: `true,true,false`."),
    _gauge("chip_hbm_nominal_bytes", "chip", "Memory that a chip of its kind has."),
    _gauge("chip_holders", "chip",
           "Processes that hold the chip's nodes. Absent if none was seen and not all processes "
           "could be inspected."),
    _gauge("ici_link_health", "chip link",
           "Health of an inter-chip link: 0 healthy, 1 to 5 passing faults, 6 to 9 a lasting "
           "fault, 10 unusable."),
    _gauge("tpu_status", "status", "1 for the state of the machine's TPU, 0 for the others."),
    _gauge("not_inspected_processes", "",
           "Processes that may hold the TPU and could not be inspected."),
    _gauge("process_phase", "pid job_name phase",
           "1 for what the job is doing, 0 for the others, as its agent reports it."),
    _gauge("process_state", "pid job_name state",
           "1 for the state of the process and its agent, 0 for the others."),
    _gauge("process_verdict", "pid job_name verdict",
           "1 for the verdict on a holder of the TPU, 0 for the others."),
    _gauge("process_age_seconds", "pid job_name", "Time since the process was started."),
    _gauge("process_sample_age_seconds", "pid job_name", "Age of its agent's newest sample."),
    _gauge("process_devices", "pid job_name",
           "Devices of the process. Absent while none is known."),
    _gauge("slice_process_index", " ".join(OF_SLICE),
           "Number, in its job, of the process here whose agent reads the other hosts."),
    _gauge("slice_expected_processes", " ".join(OF_SLICE),
           "Processes that the job has on all its hosts."),
    _gauge("slice_processes", " ".join((*OF_SLICE, "state")),
           "Processes of the job by what its agents hear of each other: live, stopped reporting, "
           "not heard of."),
    _gauge("slice_silent_seconds", " ".join((*OF_SLICE, "process_index", "process_host")),
           "Time since a process of the job reported. Only of those that have stopped."),
    _gauge("slice_step_time_p50_seconds", " ".join(OF_SLICE),
           "Median of the mean step times of the job's processes."),
    _gauge("slice_step_time_max_seconds", " ".join(OF_SLICE),
           "Mean step time of the slowest process of the job."),
    _gauge("slice_slowest_process_index", " ".join(OF_SLICE),
           "Number of the slowest process of the job."),
    _gauge("notice", " ".join(OF_NOTICE),
           "Problems with this code that concern the chip, or the process or its device."),
    _gauge("notice_age_seconds", " ".join(OF_NOTICE), "For how long it has been so, at least."),
    _gauge("source_up", "source", "1 if the source could be asked, 0 if it failed or denied it."),
    _gauge("source_status", "source status", "1 for how the source answered, 0 for the others."),
    _gauge("source_age_seconds", "source", "Time since the source last answered."),
    _gauge("source_read_seconds", "source", "Time that its last answer took."),
    _gauge("metrics_server_up", "address pid",
           "1 if libtpu's metrics server answers, 0 if it fails."),
    _gauge("host_cpus", "", "CPUs that are online."),
    _gauge("host_load1", "", "Load average of the last minute."),
    _gauge("host_load5", "", "Load average of the last 5 minutes."),
    _gauge("host_load15", "", "Load average of the last 15 minutes."),
    _gauge("host_memory_total_bytes", "", "Memory of the machine."),
    _gauge("host_memory_available_bytes", "", "Memory that programs can still get."),
    _gauge("host_uptime_seconds", "", "Time since the machine was started."),
    _gauge("left_out", "what",
           "Items that are not exported because there are too many of them."),
    _gauge("snapshot_timestamp_seconds", "", "Unix time of these numbers."),
    _gauge("snapshot_build_seconds", "", "Time that it took to collect them for this text."),
)
# fmt: on
KINDS = {kind.name: kind for kind in (*_MEASURED, *_latencies(), *_OTHERS)}
"""Every series, by its name."""
