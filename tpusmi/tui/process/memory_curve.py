"""The memory of a job, or of one of its devices, over time, as a curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tpusmi.model import Device, Process, Snapshot, Subject
from tpusmi.report import words
from tpusmi.tui.draw import plot
from tpusmi.tui.draw.graphs import Drawn, Graphs, Slots, held, history_subjects, is_known

USED, LIVE = "hbm_used_bytes", "live_array_bytes"
MEAN, BOTH = "in use, mean of its devices", "live arrays, with all memory in use above"


class Holder(NamedTuple):
    """The owner of memory: a device if one is chosen, else a process."""

    snapshot: Snapshot
    process: Process
    device: Device | None = None

    def drawn(self) -> Iterator[Drawn]:
        """The subjects and metrics of the curve."""
        s, p, d = self
        if d is not None:
            yield from ((history_subjects(s, d, name), name) for name in (USED, LIVE))
        elif p.interval_s is not None:
            yield from (((p.key,), name) for name in (USED, LIVE))
        else:
            yield from ((history_subjects(s, d, USED), USED) for d in s.devices_of(p.key))

    def curve(self, graphs: Graphs, span_s: int, count: int) -> plot.Curve | None:
        """A curve of `count` values: live arrays as an area, with the memory in use as a line
        above; None if no value is known. Without an agent, it is the mean of the devices.
        """
        s, p, d = self
        if d is None and p.interval_s is None:
            return _curve(graphs.average(s, USED, span_s, count, p.key), (), MEAN)
        used, live = (_slots(graphs, s, *one, span_s, count) for one in self.drawn())
        if not is_known(live):
            return _curve(used, (), "in use")
        return _curve(live, used, BOTH) if is_known(used) else _curve(live, (), "live arrays")


def _curve(area: Slots, line: Sequence[float | None], text: str) -> plot.Curve | None:
    known = [v for v in (*area, *line) if v is not None]
    if not known:
        return None
    top = round_top(max(known))
    return plot.Curve("memory", text, area, top, words.size(top), line=line)


def round_top(size: float) -> float:
    """A round number of its unit, not below that many bytes."""
    number, _ = words.scaled(size)
    return plot.round_top(number) * size / number if number else plot.round_top(0)


def _slots(
    graphs: Graphs, s: Snapshot, subjects: Sequence[Subject], metric: str, span_s: int, count: int
) -> Slots:
    slots = graphs.of(subjects, metric, s.at_s, span_s, count)
    present = (s.values.get((subject, metric)) for subject in subjects)
    return held(slots, next((v for v in present if v is not None), None), span_s / count)
