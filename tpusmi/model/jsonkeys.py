"""Every key of `tpusmi --json`, declared once: name, type, meaning, and where its value is.

The printed object and `assets/tpusmi.schema.json` are both made from these tables, in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tpusmi.model.holding import node_states, status
from tpusmi.model.jsonobject import (
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    TRUTH,
    WHOLE,
    WHOLE_OR_NULL,
    Getter,
    JsonObject,
    Schema,
    key,
    keys,
    nullable,
    or_null,
    rounded,
)
from tpusmi.model.metrics import CHIP_METRICS, DEVICE_METRICS, PROCESS_METRICS
from tpusmi.model.process import PROCESS_FACTS, Life, MemoryProfile, Process, Site
from tpusmi.model.slicekeys import SLICE
from tpusmi.model.states import PHASES, Holding, LockState, State, Status, Verdict

if TYPE_CHECKING:
    from tpusmi.model.snapshot import Snapshot

SCHEMA = 1
"""Version of the JSON: raised when a key goes or changes its meaning."""
_NO_LIFE = Life("", *(None,) * 5)


def _life(p: Process) -> Life:
    return p.life or _NO_LIFE


def _fact(name: str) -> Getter:
    return lambda s, p: p.facts.get(name)


def _age_s(s: Snapshot, at_s: float | None) -> Any:
    return None if at_s is None else rounded(max(0.0, s.at_s - at_s))


def _rated_sites(s: Snapshot, profile: MemoryProfile) -> list[Site]:
    rates = profile.rates
    return [
        x._replace(growth_bytes_per_s=rates.get(x[:3])) if x.bytes else x for x in profile.sites
    ]


def _dcn(s: Snapshot, _: Any) -> dict[str, Any]:
    """By name, then by label."""
    by_name: dict[str, Any] = {}
    for label, latency in s.labelled_latencies():
        numbers = _DISTRIBUTION.value(s, latency.percentiles)
        by_name.setdefault(latency.name, {})[label or "all"] = numbers
    return by_name


# fmt: off
_DISTRIBUTION = JsonObject(
    key("count", WHOLE_OR_NULL),
    key("mean", NUMBER_OR_NULL, get=lambda s, p: rounded(p.mean)),
    key("p50", NUMBER_OR_NULL, get=lambda s, p: rounded(p.p50)),
    key("p90", NUMBER_OR_NULL, get=lambda s, p: rounded(p.p90)),
    key("p95", NUMBER_OR_NULL, get=lambda s, p: rounded(p.p95)),
    key("p999", NUMBER_OR_NULL, get=lambda s, p: rounded(p.p999)),
)
_DISTRIBUTIONS: Schema = {
    "type": "object",
    "description": "Distributions of the data center network since the job's start.",
    "additionalProperties": {"type": "object", "additionalProperties": _DISTRIBUTION},
}
_AVERAGES: Schema = {
    "type": ["array", "null"], "items": NUMBER, "minItems": 3, "maxItems": 3,
}
_HOST = JsonObject(
    key("name", TEXT),
    key("time", TEXT, "RFC 3339, UTC."),
    key("boot_id", TEXT_OR_NULL),
    key("container", or_null(TRUTH), "Whether this is inside a container."),
    key("libtpu_version", TEXT_OR_NULL),
    key("load_averages", _AVERAGES, "Over the last 1, 5 and 15 minutes.",
        lambda s, h: None if h.load_averages is None else list(h.load_averages)),
    key("cpus", WHOLE_OR_NULL, "CPUs that are online."),
    key("memory_total_bytes", WHOLE_OR_NULL),
    key("memory_available_bytes", WHOLE_OR_NULL, "Memory that programs can still get."),
    key("uptime_s", NUMBER_OR_NULL),
    key("kernel", TEXT_OR_NULL, "Its release."),
    key("tpu_driver", TEXT_OR_NULL, "What drives the chips: `vfio-pci`."),
    key("tpu_driver_version", TEXT_OR_NULL, "Version of a driver that has its own."),
    key("dcn", _DISTRIBUTIONS, get=_dcn),
)

_LINK = JsonObject(key("name", TEXT), key("health", WHOLE, "0 healthy, 10 unusable."))
_CHIP = JsonObject(
    key("index", WHOLE, "In PCI order, counted from 0."),
    key("generation", TEXT_OR_NULL, "`v5e`; null for one that is not known."),
    key("kind", TEXT),
    key("pci_address", TEXT_OR_NULL, get=lambda s, c: next(iter(c.pci_addresses), None)),
    keys("pci_addresses", TEXT, "One for each PCI function."),
    key("node", TEXT_OR_NULL, get=lambda s, c: next(iter(c.nodes), None)),
    keys("nodes", TEXT, "One device node for each function."),
    key("numa_node", WHOLE_OR_NULL),
    key("pcie_link", TEXT_OR_NULL),
    key("hbm_nominal_bytes", WHOLE_OR_NULL),
    keys("notes", TEXT, "Facts that are missing or could not be read."),
    keys("ici_links", _LINK, "Links to other chips.",
         lambda s, c: (link for link in s.links if link.chip == c.index)),
    metrics=CHIP_METRICS,
)

_DEVICE = JsonObject(
    key("index", WHOLE, "Local, counted from 0."),
    key("id", WHOLE_OR_NULL, "Global id in JAX and libtpu."),
    key("chip", WHOLE_OR_NULL, "Index of the TPU chip."),
    key("core_on_chip", WHOLE_OR_NULL),
    key("coords", or_null({"type": "array", "items": WHOLE}), "Place in the slice.",
        lambda s, d: None if d.coords is None else list(d.coords)),
    key("kind", TEXT_OR_NULL,
        "The usual name: `TPU v5e`, with and without a job. JAX's is `device_kind` of a process."),
    key("platform", TEXT_OR_NULL),
    key("name", TEXT, "Platform and global id: `tpu:8`."),
    key("node", TEXT_OR_NULL, "Device node of its chip."),
    key("pid", WHOLE_OR_NULL, "The process that owns it, the first of several.",
        lambda s, d: d.owners[0].pid if d.owners else None),
    keys("pids", WHOLE, "Every process that owns it.", lambda s, d: (o.pid for o in d.owners)),
    key("error", TEXT_OR_NULL, "Why it could not be read."),
    metrics=DEVICE_METRICS,
)

_SIGN = JsonObject(key("code", TEXT), key("message", TEXT))
_SITE = JsonObject(
    key("function", TEXT),
    key("file", TEXT),
    key("line", WHOLE),
    key("kind", TEXT, "`buffer` or `executable`."),
    key("bytes", WHOLE_OR_NULL),
    key("count", WHOLE),
    key("growth_bytes_per_s", NUMBER_OR_NULL,
        "On all devices together, over the last minutes; null until known.",
        lambda s, x: rounded(x.growth_bytes_per_s)),
)
_MEMORY_PROFILE = JsonObject(
    key("age_s", NUMBER, get=lambda s, profile: _age_s(s, profile.at_s)),
    keys("sites", _SITE, "Lines of code that hold memory, largest first.",
         _rated_sites),
)
_VARIABLES: Schema = {
    "type": "object",
    "description": "Its TPU_ and JAX_ variables that tpusmi reads.",
    "additionalProperties": TEXT,
}
_FACT: Schema = {"type": ["string", "integer", "null"]}
_PROCESS = JsonObject(
    key("pid", WHOLE),
    key("start_ticks", WHOLE, "Start time. Differs if the pid is reused.",
        lambda s, p: p.key.start_ticks),
    key("user", TEXT_OR_NULL),
    key("uid", WHOLE_OR_NULL),
    key("verified", TRUTH, "False when only a segment file claims that this process exists.",
        lambda s, p: p.is_verified),
    key("command", TEXT, "Command line, secrets hidden."),
    keys("devices", WHOLE, "Local indexes of its devices.",
         lambda s, p: (d.index for d in s.devices_of(p.key))),
    keys("last_devices", _DEVICE, "What the devices of a dead process held last.",
         lambda s, p: (d for d in s.dead_devices if d.key.process == p.key)),
    keys("holds", TEXT, "Device nodes it holds open."),
    key("environment", _VARIABLES, get=lambda s, p: dict(p.environment)),
    key("loaded_only", TRUTH, "It maps libtpu.so and holds no node."),
    key("stale", or_null(TRUTH),
        "True for a holder that will do no more work; null where `verdict` is not certain."),
    key("verdict", {"enum": [*Verdict, None]}),
    key("stale_code", TEXT_OR_NULL, "The sign that the verdict rests on: `orphaned`, `idle`, …"),
    key("stale_reason", TEXT_OR_NULL, "The reason for the verdict."),
    keys("signs", _SIGN, "Signs that it may be stale, the strongest first."),
    key("os_state", TEXT_OR_NULL, "State of its main thread: R, S, D, Z; T and t: stopped.",
        lambda s, p: _life(p).state or None),
    key("parent_pid", WHOLE_OR_NULL, get=lambda s, p: _life(p).parent),
    key("process_group", WHOLE_OR_NULL, get=lambda s, p: _life(p).group),
    key("session", WHOLE_OR_NULL, get=lambda s, p: _life(p).session),
    key("age_s", NUMBER_OR_NULL, "Time since it was started.",
        lambda s, p: rounded(_life(p).age_s)),
    key("threads", WHOLE_OR_NULL, get=lambda s, p: _life(p).threads),
    key("terminal", TEXT_OR_NULL, "`pts/0`. Null in `tpusmi --json`.",
        lambda s, p: _life(p).terminal),
    key("cpu_percent", NUMBER_OR_NULL, "Percent of one core. Null in `tpusmi --json`.",
        lambda s, p: rounded(_life(p).cpu_percent)),
    key("rss_bytes", WHOLE_OR_NULL, "Host memory. Null in `tpusmi --json`.",
        lambda s, p: _life(p).rss_bytes),
    key("cwd", TEXT_OR_NULL, "Working directory. Null in `tpusmi --json`.",
        lambda s, p: _life(p).cwd),
    key("container_id", TEXT_OR_NULL, "Id of its container.",
        lambda s, p: _life(p).container),
    key("inner_pid", WHOLE_OR_NULL, "Its pid in its container.", lambda s, p: _life(p).inner_pid),
    key("role", TEXT_OR_NULL, "Its role in the job: `resource tracker`, `spawned worker`.",
        lambda s, p: _life(p).role),
    keys("listens_on", WHOLE, "TCP ports on which it listens.", lambda s, p: _life(p).ports),
    key("phase", {"enum": [*PHASES, None]}),
    key("state", {"enum": [*State]}),
    key("sample_age_s", NUMBER_OR_NULL, "Age of its agent's newest sample.",
        lambda s, p: _age_s(s, p.sampled_at_s)),
    key("interval_s", NUMBER_OR_NULL, "Period of its agent's samples."),
    *(key(name, _FACT, get=_fact(name)) for name in PROCESS_FACTS if name != "profiler_port"),
    key("profiler_port", WHOLE_OR_NULL, "TCP port of the profiler server that JAX runs in it.",
        _fact("profiler_port")),
    nullable("memory_profile", _MEMORY_PROFILE, lambda s, p: p.profile),
    metrics=PROCESS_METRICS,
)

_SOURCE = JsonObject(
    key("name", TEXT, get=lambda s, o: o.source),
    key("status", {"enum": [*Status]}),
    key("message", TEXT),
    key("took_s", NUMBER, get=lambda s, o: rounded(o.took_s)),
    keys("notes", TEXT, "One sentence for each thing that could not be read."),
)
_SERVER = JsonObject(
    key("address", TEXT),
    key("pid", WHOLE_OR_NULL, "The process that listens there.",
        lambda s, x: x.stranger if x.process is None else x.process.pid),
    key("user", TEXT_OR_NULL),
    key("holds_tpu", or_null(TRUTH), "False: what it reports is left out. Null: not known."),
    keys("device_ids", WHOLE, "Every device that it has reported.", lambda s, x: x.ids),
    key("status", {"enum": [*Status]}),
    key("message", TEXT),
)
_CORE = JsonObject(
    key("server", TEXT),
    key("id", WHOLE),
    key("chip_id", WHOLE_OR_NULL),
    key("type", TEXT_OR_NULL),
    key("index", WHOLE_OR_NULL),
    key("hlo_location", TEXT_OR_NULL),
    key("program_fingerprint", TEXT_OR_NULL),
    key("queued_programs", WHOLE_OR_NULL),
    key("error", TEXT_OR_NULL),
)

_NODE = JsonObject(
    key("node", TEXT),
    key("chip", WHOLE_OR_NULL),
    key("state", {"enum": [h for h in Holding if h not in (Holding.NO_NODE, Holding.NO_TPU)]}),
    keys("pids", WHOLE, "Every process that holds the node."),
)
_LOCK_FILE = JsonObject(
    key("path", TEXT),
    key("state", {"enum": [*LockState]}),
    key("owner", TEXT_OR_NULL),
    keys("pids", WHOLE, "Processes that lock it, or have the deleted file open."),
    key("message", TEXT),
)
_STATUS: Schema = {"enum": [h for h in Holding if h != Holding.RELEASING]}
HOLDING = JsonObject(
    key("status", _STATUS, get=lambda s, _: status(s)),
    keys("nodes", _NODE, "Every device node of a TPU.", lambda s, _: node_states(s)),
    key("not_inspected", WHOLE, "Processes that may hold a node and could not be inspected.",
        lambda s, _: s.visibility.not_inspected),
    key("own_pid_namespace", TRUTH, "Only processes of this container can be seen.",
        lambda s, _: s.visibility.own_pid_namespace),
    keys("lock_files", _LOCK_FILE, "libtpu's lock file."),
)

_WARNING = JsonObject(
    key("code", TEXT),
    key("message", TEXT, "What is wrong."),
    key("advice", TEXT, "What to do about it."),
    key("since_s", NUMBER_OR_NULL, "For how long it has been so, at least.",
        lambda s, n: rounded(n.since_s)),
    key("pid", WHOLE_OR_NULL),
    key("chip", WHOLE_OR_NULL, "Index of the chip that it is about."),
    key("device", WHOLE_OR_NULL, "Local index of the device that it is about."),
)
SNAPSHOT = JsonObject(
    key("schema", {"const": SCHEMA}, get=lambda s, _: SCHEMA),
    key("tpusmi_version", TEXT),
    key("simulated", TRUTH, "True when the host is a simulated one."),
    key("host", _HOST),
    keys("chips", _CHIP, "The TPUs that the kernel shows."),
    keys("devices", _DEVICE, "Devices of living processes."),
    keys("processes", _PROCESS, "Living ones first."),
    keys("sources", _SOURCE, "Sources of information, and how each answered."),
    keys("servers", _SERVER, "libtpu's metrics servers."),
    keys("cores", _CORE, "What each core runs; empty unless asked for."),
    key("holding", HOLDING, get=lambda s, _: s),
    nullable("slice", SLICE, lambda s, _: s.slice),
    keys("other_slices", SLICE, "Those of further jobs of several hosts.",
         lambda s, _: s.slices[1:]),
    keys("warnings", _WARNING, "Problems that you can act on."),
)
# fmt: on
