"""What a segment gave at one read, and how it was judged."""

from typing import NamedTuple

from tpusmi.model import Device, Process, Reading
from tpusmi.sources.segments.evidence import Evidence
from tpusmi.wire.places import SegmentFile


class JobReport(NamedTuple):
    """What a segment gave at one read."""

    process: Process
    devices: tuple[Device, ...]
    readings: list[Reading]
    past: list[Reading]
    note: str | None = None
    """Which part of the segment could not be read, and why."""


class Judged(NamedTuple):
    """A segment's file, the process that it is about, and what the kernel said about that."""

    file: SegmentFile
    """With the identity of the file that was read."""
    process: Process
    evidence: Evidence
    is_of_this_boot: bool
    """True where it is certain that the file was made on this machine since it was started."""
