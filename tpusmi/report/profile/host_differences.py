"""How hosts of one job differ, and which of them the others wait for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tpusmi.report import words
from tpusmi.report.profile.capture_words import device_name
from tpusmi.report.profile.derived_figures import step_s
from tpusmi.report.profile.figure_lines import step_time
from tpusmi.report.profile.styled import Line, heading, paragraph
from tpusmi.trace.figures import TraceProfile

SLOWER_RATIO = 1.02
"""Steps this much longer than on the median host make a host the slowest."""
DIFFERS_POINTS = 10.0


class Unit(NamedTuple):
    """What each profile is of, such as `host` and `hosts`."""

    one: str
    several: str


def slowest_of(profiles: Sequence[TraceProfile]) -> int | None:
    """The place of the host with the longest steps; None when none is slower than the others."""
    steps = [(s, n) for n, p in enumerate(profiles) if (s := step_s(p)) is not None]
    if len(steps) < 2:
        return None
    longest, place = max(steps)
    others = median(s for s, n in steps if n != place)
    return place if longest >= others * SLOWER_RATIO else None


def difference_lines(
    profiles: Sequence[TraceProfile],
    names: Sequence[str],
    slowest: int | None,
    width: int,
    unit: Unit,
) -> list[Line]:
    """What is different between the hosts, as sentences."""
    lines: list[Line] = []
    if slowest is not None:
        lines += _slowest(profiles, names, slowest, width, unit)
    elif (waited := _waited_for(profiles)) is not None:
        share = words.percent(profiles[waited].shares.collectives_percent)
        sentence = f"The others wait for {names[waited]}: it spends least in exchanges, {share}."
        lines += paragraph(sentence, width, "warn", " !  ")
    for name, field in (("Idle", "idle_percent"), ("MXU", "mxu_percent")):
        lines += _spread(profiles, names, name, field, width)
    lines += _unlike("device types", [device_name(p) for p in profiles], width)
    lines += _unlike("numbers of cores", [str(len(p.cores) or "") for p in profiles], width)
    if not lines and len(profiles) > 1:
        lines = [((f" The {unit.several} are alike.", "good"),)]
    return [heading("DIFFERENCES"), *lines] if lines else []


def _slowest(
    profiles: Sequence[TraceProfile], names: Sequence[str], slowest: int, width: int, unit: Unit
) -> list[Line]:
    own = step_s(profiles[slowest]) or 0.0
    others = median(
        s for n, p in enumerate(profiles) if n != slowest and (s := step_s(p)) is not None
    )
    more = f"{100 * (own / others - 1):.0f} % longer than" if others > 0 else "longer than"
    sentence = f"{names[slowest]} is the slowest: steps of {step_time(own)}, {more} on the others"
    advice = f"→ all {unit.several} of a job wait for it: see the page of {names[slowest]} alone"
    return [
        *paragraph(sentence, width, "bad", " !! "),
        *paragraph(advice, width, "plain", "    ", "      "),
    ]


def _waited_for(profiles: Sequence[TraceProfile]) -> int | None:
    """The host that waits much less for the others than they do, where all steps take as long."""
    shares = [
        (share, n)
        for n, p in enumerate(profiles)
        if (share := p.shares.collectives_percent) is not None
    ]
    if len(shares) < 2 or len(shares) < len(profiles):
        return None
    least, place = min(shares)
    others = median(share for share, n in shares if n != place)
    return place if others - least >= DIFFERS_POINTS else None


def _spread(
    profiles: Sequence[TraceProfile], names: Sequence[str], name: str, field: str, width: int
) -> list[Line]:
    values = [
        (value, n) for n, p in enumerate(profiles) if (value := getattr(p, field)) is not None
    ]
    if len(values) < 2:
        return []
    (least, first), (most, last) = min(values), max(values)
    if most - least < DIFFERS_POINTS:
        return []
    ends = f"{words.percent(least)} on {names[first]}, {words.percent(most)} on {names[last]}"
    return paragraph(f"{name}: {ends}", width, "warn", " !  ")


def _unlike(what: str, values: Sequence[str], width: int) -> list[Line]:
    different = sorted({*values} - {""})
    if len(different) < 2:
        return []
    return paragraph(f"Different {what}: {', '.join(different)}", width, "warn", " !  ")
