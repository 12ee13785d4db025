"""What became of the segments of ended jobs, as text and as plain objects: `tpusmi clear`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tpusmi.actions.clearing import Clearing, Forgotten
from tpusmi.report import words
from tpusmi.report.which_process import identity
from tpusmi.text import counted

COMMAND_MOST = 70


def text(clearing: Clearing) -> str:
    """A line for each job that was forgotten, or kept and why."""
    return "".join(f"{line}\n" for line in _lines(clearing))


def summary(clearing: Clearing) -> str:
    """What was done, in a sentence."""
    count = len(clearing.removed)
    did = "forgot" if clearing.done else "would forget"
    text = f"{did} {counted(count, 'ended job')}" if count else "no ended job to forget"
    kept = len(clearing.kept)
    return f"{text}; kept {kept}: {clearing.kept[0].why}" if kept else text


def to_dict(clearing: Clearing) -> dict[str, Any]:
    """The object of `tpusmi clear --json`."""
    from tpusmi.model.jsonkeys import SCHEMA

    return {
        "schema": SCHEMA,
        "done": clearing.done,
        "removed": [_which(f) for f in clearing.removed],
        "kept": [{**_which(f), "why": f.why, "failed": f.failed} for f in clearing.kept],
        "living": clearing.living,
        "of_other_users": clearing.of_others,
        "unread": clearing.unread,
        "captures": list(clearing.captures),
    }


def _lines(clearing: Clearing) -> Iterator[str]:
    did = "forgot" if clearing.done else "would forget"
    for file in clearing.removed:
        yield f"{did} {_named(file)}"
    for file in clearing.kept:
        yield f"kept {_named(file)}\n    {file.path} {file.why}"
    if not clearing.files:
        yield "nothing to forget: no job of yours has ended"
    if clearing.captures:
        removed = "removed" if clearing.done else "would remove"
        yield f"{removed} {counted(len(clearing.captures), 'file')} of old captures"
    if clearing.of_others:
        jobs = counted(clearing.of_others, "ended job")
        yield f"left {jobs} of other users: root or those users may forget them"
    if clearing.unread:
        yield f"not everything could be read: {clearing.unread}"


def _named(file: Forgotten) -> str:
    p = file.process
    command = words.shortened(words.command(p.command), COMMAND_MOST) or words.UNKNOWN
    return f"pid {p.pid} ({p.user or 'unknown user'}): {command}"


def _which(file: Forgotten) -> dict[str, Any]:
    return {**identity(file.process), "path": file.path}
