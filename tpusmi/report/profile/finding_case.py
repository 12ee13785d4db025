"""The type of a finding in the table of findings, and how bad one can be. Pure."""

from __future__ import annotations

from typing import NamedTuple

BAD, WARN, NOTE = "bad", "warn", "dim"
"""Styles, from the worst: it costs much time, it costs some, it is about the capture itself."""
BAD_PERCENT = 25.0
"""From this weight on a finding is bad."""


class FindingCase(NamedTuple):
    """One finding. Its texts may name the fields of `ProfileEvidence`, and `pid`."""

    code: str
    measure: str
    """The field of `ProfileEvidence` that it is judged by."""
    least: float
    """It holds from here on."""
    weight: float
    """Percent of the time that it may cost, for each unit of the measure: findings are sorted by
    it. Negative: the cost is unknown, and this counts instead.
    """
    title: str
    figure: str
    where: str
    """Operations or cores; may be empty."""
    advice: str
    level: str = ""
    """A fixed style; empty is by the weight."""
    unless: str = ""
    """Code of a finding that says the same better."""
