"""Profiles of several hosts, captured at the same moment, side by side. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tpusmi import text
from tpusmi.report import words
from tpusmi.report.profile.capture_words import (
    NOTE_MOST,
    NOTES_MOST,
    SIMULATED,
    device_name,
    label,
    local_time,
    note_lines,
    noun,
)
from tpusmi.report.profile.derived_figures import (
    input_percent,
    memory_percent,
    step_s,
    whole_steps,
)
from tpusmi.report.profile.figure_lines import step_time
from tpusmi.report.profile.finding_lines import ADVICE_WIDTH, TOO_LITTLE, WELL, of_finding
from tpusmi.report.profile.findings import Finding, can_judge, findings
from tpusmi.report.profile.host_differences import Unit, difference_lines, slowest_of
from tpusmi.report.profile.styled import DOT, Line, cut_middle, heading, paragraph, width_of
from tpusmi.report.profile.styled_table import Cell, TableColumn, table
from tpusmi.trace.figures import TraceProfile

LABEL_MOST = 20
LISTED_MOST = 4
"""Hosts that a finding or a note names."""
OPERATION_LEAST = 20
HOSTS_MOST = 64
"""Lines of hosts, where each has one."""


class HostRow(NamedTuple):
    """A figure of each host."""

    name: str
    of: Callable[[TraceProfile], str]


def _memory(p: TraceProfile) -> str:
    used = (percent for m in p.memory if (percent := memory_percent(m)) is not None)
    return words.percent(max(used, default=None))


ROWS = (
    HostRow("Step p50", lambda p: step_time(step_s(p))),
    HostRow("Step p95", lambda p: step_time(getattr(whole_steps(p), "p95_s", None))),
    HostRow("Idle", lambda p: words.percent(p.idle_percent)),
    HostRow("MXU", lambda p: words.percent(p.mxu_percent)),
    HostRow("HBM BW", lambda p: words.percent(p.hbm_bandwidth_percent)),
    HostRow("Input", lambda p: words.percent(input_percent(p))),
    HostRow("Exchanges", lambda p: words.percent(p.shares.collectives_percent)),
    HostRow("Host copies", lambda p: words.percent(p.shares.host_percent)),
    HostRow("Memory", _memory),
    HostRow("Cores", lambda p: str(len(p.cores)) if p.cores else words.UNKNOWN),
    HostRow("FLOP rate", lambda p: words.flops(p.flops_per_s)),
    HostRow("Captured", lambda p: words.duration(p.captured_s)),
)
"""From the most important: where each host has a line, the last ones are left out first."""


def sections(
    profiles: Sequence[TraceProfile],
    width: int,
    top: int,
    failures: Sequence[tuple[str, str]] = (),
) -> list[list[Line]]:
    """The sections of the page: differences first."""
    names = labels(profiles)
    slowest = slowest_of(profiles)
    unit = unit_of(profiles)
    return [
        _head(profiles, failures, unit),
        _failed(failures, width, unit),
        difference_lines(profiles, names, slowest, width, unit),
        _findings(profiles, names, width, unit),
        _hosts(profiles, names, slowest, width, unit),
        _operations(profiles, names, width, top, unit),
        _notes(profiles, names, width),
    ]


def unit_of(profiles: Sequence[TraceProfile]) -> Unit:
    """What they are profiles of: processes where all are of one host, as JAX may run a job."""
    pids = {p.capture.pid for p in profiles}
    is_one_host = len({p.capture.host for p in profiles}) == 1
    if is_one_host and None not in pids and len(pids) == len(profiles):
        return Unit("process", "processes")
    return Unit("host", "hosts")


def labels(profiles: Sequence[TraceProfile]) -> list[str]:
    """A name for each host; its target where two have the same name."""
    names = [label(p) for p in profiles]
    counts = Counter(names)
    targets = [text.clean(p.capture.target, 256) for p in profiles]
    own = [
        cut_middle(name if counts[name] == 1 else target or name, LABEL_MOST)
        for name, target in zip(names, targets, strict=True)
    ]
    again = Counter(own)
    return [name if again[name] == 1 else f"{name}#{n}" for n, name in enumerate(own, 1)]


def _head(
    profiles: Sequence[TraceProfile], failures: Sequence[tuple[str, str]], unit: Unit
) -> list[Line]:
    cores = sum(len(p.cores) for p in profiles)
    devices = sorted({device_name(p) for p in profiles} - {""})
    moments = [m for p in profiles if (m := local_time(p.capture.captured_at_s))]
    all_ = len(profiles) + len(failures)
    facts = (
        text.counted(cores, "device" if "device" in map(noun, profiles) else "core")
        if all(p.cores for p in profiles) and cores
        else "",
        ", ".join(devices),
        f"captured {min(moments)}" if moments else "",
    )
    rest = "".join(f"{DOT}{fact}" for fact in facts if fact)
    simulated = any(p.capture.simulated for p in profiles)
    mark = SIMULATED if simulated else ()
    return [((text.counted(all_, *unit), "bold"), (rest, "plain"), *mark)]


def _failed(failures: Sequence[tuple[str, str]], width: int, unit: Unit) -> list[Line]:
    """A sentence for each host without a profile."""
    lines: list[Line] = []
    for address, sentence in failures:
        words_ = f"{text.clean(address, 256)}: {text.clean(sentence, 1000)}"
        lines += paragraph(words_, width, "bad", " !! ")
    remark = f"{text.counted(len(failures), *unit)} without a profile"
    return [heading("FAILED", remark), *lines] if lines else []


def _findings(
    profiles: Sequence[TraceProfile], names: Sequence[str], width: int, unit: Unit
) -> list[Line]:
    """Each finding once, with the hosts that have it and the figure of the worst one."""
    by_code: dict[str, list[tuple[Finding, str]]] = {}
    for p, name in zip(profiles, names, strict=True):
        for finding in findings(p):
            by_code.setdefault(finding.code, []).append((finding, name))
    if not by_code:
        judged = [p for p in profiles if can_judge(p)]
        return [heading("FINDINGS"), WELL if judged else TOO_LITTLE] if profiles else []
    groups = map(_worst_first, by_code.values())
    lines: list[Line] = [heading("FINDINGS", "worst first")]
    for group in sorted(groups, key=lambda group: -group[0][0].weight_percent):
        finding = group[0][0]
        is_on_all = len(group) == len(profiles)
        hosts = f"all {unit.several}" if is_on_all else _listed([name for _, name in group])
        named = finding._replace(figure=f"{finding.figure} (on {hosts})")
        lines += of_finding(named, min(width, ADVICE_WIDTH + 4))
    return lines


def _worst_first(group: list[tuple[Finding, str]]) -> list[tuple[Finding, str]]:
    return sorted(group, key=lambda pair: -pair[0].weight_percent)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - LISTED_MOST
    return ", ".join(names[:LISTED_MOST]) + (f" and {more} more" if more > 0 else "")


def _hosts(
    profiles: Sequence[TraceProfile],
    names: Sequence[str],
    slowest: int | None,
    width: int,
    unit: Unit,
) -> list[Line]:
    """A column for each host; a line for each where there are too many for that."""
    cells = [[row.of(p) for p in profiles] for row in ROWS]
    if not profiles:
        return []
    first = max(width_of(row.name) for row in ROWS)
    each = [
        max(width_of(names[n]), 8, *(width_of(line[n]) for line in cells))
        for n in range(len(profiles))
    ]
    if 1 + first + sum(w + 2 for w in each) > width:
        return _below_each_other(profiles, names, slowest, width, unit)
    columns = (TableColumn("", right=False), *(TableColumn(name) for name in names))
    rows: list[list[Cell]] = []
    for row, line in zip(ROWS, cells, strict=True):
        styled = [(value, "bad" if n == slowest else "plain") for n, value in enumerate(line)]
        is_step = row.name.startswith("Step")
        own = [(value, style if is_step else "plain") for value, style in styled]
        rows.append([(row.name, "dim"), *own])
    if slowest is not None:
        marks = [("slowest" if n == slowest else "", "bad") for n in range(len(profiles))]
        rows.insert(0, [("", "dim"), *marks])
    return [heading(unit.several.upper()), *table(columns, rows, width, keep_all=True)]


def _below_each_other(
    profiles: Sequence[TraceProfile],
    names: Sequence[str],
    slowest: int | None,
    width: int,
    unit: Unit,
) -> list[Line]:
    columns = (
        TableColumn(unit.one.upper(), right=False, least=8),
        TableColumn("", right=False),
        *(TableColumn(row.name.upper(), rank=n) for n, row in enumerate(ROWS)),
    )
    order = sorted(range(len(profiles)), key=lambda n: -(step_s(profiles[n]) or 0.0))
    rows = []
    for n in order[:HOSTS_MOST]:
        style = "bad" if n == slowest else "plain"
        mark = ("slowest" if n == slowest else "", "bad")
        rows.append([(names[n], style), mark, *((row.of(profiles[n]), style) for row in ROWS)])
    left = len(order) - HOSTS_MOST
    remark = f"{left} faster ones are not listed" if left > 0 else "longest steps first"
    return [heading(unit.several.upper(), remark), *table(columns, rows, width)]


def _operations(
    profiles: Sequence[TraceProfile], names: Sequence[str], width: int, top: int, unit: Unit
) -> list[Line]:
    """The longest operations of all hosts, and their share of the time on each."""
    shares: dict[tuple[str | None, str], dict[int, float]] = {}
    for n, p in enumerate(profiles):
        for o in p.operations:
            own = shares.setdefault((o.program, o.name), {})
            own[n] = own.get(n, 0.0) + o.self_percent
    if not shares:
        return []
    ranked = sorted(shares.items(), key=lambda item: -sum(item[1].values()))[: max(0, top)]
    hosts = sum(max(8, width_of(name)) + 2 for name in names)
    if hosts + OPERATION_LEAST > width:
        columns = [TableColumn(title) for title in ("LEAST", "MOST")]
        columns.append(TableColumn("ON", right=False))
        cells = [_ends(own, names) for _, own in ranked]
    else:
        columns = [TableColumn(name) for name in names]
        cells = [
            [(words.percent(own.get(n)), "plain") for n in range(len(names))] for _, own in ranked
        ]
    columns.append(TableColumn("OPERATION", right=False, least=OPERATION_LEAST))
    rows = [
        [*line, (text.clean(name, 400), "bold")]
        for line, ((_, name), _) in zip(cells, ranked, strict=True)
    ]
    remark = f"share of the time of each {unit.one}"
    return [heading("OPERATIONS", remark), *table(columns, rows, width)]


def _ends(own: Mapping[int, float], names: Sequence[str]) -> list[Cell]:
    """The least and the most of all hosts, and on which it is the most."""
    most, on = max((share, n) for n, share in own.items())
    least = min(own.values()) if len(own) == len(names) else None
    return [
        (words.percent(least), "plain"),
        (words.percent(most), "plain"),
        (names[on], "dim"),
    ]


def _notes(profiles: Sequence[TraceProfile], names: Sequence[str], width: int) -> list[Line]:
    """Each note once, with the hosts that it is of."""
    hosts: dict[str, list[str]] = {}
    for p, name in zip(profiles, names, strict=True):
        for note in p.notes[:NOTES_MOST]:
            if clean := text.clean(note, NOTE_MOST):
                hosts.setdefault(clean, []).append(name)
    texts = [
        note if len(those) == len(profiles) else f"{_listed(those)}: {note}"
        for note, those in hosts.items()
    ]
    return note_lines(texts, width)
