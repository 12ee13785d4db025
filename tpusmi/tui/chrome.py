"""What surrounds the tables: header, host, notices, the screen without jobs, footer. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rich.cells import cell_len

from tpusmi.model import (
    DENIED,
    FAILED,
    OK,
    STALE_HOLDER,
    SUSPECT_HOLDER,
    HostFacts,
    Notice,
    Snapshot,
)
from tpusmi.report import words
from tpusmi.report.select import Remark, remarks
from tpusmi.text import counted
from tpusmi.tui.draw.look import SIMULATED, Look, Row, width_of
from tpusmi.tui.draw.notice_lines import AGES_FROM, fits_a_line, notice_rows
from tpusmi.tui.scene import Scene

MOST_NOTICES = 6
"""Lines of notices at most, however tall the screen is."""

WELCOME = (
    "No JAX job on this host is reporting to tpusmi.",
    "",
    "Add to your training code, before or after JAX starts:",
    "",
    "    import tpusmi; tpusmi.start()",
    "",
    "or try it on any machine:",
    "",
    "    tpusmi demo",
)
OTHERS_ONLY = "No process matches the command line or only_user: others hold these devices."
HOST_ENDED = "The simulated host has ended. `tpusmi simulate v5e-8` starts another one."
_VERSIONS = (("jax", "jax_version"), ("jaxlib", "jaxlib_version"))
_CODE = ("    import", "    tpusmi")


def header(scene: Scene, page: str, width: int) -> Row:
    """The top line: program, page and host at the left, the time at the right."""
    look, short = scene.look, _left(scene, page, with_slice=False)
    for left, right in (
        (_left(scene, page), _right(scene, page)),
        (short, _right(scene, page)),
        (short, _right(scene, page, with_interval=False)),
    ):
        room = width - width_of(right) - width_of(left)
        if room >= 1:
            return (*left, *look.line((" " * room, "plain")), *right)
    # On a narrow screen `simulated` and `paused` stay, and the rest is cut.
    loud = tuple(
        p for p in (*left, *right) if p.style in (look.style["loud"], look.style["paused"])
    )
    rest = "".join(p.text for p in (*left, *right) if p not in loud)
    return (*loud, *look.cell(" " * bool(loud) + rest, max(0, width - width_of(loud)), "title"))


def _left(scene: Scene, page: str, with_slice: bool = True) -> Row:
    look, snapshot, label = scene.look, scene.snapshot, scene.options.label
    if snapshot is None:
        return look.line(("tpusmi", "title"), ("  looking for TPUs and jobs", "plain"))
    living = [p for p in snapshot.processes if p.is_living]
    live = sum(p.is_verified or bool(p.elsewhere) for p in living)
    claims = f" ({len(living) - live} {words.NOT_VERIFIED})" if live < len(living) else ""
    return look.line(
        (SIMULATED if snapshot.simulated else "", "loud"),
        (" " if snapshot.simulated else "", "plain"),
        (f"tpusmi {snapshot.tpusmi_version}", "title"),
        ("  " if page else "", "plain"),
        (page, "head"),
        (f"  {snapshot.host.name}", "bold"),
        (f" {label}" if label else "", "plain"),
        (" root" if scene.is_root else "", "warn"),
        (f"  {_devices(look, snapshot)}  {counted(live, 'job')}", "plain"),
        (claims, "dim"),
        (_slice(snapshot) if with_slice and page != "slice" else "", "plain"),
    )


def _slice(snapshot: Snapshot) -> str:
    """`  slice of 64 processes`; empty without a slice."""
    own = snapshot.slice
    several = "" if own is None else counted(own.process_count, "process", "processes")
    return f"  slice of {several}" if several else ""


def _right(scene: Scene, page: str, with_interval: bool = True) -> Row:
    newest, back_s = scene.newest, scene.back_s
    return scene.look.line(
        (f" {words.elapsed(back_s)} AGO (n = now) " if back_s else "", "paused"),
        (" PAUSED " if scene.paused else "", "paused"),
        (" CAPTURING " if scene.is_capturing and page != "profile" else "", "paused"),
        (f" NO ANSWER FOR {scene.late_s:.0f}s " if scene.late_s else "", "paused"),
        (f" every {scene.interval_s:g}s" if with_interval else "", "dim"),
        ("" if newest is None else f"  {words.local_time(newest.host.time, '%H:%M:%S')}", "plain"),
    )


def host_line(look: Look, snapshot: Snapshot, width: int) -> Row:
    """The second line: load and memory of the machine, and versions."""
    parts = [*_machine(snapshot.host)]
    sure = [p for p in snapshot.processes if p.is_verified]
    for name, key in _VERSIONS:
        if versions := sorted({str(v) for p in sure if (v := p.facts.get(key))}):
            parts.append(f"{name} {', '.join(versions)}")
    if snapshot.host.libtpu_version:
        parts.append(f"libtpu {snapshot.host.libtpu_version}")
    return look.cell(f" {look.glyphs.dot} ".join(parts), width, "dim")


def _machine(host: HostFacts) -> Iterator[str]:
    if host.load_averages is not None:
        of = f" of {host.cpus} CPUs" if host.cpus else ""
        yield f"load {' '.join(f'{load:.1f}' for load in host.load_averages)}{of}"
    total, free = host.memory_total_bytes, host.memory_available_bytes
    if total is not None:
        used = None if free is None else total - free
        yield f"RAM {words.size_pair(used, total)}"
    if host.uptime_s is not None:
        yield f"up {words.elapsed(host.uptime_s)}"
    if host.tpu_driver:
        yield " ".join(filter(None, (host.tpu_driver, host.tpu_driver_version)))


def _devices(look: Look, snapshot: Snapshot) -> str:
    """`8 × TPU v5 lite`, or a count where kinds differ."""
    count, kinds = len(snapshot.devices), {d.kind for d in snapshot.devices}
    if count and len(kinds) == 1 and (kind := kinds.pop()):
        return f"{count} {look.glyphs.times} {kind}"
    return counted(count, "device")


def notices(snapshot: Snapshot, elsewhere: Collection[Notice] = ()) -> list[Remark]:
    """Warnings, with stale holders first; then sources that were refused or failed. Without those
    that stand elsewhere on the same screen.
    """
    first = {STALE_HOLDER: 0, SUSPECT_HOLDER: 1}
    warnings = sorted(snapshot.warnings, key=lambda n: first.get(n.code, 2))
    lines = remarks(snapshot._replace(warnings=tuple(warnings)))
    return [r for r in lines if r.notice is None or r.notice not in elsewhere]


def notice_lines(look: Look, lines: Sequence[Remark], width: int, most: int) -> list[Row]:
    """The notices in at most that many lines; the last line says how many more there are. None but
    the first is there without its advice.
    """
    rows: list[Row] = []
    drawn = 0
    for remark in lines:
        left = most - len(rows)
        if left <= 0 or (rows and left == 1 and not _is_short(remark, width)):
            break
        rows += _remark(look, remark, width, left)
        drawn += 1
    hidden = len(lines) - drawn
    if not hidden or not rows:
        return rows
    # The last notice again, with room for how many more there are.
    more = f" (and {hidden} more)" if width >= AGES_FROM else f" +{hidden}"
    before: list[Row] = []
    for remark in lines[: drawn - 1]:
        before += _remark(look, remark, width, most - len(before))
    last = _remark(look, lines[drawn - 1], width - len(more), most - len(before), with_age=False)
    blank = " " * max(0, width - len(more) - width_of(last[-1]))
    return [*before, *last[:-1], (*last[-1], *look.line((blank + more, "dim")))]


def _is_short(r: Remark, width: int) -> bool:
    """Whether a line has room for its advice, and how many more there are."""
    return r.notice is None or fits_a_line(r.notice, width - len(" (and 99 more)"))


def _remark(look: Look, r: Remark, width: int, most: int, with_age: bool = True) -> list[Row]:
    if r.notice is not None:
        return notice_rows(look, r.notice, width, most, with_pid=True, with_age=with_age)
    room = width - len("! ")
    text = look.fitted(r.text, min(room, cell_len(r.text)))
    return [look.line(("! ", "bad"), (text, "warn"))]


def nothing(look: Look, snapshot: Snapshot, filter: str) -> list[Row]:
    """Why no process is shown: none matches the filter, or there is none at all."""
    if snapshot.processes:
        return [look.line((f"No process matches the filter {filter!r}.", "warn"))]
    if any(d.owners for d in snapshot.devices):  # they are left out of the snapshot
        return [look.line((OTHERS_ONLY, "warn"))]
    if snapshot.simulated and not any(o.status == OK for o in snapshot.sources):
        return [look.line((HOST_ENDED, "warn"))]
    lines = [
        look.line((f"  {text}", "bold" if text.startswith(_CODE) else "plain")) for text in WELCOME
    ]
    name_width = max((len(o.source) for o in snapshot.sources), default=0)
    lines += [(), look.line(("  Sources:", "plain"))] if snapshot.sources else []
    for o in snapshot.sources:
        style = "bad" if o.status in (DENIED, FAILED) else "dim"
        lines.append(
            look.line(
                (f"    {o.source:<{name_width}}  ", "plain"),
                (f"{o.status:<7}", style),
                (f" {o.message}", "dim"),
            )
        )
    return lines
