"""The lines over the tree: how full the memory is, of what, and what has changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from tpusmi.model import NOMINAL, Device, Process, Snapshot, Value
from tpusmi.report import words
from tpusmi.text import counted, noun
from tpusmi.tui.draw.cells import age
from tpusmi.tui.draw.look import Look, Row, fill_style, width_of
from tpusmi.tui.main.processes import letter
from tpusmi.tui.memory.allocations import Tree, is_by_device
from tpusmi.tui.memory.table import signed_size

NAME_WIDTH = 8
PAIR_WIDTH = len("1234.5/1234.5 GiB")
LEAST_BAR, MOST_BAR = 6, 64
CARD, CARD_ROWS = 36, 4
"""A bar for each device, where there is room for all."""
OTHER, OTHER_ASCII = "╍", "="
"""In a bar, what is in use and in no live array."""
IT_MAY_BE = "programs, runtime, temporaries, fragmentation"


class Figures(NamedTuple):
    """What is known of the memory of some devices, summed."""

    used: Value | None
    limit: Value | None
    live: Value | None
    arrays: Value | None
    reserved: Value | None

    @property
    def other_bytes(self) -> float | None:
        """In use and in no live array; None when it is unknown, or the two are of other times."""
        if self.used is None or self.live is None or self.live.value > self.used.value:
            return None
        return self.used.value - self.live.value


class Shown(NamedTuple):
    """What the lines are about."""

    snapshot: Snapshot
    process: Process
    devices: tuple[Device, ...]
    """Those that are shown: one that was chosen, or all of the process."""
    is_chosen: bool
    tree: Tree
    mark_at_s: float | None
    now_s: float
    """When the newest snapshot was taken: profiles are of now alone."""
    place: str
    """Which job it is, of how many."""


def figures(s: Snapshot, devices: Sequence[Device]) -> Figures:
    """The sums, each None unless every device has it."""
    names = ("used_bytes", "limit_bytes", "reserved_bytes")
    used, limit, reserved = (_total(s, f"hbm_{name}", devices) for name in names)
    live, arrays = (_total(s, name, devices) for name in ("live_array_bytes", "live_arrays"))
    return Figures(used, limit, live, arrays, reserved)


def head_lines(look: Look, shown: Shown, width: int, height: int) -> list[Row]:
    """As many of the lines as there is room for, the most telling first."""
    found = figures(shown.snapshot, shown.devices)
    dim = shown.process.is_dead or any(v is not None and v.stale for v in found)
    live, other, free = _glyphs(look)
    lines = [
        _title(look, shown, width),
        _hbm(look, found, _whose(shown), width),
        _line(look, f"live {live}", _live(shown, found), width, dim),
        _line(look, f"other {other}", _other(found), width, dim),
        _line(look, f"free {free}", _free(shown, found), width, dim),
        _line(look, "mark", _mark(shown), width, dim),
    ]
    if shown.mark_at_s is not None and 2 < height < len(lines):
        return [*lines[: height - 1], lines[-1]]
    return lines[:height]


def cards(look: Look, s: Snapshot, devices: Sequence[Device], width: int) -> list[Row]:
    """A bar for each device, several on a line; none where they are too many, or only one."""
    across = max(1, (width - NAME_WIDTH) // CARD)
    if len(devices) < 2 or -(-len(devices) // across) > CARD_ROWS:
        return []
    made = [_card(look, s, d) for d in devices]
    lines = []
    for start in range(0, len(made), across):
        row = look.cell("", NAME_WIDTH)
        for card in made[start : start + across]:
            row = (*row, *card)
        lines.append(row)
    return lines


def split_bar(look: Look, found: Figures, width: int) -> Row:
    """Live arrays, what else is in use, and what is free, each drawn in its own way."""
    if found.used is None or found.limit is None or not found.limit.value:
        return look.cell("", width)
    full = min(max(found.used.value / found.limit.value, 0.0), 1.0)
    live = full if found.live is None else min(found.live.value / found.limit.value, full)
    if found.used.stale:
        return look.cell(f"{age(found.used.age_s)} old", width, "dim")
    upto, filled = round(live * width), round(full * width)
    return look.line(
        (look.glyphs.bar * upto, fill_style(full)),
        (_glyphs(look)[1] * (filled - upto), "graph"),
        (look.glyphs.track * (width - filled), "dim"),
    )


def _glyphs(look: Look) -> tuple[str, str, str]:
    """Of live arrays, of the rest that is in use, and of what is free, as they are in a bar."""
    other = OTHER_ASCII if look.only_ascii else OTHER
    return look.glyphs.bar, other, look.glyphs.track


def _title(look: Look, shown: Shown, width: int) -> Row:
    p = shown.process
    place = f"  {shown.place}"
    text = look.fitted(
        f"{letter(p)} {p.pid} {words.command(p.command)}", max(0, width - len(place))
    )
    return look.cell(text + place, width, "head")


def _whose(shown: Shown) -> str:
    count = len(shown.devices)
    if shown.is_chosen:
        return shown.devices[0].own_name
    return shown.devices[0].own_name if count == 1 else f"all {count} devices"


def _hbm(look: Look, found: Figures, whose: str, width: int) -> Row:
    """`HBM  tpu:0  ━━━━━━━╍╍────   11.2/15.8 GiB  71 %`."""
    used, limit = found.used, found.limit
    is_nominal = limit is not None and limit.source == NOMINAL
    pair = words.size_pair(used and used.value, limit and limit.value, is_nominal)
    ratio = used.value / limit.value if used and limit and limit.value else None
    percent = words.percent(None if ratio is None else 100 * ratio)
    style = "dim" if used is None or used.stale else "bold"
    ends = look.line((f"  {whose}", "plain"))
    room = min(width - NAME_WIDTH - PAIR_WIDTH - 7 - width_of(ends), MOST_BAR)
    bar = split_bar(look, found, room) if room >= LEAST_BAR else ()
    return (
        *look.cell("HBM", NAME_WIDTH, "title"),
        *bar,
        *look.cell(pair, PAIR_WIDTH, style, right=True),
        *look.cell(percent, 7, style, right=True),
        *ends,
    )


def _line(look: Look, name: str, parts: Iterator[str], width: int, dim: bool) -> Row:
    """A line of that name, of as many whole parts as there is room for; of the first at any rate.
    Its name has what it looks like in the bar.
    """
    dot = f" {look.glyphs.dot} "
    text = next(parts, words.UNKNOWN)
    for part in parts:
        if NAME_WIDTH + cell_len(text + dot + part) <= width:
            text += dot + part
    return look.line((name.ljust(NAME_WIDTH), "title"), (text, "dim" if dim else "plain"))


def _live(shown: Shown, found: Figures) -> Iterator[str]:
    tree, profile = shown.tree, shown.process.profile
    yield f"{_size(found.live)} in {_count(found.arrays)} {_noun(found.arrays, 'array')}"
    if profile is not None:
        old = age(max(0.0, shown.now_s - profile.at_s))
        is_past = shown.snapshot.at_s < shown.now_s
        yield f"profile of now, {old} old" if is_past else f"profile {old} old"
        if len(shown.snapshot.devices_of(shown.process.key)) > 1 and not is_by_device(profile):
            yield "the tree sums all devices"
    if tree.left_out is not None and tree.left_out.count:
        size, count = words.size(tree.left_out.bytes), words.count(tree.left_out.count)
        yield f"{size} in {count} not listed"


def _other(found: Figures) -> Iterator[str]:
    if found.other_bytes is not None:
        yield f"{words.size(found.other_bytes)} unattributed: {IT_MAY_BE}"
    elif found.used is not None and found.live is not None:
        yield f"{words.UNKNOWN} the live arrays are older than what is in use"
    else:
        yield f"{words.UNKNOWN} unattributed: in use and in no live array"


def _free(shown: Shown, found: Figures) -> Iterator[str]:
    """What is left, and its largest block on the device where that is the smallest."""
    s = shown.snapshot
    used, limit = found.used, found.limit
    free = None if used is None or limit is None else max(0, limit.value - used.value)
    yield words.size(free)
    known = [
        (block, d)
        for d in shown.devices
        if (block := s.value("hbm_largest_free_block_bytes", d.key)) is not None
    ]
    if known:
        block, device = min(known, key=lambda found: (found[0], found[1].index))
        where = f" on {device.own_name}" if len(shown.devices) > 1 else ""
        yield f"largest {words.size(block)}{where}"
        yield f"{words.percent(_fragmentation(s, device, block))} fragmented"
    else:
        yield f"largest {words.UNKNOWN}"
    yield f"{_size(found.reserved)} reserved"


def _fragmentation(s: Snapshot, device: Device, block: float) -> float | None:
    """Percent of what is free on the device that is not in its largest block."""
    used, limit = (s.value(f"hbm_{name}_bytes", device.key) for name in ("used", "limit"))
    if used is None or limit is None or limit <= used:
        return None
    return 100 * min(max(1 - block / (limit - used), 0.0), 1.0)


def _mark(shown: Shown) -> Iterator[str]:
    tree, profile = shown.tree, shown.process.profile
    if shown.mark_at_s is None or profile is None:
        yield "none: b sets it, and CHANGE then shows what has grown"
        return
    yield f"{age(max(0.0, shown.now_s - shown.mark_at_s))} ago"
    if shown.mark_at_s == profile.at_s:
        yield "nothing newer yet"
        return
    before = tree.live_before
    if before is not None and before.bytes is not None and tree.live.bytes is not None:
        yield f"live {signed_size(tree.live.bytes - before.bytes)}"
    yield f"{counted(tree.new, 'line')} new, {tree.gone} gone"
    if not tree.is_sure and tree.new:
        yield "new?: or too small then to be listed"


def _card(look: Look, s: Snapshot, d: Device) -> Row:
    found = figures(s, (d,))
    used, limit = found.used, found.limit
    ratio = used.value / limit.value if used and limit and limit.value else None
    percent = words.percent(None if ratio is None else 100 * ratio)
    style = "dim" if used is None or used.stale else "plain"
    bar = split_bar(look, found, CARD - 8 - 7 - 3)
    return (
        *look.cell(d.own_name, 8, "bold"),
        *bar,
        *look.cell(percent, 7, style, right=True),
        *look.cell("", 3),
    )


def _size(v: Value | None) -> str:
    return words.size(v and v.value)


def _noun(v: Value | None, what: str) -> str:
    return noun(0 if v is None else v.value, what)


def _count(v: Value | None) -> str:
    return words.count(v and v.value)


def _total(s: Snapshot, name: str, devices: Sequence[Device]) -> Value | None:
    """The sum over the devices, as old as its oldest part; None unless every one has it."""
    found = [s.values.get((d.key, name)) for d in devices]
    known = [v for v in found if v is not None]
    if not known or len(known) < len(found):
        return None
    oldest = max(known, key=lambda v: v.age_s)
    return oldest._replace(value=sum(v.value for v in known), stale=any(v.stale for v in known))
