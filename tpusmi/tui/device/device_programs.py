"""What the cores of a device run, and how fast the network between hosts is. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tpusmi.model import Core, Device, Latency, Snapshot
from tpusmi.report import words
from tpusmi.tui.device.chip_limits import generation_of
from tpusmi.tui.draw.blocks import Block
from tpusmi.tui.draw.look import Look, Row

TENSOR_CORE = "TENSOR_CORE"
PROGRAM_LINES = 3
"""The most lines of what one core runs."""
NUMBER_WIDTH = 8
_OPERATION, _COMPUTATION = "HLO: ", "; HLO computation: "
"""How libtpu names an operation and the computation that it is in."""
COLLECTIVE, TCP_RATE = "collective_e2e_latency_us", "tcp_delivery_rate_mbps"
_NAMES = {
    "buffer_transfer_latency_us": "send",
    "inbound_buffer_transfer_latency_us": "receive",
    "host_to_device_transfer_latency_us": "to device",
    "device_to_host_transfer_latency_us": "from device",
    "host_compute_latency_us": "on host",
    COLLECTIVE: "",  # its label has the kind
    "tcp_min_rtt_us": "TCP round trip",
    TCP_RATE: "TCP Gbit/s",
    "grpc_client_call_latency_us": "gRPC call",
    "grpc_server_call_latency_us": "gRPC answer",
}
"""Short enough for a column of facts."""


def programs(look: Look, s: Snapshot, d: Device) -> Block | None:
    """What each TensorCore of the device runs; None where no server has said it."""
    cores = cores_of(s, d)
    if not cores:
        return None

    def draw(width: int, height: int) -> list[Row]:
        return [row for core in cores for row in _core(look, core, width)][:height]

    return Block("PROGRAMS", (1 + PROGRAM_LINES) * len(cores), draw)


def cores_of(s: Snapshot, d: Device) -> list[Core]:
    """The TensorCores of the device that a server of its owners reports, in order."""
    generation = generation_of(s, d)
    if d.id is None or generation is None:
        return []
    first = d.id * generation.cores_per_device
    ids = range(first, first + generation.cores_per_device)
    others = {
        server.address
        for server in s.servers
        if server.process is not None and server.process not in d.owners
    }
    cores = (c for c in s.cores if c.id in ids and c.server not in others)
    return sorted((c for c in cores if c.type in (None, TENSOR_CORE)), key=lambda core: core.id)


def _core(look: Look, core: Core, width: int) -> Iterator[Row]:
    queued = "" if core.queued_programs is None else f"{core.queued_programs} queued"
    left = look.cell(f"core {core.id}", max(0, width - len(queued)), "dim")
    yield (*left, *look.cell(queued, min(width, len(queued)), "dim"))
    text = core.error or operation(core) or core.program_fingerprint or "runs nothing"
    style = "bad" if core.error else "plain"
    yield from look.wrapped(text[: PROGRAM_LINES * width], width, style)[:PROGRAM_LINES]


def operation(core: Core) -> str:
    """`fusion.580 in main.579`, or what libtpu says where it says it in another way."""
    text = core.hlo_location or ""
    name, between, computation = text.removeprefix(_OPERATION).partition(_COMPUTATION)
    return f"{name} in {computation}" if between else text


def network(look: Look, s: Snapshot) -> Block | None:
    """Latencies and rates between hosts since the start of the job: the median, and where there is
    room the 99.9th percentile; None on a host that has measured none.
    """
    measured = [pair for pair in s.labelled_latencies() if pair[1].percentiles.count != 0]
    if not measured:
        return None

    def draw(width: int, height: int) -> list[Row]:
        heads = _row(look, ("since the start", "median", "p99.9"), width, "dim")
        return [heads, *(_latency(look, *pair, width) for pair in measured)][:height]

    return Block("NETWORK OF THE HOST", 1 + len(measured), draw)


def _latency(look: Look, label: str, latency: Latency, width: int) -> Row:
    read = _gigabits if latency.name == TCP_RATE else words.microseconds
    size, between, kind = label.partition("-")
    if latency.name == COLLECTIVE and between:
        label = f"{kind} {size}"
    name = _NAMES.get(latency.name, latency.name.rpartition("_")[0].replace("_", " "))
    p = latency.percentiles
    return _row(look, (f"{name} {label}".strip(), read(p.p50), read(p.p999)), width, "plain")


def _gigabits(megabits: float | None) -> str:
    return words.UNKNOWN if megabits is None else f"{megabits / 1000:.3g}"


def _row(look: Look, texts: tuple[str, str, str], width: int, style: str) -> Row:
    """A name and one number, or two where the names have room beside them."""
    numbers = texts[1:] if width >= 2 * NUMBER_WIDTH + max(len(texts[0]), 16) else texts[1:2]
    name = look.cell(texts[0], max(0, width - NUMBER_WIDTH * len(numbers)), style)
    cells = [look.cell(text, min(NUMBER_WIDTH, width), style, right=True) for text in numbers]
    return (*name, *(piece for cell in cells for piece in cell))
