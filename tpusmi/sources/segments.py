"""Readings from every agent segment, live or dead. Not a byte of one is trusted."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tpusmi.memprofile import sites, unpacked_sites
from tpusmi.model import (
    ABSENT,
    AGENT,
    DENIED,
    FAILED,
    OK,
    Device,
    Host,
    MemoryProfile,
    Outcome,
    Process,
    ProcessKey,
    Reading,
    Site,
)
from tpusmi.pprof import ProfileError
from tpusmi.sources import jobfacts
from tpusmi.sources.samples import fresh_for_s, positive, readings
from tpusmi.wire import places
from tpusmi.wire.layout import (
    PHASES,
    PROFILE_PPROF,
    PROFILE_SITES,
    SegmentError,
)
from tpusmi.wire.reader import Sample, SegmentReader

FUTURE_MOST_S = 5.0
DIRECTORIES_EVERY_S = 5.0
SEGMENTS_MOST = 512
NOTES_MOST = 8
SITES_MOST = 50
GRAPHED = ("hbm_used_bytes", "live_array_bytes", "steps_per_s")
"""What a segment seen for the first time gives of its past."""
PAST_MOST = 200_000
"""Values of the past one segment may give: beyond that, every second or third sample will do."""

LIVE, SILENT, DEAD = "live", "silent", "dead"

_DECODERS: dict[int, Callable[[bytes], tuple[Site, ...]]] = {
    PROFILE_PPROF: sites,
    PROFILE_SITES: unpacked_sites,
}


class _Found(NamedTuple):
    process: Process
    devices: tuple[Device, ...]
    readings: list[Reading]
    past: list[Reading]


class _Machine(NamedTuple):
    """What a segment is held against."""

    proc: str
    boot_id: bytes
    pid_namespace: int

    @classmethod
    def of(cls, host: Host) -> _Machine:
        proc = host.path("/proc")
        return cls(proc, places.boot_id(proc), places.pid_namespace(proc))


class Segments:
    """The agents' source.

    Keeps segments open between reads, and decodes a memory profile only when it is new.
    """

    name = AGENT

    def __init__(self, host: Host, with_past: bool = False, period_s: float = 1.0) -> None:
        self.period_s = period_s
        self._host = host
        self._with_past = with_past
        self._machine = _Machine.of(host)
        self._open: dict[str, _Segment] = {}
        self._directories: list[tuple[str, int | None]] = []
        self._listed_at_s = -math.inf

    def read(self, now_s: float) -> Outcome:
        """Every job with an agent, its devices and readings. ABSENT when there is none."""
        directory = self._host.segment_dir
        if directory is not None and not _is_readable(directory):
            return Outcome(self.name, DENIED, f"{directory} cannot be read")
        notes: list[str] = []
        found: list[_Found] = []
        denied = 0
        seen = set()
        for place in itertools.islice(self._places(now_s), SEGMENTS_MOST):
            seen.add(place.path)
            try:
                found.append(self._segment(place).read(now_s))
            except SegmentError as error:
                denied += "Permission denied" in str(error)
                notes.append(f"{place.path} {error}")
        for path in self._open.keys() - seen:
            self._open.pop(path).close()
        status, message = _status(len(found), denied, notes)
        return Outcome(
            self.name,
            status,
            message,
            time.monotonic() - now_s,
            tuple(r for f in found for r in f.readings),
            tuple(r for f in found for r in f.past),
            tuple(d for f in found for d in f.devices),
            tuple(f.process for f in found),
            _few(notes),
        )

    def _places(self, now_s: float) -> Iterator[places.Place]:
        """Every segment's file.

        /tmp may be long, so new directories are looked for now and then.
        """
        if self._host.segment_dir is not None:
            self._directories = [(self._host.segment_dir, None)]
        elif now_s - self._listed_at_s >= DIRECTORIES_EVERY_S:
            self._directories = [*places.directories(self._host.root)]
            self._listed_at_s = now_s
        for directory, uid in self._directories:
            yield from places.segments(directory, uid)

    def _segment(self, place: places.Place) -> _Segment:
        """The open segment of that path, opened anew when the file was replaced."""
        known = self._open.get(place.path)
        if known is not None and known.is_current():
            return known
        if known is not None:
            self._open.pop(place.path).close()
        segment = self._open[place.path] = _Segment(place, self._machine, self._with_past)
        return segment


def _is_readable(directory: str) -> bool:
    """False when the directory is there and refuses us."""
    try:
        os.scandir(directory).close()
    except PermissionError:
        return False
    except OSError:
        pass
    return True


def _few(notes: list[str]) -> tuple[str, ...]:
    """The first notes, and how many more there are: a hostile directory must not fill the screen.
    """
    more = len(notes) - NOTES_MOST
    return (*notes[:NOTES_MOST], *([f"and {more} more of that kind"] if more > 0 else ()))


def _status(found: int, denied: int, notes: list[str]) -> tuple[str, str]:
    if found:
        return OK, f"{found} job{'s' if found > 1 else ''} with an agent"
    if denied:
        return DENIED, f"{denied} segment{'s' if denied > 1 else ''} of other users cannot be read"
    if notes:
        return FAILED, notes[0]
    return ABSENT, "no job has called tpusmi.start() on this host"


class _Segment:
    """One segment file between reads."""

    def __init__(self, place: places.Place, machine: _Machine, with_past: bool) -> None:
        """Raises SegmentError when the file is none, or not the work of the process it is named
        after.
        """
        self._machine = machine
        self._reader = SegmentReader(place.path)
        header = self._reader.header
        owner = self._reader.stat.st_uid
        named = (place.pid, place.start_ticks, owner if place.uid is None else place.uid)
        if named != (header.pid, header.start_ticks, owner) or header.uid != owner:
            self._reader.close()
            raise SegmentError("is not what its name, owner and header say of each other")
        self._path = place.path
        self._key = ProcessKey(header.pid, header.start_ticks)
        self._user = jobfacts.user_name(header.uid)
        self._wants_past = with_past
        self._facts_sequence = -1
        self._facts = jobfacts.parsed({}, self._key, header.devices)
        self._profile_sequence = 0
        self._profile: MemoryProfile | None = None

    def close(self) -> None:
        self._reader.close()

    def is_current(self) -> bool:
        """False when another file has taken the path: a job's segment is replaced once JAX has
        started.
        """
        try:
            found = os.stat(self._path, follow_symlinks=False)
        except OSError:
            return False
        opened = self._reader.stat
        return (found.st_ino, found.st_dev, found.st_size) == (
            opened.st_ino,
            opened.st_dev,
            opened.st_size,
        )

    def read(self, now_s: float) -> _Found:
        """What the segment holds now. Raises SegmentError."""
        self._read_facts()
        sample = self._reader.newest()
        shift = 0.0 if sample is None else self._clock_shift(sample, now_s)
        at_s = None if sample is None else sample.at_s + shift
        interval_s = positive(None if sample is None else sample.process.get("interval_s"), 1.0)
        state = self._state(at_s, interval_s, now_s)
        self._read_profile(shift, now_s)
        process = Process(
            self._key,
            self._user,
            self._facts.command,
            state,
            _phase(sample, state),
            at_s,
            interval_s,
            self._facts.known,
            self._profile,
            self._facts.notices,
        )
        found = [] if sample is None else readings(sample, self._key, shift, interval_s)
        return _Found(process, self._facts.devices, found, self._past(shift, interval_s))

    def _clock_shift(self, sample: Sample, now_s: float) -> float:
        """What to add to the segment's monotonic times to compare them with ours.

        After a boot they mean nothing, and the wall clock stands in.
        """
        if self._reader.header.boot_id == self._machine.boot_id:
            if sample.at_s > now_s + FUTURE_MOST_S:
                raise SegmentError("has a sample from the future")
            return 0.0
        return now_s - max(0.0, time.time() - sample.wall_s) - sample.at_s

    def _state(self, at_s: float | None, interval_s: float, now_s: float) -> str:
        header = self._reader.header
        fresh = at_s is not None and now_s - at_s <= fresh_for_s(interval_s)
        machine = self._machine
        if header.boot_id != machine.boot_id:
            return DEAD
        same_namespace = header.pid_namespace == machine.pid_namespace
        if not same_namespace or not os.path.isdir(f"{machine.proc}/1"):
            # Its pid says nothing here, or /proc hides other users' processes: only its writing
            # tells.
            return LIVE if fresh else SILENT
        if places.start_ticks(machine.proc, header.pid) != header.start_ticks:
            return DEAD
        if places.real_uid(machine.proc, header.pid) not in (header.uid, None):
            raise SegmentError("claims to be the process of another user")
        return LIVE if fresh or at_s is None else SILENT

    def _read_facts(self) -> None:
        sequence, facts = self._reader.facts()
        if sequence != self._facts_sequence:
            self._facts_sequence = sequence
            self._facts = jobfacts.parsed(facts, self._key, self._reader.header.devices)

    def _read_profile(self, shift: float, now_s: float) -> None:
        if self._reader.profile_sequence() == self._profile_sequence:
            return
        blob = self._reader.profile()
        if blob is None:
            return
        if blob.kind not in _DECODERS:
            raise SegmentError("has a memory profile of an unknown kind: upgrade this tpusmi")
        try:
            found = _DECODERS[blob.kind](blob.payload)
        except ProfileError as error:
            raise SegmentError(f"has a memory profile that {error}") from None
        largest = tuple(jobfacts.clean_site(s) for s in found[:SITES_MOST])
        self._profile = MemoryProfile(min(blob.at_s + shift, now_s), largest)
        self._profile_sequence = blob.sequence

    def _past(self, shift: float, interval_s: float) -> list[Reading]:
        """On the first read: what the ring still knows, for graphs."""
        if not self._wants_past:
            return []
        self._wants_past = False
        samples = self._reader.past()
        stride = 1 + len(samples) * self._reader.header.devices // PAST_MOST
        every = (r for s in samples[::stride] for r in readings(s, self._key, shift, interval_s))
        return [r for r in every if r.metric in GRAPHED]


def _phase(sample: Sample | None, state: str) -> str | None:
    if state == DEAD:
        return "ended"
    number = None if sample is None else sample.process.get("phase")
    return PHASES[int(number)] if number is not None and 0 <= number < len(PHASES) else None
