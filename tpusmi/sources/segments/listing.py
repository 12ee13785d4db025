"""Which segments there are, in the order in which they are read."""

# No `from __future__ import annotations`: named tuples would compile each annotation at import.

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tpusmi.model import Host
from tpusmi.sources.segments.budget import NOTHING, Budget, Limits, spent
from tpusmi.sources.segments.namespaces import Namespaces, Seen
from tpusmi.sources.segments.within import opener, segments
from tpusmi.wire import identity, lock, places
from tpusmi.wire.places import Directory, Place

DIRECTORIES_EVERY_S = 5.0
"""/tmp may be long, so new directories are looked for now and then."""
AGAIN_S = 1.0
"""Sooner where a process is gone through which others' mounts were seen."""
RECENT_S = 60.0
"""A living agent writes more often."""


class Trouble(NamedTuple):
    """A directory that cannot be looked into."""

    directory: Directory
    why: str
    is_denied: bool = False


class Looked(NamedTuple):
    """Every segment's file, and what stood in the way."""

    places: list[Place]
    troubles: list[Trouble]
    others: Seen
    """What was found among the mounts of others."""


class Listing:
    """The directories of segments, between reads."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._directories: list[Directory] = []
        self._namespaces = Namespaces(host.path("/proc"))
        self._others = Seen([], [], [], [])
        self._looked_at_s = -math.inf
        self._let_go: dict[str, float] = {}
        """Files whose lock was free, with when they were written last: it stays free."""
        self._pids = _Names(host.path("/proc"))

    def look(self, now_s: float, budget: Budget) -> Looked:
        """What is there now: trusted users' directories first, then those of the others."""
        self._find(now_s, budget)
        self._pids = _Names(self._host.path("/proc"))
        found: list[Place] = []
        troubles: list[Trouble] = []
        for directory in sorted(self._directories, key=lambda d: not _is_sure(d, budget)):
            if directory.trouble:
                troubles.append(Trouble(directory, directory.trouble))
                continue
            try:
                here, why = _listed(directory, budget, self._pids)
                found += here
                troubles += [Trouble(directory, why)] if why else []
            except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
                pass
            except PermissionError:
                troubles.append(Trouble(directory, "cannot be read", is_denied=True))
            except OSError as error:
                troubles.append(Trouble(directory, f"cannot be read: {error.strerror or error}"))
        # A directory may be shared, and then it is found among the mounts of each who shares it.
        own = {place.identity: place for place in reversed(found)}
        ordered = _ordered(own.values(), budget, self._lives)
        if len(self._let_go) > len(found):
            there = {place.path for place in found}
            self._let_go = {path: at for path, at in self._let_go.items() if path in there}
        return Looked(ordered, troubles, self._others)

    def _find(self, now_s: float, budget: Budget) -> None:
        override = self._host.segment_dir
        if override is not None:
            self._directories = [Directory(override, None)]
        elif now_s - self._looked_at_s >= self._every_s():
            self._directories = [*places.directories(self._host.root)]
            if self._host.root == "/":
                self._others = self._namespaces.look(budget)
                self._directories += self._others.directories
            self._looked_at_s = now_s

    def _every_s(self) -> float:
        return AGAIN_S if self._namespaces.have_changed() else DIRECTORIES_EVERY_S

    def _lives(self, place: Place) -> bool:
        """Whether its process is there by its number, or, in another namespace, by its lock."""
        if str(place.pid) in self._pids and self._is_there(place):
            return True
        if self._let_go.get(place.path) == place.written_s:
            return False
        is_held = lock.is_held_at(place.path, opener(place))
        if is_held is False:
            self._let_go[place.path] = place.written_s
        return is_held is True

    def _is_there(self, place: Place) -> bool:
        return identity.start_ticks(self._host.path("/proc"), place.pid) == place.start_ticks


class _Names:
    """The names in a directory, listed when one is asked for."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._known: frozenset[str] | None = None

    def __contains__(self, name: object) -> bool:
        if self._known is None:
            self._known = frozenset(places.names(self._directory, places.PROCESSES_MOST))
        return name in self._known

    def named(self, directory: str) -> Iterator[Place]:
        """The segments in a directory that are named after the processes that are listed here."""
        for name in places.names(self._directory, places.PROCESSES_MOST):
            ticks = identity.start_ticks(self._directory, int(name)) if name.isdecimal() else None
            if ticks is not None:
                path = f"{directory}/{places.segment_name(int(name), ticks)}"
                try:
                    yield places.place(path, (int(name), ticks), os.lstat(path))
                except OSError:
                    continue  # most have none


def _is_sure(directory: Directory, budget: Budget) -> bool:
    return directory.uid is None or budget.is_trusted(directory.uid)


def _listed(directory: Directory, budget: Budget, living: _Names) -> tuple[list[Place], str]:
    """The segments in a directory, and why not all of it was looked at; a file that another user
    has put there is no segment. Where there are too many, those of the `living` are looked for by
    their names: no crowd hides them. Raises OSError.
    """
    if directory.uid is None:
        most = places.ENTRIES_MOST
        found = places.segments(directory.path, None, most)
        if found.entries > most:
            every = (*found.places, *living.named(directory.path))
            by_path = {place.path: place for place in every}
            found = found._replace(places=[*by_path.values()])
    else:
        payer = directory.uid if directory.payer is None else directory.payer
        if directory.within and (why := budget.lateness(payer)):
            return [], f"was not looked into: {why}"
        most = max(0, budget.left(payer).files)
        with spent(budget, payer):
            if directory.within:
                found = segments(directory, most)
            else:
                first = living if most else None  # to sort names of which none is looked at is vain
                found = places.segments(directory.path, directory.uid, most, first)
        budget.spend(payer, NOTHING._replace(files=found.entries))
    return found.places, f"has over {most} files: not all read" if found.entries > most else ""


def _ordered(found: Iterable[Place], budget: Budget, lives: Callable[[Place], bool]) -> list[Place]:
    """Own and root's first. Then one of each user, then another one of each, so that no user is
    last because of the many of others; and of each the living ones first.
    """
    by_user: dict[int, list[Place]] = {}
    for place in found:
        by_user.setdefault(place.charged, []).append(place)
    ranked = []
    for uid, own in by_user.items():
        is_first = budget.is_trusted(uid)
        with spent(budget, uid):
            ordered = _living_first(own, budget.left(uid), lives)
        ranked += [((not is_first, rank, uid), place) for rank, place in enumerate(ordered)]
    return [place for _, place in sorted(ranked, key=lambda pair: pair[0])]


def _living_first(own: list[Place], left: Limits, lives: Callable[[Place], bool]) -> list[Place]:
    """Those that are written to, in an order that stays, then the newest. Where not all can be
    read, those whose process is there come before.
    """
    now_s = time.time()
    is_crowded = len(own) > left.segments or sum(place.bytes for place in own) > left.bytes
    known = _asked(own, left.cpu_s, lives) if is_crowded else {}

    def rank(place: Place) -> tuple[int, bool, float, str]:
        is_written = now_s - place.written_s < RECENT_S
        may_end = {True: 0, None: 1, False: 2}[known.get(place.path)]
        return (may_end, not is_written, 0.0 if is_written else -place.written_s, place.path)

    return sorted(own, key=rank)


def _asked(own: list[Place], cpu_s: float, lives: Callable[[Place], bool]) -> dict[str, bool]:
    """Which of them live, the newest asked first, as long as that leaves half the time to read."""
    until_s = time.thread_time() + cpu_s / 2
    known = {}
    for place in sorted(own, key=lambda place: -place.written_s):
        if time.thread_time() > until_s:
            break
        known[place.path] = lives(place)
    return known
