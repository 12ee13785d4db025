"""The monotonic times of a segment on our own clock."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import time

from tpusmi.wire.layout import SegmentError
from tpusmi.wire.reader import Sample

FUTURE_MOST_S = 5.0
"""Two readings of one clock, or of two clocks that agree, differ by less."""


def shift_of(sample: Sample, now_s: float, is_other_boot: bool) -> float:
    """What to add to the monotonic times of that segment to compare them with ours. Raises
    SegmentError for a sample that is from the future by both of its clocks.

    After a boot they mean nothing, and in another time namespace they are shifted: the wall clock,
    which every process shares, stands in. It may be set, so it counts only where the two disagree
    and the sample is younger by it.
    """
    skew_s = sample.wall_s - sample.at_s - (time.time() - time.monotonic())
    age_s = now_s - sample.at_s
    by_wall_s = min(skew_s, age_s)
    if is_other_boot:
        return by_wall_s
    if abs(skew_s) <= FUTURE_MOST_S and age_s >= -FUTURE_MOST_S:
        return 0.0
    ages_s = [age for age in (age_s, age_s - skew_s) if age >= -FUTURE_MOST_S]
    if not ages_s:
        raise SegmentError("has a sample from the future")
    return 0.0 if min(ages_s) == age_s else by_wall_s
