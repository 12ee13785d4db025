"""A Snapshot as one plain table, for pipes, logs and `--once`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tpusmi.model import (
    AGENT,
    DENIED,
    FAILED,
    HOLDERS,
    SYSFS,
    Core,
    Device,
    Latency,
    Outcome,
    Process,
    Snapshot,
    State,
)
from tpusmi.report import rows, verdicts, words
from tpusmi.report.grid import DIM, YELLOW, Row, Sheet, as_text, grid, painted
from tpusmi.report.select import recent, told, uuid
from tpusmi.text import counted

COMMAND_MOST = 60


_DEVICE_TITLES = (
    *("DEV", "CHIP", "NODE", "PID", "KIND", "MEMORY", "PEAK", "ARRAYS", "LIVE"),
    *("MXU", "DUTY", "BW", "IDLE", "QUEUE", "MFU"),
)
_ONLY_WHERE_KNOWN = {"CHIP", "NODE", "PEAK", "ARRAYS", "LIVE", "IDLE", "QUEUE", "MFU"}
_LATENCY_TITLES = ("NETWORK", "OF", "COUNT", "MEAN", "P50", "P90", "P95", "P99.9")
_PROCESS_TITLES = (
    *("PID", "USER", "DEVICES", "MEMORY", "STEPS/s", "STEP p50", "p95"),
    *("COMPILES", "PHASE", "AGE", "COMMAND"),
)
_HIDDEN = {
    State.DEAD: "ended earlier",
    State.UNCERTAIN: "may have ended, and wrote nothing for long",
}
"""What is said of processes that are not shown, by their state."""
_CORE_TITLES = ("CORE", "CHIP", "TYPE", "QUEUED", "PROGRAM", "RUNS")


def table(
    snapshot: Snapshot, color: bool = False, ascii_only: bool = False, columns: int | None = None
) -> str:
    """The whole snapshot as text that ends in a newline.

    Its rows are made to fit into so many columns of a terminal; with None, all of them are printed.
    """
    return as_text(_lines(snapshot, Sheet(color, columns)), ascii_only)


def device_list(snapshot: Snapshot) -> str:
    """One line per device, in the manner of `nvidia-smi -L`."""
    lines = (
        f"{_listed(d)}: {d.kind or 'unknown'} (UUID: {uuid(snapshot, d)})\n"
        for d in snapshot.devices
    )
    return "".join(lines)


def _listed(d: Device) -> str:
    """`TPU 0` by its index; a row of a server by its number and port, `TPU 0@8432`."""
    is_row = d.chip is None and d.key.process is None
    apart = f"@{d.apart_by}" if d.apart_by else ""
    return f"{(d.platform or 'device').upper()} {d.number if is_row else d.index}{apart}"


def _lines(s: Snapshot, sheet: Sheet) -> Iterator[str]:
    color = sheet.color
    host = s.host
    label = " (SIMULATED)" if s.simulated else ""
    libtpu = f"  libtpu {host.libtpu_version}" if host.libtpu_version else ""
    yield f"tpusmi {s.tpusmi_version}  {host.name}{label}  {host.time}{libtpu}"
    processes = recent(s).processes
    shown = {p.key for p in processes}
    devices = [d for d in s.devices if d.key.process is None or d.key.process in shown]
    if devices:
        yield ""
        yield from grid(*_known(_DEVICE_TITLES, [_device(s, d) for d in devices]), sheet)
        if any(rows.DITTO in cell for d in devices for cell in _device(s, d)):
            yield painted(f"{rows.DITTO} measured of the whole chip: see the row above", DIM, color)
    if processes:
        old = {i for i, p in enumerate(processes) if p.state != State.LIVE or verdicts.is_faint(p)}
        yield ""
        yield from grid(_PROCESS_TITLES, [_process(s, p) for p in processes], sheet, old)
    latencies = [pair for pair in s.labelled_latencies() if pair[1].percentiles.count != 0]
    if latencies:
        yield ""
        yield from grid(_LATENCY_TITLES, [_latency(*pair) for pair in latencies], sheet)
    if s.cores:
        yield ""
        yield from grid(_CORE_TITLES, [_core(core) for core in s.cores], sheet)
    yield from _remarks(s, color, bool(processes or devices))


def _known(titles: Row, cells: list[Row]) -> tuple[Row, list[Row]]:
    """The table without the columns that are only shown where somebody knows them."""
    kept = [
        i
        for i, title in enumerate(titles)
        if title not in _ONLY_WHERE_KNOWN or any(row[i] != words.UNKNOWN for row in cells)
    ]
    return tuple(titles[i] for i in kept), [tuple(row[i] for i in kept) for row in cells]


def _remarks(s: Snapshot, color: bool, anything: bool) -> Iterator[str]:
    if not anything and s.visibility.nodes and not s.chips:
        yield _of_nodes(s)
    elif not anything and any(source.status == "ok" for source in s.sources):
        yield "Nothing here matches, or all of it ended long ago."
    elif not anything and any(o.source == AGENT and o.status == FAILED for o in s.sources):
        yield "Jobs could not be looked for. Try again."
    elif not anything:
        yield "No TPU job seen. In training code: `import tpusmi; tpusmi.start()`."
        yield "To try it here: `tpusmi demo`."
    for notice in s.warnings:
        about = "" if notice.pid is None else f"pid {notice.pid}: "
        yield painted(f"! {about}{notice.message}", YELLOW, color)
    yield from _of_sources(s, color)
    shown = recent(s).processes
    hidden = [p.state for p in s.processes if not p.is_living and p not in shown]
    for state, text in _HIDDEN.items():
        count = hidden.count(state)
        if count:
            yield painted(f"{counted(count, 'job')} that {text}: see --json", DIM, color)


def _of_nodes(s: Snapshot) -> str:
    """Device nodes that may be TPUs, and whether they are held unless a warning says so."""
    named = f"No PCI bus tells of a TPU; named like one: {words.nodes(s.visibility.nodes)}"
    warned = [notice.message for notice in s.warnings]
    said = [o.message for o in s.sources if o.source == HOLDERS and o.message not in warned]
    return ": ".join([named, *said])


def _of_sources(s: Snapshot, color: bool) -> Iterator[str]:
    """What could not be asked or seen, and what each source has to say."""
    warned = [notice.message for notice in s.warnings]
    failed = [o for o in s.sources if _is_said(s, o) and o.message not in warned]
    for source in s.sources:
        if source in failed:
            yield painted(f"{source.source}: {source.message}", YELLOW, color)
        for note in told(s, source):
            yield painted(f"{source.source}: {note}", DIM, color)
    said = [*warned, *(source.message for source in failed)]
    if (
        s.visibility.reason
        and s.visibility.nodes
        and not any(s.visibility.reason in text for text in said)
    ):
        yield painted(f"{HOLDERS}: {s.visibility.reason}", YELLOW, color)


def _is_said(s: Snapshot, source: Outcome) -> bool:
    """True of a source whose message stands below the table. Where there are nodes and no chip, it
    is the PCI bus that does not tell whether they are TPUs.
    """
    has_bare_nodes = source.source == SYSFS and bool(s.visibility.nodes) and not s.chips
    return source.status in (DENIED, FAILED) or has_bare_nodes


def _device(s: Snapshot, d: Device) -> Row:
    def text(name: str, read: Callable[[float | None], str]) -> str:
        found = rows.shown(s, d, name)
        return rows.DITTO if found.repeats else read(found.value.value if found.value else None)

    mfu = rows.mfu(s, d)
    return (
        d.name,
        words.UNKNOWN if d.chip is None else str(d.chip),
        rows.node(d) or words.UNKNOWN,
        rows.pids(d) or words.UNKNOWN,
        d.error or d.kind or words.UNKNOWN,
        _memory(s, d),
        text("hbm_peak_bytes", words.size),
        text("live_arrays", words.count),
        text("live_array_bytes", words.size),
        text("tensorcore_utilization_percent", words.percent),
        text("duty_cycle_percent", words.percent),
        text("hbm_bandwidth_utilization_percent", words.percent),
        text("idle_s", words.idle),
        text("hlo_queue_size", words.count),
        words.percent(mfu.value if mfu else None),
    )


def _memory(s: Snapshot, d: Device) -> str:
    memory = rows.memory(s, d)
    return rows.DITTO if memory.repeats else memory.text


def _latency(label: str, latency: Latency) -> Row:
    name, _, unit = latency.name.rpartition("_")
    read = words.microseconds if unit == "us" else words.megabits
    p = latency.percentiles
    numbers = (read(v) for v in (p.mean, p.p50, p.p90, p.p95, p.p999))
    return (name.replace("_", " "), label or words.UNKNOWN, words.count(p.count), *numbers)


def _core(core: Core) -> Row:
    def text(value: object) -> str:
        return words.UNKNOWN if value is None else str(value)

    kind = f"{(core.type or words.UNKNOWN).lower()} {text(core.index)}"
    runs = core.error or core.hlo_location
    numbers = (text(core.id), text(core.chip_id), kind, text(core.queued_programs))
    return (*numbers, text(core.program_fingerprint), text(runs))


def _process(s: Snapshot, p: Process) -> Row:
    def value(name: str) -> float | None:
        return s.value(name, p.key)

    used = value("hbm_used_bytes")
    live = value("live_array_bytes")
    age = None if p.sampled_at_s is None else max(0.0, s.at_s - p.sampled_at_s)
    return (
        str(p.pid),
        p.user or words.UNKNOWN,
        _devices_of(s, p),
        f"{words.size(live)} live" if used is None and live is not None else words.size(used),
        words.rate(value("steps_per_s")),
        words.duration(value("step_time_s.p50")),
        words.duration(value("step_time_s.p95")),
        words.count(value("compilations")),
        verdicts.doing(p) or words.UNKNOWN,
        words.duration(age),
        words.shortened(words.command(p.command), COMMAND_MOST),
    )


def _devices_of(s: Snapshot, p: Process) -> str:
    """Their numbers; the nodes that it holds where nobody knows of any device."""
    numbers = [d.number for d in s.devices_of(p.key)]
    held = words.nodes(p.holds).replace("/dev/", "") if p.holds else words.UNKNOWN
    return words.ranges(numbers) if numbers else held
