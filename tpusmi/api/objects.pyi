# Made by `python assets/make_stub.py` from the table of JSON keys: do not edit.
from typing import Literal

from tpusmi.api.item import Item
from tpusmi.api.parts import DevicePart, NoticePart, ProcessPart, SitePart
from tpusmi.api.whole import Whole

class Snapshot(Whole):
    """Everything known about a host at one time: what `tpusmi --json` prints."""

    @property
    def schema(self) -> int:
        """The version of the JSON's layout."""
    @property
    def tpusmi_version(self) -> str:
        """The version of tpusmi that took the snapshot."""
    @property
    def simulated(self) -> bool:
        """True when the host is a simulated one."""
    @property
    def host(self) -> Host:
        """The machine."""
    @property
    def chips(self) -> tuple[Chip, ...]:
        """The TPUs that the kernel shows."""
    @property
    def devices(self) -> tuple[Device, ...]:
        """Devices of living processes."""
    @property
    def processes(self) -> tuple[Process, ...]:
        """Living ones first."""
    @property
    def sources(self) -> tuple[Source, ...]:
        """Sources of information, and how each answered."""
    @property
    def servers(self) -> tuple[Server, ...]:
        """libtpu's metrics servers."""
    @property
    def cores(self) -> tuple[Core, ...]:
        """What each core runs; empty unless asked for."""
    @property
    def holding(self) -> Holding:
        """Whether the TPU and each of its nodes are free."""
    @property
    def slice(self) -> Slice | None:
        """All hosts of the job that runs here, if it has several."""
    @property
    def other_slices(self) -> tuple[Slice, ...]:
        """Those of further jobs of several hosts."""
    @property
    def warnings(self) -> tuple[Notice, ...]:
        """Problems that you can act on."""

class Host(Item):
    """The machine."""

    @property
    def name(self) -> str:
        """The host's name."""
    @property
    def time(self) -> str:
        """RFC 3339, UTC."""
    @property
    def boot_id(self) -> str | None:
        """An id that is new after each boot."""
    @property
    def container(self) -> bool | None:
        """Whether this is inside a container."""
    @property
    def libtpu_version(self) -> str | None:
        """The version of libtpu, by its SDK."""
    @property
    def load_averages(self) -> tuple[float, ...] | None:
        """Over the last 1, 5 and 15 minutes."""
    @property
    def cpus(self) -> int | None:
        """CPUs that are online."""
    @property
    def memory_total_bytes(self) -> int | None:
        """The memory of the host, in bytes."""
    @property
    def memory_available_bytes(self) -> int | None:
        """Memory that programs can still get."""
    @property
    def uptime_s(self) -> float | None:
        """How long the host has been up, in seconds."""
    @property
    def kernel(self) -> str | None:
        """Its release."""
    @property
    def tpu_driver(self) -> str | None:
        """What drives the chips: `vfio-pci`."""
    @property
    def tpu_driver_version(self) -> str | None:
        """Version of a driver that has its own."""
    @property
    def dcn(self) -> dict[str, dict[str, Distribution]]:
        """Distributions of the data center network since the job's start."""

class Distribution(Item):
    """How long something took on the data center network, in microseconds."""

    @property
    def count(self) -> int | None:
        """How many times were measured."""
    @property
    def mean(self) -> float | None:
        """The mean time, in microseconds."""
    @property
    def p50(self) -> float | None:
        """The median time, in microseconds."""
    @property
    def p90(self) -> float | None:
        """The 90th percentile, in microseconds."""
    @property
    def p95(self) -> float | None:
        """The 95th percentile, in microseconds."""
    @property
    def p999(self) -> float | None:
        """The 99.9th percentile, in microseconds."""

class Chip(Item):
    """A TPU package on the PCI bus, which has one or more devices."""

    @property
    def index(self) -> int:
        """In PCI order, counted from 0."""
    @property
    def generation(self) -> str | None:
        """`v5e`; null for one that is not known."""
    @property
    def kind(self) -> str:
        """The kind of chip, such as `TPU v5e`."""
    @property
    def pci_address(self) -> str | None:
        """Its PCI address, such as `0000:00:04.0`."""
    @property
    def pci_addresses(self) -> tuple[str, ...]:
        """One for each PCI function."""
    @property
    def node(self) -> str | None:
        """Its device node, such as `/dev/vfio/0`."""
    @property
    def nodes(self) -> tuple[str, ...]:
        """One device node for each function."""
    @property
    def numa_node(self) -> int | None:
        """The NUMA node that it is near."""
    @property
    def pcie_link(self) -> str | None:
        """Speed and width of its PCIe link, such as `16.0 GT/s x16`."""
    @property
    def hbm_nominal_bytes(self) -> int | None:
        """The HBM of a chip of this kind, in bytes."""
    @property
    def notes(self) -> tuple[str, ...]:
        """Facts that are missing or could not be read."""
    @property
    def ici_links(self) -> tuple[Link, ...]:
        """Links to other chips."""
    @property
    def hbm_used_bytes(self) -> int | None:
        """HBM in use. For a chip whose devices libtpu does not measure separately. Unit: bytes."""
    @property
    def hbm_limit_bytes(self) -> int | None:
        """HBM that can be used. For a chip whose devices libtpu does not measure separately.
        Unit: bytes.
        """
    @property
    def duty_cycle_percent(self) -> float | None:
        """Share of time busy. For a chip whose devices libtpu does not measure separately. Unit:
        percent.
        """
    @property
    def idle_s(self) -> float | None:
        """Time since it last ran. For a chip whose devices libtpu does not measure separately.
        Unit: s.
        """
    @property
    def tensorcore_utilization_percent(self) -> float | None:
        """Share of the peak matrix throughput. For a chip whose devices libtpu does not measure
        separately. Unit: percent.
        """
    @property
    def hbm_bandwidth_utilization_percent(self) -> float | None:
        """Share of the peak HBM bandwidth. For a chip whose devices libtpu does not measure
        separately. Unit: percent.
        """
    @property
    def throttle_percent(self) -> float | None:
        """How far the chip slows itself down, in steps of 10. Unit: percent."""
    @property
    def provenance(self) -> dict[str, Provenance]:
        """The source and the age of each known value, by the name of its attribute."""
    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices on this chip."""

class Link(Item):
    """A link of a chip to other chips."""

    @property
    def name(self) -> str:
        """The link's name, by libtpu."""
    @property
    def health(self) -> int:
        """0 healthy, 10 unusable."""

class Provenance(Item):
    """The source of a value, and how long ago it was measured."""

    @property
    def source(self) -> str:
        """The source that measured it: `agent`, `libtpu`, …"""
    @property
    def age_s(self) -> float:
        """How long ago it was measured."""
    @property
    def stale(self) -> bool:
        """True when it is too old to be believed as current."""

class Device(DevicePart):
    """What JAX numbers: a core on v2 and v3, a chip on v4 to v6e, a chiplet on 7x."""

    @property
    def index(self) -> int:
        """Local, counted from 0."""
    @property
    def id(self) -> int | None:
        """Global id in JAX and libtpu."""
    @property
    def chip(self) -> int | None:
        """Index of the TPU chip."""
    @property
    def core_on_chip(self) -> int | None:
        """Index of the core on its chip."""
    @property
    def coords(self) -> tuple[int, ...] | None:
        """Place in the slice."""
    @property
    def kind(self) -> str | None:
        """The usual name: `TPU v5e`, with and without a job. JAX's is `device_kind` of a
        process.
        """
    @property
    def platform(self) -> str | None:
        """JAX's platform: `tpu`, `cpu`, …"""
    @property
    def name(self) -> str:
        """Platform and global id: `tpu:8`."""
    @property
    def node(self) -> str | None:
        """Device node of its chip."""
    @property
    def pid(self) -> int | None:
        """The process that owns it, the first of several."""
    @property
    def pids(self) -> tuple[int, ...]:
        """Every process that owns it."""
    @property
    def error(self) -> str | None:
        """Why it could not be read."""
    @property
    def hbm_used_bytes(self) -> int | None:
        """Device memory the allocator has handed out. Unit: bytes."""
    @property
    def hbm_limit_bytes(self) -> int | None:
        """Device memory the allocator may hand out. Unit: bytes."""
    @property
    def hbm_peak_bytes(self) -> int | None:
        """Most device memory in use at once since the job started. Unit: bytes."""
    @property
    def hbm_largest_free_block_bytes(self) -> int | None:
        """Largest single allocation that would still fit. Unit: bytes."""
    @property
    def hbm_reserved_bytes(self) -> int | None:
        """Device memory the runtime set aside for itself. Unit: bytes."""
    @property
    def allocations(self) -> int | None:
        """Allocations made since the job started. Unit: count."""
    @property
    def live_array_bytes(self) -> int | None:
        """Bytes of live arrays, from the newest memory profile. Unit: bytes."""
    @property
    def live_arrays(self) -> int | None:
        """Live arrays, from the newest memory profile. Unit: count."""
    @property
    def tensorcore_utilization_percent(self) -> float | None:
        """Share of the peak matrix throughput. Unit: percent."""
    @property
    def duty_cycle_percent(self) -> float | None:
        """Share of time the chip was busy. Unit: percent."""
    @property
    def hbm_bandwidth_utilization_percent(self) -> float | None:
        """Share of the peak HBM bandwidth. Unit: percent."""
    @property
    def idle_s(self) -> float | None:
        """Time since the TensorCore last ran. Unit: s."""
    @property
    def hlo_queue_size(self) -> int | None:
        """Programs waiting to run. Unit: count."""
    @property
    def hlo_execution_time_us(self) -> HloExecutionTime:
        """How long programs ran on a device since the job's start, by libtpu."""
    @property
    def provenance(self) -> dict[str, Provenance]:
        """The source and the age of each known value, by the name of its attribute."""
    @property
    def process(self) -> Process | None:
        """The process of `pid`; None when no process owns it."""
    @property
    def processes(self) -> tuple[Process, ...]:
        """Every process that owns it: those of `pids`."""

class HloExecutionTime(Item):
    """How long programs ran on a device since the job's start, by libtpu."""

    @property
    def mean(self) -> float | None:
        """Mean time that programs ran, as libtpu counts them since the job's start. Unit: us."""
    @property
    def p50(self) -> float | None:
        """Median time that programs ran, as libtpu counts them since the job's start. Unit: us."""
    @property
    def p90(self) -> float | None:
        """90th percentile of the time that programs ran, as libtpu counts them since the job's
        start. Unit: us.
        """
    @property
    def p95(self) -> float | None:
        """95th percentile of the time that programs ran, as libtpu counts them since the job's
        start. Unit: us.
        """
    @property
    def p999(self) -> float | None:
        """99.9th percentile of the time that programs ran, as libtpu counts them since the job's
        start. Unit: us.
        """

class Process(ProcessPart):
    """A process that holds a TPU, or whose agent reports devices."""

    @property
    def pid(self) -> int:
        """The process id."""
    @property
    def start_ticks(self) -> int:
        """Start time. Differs if the pid is reused."""
    @property
    def user(self) -> str | None:
        """The name of its owner."""
    @property
    def uid(self) -> int | None:
        """The user id of its owner."""
    @property
    def verified(self) -> bool:
        """False when only a segment file claims that this process exists."""
    @property
    def command(self) -> str:
        """Command line, secrets hidden."""
    @property
    def devices(self) -> tuple[Device, ...]:
        """Its devices. In JSON: their local indexes."""
    @property
    def last_devices(self) -> tuple[Device, ...]:
        """What the devices of a dead process held last."""
    @property
    def holds(self) -> tuple[str, ...]:
        """Device nodes it holds open."""
    @property
    def environment(self) -> dict[str, str]:
        """Its TPU_ and JAX_ variables that tpusmi reads."""
    @property
    def loaded_only(self) -> bool:
        """It maps libtpu.so and holds no node."""
    @property
    def stale(self) -> bool | None:
        """True for a holder that will do no more work; null where `verdict` is not certain."""
    @property
    def verdict(self) -> Literal["stale", "maybe", "unknown", "not_stale"] | None:
        """Whether it is stale, if it holds a TPU."""
    @property
    def stale_code(self) -> str | None:
        """The sign that the verdict rests on: `orphaned`, `idle`, …"""
    @property
    def stale_reason(self) -> str | None:
        """The reason for the verdict."""
    @property
    def signs(self) -> tuple[Sign, ...]:
        """Signs that it may be stale, the strongest first."""
    @property
    def os_state(self) -> str | None:
        """State of its main thread: R, S, D, Z; T and t: stopped."""
    @property
    def parent_pid(self) -> int | None:
        """The process id of its parent."""
    @property
    def process_group(self) -> int | None:
        """Its process group."""
    @property
    def session(self) -> int | None:
        """Its session."""
    @property
    def age_s(self) -> float | None:
        """Time since it was started."""
    @property
    def threads(self) -> int | None:
        """How many threads it has."""
    @property
    def terminal(self) -> str | None:
        """`pts/0`. Null in `tpusmi --json`."""
    @property
    def cpu_percent(self) -> float | None:
        """Percent of one core. Null in `tpusmi --json`."""
    @property
    def rss_bytes(self) -> int | None:
        """Host memory. Null in `tpusmi --json`."""
    @property
    def cwd(self) -> str | None:
        """Working directory. Null in `tpusmi --json`."""
    @property
    def container_id(self) -> str | None:
        """Id of its container."""
    @property
    def inner_pid(self) -> int | None:
        """Its pid in its container."""
    @property
    def role(self) -> str | None:
        """Its role in the job: `resource tracker`, `spawned worker`."""
    @property
    def listens_on(self) -> tuple[int, ...]:
        """TCP ports on which it listens."""
    @property
    def phase(self) -> Literal["starting", "compiling", "running", "idle", "ended"] | None:
        """What it does, as its agent reports: starting, compiling, running, idle, ended."""
    @property
    def state(self) -> Literal["live", "silent", "dead", "unknown"]:
        """Whether it is alive: live, silent (its agent has stopped), dead, or unknown."""
    @property
    def sample_age_s(self) -> float | None:
        """Age of its agent's newest sample."""
    @property
    def interval_s(self) -> float | None:
        """Period of its agent's samples."""
    @property
    def platform(self) -> str | int | None:
        """JAX's platform: `tpu`, `cpu`, …"""
    @property
    def device_kind(self) -> str | int | None:
        """The kind of its devices, by JAX."""
    @property
    def process_index(self) -> str | int | None:
        """Its index in the job, by JAX."""
    @property
    def process_count(self) -> str | int | None:
        """Processes of the whole job, on all hosts."""
    @property
    def device_count(self) -> str | int | None:
        """Devices of the whole job, on all hosts."""
    @property
    def python_version(self) -> str | int | None:
        """The version of Python that it runs."""
    @property
    def jax_version(self) -> str | int | None:
        """The version of JAX that it runs."""
    @property
    def jaxlib_version(self) -> str | int | None:
        """The version of jaxlib that it runs."""
    @property
    def libtpu_version(self) -> str | int | None:
        """The version of libtpu that it runs."""
    @property
    def recompiled(self) -> str | int | None:
        """The functions that were compiled again in the last minute."""
    @property
    def profiler_port(self) -> int | None:
        """TCP port of the profiler server that JAX runs in it."""
    @property
    def memory_profile(self) -> MemoryProfile | None:
        """The lines of code that hold its device memory. Needs an agent."""
    @property
    def steps(self) -> int | None:
        """Calls of tpusmi.step() so far. Unit: count."""
    @property
    def steps_per_s(self) -> float | None:
        """Steps per second over the last minute (at least the last 20 steps). Unit: 1/s."""
    @property
    def step_time_s(self) -> StepTime:
        """Time between the ends of steps, in seconds, over the last minute."""
    @property
    def step_body_s(self) -> StepBody:
        """Time inside of `with tpusmi.step():`, in seconds, over the last minute."""
    @property
    def since_last_step_s(self) -> float | None:
        """Time since the last step ended. Unit: s."""
    @property
    def compilations(self) -> int | None:
        """XLA programs compiled so far. Unit: count."""
    @property
    def compile_s(self) -> float | None:
        """Time spent compiling them. Unit: s."""
    @property
    def recent_compilations(self) -> int | None:
        """XLA programs compiled in the last minute, not counting the job's first minute. Unit:
        count.
        """
    @property
    def hbm_used_bytes(self) -> int | None:
        """Device memory in use, summed over the process's devices. Unit: bytes."""
    @property
    def live_array_bytes(self) -> int | None:
        """Bytes of live arrays on all devices, from the newest memory profile. Unit: bytes."""
    @property
    def live_arrays(self) -> int | None:
        """Live arrays on all devices, from the newest memory profile. Unit: count."""
    @property
    def executables(self) -> int | None:
        """Compiled programs held in memory, from the newest memory profile. Unit: count."""
    @property
    def flops_per_s(self) -> float | None:
        """Model FLOPs per second of the whole job, as the job counts them, over the last minute.
        Unit: 1/s.
        """
    @property
    def mfu_percent(self) -> float | None:
        """Model FLOPs per second over the bf16 peak of the devices. Unit: percent."""
    @property
    def agent_cost_percent(self) -> float | None:
        """CPU time of the agent's thread over wall time, in the last minute. Unit: percent."""
    @property
    def provenance(self) -> dict[str, Provenance]:
        """The source and the age of each known value, by the name of its attribute."""

class Sign(Item):
    """A fact that suggests that a holder is stale."""

    @property
    def code(self) -> str:
        """The kind of sign, for scripts."""
    @property
    def message(self) -> str:
        """The sign in words."""

class MemoryProfile(Item):
    """What holds the device memory of a process, from JAX's memory profile."""

    @property
    def age_s(self) -> float:
        """How long ago it was taken, in seconds."""
    @property
    def sites(self) -> tuple[Site, ...]:
        """Lines of code that hold memory, largest first."""

class Site(SitePart):
    """A line of code and what it holds on all devices together."""

    @property
    def function(self) -> str:
        """The function that allocated the memory."""
    @property
    def file(self) -> str:
        """The file of that function."""
    @property
    def line(self) -> int:
        """The line in that file."""
    @property
    def kind(self) -> str:
        """`buffer` or `executable`."""
    @property
    def bytes(self) -> int | None:
        """Bytes that it holds; None for a compiled program."""
    @property
    def count(self) -> int:
        """How many arrays, or programs, it holds."""
    @property
    def growth_bytes_per_s(self) -> float | None:
        """On all devices together, over the last minutes; null until known."""

class StepTime(Item):
    """Time between the ends of steps, in seconds, over the last minute."""

    @property
    def min(self) -> float | None:
        """Shortest time between the ends of steps, over the last minute (at least the last 20).
        Unit: s.
        """
    @property
    def mean(self) -> float | None:
        """Mean time between the ends of steps, over the last minute (at least the last 20).
        Unit: s.
        """
    @property
    def p50(self) -> float | None:
        """Median time between the ends of steps, over the last minute (at least the last 20).
        Unit: s.
        """
    @property
    def p95(self) -> float | None:
        """95th percentile of the time between the ends of steps, over the last minute (at least
        the last 20). Unit: s.
        """
    @property
    def max(self) -> float | None:
        """Longest time between the ends of steps, over the last minute (at least the last 20).
        Unit: s.
        """

class StepBody(Item):
    """Time inside of `with tpusmi.step():`, in seconds, over the last minute."""

    @property
    def mean(self) -> float | None:
        """Mean time inside of `with tpusmi.step():`, which may only dispatch the step. Unit: s."""
    @property
    def p50(self) -> float | None:
        """Median time inside of `with tpusmi.step():`, which may only dispatch the step. Unit:
        s.
        """
    @property
    def p95(self) -> float | None:
        """95th percentile of the time inside of `with tpusmi.step():`, which may only dispatch
        the step. Unit: s.
        """

class Source(Item):
    """A place that tpusmi reads, and how it answered."""

    @property
    def name(self) -> str:
        """The source's name."""
    @property
    def status(self) -> Literal["ok", "absent", "denied", "failed"]:
        """How it answered."""
    @property
    def message(self) -> str:
        """What it answered, or why it failed, in words."""
    @property
    def took_s(self) -> float:
        """How long it took, in seconds."""
    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence for each thing that could not be read."""

class Server(Item):
    """A metrics server of libtpu."""

    @property
    def address(self) -> str:
        """The address and port that it listens on."""
    @property
    def pid(self) -> int | None:
        """The process that listens there."""
    @property
    def user(self) -> str | None:
        """The owner of its process."""
    @property
    def holds_tpu(self) -> bool | None:
        """False: what it reports is left out. Null: not known."""
    @property
    def device_ids(self) -> tuple[int, ...]:
        """Every device that it has reported."""
    @property
    def status(self) -> Literal["ok", "absent", "denied", "failed"]:
        """How it answered."""
    @property
    def message(self) -> str:
        """Why it did not answer, in words."""

class Core(Item):
    """What a core runs. `tpusmi --json --programs` asks for it, `snapshot()` does not."""

    @property
    def server(self) -> str:
        """The metrics server that reported it."""
    @property
    def id(self) -> int:
        """The core's id, by libtpu."""
    @property
    def chip_id(self) -> int | None:
        """The chip's id, by libtpu."""
    @property
    def type(self) -> str | None:
        """The type of core, by libtpu."""
    @property
    def index(self) -> int | None:
        """The core's index on its chip."""
    @property
    def hlo_location(self) -> str | None:
        """Where in the program it is."""
    @property
    def program_fingerprint(self) -> str | None:
        """The fingerprint of the program that runs."""
    @property
    def queued_programs(self) -> int | None:
        """Programs that wait for the core."""
    @property
    def error(self) -> str | None:
        """The error that the core reports."""

class Holding(Item):
    """Whether the TPU and each of its nodes are free, and what could not be seen."""

    @property
    def status(
        self,
    ) -> Literal["free", "held", "stale", "not_visible", "no_permission", "no_node", "no_tpu"]:
        """Whether the TPU is free, and if not, why."""
    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every device node of a TPU."""
    @property
    def not_inspected(self) -> int:
        """Processes that may hold a node and could not be inspected."""
    @property
    def own_pid_namespace(self) -> bool:
        """Only processes of this container can be seen."""
    @property
    def lock_files(self) -> tuple[LockFile, ...]:
        """libtpu's lock file."""

class Node(Item):
    """A device node, and the processes that hold it."""

    @property
    def node(self) -> str:
        """The path of the device node."""
    @property
    def chip(self) -> int | None:
        """Index of the chip behind it."""
    @property
    def state(
        self,
    ) -> Literal["free", "held", "stale", "releasing", "not_visible", "no_permission"]:
        """Whether it is free."""
    @property
    def pids(self) -> tuple[int, ...]:
        """Every process that holds the node."""

class LockFile(Item):
    """libtpu's lock file, which decides whether another process may start on the TPU."""

    @property
    def path(self) -> str:
        """The path of the file."""
    @property
    def state(
        self,
    ) -> Literal["absent", "harmless", "blocking", "locked", "deleted", "unknown"]:
        """What the file means for the next job."""
    @property
    def owner(self) -> str | None:
        """The owner of the file."""
    @property
    def pids(self) -> tuple[int, ...]:
        """Processes that lock it, or have the deleted file open."""
    @property
    def message(self) -> str:
        """The same in words."""

class Slice(Item):
    """All hosts of a job that has several, as the agents in it tell each other."""

    @property
    def pid(self) -> int | None:
        """The process here whose agent has read it."""
    @property
    def process_index(self) -> int:
        """Its number in the job."""
    @property
    def process_count(self) -> int:
        """Processes of the job."""
    @property
    def hosts(self) -> tuple[SliceHost, ...]:
        """Every process of the job that has an agent."""

class SliceHost(Item):
    """One process of the job, as its agent described it `age_s` seconds ago."""

    @property
    def process_index(self) -> int:
        """Its number in the job."""
    @property
    def slice_index(self) -> int | None:
        """Which slice it is in, of a job of several."""
    @property
    def name(self) -> str:
        """Name of its host."""
    @property
    def kind(self) -> str | None:
        """JAX's name of its devices."""
    @property
    def state(self) -> Literal["live", "stopped reporting"]:
        """Whether it is heard of."""
    @property
    def age_s(self) -> float:
        """Age of its figures."""
    @property
    def period_s(self) -> float:
        """Time between two reports of its agent."""
    @property
    def phase(self) -> Literal["starting", "compiling", "running", "idle", "ended"] | None:
        """What it does, as its agent reports."""
    @property
    def steps(self) -> int | None:
        """Calls of tpusmi.step() so far."""
    @property
    def step_time_s(self) -> float | None:
        """Mean over the last minute."""
    @property
    def since_last_step_s(self) -> float | None:
        """When it said this."""
    @property
    def mfu_percent(self) -> float | None:
        """Model FLOPs per second over the bf16 peak of the job's devices."""
    @property
    def clock_difference_s(self) -> float | None:
        """Its clock minus that of this host."""
    @property
    def warnings(self) -> tuple[str, ...]:
        """Codes of its agent's warnings."""
    @property
    def device_count(self) -> int:
        """Devices of the process."""
    @property
    def devices(self) -> tuple[SliceDevice, ...]:
        """The first 32 of them."""

class SliceDevice(Item):
    """A device of another host of the job."""

    @property
    def id(self) -> int | None:
        """Global id in JAX and libtpu."""
    @property
    def coords(self) -> tuple[int, ...] | None:
        """Place in the slice."""
    @property
    def core_on_chip(self) -> int | None:
        """Index of the core on its chip."""
    @property
    def hbm_used_bytes(self) -> int | None:
        """Device memory in use."""
    @property
    def hbm_limit_bytes(self) -> int | None:
        """Device memory that can be used."""
    @property
    def tensorcore_utilization_percent(self) -> float | None:
        """Share of the peak matrix throughput."""
    @property
    def duty_cycle_percent(self) -> float | None:
        """Share of time the chip was busy."""
    @property
    def idle_s(self) -> float | None:
        """Time since the TensorCore last ran, in seconds."""

class Notice(NoticePart):
    """Something to act on: what is wrong, since when, and what to do."""

    @property
    def code(self) -> str:
        """The kind of warning, for scripts: the words may change."""
    @property
    def message(self) -> str:
        """What is wrong."""
    @property
    def advice(self) -> str:
        """What to do about it."""
    @property
    def since_s(self) -> float | None:
        """For how long it has been so, at least."""
    @property
    def pid(self) -> int | None:
        """The process that it is about."""
    @property
    def chip(self) -> int | None:
        """Index of the chip that it is about."""
    @property
    def device(self) -> int | None:
        """Local index of the device that it is about."""
