"""One agent segment between reads: who wrote it, whether it lives, what it says."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import math
from collections.abc import Callable
from typing import NamedTuple

from tpusmi.memprofile import Held, held, unpacked_sites
from tpusmi.model import PHASES, Device, MemoryProfile, Phase, Process, ProcessKey, Reading, State
from tpusmi.pprof import ProfileError
from tpusmi.sources.segments import facts
from tpusmi.sources.segments.clocks import shift_of
from tpusmi.sources.segments.descriptors import kept
from tpusmi.sources.segments.locks import UNKNOWN
from tpusmi.sources.segments.proof import Claim, Machine, Standing, standing
from tpusmi.sources.segments.samples import GRAPHED, fresh_for_s, phase_of, positive, readings
from tpusmi.sources.segments.within import opener
from tpusmi.sources.users import user_name
from tpusmi.wire import places
from tpusmi.wire.layout import PROFILE_PPROF, PROFILE_SITES, SegmentError
from tpusmi.wire.reader import Sample, SegmentReader

SITES_MOST = 50
PAST_MOST = 100_000
"""Values of the past one segment may give: beyond that, every second or third sample will do."""

ENDED = PHASES.index(Phase.ENDED)

_DECODERS: dict[int, Callable[[bytes, bool], Held]] = {
    PROFILE_PPROF: held,
    PROFILE_SITES: unpacked_sites,
}


class Found(NamedTuple):
    """What a segment gave at one read."""

    process: Process
    devices: tuple[Device, ...]
    readings: list[Reading]
    past: list[Reading]
    note: str | None = None
    """What could not be read beside what could."""


class Job:
    """The segment of one job."""

    def __init__(
        self, place: places.Place, machine: Machine, with_past: bool, by_device: bool
    ) -> None:
        """`by_device` tells memory profiles apart by device.

        Raises SegmentError when the file is none, or not what its name says.
        """
        self._machine = machine
        self._reader = SegmentReader(place.path, kept(opener(place)))
        header = self._reader.header
        owner = self._reader.stat.st_uid
        # The header's uid is that of the job's user namespace. Whose file it is, the kernel says.
        if (header.pid, header.start_ticks, owner) != (place.pid, place.start_ticks, place.uid):
            self._reader.close()
            raise SegmentError("is not what its name and header say of each other")
        self.place = place
        self.newest: Found | None = None
        """What it gave last."""
        self.newest_at_s = -math.inf
        file = self._reader.stat
        self._claim = Claim(place.path, owner, header, (file.st_dev, file.st_ino))
        self.standing = Standing(None, False)
        """What the kernel said of its process at the last look."""
        self._key = ProcessKey(header.pid, header.start_ticks, place.path)
        self._free_at: int | None = None
        """The newest sample's number when the lock was free at last."""
        self._writes_without_lock = False
        self._wants_past = with_past
        self._by_device = by_device
        self._facts_hint = -1
        self._facts = facts.parsed({}, self._key, 0)  # until they are read: it may not come to that
        self._profile_hint = 0
        self._profile_note: str | None = None
        self._profile: MemoryProfile | None = None

    @property
    def devices(self) -> int:
        """How many devices it has room for."""
        return self._reader.header.devices

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def is_current(self, place: places.Place) -> bool:
        """False when another file has taken the path: a job's segment is replaced once JAX has
        started.
        """
        opened = self._reader.stat
        return (*place.identity, place.bytes) == (opened.st_dev, opened.st_ino, opened.st_size)

    @property
    def is_written(self) -> bool:
        """True while its agent has it open, by the lock, and had written to it at the last read."""
        is_live = self.newest is not None and self.newest.process.state == State.LIVE
        return is_live and self._reader.is_locked() is True

    def look_elsewhere(self) -> None:
        """Look for its process among those of other pid namespaces, if it is of one."""
        self._machine.look_for(self._claim)

    def look(self) -> None:
        """Ask the kernel for the process that the segment names, and for the lock of its agent."""
        tells = not self._network and not self._writes_without_lock
        claim = self._claim._replace(is_held=self._reader.is_locked() if tells else None)
        self.standing = standing(claim, self._machine, self.standing)
        self._claim = claim

    @property
    def _network(self) -> str:
        """The network file system that it lies on; empty for a local one."""
        return self._machine.locks.network(self._reader.stat.st_dev)

    @property
    def may_be_proven(self) -> bool:
        """True when its process was not found, and may be among those that were not looked at."""
        found = self.standing
        is_open = found.process is None and found.is_held is not False
        return is_open and self._machine.may_run(self._claim)

    def read(self, now_s: float, is_contested: bool = False, past_most: int = 0) -> Found:
        """What the segment holds now, and so many values of the past. Raises SegmentError.

        `is_contested` is for a process that has ended and that files of two users name.
        """
        sample = self._reader.newest()
        self._compare(sample)
        shift = 0.0 if sample is None else self._clock_shift(sample, now_s)
        at_s = None if sample is None else sample.at_s + shift
        interval_s = positive(None if sample is None else sample.process.get("interval_s"), 1.0)
        writes = at_s is not None and now_s - at_s <= fresh_for_s(interval_s)
        ended = sample is not None and sample.process.get("phase") == ENDED
        state = self._state(writes, ended, starts=at_s is None)
        self._name(state, is_contested)
        self._read_facts()
        self._read_profile(shift, now_s)
        process = Process(
            key=self._key,
            user=user_name(self._claim.owner),
            command=self._facts.command,
            state=state,
            phase=_phase(sample, state),
            sampled_at_s=at_s,
            interval_s=interval_s,
            facts=self._facts.known,
            profile=self._profile,
            warnings=self._facts.notices,
            uid=self._claim.owner,
            elsewhere=self._elsewhere(),
        )
        found = [] if sample is None else readings(sample, self._key, shift, interval_s)
        past = self._past(shift, interval_s, past_most)
        note = self._profile_note or self._doubt()
        self.newest = Found(process, self._facts.devices, found, past, note)
        self.newest_at_s = now_s
        return self.newest

    def _compare(self, sample: Sample | None) -> None:
        """Notice a job that writes although its lock is free: it has the lock where our kernel does
        not know of it, as in a virtual machine or in gVisor.
        """
        number = 0 if sample is None else sample.sequence
        if self.standing.is_held is False and self._free_at is not None:
            self._writes_without_lock = number > self._free_at
            if self._writes_without_lock:
                self.look()
        self._free_at = number if self.standing.is_held is False else None

    def _name(self, state: str, is_contested: bool) -> None:
        """Under which key all that the segment says is known from now on. What has left a process
        that lives on is not that process's.
        """
        found = self.standing
        h = self._claim.header
        key = found.process
        has_left = state == State.DEAD and not found.is_gone
        if key is None or has_left:
            is_known = found.is_gone and not is_contested
            key = ProcessKey(h.pid, h.start_ticks, "" if is_known else self._claim.path)
        if key != self._key:
            self._key, self._facts_hint = key, -1

    def _clock_shift(self, sample: Sample, now_s: float) -> float:
        """What to add to the segment's monotonic times to compare them with ours."""
        is_other_boot = self._machine.is_other_boot(self._claim.header.boot_id)
        return shift_of(sample, now_s, is_other_boot and not self.standing.lives)

    def _state(self, writes: bool, ended: bool, starts: bool) -> State:
        """What the kernel says of the process and of its agent's lock; where it says nothing, only
        writing tells.
        """
        found = self.standing
        if found.is_gone or (found.is_held is False and self._has_left(writes, ended)):
            return State.DEAD
        if ended and found.process is None:
            return State.DEAD
        if found.lives:
            return State.LIVE if writes or starts else State.SILENT
        if writes:
            return State.LIVE
        is_past_boot = self._machine.is_other_boot(self._claim.header.boot_id)
        return State.DEAD if is_past_boot else State.UNCERTAIN

    def _has_left(self, writes: bool, ended: bool) -> bool:
        """Whether an agent without the lock is gone. One whose process is still there may have lost
        the descriptor and be about to make another segment; or the process has become another
        program, or stopped its agent. One that switched itself off has said so.
        """
        is_there = self.standing.process is not None
        return not is_there or ended or not (writes or self._is_off())

    def _is_off(self) -> bool:
        self._read_facts()
        return any(notice.code == "agent_off" for notice in self._facts.notices)

    def _elsewhere(self) -> str:
        """Where the process is, if it lives and our /proc does not show it."""
        found = self.standing
        is_unseen = found.lives and found.process is None
        return self._machine.whereabouts(self._claim) if is_unseen else ""

    def _doubt(self) -> str | None:
        """Why nothing proves whether the process lives."""
        found = self.standing
        if found.lives or found.is_gone or found.is_held is False:
            return None
        if kind := self._network:
            is_there = "may be" if kind == UNKNOWN else "is"
            return f"{is_there} on a network file system ({kind}), where a lock proves nothing"
        why = "is of an older tpusmi" if self._reader.version < (1, 3) else "could not take one"
        return f"has no lock that would tell whether its job lives: its agent {why}"

    def _read_facts(self) -> None:
        hint = self._reader.facts_sequence()
        if hint != self._facts_hint:
            _, said = self._reader.facts()
            self._facts = facts.parsed(said, self._key, self._reader.header.devices)
            self._facts_hint = hint

    def _read_profile(self, shift: float, now_s: float) -> None:
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
            found = _DECODERS[blob.kind](blob.payload, self._by_device)
        except ProfileError as error:
            self._profile_note = f"has a memory profile that {error}"
            return
        self._profile = MemoryProfile(
            min(blob.at_s + shift, now_s),
            tuple(facts.clean_site(s) for s in found.sites[:SITES_MOST]),
            facts.clean_allocations(found.allocations),
            found.left_out_bytes,
            found.left_out_count,
        )

    def _past(self, shift: float, interval_s: float, most: int) -> list[Reading]:
        """On the first read: what the ring still knows, for graphs, in so many values."""
        if not self._wants_past:
            return []
        self._wants_past = False
        samples = min(most, PAST_MOST) // GRAPHED.most(self._reader.header.devices)
        if samples < 1:
            return []
        past = self._reader.past(samples, GRAPHED.device)
        return [r for s in past for r in readings(s, self._key, shift, interval_s, GRAPHED)]


def _phase(sample: Sample | None, state: State) -> Phase | None:
    if state == State.DEAD:
        return Phase.ENDED
    number = None if sample is None or state == State.UNCERTAIN else phase_of(sample)
    return None if number is None else PHASES[number]
