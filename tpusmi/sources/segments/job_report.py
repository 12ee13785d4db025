"""What a segment gave at one read, and how it was judged."""

from typing import NamedTuple

from tpusmi.model import Device, Process, Reading
from tpusmi.sources.segments.evidence import Evidence
from tpusmi.sources.segments.locks import UNKNOWN
from tpusmi.wire.places import SegmentFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.model.slice_hosts import Slice
else:
    Slice = tuple  # its module is loaded where there is one


class JobReport(NamedTuple):
    """What a segment gave at one read."""

    process: Process
    devices: tuple[Device, ...]
    readings: list[Reading]
    past: list[Reading]
    slice: Slice | None = None
    """All processes of the job, where its agent reads them."""
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


def doubt(evidence: Evidence, network: str, version: tuple[int, int]) -> str | None:
    """Why nothing proves whether the process of a segment of that version is alive, on that type of
    network file system if it is on one.
    """
    if evidence.is_alive is not None or evidence.is_locked is False:
        return None
    if network:
        is_there = "may be" if network == UNKNOWN else "is"
        return f"{is_there} on a network file system ({network}), where a lock proves nothing"
    why = "is of an older tpusmi" if version < (1, 3) else "could not take one"
    return f"has no lock that shows whether its job is alive: its agent {why}"
