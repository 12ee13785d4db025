"""What to ask one metrics server, and when; and what it answered last. No I/O, no clock."""

from __future__ import annotations

import math
from collections.abc import Container

from tpusmi.model import Latency, Reading, RowKey
from tpusmi.sources.libtpu.answers import Answer
from tpusmi.sources.libtpu.names import GAUGE, NAMES, Name

LIST_EVERY_S = 300.0
PROGRAMS_EVERY_S = 5.0
REFUSED_S = 60.0
"""What the server does not have is not asked for again sooner."""
IDS_MOST = 1024
_MEMORY = ("hbm_used_bytes", "hbm_limit_bytes")


class Questions:
    """Of one server, for as long as it is the same one."""

    def __init__(self, metrics: Container[str] | None = None) -> None:
        """`metrics` are those that are wanted; None is all of them."""
        self.listed: frozenset[str] | None = None
        """What the server says it has; None when it does not say."""
        self._wanted = [n for n in NAMES if n.grpc and (metrics is None or n.metric in metrics)]
        self._answers: dict[Name, Answer] = {}
        self._again_at_s: dict[Name, float] = {}
        self._list_at_s = -math.inf
        self._programs_at_s = -math.inf
        # In the order in which they were reported last: those that come again stay.
        self._ids: dict[bool, list[int]] = {True: [], False: []}

    def is_list_due(self, now_s: float) -> bool:
        """True when the server should say (again) what it has."""
        return now_s >= self._list_at_s

    def learn(self, names: frozenset[str], now_s: float) -> None:
        """The server has said what it has; nothing means that it does not say."""
        self.listed = names or None
        self._list_at_s = now_s + LIST_EVERY_S

    def due(self, now_s: float) -> list[Name]:
        """What to ask for now. It counts as asked, whatever comes of it."""
        found = [
            name
            for name in self._wanted
            if (self.listed is None or name.grpc in self.listed)
            and now_s >= self._again_at_s.get(name, -math.inf)
        ]
        self._again_at_s.update((name, now_s + name.every_s) for name in found)
        return found

    def unanswered(self, name: Name) -> None:
        """The server took too long: it is asked again the next time."""
        self._again_at_s.pop(name, None)

    def are_programs_due(self, now_s: float) -> bool:
        """True when the state of the cores may be asked for. It counts as asked."""
        if now_s < self._programs_at_s:
            return False
        self._programs_at_s = now_s + PROGRAMS_EVERY_S
        return True

    def answered(self, name: Name, answer: Answer) -> None:
        """The server has answered; nothing takes the place of what it answered before, too."""
        self._answers[name] = answer
        if name.shape == GAUGE:
            is_memory = name.metric in _MEMORY
            new = {r.subject.id for r in answer.readings if isinstance(r.subject, RowKey)}
            kept = [id for id in self._ids[is_memory] if id not in new]
            self._ids[is_memory] = [*kept, *sorted(new)][-IDS_MOST:]

    def refused(self, name: Name, now_s: float) -> None:
        """The server does not have it."""
        self._answers.pop(name, None)
        self._again_at_s[name] = now_s + REFUSED_S

    @property
    def unlisted(self) -> tuple[str, ...]:
        """The gauges we would show and the server does not list; none when it does not list."""
        if self.listed is None:
            return ()
        return tuple(
            n.metric for n in self._wanted if n.shape == GAUGE and n.grpc not in self.listed
        )

    @property
    def readings(self) -> tuple[Reading, ...]:
        return tuple(r for answer in self._answers.values() for r in answer.readings)

    @property
    def latencies(self) -> tuple[Latency, ...]:
        return tuple(found for answer in self._answers.values() for found in answer.latencies)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for answer in self._answers.values() for note in answer.notes)

    @property
    def ids(self) -> tuple[int, ...]:
        """Every device id ever reported, up to IDS_MOST. Memory decides: a duty cycle can be
        that of a chip.
        """
        return tuple(sorted(self._ids[True] or self._ids[False]))
