"""Readings from every agent segment, live or dead. Not a byte of one is trusted."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterator

from tpusmi.model import ABSENT, AGENT, DENIED, FAILED, OK, Host, Outcome
from tpusmi.sources.segments.job import Found, Job, Machine
from tpusmi.wire import places
from tpusmi.wire.layout import SegmentError

DIRECTORIES_EVERY_S = 5.0
SEGMENTS_MOST = 256
"""Of one directory: nobody's files keep those of others from being read."""
NOTES_MOST = 8


class Segments:
    """The agents' source.

    Keeps segments open between reads, and decodes a memory profile only when it is new.
    """

    name = AGENT

    def __init__(
        self,
        host: Host,
        with_past: bool = False,
        period_s: float = 1.0,
        by_device: bool = False,
    ) -> None:
        """`with_past` gives what was before, `by_device` tells memory profiles apart by device."""
        self.period_s = period_s
        self._host = host
        self._with_past = with_past
        self._by_device = by_device
        self._machine = Machine.of(host)
        self._open: dict[str, Job] = {}
        self._directories: list[tuple[str, int | None]] = []
        self._listed_at_s = -math.inf

    def read(self, now_s: float) -> Outcome:
        """Every job with an agent, its devices and readings. ABSENT when there is none."""
        directory = self._host.segment_dir
        if directory is not None and not _is_readable(directory):
            return Outcome(self.name, DENIED, f"{directory} cannot be read")
        notes: list[str] = []
        found: list[Found] = []
        denied = 0
        seen = set()
        for place in self._places(now_s, notes):
            seen.add(place.path)
            try:
                job = self._segment(place).read(now_s)
            except SegmentError as error:
                denied += "Permission denied" in str(error)
                notes.append(f"{place.path} {error}")
            except Exception as error:  # noqa: BLE001  # a hostile segment costs itself, no other
                notes.append(f"{place.path} cannot be read: {type(error).__name__}: {error}")
            else:
                found.append(job)
                notes += [f"{place.path} {job.note}"] if job.note else []
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

    def close(self) -> None:
        """Close the segments that are open."""
        while self._open:
            self._open.popitem()[1].close()

    def _places(self, now_s: float, notes: list[str]) -> Iterator[places.Place]:
        """Every segment's file.

        /tmp may be long, so new directories are looked for now and then.
        """
        if self._host.segment_dir is not None:
            self._directories = [(self._host.segment_dir, None)]
        elif now_s - self._listed_at_s >= DIRECTORIES_EVERY_S:
            self._directories = [*places.directories(self._host.root)]
            self._listed_at_s = now_s
        for directory, uid in self._directories:
            every = places.segments(directory, uid)
            yield from itertools.islice(every, SEGMENTS_MOST)
            if next(every, None) is not None:
                notes.insert(0, f"{directory} has more than {SEGMENTS_MOST} segments: not all read")

    def _segment(self, place: places.Place) -> Job:
        """The open segment of that path, opened anew when the file was replaced."""
        known = self._open.get(place.path)
        if known is not None and known.is_current():
            return known
        if known is not None:
            self._open.pop(place.path).close()
        segment = self._open[place.path] = Job(
            place, self._machine, self._with_past, self._by_device
        )
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
    """The first notes, and how many more: a hostile directory must not fill the screen."""
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
