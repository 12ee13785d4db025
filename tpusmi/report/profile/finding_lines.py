"""What stands out, with what to do about it, as lines. Pure."""

from __future__ import annotations

from tpusmi.report.profile.finding_case import BAD, NOTE, WARN
from tpusmi.report.profile.findings import Finding, can_judge, findings
from tpusmi.report.profile.styled import Line, heading, paragraph
from tpusmi.trace.figures import TraceProfile

MARKS = {BAD: " !! ", WARN: " !  ", NOTE: " ·  "}
"""How bad it is, for terminals without color."""
ADVICE_WIDTH = 100
"""Longer lines are hard to read."""
INDENT = "    "
WELL: Line = ((" Nothing stands out.", "good"),)
TOO_LITTLE: Line = ((" The trace says too little to judge the job.", "plain"),)


def finding_lines(p: TraceProfile, width: int) -> list[Line]:
    """Each finding: how bad, where, and the advice."""
    all_ = findings(p)
    if not all_:
        return [heading("FINDINGS"), WELL if can_judge(p) else TOO_LITTLE]
    lines = [heading("FINDINGS", "worst first")]
    for finding in all_:
        lines += of_finding(finding, min(width, ADVICE_WIDTH + len(INDENT)))
    return lines


def of_finding(finding: Finding, width: int) -> list[Line]:
    """One finding in at most a few lines."""
    style = "plain" if finding.style == NOTE else finding.style
    title = f"{finding.title}: {finding.figure}"
    lines = paragraph(title, width, style, MARKS[finding.style], INDENT)
    if finding.where:
        lines += paragraph(finding.where, width, "dim", INDENT)
    return lines + paragraph(f"→ {finding.advice}", width, "plain", INDENT, f"{INDENT}  ")
