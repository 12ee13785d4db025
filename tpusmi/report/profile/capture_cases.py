"""What can be wrong with a capture itself: the end of the table of findings. Pure."""

from __future__ import annotations

from tpusmi.report.profile.finding_case import NOTE, FindingCase

CAPTURE_CASES: tuple[FindingCase, ...] = (
    FindingCase(
        code="quiet",
        measure="quiet_percent",
        least=30.0,
        weight=1.0,
        title="Nothing ran at the start and the end of the capture",
        figure="{quiet_percent:.0f} % of the time",
        where="all figures are of the {captured} from the first operation to the last",
        advice="the job is idle for longer than its figures say: capture several steps with"
        " `--duration-ms`, and see what the host does: `py-spy top --pid {pid}`",
    ),
    FindingCase(
        code="overclaimed",
        measure="overclaimed_percent",
        least=105.0,
        weight=-2.0,
        title="An operation claims more FLOP/s than the device can do",
        figure="{overclaimed_percent:.0f} % of the peak",
        where="{overclaimed}",
        advice="its cost estimate is wrong, and so are FLOP rates: give the Pallas kernel a right"
        " cost_estimate",
        level=NOTE,
    ),
    FindingCase(
        code="no_whole_step",
        measure="stepless_s",
        least=0.0,
        weight=-3.0,
        title="No whole step inside",
        figure="{stepless} captured",
        where="",
        advice="capture for two steps or more: `--duration-ms`",
        level=NOTE,
    ),
    FindingCase(
        code="capture_slowed",
        measure="slowed_percent",
        least=10.0,
        weight=-1.0,
        title="The capture itself slowed the job down",
        figure="{slowed_percent:.0f} %, from {before} to {during} steps/s",
        where="",
        advice="step times may be too long: capture for a shorter time",
        level=NOTE,
    ),
    FindingCase(
        code="capture_paused",
        measure="paused_s",
        least=1.0,
        weight=-1.0,
        title="The capture paused the job",
        figure="for {paused_s:.1f} s",
        where="",
        advice="capture for a shorter time, and not every minute",
        level=NOTE,
        unless="capture_slowed",
    ),
)
