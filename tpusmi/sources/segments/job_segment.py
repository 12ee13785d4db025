"""One agent segment between reads: which process wrote it, whether that is alive, what it says."""

import math
from collections.abc import Callable

from tpusmi.memprofile import HeldMemory, held_memory, unpacked_sites
from tpusmi.model import (
    FRESH_LEAST_S,
    MemoryProfile,
    Phase,
    Process,
    ProcessKey,
    Reading,
    State,
    fresh_for_s,
)
from tpusmi.pprof import ProfileError
from tpusmi.sources.segments import contents
from tpusmi.sources.segments.contents import GRAPHED, phase_in, phase_of, readings
from tpusmi.sources.segments.evidence import Claim, Evidence, Kernel, examine
from tpusmi.sources.segments.job_report import JobReport, Judged, doubt
from tpusmi.sources.segments.listing import opener, sparing
from tpusmi.sources.users import user_name
from tpusmi.wire.layout import PROFILE_PPROF, PROFILE_SITES, SegmentError
from tpusmi.wire.places import SegmentFile
from tpusmi.wire.reader import Sample, SegmentReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tpusmi.model.slice_hosts import Slice
    from tpusmi.sources.segments.slice_report import SliceOfJob

PAST_MOST = 100_000
"""Most values of the past that one segment may give: of more, every second or third sample."""

_DECODERS: dict[int, Callable[[bytes, bool], HeldMemory]] = {
    PROFILE_PPROF: held_memory,
    PROFILE_SITES: unpacked_sites,
}


class Job:
    """The segment of one job."""

    def __init__(self, file: SegmentFile, kernel: Kernel, with_past: bool, by_device: bool) -> None:
        """`with_past` and `by_device` are those of Segments.

        Raises SegmentError when the file is not a segment, or not the one that its name says.
        """
        self._kernel = kernel
        self._reader = SegmentReader(file.path, sparing(opener(file)))
        header, status = self._reader.header, self._reader.stat
        # The uid in the header is that of the job's user namespace. The kernel knows the owner.
        self.named = (header.pid, header.start_ticks)
        """The process that the file names, by its pid and start."""
        if (*self.named, status.st_uid) != (file.pid, file.start_ticks, file.uid):
            self._reader.close()
            raise SegmentError("has a name that does not match its header")
        self.file = file
        self._newest: JobReport | None = None
        """The report of the last read."""
        self._newest_at_s = -math.inf
        self.evidence = Evidence(None, None)
        """What the kernel said about its process, the last time it was asked."""
        self._claim = Claim(status.st_uid, header, (status.st_dev, status.st_ino))
        self._key = ProcessKey._make((*self.named, file.path))
        self._sequence_unlocked: int | None = None
        """Number of the newest sample at the last read, if the lock was free then."""
        self._writes_without_lock = False
        self._wants_past = with_past
        self._by_device = by_device
        self._facts_hint = -1
        self._facts = contents.checked_facts({}, self._key, 0)
        """The facts of the job, empty until they are first read."""
        self._profile_hint = 0
        self._profile_note: str | None = None
        self._profile: MemoryProfile | None = None
        self._slices: SliceOfJob | None = None

    @property
    def devices(self) -> int:
        """How many devices it has room for."""
        return self._reader.header.devices

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def is_current(self, file: SegmentFile) -> bool:
        """False when another file has taken the path: a job's segment is replaced once JAX has
        started.
        """
        opened = self._reader.stat
        return (*file.identity, file.bytes) == (opened.st_dev, opened.st_ino, opened.st_size)

    @property
    def is_written(self) -> bool:
        """True while its agent has it open, by the lock, and had written to it at the last read."""
        is_live = self._newest is not None and self._newest.process.state == State.LIVE
        return is_live and self._reader.is_locked() is True

    @property
    def judged(self) -> Judged | None:
        """Its file, and the verdict on its process at the last read; None before the first."""
        if self._newest is None:
            return None
        file = self.file._replace(identity=self._claim.file, uid=self._claim.owner)
        is_ours = self._kernel.is_this_boot(self._claim.header.boot_id)
        return Judged(file, self._newest.process, self.evidence, is_ours)

    def recent(self, now_s: float) -> JobReport | None:
        """What it gave at the last read, without the past; None where that is too long ago."""
        is_fresh = now_s - self._newest_at_s < FRESH_LEAST_S
        return self._newest._replace(past=[]) if self._newest is not None and is_fresh else None

    def look_elsewhere(self) -> None:
        """Look for its process among those of other pid namespaces, if it is from one."""
        if self._kernel.is_from_another(self._claim.header):
            self._kernel.other_namespaces.look_for(self._claim.header)

    def look(self) -> None:
        """Ask the kernel about the process that the segment names, and about its agent's lock."""
        is_proof = not self._network and not self._writes_without_lock
        is_locked = self._reader.is_locked() if is_proof else None
        self._claim = self._claim._replace(is_locked=is_locked)
        self.evidence = examine(self._claim, self._kernel, self.evidence)

    @property
    def may_be_proven(self) -> bool:
        """True when its process was not found, and may be among those that were not looked at."""
        if self.evidence.process is not None or self.evidence.is_locked is False:
            return False
        is_complete = self._kernel.other_namespaces.is_complete
        return not is_complete and self._kernel.is_from_another(self._claim.header)

    def read(self, now_s: float, is_contested: bool = False, past_most: int = 0) -> JobReport:
        """What the segment holds now, and at most so many values of the past. Raises SegmentError.

        `is_contested` is for a process that has ended and that files of two users name.
        """
        sample = self._reader.newest()
        self._look_for_writes_without_lock(sample)
        is_moved = self._is_other_boot and not self.evidence.is_alive
        shift_s = 0.0 if sample is None else contents.clock_shift_s(sample, now_s, is_moved)
        at_s = None if sample is None else sample.at_s + shift_s
        fields = {} if sample is None else sample.process
        interval_s = contents.sane_period_s(fields.get("interval_s"), 1.0)
        state = self._state(sample, at_s is not None and now_s - at_s <= fresh_for_s(interval_s))
        self._name(state, is_contested)
        self._read_facts()
        self._read_profile(shift_s, now_s)
        process = Process(
            key=self._key,
            user=user_name(self._claim.owner),
            command=self._facts.command,
            state=state,
            phase=phase_in(sample, state),
            sampled_at_s=at_s,
            interval_s=interval_s,
            facts=self._facts.by_name,
            profile=self._profile,
            warnings=self._facts.notices,
            uid=self._claim.owner,
            elsewhere=self._elsewhere(),
        )
        self._newest = JobReport(
            process=process,
            devices=self._facts.devices,
            readings=[] if sample is None else readings(sample, self._key, shift_s, interval_s),
            past=self._past(shift_s, interval_s, past_most),
            slice=self._slice(shift_s, now_s),
            note=self._profile_note or doubt(self.evidence, self._network, self._reader.version),
        )
        self._newest_at_s = now_s
        return self._newest

    def _look_for_writes_without_lock(self, sample: Sample | None) -> None:
        """Stop believing the lock when the job writes although the lock is free: it has the lock
        where our kernel does not know of it, as in a virtual machine or in gVisor.
        """
        sequence = 0 if sample is None else sample.sequence
        is_free = self.evidence.is_locked is False
        if is_free and self._sequence_unlocked is not None and sequence > self._sequence_unlocked:
            self._writes_without_lock = True
            self.look()
            is_free = False
        self._sequence_unlocked = sequence if is_free else None

    @property
    def _is_other_boot(self) -> bool:
        return self._kernel.is_other_boot(self._claim.header.boot_id)

    def _state(self, sample: Sample | None, is_writing: bool) -> State:
        """The state of the process: what the kernel and its agent's lock prove, or, if they prove
        nothing, whether it writes.
        """
        now = self.evidence
        has_said_end = sample is not None and phase_of(sample) == Phase.ENDED
        if now.is_alive is False or (has_said_end and now.process is None):
            return State.DEAD
        if now.is_locked is False and self._has_left(is_writing, has_said_end):
            return State.DEAD
        if now.is_alive:
            return State.LIVE if is_writing or sample is None else State.SILENT
        if is_writing:
            return State.LIVE
        # On a network file system it may be a job of another machine that is stopped.
        return State.DEAD if self._is_other_boot and not self._network else State.UNCERTAIN

    def _has_left(self, is_writing: bool, has_said_end: bool) -> bool:
        """Whether an agent without the lock is gone. If its process is there, it may have lost the
        descriptor and be about to make another segment; or the process has become another program,
        or stopped its agent. An agent that switches itself off says so in its facts.
        """
        if self.evidence.process is None or has_said_end:
            return True
        if is_writing:
            return False
        self._read_facts()
        return not any(notice.code == "agent_off" for notice in self._facts.notices)

    def _name(self, state: State, is_contested: bool) -> None:
        """Set the key for all that the segment says from now on. An agent that has left a living
        process is not that process.
        """
        now = self.evidence
        is_gone = now.is_alive is False
        key = now.process
        if key is None or (state == State.DEAD and not is_gone):
            is_sure = is_gone and not is_contested
            key = ProcessKey._make((*self.named, "" if is_sure else self.file.path))
        if key != self._key:
            self._key, self._facts_hint = key, -1

    def _elsewhere(self) -> str:
        """Where the process is, if it is alive and our /proc does not show it."""
        is_unseen = self.evidence.is_alive and self.evidence.process is None
        return self._kernel.whereabouts(self._claim) if is_unseen else ""

    @property
    def _network(self) -> str:
        """The type of the network file system that it is on; empty for a local one."""
        return self._kernel.locks.network(self._reader.stat.st_dev)

    def _read_facts(self) -> None:
        hint = self._reader.facts_sequence()
        if hint != self._facts_hint:
            _, facts = self._reader.facts()
            self._facts = contents.checked_facts(facts, self._key, self.devices)
            self._facts_hint = hint

    def _read_profile(self, shift_s: float, now_s: float) -> None:
        """Decode the profile when it is a new one; one that cannot be decoded is tried once."""
        hint = self._reader.profile_sequence()
        if hint == self._profile_hint:
            return
        self._profile_hint, self._profile_note = hint, None
        blob = self._reader.profile()
        if blob is None:
            return
        if blob.kind not in _DECODERS:
            self._profile_note = "has a memory profile of an unknown kind: upgrade this tpusmi"
            return
        try:
            memory = _DECODERS[blob.kind](blob.payload, self._by_device)
        except ProfileError as error:
            self._profile_note = f"has a memory profile that {error}"
            return
        sites, allocations = contents.clean_memory(memory, all_sites=self._by_device)
        self._profile = MemoryProfile(
            at_s=min(blob.at_s + shift_s, now_s),
            sites=sites,
            allocations=allocations,
            allocations_left_out_bytes=memory.left_out_bytes,
            allocations_left_out_count=memory.left_out_count,
        )

    def _slice(self, shift_s: float, now_s: float) -> "Slice | None":
        """All processes of its job, if it has several and this one reads them."""
        if self._slices is None and self._reader.header.slice_half:
            from tpusmi.sources.segments.slice_report import SliceOfJob

            self._slices = SliceOfJob(self._reader)
        return None if self._slices is None else self._slices.read(self._key, shift_s, now_s)

    def _past(self, shift_s: float, interval_s: float, most: int) -> list[Reading]:
        """On the first read: up to `most` values that the ring still has, for graphs."""
        if not self._wants_past:
            return []
        self._wants_past = False
        samples = min(most, PAST_MOST) // GRAPHED.readings_most(self.devices)
        if samples < 1:
            return []
        past = self._reader.past(samples, GRAPHED.device)
        return [r for s in past for r in readings(s, self._key, shift_s, interval_s, GRAPHED)]
