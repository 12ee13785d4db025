"""A Snapshot as one plain table, for pipes, logs and `--once`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import dropwhile, islice

from tpusmi.model import (
    AGENT,
    FAILED,
    HOLDERS,
    OK,
    SYSFS,
    Core,
    Device,
    Latency,
    Snapshot,
    State,
)
from tpusmi.report import concerns, rows, verdicts, words
from tpusmi.report.columns import DEVICE_COLUMNS, PROCESS_COLUMNS, Cell, ColumnSpec, filled
from tpusmi.report.select import NO_MATCH, recent, remarks
from tpusmi.report.text_grid import (
    CYAN,
    DIM,
    GREEN,
    RED,
    YELLOW,
    Row,
    Sheet,
    as_text,
    grid,
    painted,
)
from tpusmi.text import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.model.slice_hosts import Slice

_HIDDEN = {
    State.DEAD: "ended earlier",
    State.UNCERTAIN: "may have ended, and has written nothing for long",
}
"""Why processes are not listed, by their state."""
MEMORY_TITLE = "MEMORY"
_PERCENTILES = {"COUNT": 3, "MEAN": 2, "P50": 1, "P90": 4, "P95": 0, "P99.9": 0}
"""Titles of the numbers of a latency, with their ranks."""
_LATENCIES = (
    ColumnSpec("NETWORK"),
    ColumnSpec("OF"),
    *(ColumnSpec(title, rank=rank, right=True) for title, rank in _PERCENTILES.items()),
)
_CORES = (
    ColumnSpec("CORE", right=True),
    ColumnSpec("CHIP", rank=2, right=True),
    ColumnSpec("TYPE", rank=3),
    ColumnSpec("QUEUED", right=True),
    ColumnSpec("PROGRAM", rank=1),
    ColumnSpec("RUNS"),
)


def table(
    snapshot: Snapshot,
    color: bool = False,
    ascii_only: bool = False,
    columns: int | None = None,
    hidden: Collection[str] = (),
) -> str:
    """The whole snapshot as text that ends in a newline, without the `header` or the `processes`
    if they are hidden.

    Rows fit into that many columns of a terminal; with None, nothing is left out.
    """
    lines = _lines(snapshot, Sheet(color, columns), "processes" not in hidden)
    if "header" in hidden:
        lines = dropwhile(lambda line: not line, islice(lines, 1, None))
    return as_text(lines, ascii_only)


def device_list(snapshot: Snapshot) -> str:
    """One line per device, in the manner of `nvidia-smi -L`."""
    from tpusmi.report.device_names import listed_name, uuid  # here: the table needs neither

    lines = (
        f"{listed_name(d)}: {d.kind or 'unknown'} (UUID: {uuid(snapshot, d)})\n"
        for d in snapshot.devices
    )
    return "".join(lines)


def _lines(s: Snapshot, sheet: Sheet, with_processes: bool) -> Iterator[str]:
    color = sheet.color
    host = s.host
    label = " (SIMULATED)" if s.simulated else ""
    libtpu = f"  libtpu {host.libtpu_version}" if host.libtpu_version else ""
    yield f"tpusmi {s.tpusmi_version}  {host.name}{label}  {host.time}{libtpu}"
    processes = recent(s).processes
    listed = {p.key for p in processes}
    devices = [d for d in s.devices if d.key.process is None or d.key.process in listed]
    at = rows.IndexedSnapshot(s)
    if devices:
        columns, cells = filled(DEVICE_COLUMNS, at, devices)
        texts = [tuple(cell.text for cell in row) for row in cells]
        yield ""
        yield from grid(columns, texts, sheet, styles=_loads(at, devices, columns, cells))
        if any(rows.DITTO in row for row in texts):
            yield painted(rows.DITTO_LEGEND, DIM, color)
    if processes and with_processes:
        columns, cells = filled(PROCESS_COLUMNS, at, processes)
        old = {i for i, p in enumerate(processes) if p.state != State.LIVE or verdicts.is_faint(p)}
        yield ""
        yield from grid(columns, [tuple(cell.text for cell in row) for row in cells], sheet, old)
    latencies = [pair for pair in s.labelled_latencies() if pair[1].percentiles.count != 0]
    if latencies:
        yield ""
        yield from grid(_LATENCIES, [_latency(*pair) for pair in latencies], sheet)
    if s.cores:
        yield ""
        yield from grid(_CORES, [_core(core) for core in s.cores], sheet)
    for x in s.slices:
        yield from _slice(x, sheet)
    yield from _remarks(s, color, bool(processes or devices))


def _slice(x: Slice, sheet: Sheet) -> Iterator[str]:
    """The hosts of a job that has several: of very many, the worst."""
    from tpusmi.report import slice_table

    columns, hosts = slice_table.rows_of(x)
    shown = slice_table.worst(hosts, slice_table.PLAIN_MOST)
    old = {i for i, row in enumerate(shown) if row.host.is_old}
    yield ""
    yield slice_table.headline(x)
    yield from grid(columns, [row.cells for row in shown], sheet, old)
    if len(shown) < len(hosts):
        text = f"{counted(len(hosts) - len(shown), 'more host')}: see --json"
        yield painted(text, DIM, sheet.color)


def _loads(
    at: rows.IndexedSnapshot,
    devices: Sequence[Device],
    columns: Sequence[ColumnSpec],
    cells: Sequence[Sequence[Cell]],
) -> dict[tuple[int, int], str]:
    """The colors of the numbers of devices: memory by how full it is, as in the dashboard; shares
    in the color of its bars; values that are old, and those of the row above, dim.
    """
    styles = {}
    for row, (d, own) in enumerate(zip(devices, cells, strict=True)):
        for place, (column, cell) in enumerate(zip(columns, own, strict=True)):
            if cell.value is None:
                continue
            memory = rows.memory(at.snapshot, d) if column.title == MEMORY_TITLE else None
            if cell.repeats or not cell.is_fresh:
                styles[row, place] = DIM
            elif memory is not None and memory.share is not None:
                styles[row, place] = _FULLNESS[words.fullness(memory.share)]
            elif column.is_share:
                styles[row, place] = CYAN
    return styles


_FULLNESS = {"low": GREEN, "near": YELLOW, "full": RED}


def _remarks(s: Snapshot, color: bool, anything: bool) -> Iterator[str]:
    """The lines below the tables."""
    yield from [] if anything else _nothing(s)
    texts = []
    for remark in remarks(s):
        texts.append(remark.text)
        if remark.notice is not None:
            yield from (painted(line, YELLOW, color) for line in concerns.marked(remark.notice))
        else:
            yield painted(remark.text, DIM if remark.is_note else YELLOW, color)
    for source, message in _unseen(s):
        if not any(message in text for text in texts):
            yield painted(f"{source}: {message}", YELLOW, color)
    listed = recent(s).processes
    hidden = [p.state for p in s.processes if not p.is_living and p not in listed]
    for state, text in _HIDDEN.items():
        count = hidden.count(state)
        if count:
            yield painted(f"{counted(count, 'job')} that {text}: see --json", DIM, color)


def _nothing(s: Snapshot) -> Iterator[str]:
    """Why there is neither a device nor a process."""
    if s.visibility.nodes and not s.chips:
        yield _of_nodes(s)
    elif any(source.status == OK for source in s.sources):
        yield NO_MATCH
    elif any(o.source == AGENT and o.status == FAILED for o in s.sources):
        yield "Jobs could not be looked for. Try again."
    else:
        yield "No TPU job seen. In training code: `import tpusmi; tpusmi.start()`."
        yield "To try it here: `tpusmi demo`."


def _of_nodes(s: Snapshot) -> str:
    """Device nodes that may be TPUs, and whether they are held unless a warning says so."""
    named = (
        f"No PCI bus confirms a TPU; device nodes named like one: {words.nodes(s.visibility.nodes)}"
    )
    warned = [notice.message for notice in s.warnings]
    messages = [o.message for o in s.sources if o.source == HOLDERS and o.message not in warned]
    return ": ".join([named, *messages])


def _unseen(s: Snapshot) -> Iterator[tuple[str, str]]:
    """Why it is unknown whether nodes are TPUs and which processes hold them, by source."""
    if s.visibility.nodes and not s.chips:
        yield from ((o.source, o.message) for o in s.sources if o.source == SYSFS)
    if s.visibility.nodes and s.visibility.reason:
        yield HOLDERS, s.visibility.reason


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
