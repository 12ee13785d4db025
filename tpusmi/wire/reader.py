"""The viewer's end of a segment.

No byte is trusted: a reader raises SegmentError, and nothing else.
"""

import json
import math
import os
import stat
import struct
import zlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from tpusmi.wire import layout, lock
from tpusmi.wire.layout import Header, SegmentError

MOST_BYTES = 16 * 1024 * 1024
MOST_BLOB_BYTES = 1024 * 1024
FACTS_MARGIN = 2
"""Facts of a later version may need this many times the room that they have now."""
MOST_DEVICES = 1024
MOST_FIELDS = 128
MOST_SLOTS = 4096
MOST_SECONDS = 1e11
"""More than any clock counts in seconds."""
TRIES = 3
"""How often a slot or blob is read that the writer is just replacing."""

Fields = dict[str, float]


class Sample(NamedTuple):
    """One slot: what was known at `at_s`. A field that is missing was unknown."""

    sequence: int
    at_s: float
    wall_s: float
    process: Fields
    devices: tuple[Fields, ...]


class BlobContent(NamedTuple):
    """A payload as it was written."""

    sequence: int
    kind: int
    at_s: float
    payload: bytes


class SegmentReader:
    """An open segment of any process. Only the constructor opens the file; `close` closes it."""

    def __init__(self, path: str, opener: Callable[[str, int], int] = os.open) -> None:
        """Raises SegmentError when the file is not a segment that this version can read."""
        try:
            self._fd = opener(path, lock.TO_ASK)
        except OSError as error:
            raise SegmentError(f"cannot be opened: {error.strerror}") from None
        try:
            self.stat = os.fstat(self._fd)
            self.version, self.header = self._read_header()
        except BaseException:
            os.close(self._fd)
            raise
        h = self.header
        self._doubles = layout.fields_in_slot(h.process_fields, h.device_fields, h.devices)
        self._slot = struct.Struct(f"<Q{self._doubles}d")

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def is_locked(self) -> bool | None:
        """Whether its agent has it open, by the lock. None where the lock proves nothing: it cannot
        be asked for, or the agent could not take it.
        """
        is_held = lock.is_held(self._fd)
        return is_held if is_held or self.header.locked else None

    def newest(self) -> Sample | None:
        """The newest complete sample; None when none was written yet."""
        h = self.header
        for _ in range(TRIES):
            hint = self._pread(layout.NEWEST.size, h.newest_offset)
            if len(hint) < layout.NEWEST.size:
                return None
            (sequence,) = layout.NEWEST.unpack(hint)
            if sequence == 0:
                return None
            slot = sequence % h.slots
            data = self._pread(h.slot_bytes, h.slots_offset + h.slot_bytes * slot)
            sample = self._sample(slot, data)
            if sample is not None and sample.sequence >= sequence:
                return sample
        return next(self.past(newest_first=True), None)

    def past(
        self,
        most: int | None = None,
        device_fields: Collection[str] = layout.DEVICE_FIELDS,
        newest_first: bool = False,
    ) -> Iterator[Sample]:
        """The complete samples of the ring, oldest first, with those fields of devices; of more
        than `most`, every second or third.
        """
        # Sorting the slots by their unproven numbers costs little.
        h = self.header
        ring = self._pread(h.slot_bytes * h.slots, h.slots_offset)
        starts = range(0, len(ring) - h.slot_bytes + 1, h.slot_bytes)
        numbered = sorted((layout.SLOT_HEAD.unpack_from(ring, start)[0], start) for start in starts)
        filled = [slot for slot in numbered if slot[0]]
        chosen = filled if most is None else filled[:: max(1, -(-len(filled) // most))]
        for _, start in reversed(chosen) if newest_first else chosen:
            data = ring[start : start + h.slot_bytes]
            sample = self._sample(start // h.slot_bytes, data, device_fields)
            if sample is not None:
                yield sample

    def facts_sequence(self) -> int:
        """The newest facts' sequence number, unproven: a hint that there are new ones."""
        return self._sequence(self.header.facts_offset, self.header.facts_half)

    def facts(self) -> tuple[int, dict[str, Any]]:
        """The sequence and content of the static facts; (0, {}) when none are complete. Raises
        SegmentError when they are larger than its devices need.
        """
        blob = self._blob(self.header.facts_offset, self.header.facts_half)
        if blob is None or blob.kind != layout.FACTS_JSON:
            return 0, {}
        most = FACTS_MARGIN * (layout.FACTS_HALF + layout.FACTS_PER_DEVICE * self.header.devices)
        if len(blob.payload) > most:
            raise SegmentError(f"has facts of more than {most} bytes")
        try:
            facts = json.loads(blob.payload)
        except (ValueError, RecursionError):
            return 0, {}
        return (blob.sequence, facts) if isinstance(facts, dict) else (0, {})

    def profile(self) -> BlobContent | None:
        """The newest memory profile as written; None when there is none."""
        return self._blob(self.header.profile_offset, self.header.profile_half)

    def profile_sequence(self) -> int:
        """The newest profile's sequence number, unproven: a hint that there is a new one."""
        return self._sequence(self.header.profile_offset, self.header.profile_half)

    def slice_blob(self) -> BlobContent | None:
        """What all processes of the job say of themselves, as written; None when there is none."""
        h = self.header
        return self._blob(h.slice_offset, h.slice_half) if h.slice_half else None

    def slice_sequence(self) -> int:
        """The newest slice's sequence number, unproven; 0 in a job of one process."""
        h = self.header
        return self._sequence(h.slice_offset, h.slice_half) if h.slice_half else 0

    def _sequence(self, offset: int, half: int) -> int:
        heads = (self._pread(layout.NEWEST.size, start) for start in (offset, offset + half))
        whole = (head for head in heads if len(head) == layout.NEWEST.size)
        return max((layout.NEWEST.unpack(head)[0] for head in whole), default=0)

    def _pread(self, size: int, offset: int) -> bytes:
        try:
            return os.pread(self._fd, size, offset)
        except OSError as error:
            raise SegmentError(f"cannot be read: {error.strerror}") from None

    def _read_header(self) -> tuple[tuple[int, int], Header]:
        if not stat.S_ISREG(self.stat.st_mode):
            raise SegmentError("is not a regular file")
        if self.stat.st_size > MOST_BYTES:
            raise SegmentError(f"is larger than {MOST_BYTES} bytes")
        start = self._pread(4096, 0)
        if len(start) < layout.PREAMBLE.size:
            raise SegmentError("is too short to be a segment")
        magic, major, minor, header_bytes = layout.PREAMBLE.unpack_from(start)
        if magic != layout.MAGIC:
            raise SegmentError("is not a tpusmi segment")
        if major != layout.MAJOR:
            side = "this tpusmi" if major > layout.MAJOR else "the tpusmi inside that job"
            raise SegmentError(
                f"has format {major}.{minor}, this tpusmi reads {layout.MAJOR}.x: upgrade {side}"
            )
        if not layout.HEADER_LEAST_BYTES <= header_bytes <= len(start):
            raise SegmentError("has a header of impossible size")
        body = start[: header_bytes - layout.CRC.size]
        if layout.CRC.unpack_from(start, len(body))[0] != zlib.crc32(body):
            raise SegmentError("has a damaged header (CRC)")
        fields = body[layout.PREAMBLE.size :][: layout.HEADER.size].ljust(layout.HEADER.size, b"\0")
        header = Header._make(layout.HEADER.unpack(fields))
        self._check(header)
        return (major, minor), header

    def _check(self, h: Header) -> None:
        """Raises SegmentError for a header whose numbers cannot all be true of this file."""
        size = self.stat.st_size
        if h.size > size:
            raise SegmentError(f"is cut short: {size} of {h.size} bytes")
        if (
            h.devices > MOST_DEVICES
            or max(h.process_fields, h.device_fields) > MOST_FIELDS
            or h.slots > MOST_SLOTS
            or max(h.facts_half, h.profile_half, h.slice_half) > MOST_BLOB_BYTES
        ):
            raise SegmentError("has a header of impossible counts")
        doubles = layout.fields_in_slot(h.process_fields, h.device_fields, h.devices)
        ends = (
            h.facts_offset + 2 * h.facts_half,
            h.profile_offset + 2 * h.profile_half,
            h.slice_offset + 2 * h.slice_half,
            h.newest_offset + layout.NEWEST.size,
        )
        halves = min(h.facts_half, h.profile_half, h.slice_half or h.profile_half)
        if (
            h.slot_bytes < layout.slot_size(doubles)
            or h.slots < 1
            or max(ends) > size
            or halves < layout.BLOB_HEAD.size
        ):
            raise SegmentError("has a header of impossible sizes")

    def _sample(
        self, slot: int, data: bytes, device_fields: Collection[str] = layout.DEVICE_FIELDS
    ) -> Sample | None:
        """The sample in those bytes; None when it is torn or not of that slot."""
        if len(data) != self.header.slot_bytes:
            return None
        body, end = data[: -layout.CRC.size], data[-layout.CRC.size :]
        if layout.CRC.unpack(end)[0] != zlib.crc32(body):
            return None
        sequence, at_s, wall_s, *values = self._slot.unpack_from(body)
        if sequence == 0 or sequence % self.header.slots != slot:
            return None
        if not (_is_time(at_s) and _is_time(wall_s)):
            return None
        h = self.header
        columns = _columns(layout.PROCESS_FIELDS, h.process_fields, layout.PROCESS_FIELDS)
        process = _finite(columns, values, 0)
        columns = _columns(layout.DEVICE_FIELDS, h.device_fields, device_fields)
        rows = (h.process_fields + i * h.device_fields for i in range(h.devices))
        devices = tuple(_finite(columns, values, row) for row in rows)
        return Sample(sequence, at_s, wall_s, process=process, devices=devices)

    def _blob(self, offset: int, half: int) -> BlobContent | None:
        for _ in range(TRIES):
            newest = max(self._halves(offset, half), default=None)
            if newest is not None:
                return newest
        return None

    def _halves(self, offset: int, half: int) -> Iterator[BlobContent]:
        for start in (offset, offset + half):
            head = self._pread(layout.BLOB_HEAD.size, start)
            if len(head) < layout.BLOB_HEAD.size:
                continue
            sequence, kind, length, at_s, crc = layout.BLOB_HEAD.unpack(head)
            if sequence == 0 or length > half - layout.BLOB_HEAD.size or not _is_time(at_s):
                continue
            payload = self._pread(length, start + layout.BLOB_HEAD.size)
            right = zlib.crc32(payload, zlib.crc32(head[: -layout.CRC.size]))
            if crc == right and len(payload) == length:
                yield BlobContent(sequence, kind, at_s, payload)


def _is_time(seconds: float) -> bool:
    return 0 <= seconds < MOST_SECONDS


Columns = list[tuple[int, str]]


def _columns(names: tuple[str, ...], count: int, chosen: Collection[str]) -> Columns:
    """Places and names of the chosen fields among the first `count`. Those of a newer minor version
    have no name here and are skipped.
    """
    return [(i, name) for i, name in enumerate(names[:count]) if name in chosen]


def _finite(columns: Columns, values: list[float], start: int) -> Fields:
    """The finite values of those fields, counted from `start`, by name."""
    return {name: value for i, name in columns if math.isfinite(value := values[start + i])}
