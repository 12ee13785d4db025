"""A profile as one page of text, the worst things first. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tpusmi.report.profile.capture_words import head, note_lines
from tpusmi.report.profile.core_lines import core_lines, memory_lines
from tpusmi.report.profile.figure_lines import figure_lines, time_lines
from tpusmi.report.profile.finding_lines import finding_lines
from tpusmi.report.profile.operation_lines import operation_lines, program_lines
from tpusmi.report.profile.styled import LEAST_WIDTH, Line, joined
from tpusmi.trace.figures import TraceProfile

TOP = 20


def lines(
    profiles: Sequence[TraceProfile],
    width: int,
    top: int = TOP,
    failures: Sequence[tuple[str, str]] = (),
) -> list[Line]:
    """The page of one host, or of several side by side, in lines of at most `width` columns.

    `failures` are hosts without a profile: the address of each, and a sentence that says why.
    """
    width = max(width, LEAST_WIDTH)
    if len(profiles) == 1 and not failures:
        return _of_one(profiles[0], width, top)
    from tpusmi.report.profile.several_hosts import sections

    return joined(sections(profiles, width, top, failures), width)


def _of_one(p: TraceProfile, width: int, top: int) -> list[Line]:
    sections = (
        head(p, width),
        finding_lines(p, width),
        figure_lines(p, width),
        time_lines(p, width),
        core_lines(p, width),
        program_lines(p, width),
        operation_lines(p, width, top),
        memory_lines(p, width),
        note_lines(p.notes, width),
    )
    return joined(sections, width)
