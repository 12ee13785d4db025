"""The bytes of an agent segment.

    offset  bytes  what (little endian)
    0       8      magic
    8       2+2    major, minor version: never moved
    12      4      header bytes, the CRC at their end included
    16      …      header: HEADER_FIELDS, then CRC-32 of all header bytes before it
    facts   2 ×    two halves of a blob: the static facts as JSON
    profile 2 ×    two halves of a blob: the newest device memory profile
    slice   2 ×    two halves of a blob: all processes of a multi-host job; none in other jobs
    newest  8      sequence number of the newest slot: a hint, the slot itself proves it
    slots   n ×    the ring: slot of sample s is number s mod n

A slot is a sequence number (u64), doubles (NaN: unknown), zero padding up to the CRC-32 of all
bytes before it. The doubles are PREFIX_FIELDS, PROCESS_FIELDS, then DEVICE_FIELDS once per device.
A blob half is a sequence number, kind, length, time and CRC-32, then the payload; writes alternate
between the halves, so one is always whole. The two field counts are in the header: a minor version
only appends fields, and a reader skips those it does not know. Likewise 1.2 appended a second gzip
member to a profile's sites: what each device has of them. 1.3 appended `locked` to the header (what
a shorter header lacks is 0) and three process fields. 1.4 appended the place of a blob to the
header: what the other processes of a multi-host job say of themselves (`slice_summary.py`).

Written with pwrite and read with pread, never mapped: a full or truncated file is then an error to
either side, where a map would be a SIGBUS that ends the training job.
"""

import struct
from typing import NamedTuple

MAGIC = b"TPUSMI\r\n"
MAJOR, MINOR = 1, 4
PREAMBLE = struct.Struct("<8sHHI")

PREFIX_FIELDS = ("at_s", "wall_s")
PROCESS_FIELDS = (
    "phase",  # number in tpusmi.model.PHASES
    "interval_s",
    "steps",
    "steps_per_s",
    "step_time_s.min",
    "step_time_s.mean",
    "step_time_s.p50",
    "step_time_s.p95",
    "step_time_s.max",
    "since_last_step_s",
    "compilations",
    "compile_s",
    "recent_compilations",
    "executables",
    "agent_cost_percent",
    "agent_sample_s",
    "profile_at_s",
    "profile_period_s",
    "profile_cost_s",
    # 1.1
    "flops_per_s",
    "mfu_percent",
    "utilization_at_s",
    "utilization_period_s",
    # 1.3
    "step_body_s.mean",
    "step_body_s.p50",
    "step_body_s.p95",
)
UTILIZATION_FIELDS = ("duty_cycle_percent", "idle_s", "hbm_bandwidth_utilization_percent")
"""Fields of a device that the agent asks libtpu for."""
DEVICE_FIELDS = (
    "hbm_used_bytes",
    "hbm_limit_bytes",
    "hbm_peak_bytes",
    "hbm_largest_free_block_bytes",
    "hbm_reserved_bytes",
    "allocations",
    "live_array_bytes",
    "live_arrays",
    *UTILIZATION_FIELDS,  # 1.1
)

SLOT_HEAD = struct.Struct("<Q")
NEWEST = struct.Struct("<Q")
CRC = struct.Struct("<I")
BLOB_HEAD = struct.Struct("<QIIdI")
"""Sequence, kind, payload bytes, at_s, CRC-32 of the four before it and the payload."""

FACTS_JSON, PROFILE_PPROF, PROFILE_SITES, SLICE_JSON, SLICE_NONE = 0, 1, 2, 3, 4
"""Kinds of blob: facts; a profile as JAX returns it; one too large for its room, reduced by the
agent to its sites; what all processes of a job say; that this is no longer read.
"""


class SegmentError(Exception):
    """A segment that cannot be believed, with the reason in a sentence."""


class Header(NamedTuple):
    """Who wrote a segment, and where its parts are. Offsets and sizes in bytes."""

    pid: int
    uid: int
    start_ticks: int
    boot_id: bytes
    pid_namespace: int
    created_at_s: float
    created_wall_s: float
    devices: int
    process_fields: int
    device_fields: int
    facts_offset: int
    facts_half: int
    profile_offset: int
    profile_half: int
    newest_offset: int
    slots_offset: int
    slot_bytes: int
    slots: int
    locked: int = 0
    """1 when the agent holds the lock of wire/lock.py for as long as it has the segment; 0 when it
    could not take it, and before 1.3: a free lock then proves nothing.
    """
    slice_offset: int = 0
    slice_half: int = 0
    """0 in a job of one process, and before 1.4."""

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self.slots_offset + self.slot_bytes * self.slots


HEADER = struct.Struct("<IIQ16sQddIIIQQQQQQIIIQQ")
HEADER_BYTES = PREAMBLE.size + HEADER.size + CRC.size
HEADER_LEAST_BYTES = HEADER_BYTES - struct.calcsize("<IQQ")
"""Size of a header of 1.0 to 1.2, before `locked`."""

SLOTS = 640
"""A little more than ten minutes at 1 Hz."""
RING_MOST_BYTES = 13_700_000
"""More than 256 devices need for SLOTS; a job with more devices keeps a shorter past."""
FACTS_HALF = 8 * 1024
FACTS_PER_DEVICE = 256
PROFILE_HALF = 256 * 1024
SLICE_PER_PROCESS = 640
SLICE_HALF_MOST = 512 * 1024
"""Room for 800 summaries of the greatest length, and for thousands when they are compressed."""


def fields_in_slot(process_fields: int, device_fields: int, devices: int) -> int:
    """How many doubles a slot holds."""
    return len(PREFIX_FIELDS) + process_fields + device_fields * devices


def slot_size(doubles: int) -> int:
    """Bytes of a slot of that many doubles, a multiple of 8."""
    return -(-(SLOT_HEAD.size + 8 * doubles + CRC.size) // 8) * 8


class Identity(NamedTuple):
    """The process a segment belongs to."""

    pid: int
    uid: int
    start_ticks: int
    boot_id: bytes
    pid_namespace: int


def plan(
    who: Identity, devices: int, created_at_s: float, created_wall_s: float, processes: int = 1
) -> Header:
    """The header of a new segment for that many devices, of a job of that many processes."""
    facts_offset = 512
    facts_half = FACTS_HALF + FACTS_PER_DEVICE * devices
    profile_offset = facts_offset + 2 * facts_half
    slice_offset = profile_offset + 2 * PROFILE_HALF
    slice_half = slice_room(processes)
    newest_offset = slice_offset + 2 * slice_half
    doubles = fields_in_slot(len(PROCESS_FIELDS), len(DEVICE_FIELDS), devices)
    slot_bytes = slot_size(doubles)
    return Header(
        **who._asdict(),
        created_at_s=created_at_s,
        created_wall_s=created_wall_s,
        devices=devices,
        process_fields=len(PROCESS_FIELDS),
        device_fields=len(DEVICE_FIELDS),
        facts_offset=facts_offset,
        facts_half=facts_half,
        profile_offset=profile_offset,
        profile_half=PROFILE_HALF,
        newest_offset=newest_offset,
        slots_offset=newest_offset + NEWEST.size,
        slot_bytes=slot_bytes,
        slots=min(SLOTS, RING_MOST_BYTES // slot_bytes),
        slice_offset=slice_offset if slice_half else 0,
        slice_half=slice_half,
    )


def slice_room(processes: int) -> int:
    """Bytes of a half of the blob of a slice; 0 for a job of one process."""
    if processes < 2:
        return 0
    room = BLOB_HEAD.size + SLICE_PER_PROCESS * processes
    return min(-(-room // 8) * 8, SLICE_HALF_MOST)
