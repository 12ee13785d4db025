"""What the memory page says where there is nothing to show. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.model import Process, Snapshot
from tpusmi.report import words
from tpusmi.tui import chrome
from tpusmi.tui.draw.look import Look, Row
from tpusmi.tui.main.processes import letter

START = "    import tpusmi; tpusmi.start()"


def without_profile(
    look: Look, snapshot: Snapshot, process: Process | None, others: Sequence[Process], width: int
) -> list[Row]:
    """Why there is nothing to show, and what to do. `others` are the jobs that have a profile."""
    if process is None:
        return chrome.nothing(look, snapshot, "")
    title = f"{letter(process)} {process.pid} {words.command(process.command)}"
    lines = [look.cell(title, width, "head"), (), *_why(look, process, width)]
    if others:
        names = [f"{p.pid} {words.command(p.command)}" for p in others]
        lines += [(), look.line(("Tab shows one that has a profile:", "plain"))]
        lines += [look.cell(f"    {name}", width) for name in names]
    return lines


def nothing_listed(look: Look, filter: str) -> Row:
    """Why the tree is empty."""
    text = f"No line contains {filter!r}." if filter else "No array is alive, and no program."
    return look.line((text, "warn"))


def _why(look: Look, p: Process, width: int) -> list[Row]:
    if p.interval_s is None:
        return [
            *look.wrapped(
                "No memory profile: there is no tpusmi agent in this job. In its code:",
                width,
                "plain",
            ),
            (),
            look.line((START, "bold")),
        ]
    text = (
        "No memory profile yet. The agent of this job makes one in its first minute, where JAX can."
    )
    said = [line for n in p.warnings for line in look.wrapped(n.message, width, "warn", "! ")]
    return [*look.wrapped(text, width, "plain"), *said]
