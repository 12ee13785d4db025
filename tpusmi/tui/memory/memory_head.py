"""The lines above the tree: how full the memory is, of what, and what has changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from tpusmi.model import Device, Process, Snapshot, Value
from tpusmi.model.several import fragmented_percent
from tpusmi.report import words
from tpusmi.text import counted, noun
from tpusmi.tui import chrome
from tpusmi.tui.draw.look import Look, Row, width_of
from tpusmi.tui.memory.allocations import Tree, is_by_device
from tpusmi.tui.memory.memory_bars import (
    NAME_WIDTH,
    PERCENT_WIDTH,
    Figures,
    bar_glyphs,
    figures,
    percent_cell,
    split_bar,
)
from tpusmi.tui.memory.memory_tree import signed_size
from tpusmi.tui.process.process_facts import letter

PAIR_WIDTH = len("1234.5/1234.5 GiB")
LEAST_BAR, MOST_BAR = 6, 64
MAY_BE = "programs, runtime, temporaries, fragmentation"
"""What memory in no live array may be."""
START = "    import tpusmi; tpusmi.start()"


class ShownMemory(NamedTuple):
    """The job, and the part of its memory, that the lines are about."""

    snapshot: Snapshot
    process: Process
    devices: tuple[Device, ...]
    """The device the user has chosen, or all devices of the process."""
    is_chosen: bool
    tree: Tree
    mark_at_s: float | None
    now_s: float
    """When the newest snapshot was taken: there are no profiles of the past."""
    place: str
    """Which job it is, of how many."""


def head_lines(look: Look, shown: ShownMemory, width: int, height: int) -> list[Row]:
    """As many of the lines as there is room for, the most important first."""
    memory = figures(shown.snapshot, shown.devices)
    dim = shown.process.is_dead or any(v is not None and v.stale for v in memory)
    live, other, free = bar_glyphs(look)
    lines = [
        _title(look, shown, width),
        _hbm(look, memory, shown, width),
        _line(look, f"live {live}", _live(shown, memory), width, dim),
        _line(look, f"other {other}", _other(memory), width, dim),
        _line(look, f"free {free}", _free(shown, memory), width, dim),
        _line(look, "mark", _mark(shown), width, dim),
    ]
    if shown.mark_at_s is not None and 2 < height < len(lines):
        return [*lines[: height - 1], lines[-1]]
    return lines[:height]


def without_profile(
    look: Look, snapshot: Snapshot, process: Process | None, others: Sequence[Process], width: int
) -> list[Row]:
    """Why there is nothing to show, and what to do. `others` are the jobs that have a profile."""
    if process is None:
        return chrome.nothing(look, snapshot, "")
    lines = [look.cell(_name(process), width, "head"), (), *_why(look, process, width)]
    if others:
        lines += [(), look.line(("Tab shows a job with a profile:", "plain"))]
        lines += [look.cell(f"    {p.pid} {words.command(p.command)}", width) for p in others]
    return lines


def nothing_listed(look: Look, filter: str) -> Row:
    """Why the tree is empty."""
    text = f"No line contains {filter!r}." if filter else "No live arrays and no programs."
    return look.line((text, "warn"))


def _why(look: Look, p: Process, width: int) -> list[Row]:
    if p.interval_s is None:
        text = "No memory profile: this job has no tpusmi agent. Add to its code:"
        return [*look.wrapped(text, width, "plain"), (), look.line((START, "bold"))]
    text = "No memory profile yet. The job's agent makes one in its first minute, if JAX can."
    warnings = [line for n in p.warnings for line in look.wrapped(n.message, width, "warn", "! ")]
    return [*look.wrapped(text, width, "plain"), *warnings]


def _name(p: Process) -> str:
    return f"{letter(p)} {p.pid} {words.command(p.command)}"


def _title(look: Look, shown: ShownMemory, width: int) -> Row:
    place = f"  {shown.place}"
    text = look.fitted(_name(shown.process), max(0, width - len(place)))
    return look.cell(text + place, width, "head")


def _hbm(look: Look, memory: Figures, shown: ShownMemory, width: int) -> Row:
    """`HBM  tpu:0  ━━━━━━━╍╍────   11.2/15.8 GiB  71 %`."""
    used, limit, count = memory.used, memory.limit, len(shown.devices)
    is_one = shown.is_chosen or count == 1
    whose = shown.devices[0].own_name if is_one else f"all {count} devices"
    pair = words.used_of_limit(used, limit)
    ends = look.line((f"  {whose}", "plain"))
    room = min(width - NAME_WIDTH - PAIR_WIDTH - PERCENT_WIDTH - width_of(ends), MOST_BAR)
    style = "dim" if used is None or used.stale else "bold"
    return (
        *look.cell("HBM", NAME_WIDTH, "title"),
        *(split_bar(look, memory, room) if room >= LEAST_BAR else ()),
        *look.cell(pair, PAIR_WIDTH, style, right=True),
        *percent_cell(look, memory, "bold"),
        *ends,
    )


def _line(look: Look, name: str, parts: Iterator[str], width: int, dim: bool) -> Row:
    """A line of that name with as many whole parts as fit, and the first one in any case."""
    dot = f" {look.glyphs.dot} "
    text = next(parts, words.UNKNOWN)
    for part in parts:
        if NAME_WIDTH + cell_len(text + dot + part) <= width:
            text += dot + part
    return look.line((name.ljust(NAME_WIDTH), "title"), (text, "dim" if dim else "plain"))


def _live(shown: ShownMemory, memory: Figures) -> Iterator[str]:
    tree, profile, arrays = shown.tree, shown.process.profile, memory.arrays
    count = words.count(arrays and arrays.value)
    yield f"{_size(memory.live)} in {count} {noun(arrays.value if arrays else 0, 'array')}"
    if profile is not None:
        old = words.elapsed(max(0.0, shown.now_s - profile.at_s))
        is_past = shown.snapshot.at_s < shown.now_s
        yield f"{'current ' if is_past else ''}profile, {old} old"
        devices = shown.snapshot.devices_of(shown.process.key)
        if len(devices) > 1 and not is_by_device(profile):
            yield "the tree sums all devices"
    if tree.left_out is not None and tree.left_out.count:
        size, count = words.size(tree.left_out.bytes), words.count(tree.left_out.count)
        yield f"{size} in {count} not listed"


def _other(memory: Figures) -> Iterator[str]:
    if memory.other_bytes is not None:
        yield f"{words.size(memory.other_bytes)} unattributed: {MAY_BE}"
    elif memory.used is not None and memory.live is not None:
        yield f"{words.UNKNOWN} the live arrays are older than the memory in use"
    else:
        yield f"{words.UNKNOWN} unattributed: in use and in no live array"


def _free(shown: ShownMemory, memory: Figures) -> Iterator[str]:
    """The free memory, and its largest block on the device where that is the smallest."""
    s = shown.snapshot
    used, limit = memory.used, memory.limit
    yield words.size(None if used is None or limit is None else max(0, limit.value - used.value))
    blocks = [
        (block, d)
        for d in shown.devices
        if (block := s.value("hbm_largest_free_block_bytes", d.key)) is not None
    ]
    if blocks:
        block, device = min(blocks, key=lambda pair: (pair[0], pair[1].index))
        where = f" on {device.own_name}" if len(shown.devices) > 1 else ""
        yield f"largest {words.size(block)}{where}"
        own, total = (s.value(f"hbm_{name}_bytes", device.key) for name in ("used", "limit"))
        yield f"{words.percent(fragmented_percent(own, total, block))} fragmented"
    else:
        yield f"largest {words.UNKNOWN}"
    yield f"{_size(memory.reserved)} reserved"


def _mark(shown: ShownMemory) -> Iterator[str]:
    tree, profile = shown.tree, shown.process.profile
    if shown.mark_at_s is None or profile is None:
        yield "none: b sets it, and CHANGE then shows growth"
        return
    yield f"{words.elapsed(max(0.0, shown.now_s - shown.mark_at_s))} ago"
    if shown.mark_at_s == profile.at_s:
        yield "no newer profile yet"
        return
    before = tree.live_before
    if before is not None and before.bytes is not None and tree.live.bytes is not None:
        yield f"live {signed_size(tree.live.bytes - before.bytes)}"
    yield f"{counted(tree.new, 'line')} new, {tree.gone} gone"
    if not tree.is_sure and tree.new:
        yield '"new?": may have been too small to list at the mark'


def _size(v: Value | None) -> str:
    return words.size(v and v.value)
