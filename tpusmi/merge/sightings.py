"""Since when a viewer has seen each notice. No clock of its own."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tpusmi.model import Notice, Snapshot

GAP_S = 5.0
"""A notice that disappears for no longer than this keeps its age."""
SIGHTINGS_MOST = 1024
"""How many notices are remembered; the age of any others is unknown."""


class _Sighting(NamedTuple):
    first_s: float
    gone_s: float | None = None
    """When it was first looked for and not there; None while it is there."""


class Sightings:
    """When each notice was first seen. Its words may change: its identity does not."""

    def __init__(self) -> None:
        self._by_identity: Mapping[object, _Sighting] = {}

    def with_ages(self, s: Snapshot) -> Snapshot:
        """The snapshot with the ages of its notices."""
        return s._replace(warnings=self.aged(s.warnings, s.at_s))

    def aged(self, notices: Iterable[Notice], now_s: float) -> tuple[Notice, ...]:
        """The notices, with how long each has been seen unless it has an age of its own. None at
        first sight: the problem may be older.
        """
        notices = tuple(notices)
        current = dict.fromkeys(n.identity for n in notices)
        kept: dict[object, _Sighting] = {}
        for identity, sighting in self._by_identity.items():
            gone_s = now_s if sighting.gone_s is None else sighting.gone_s
            if now_s - gone_s <= GAP_S:
                still_gone_s = None if identity in current else gone_s
                kept[identity] = sighting._replace(gone_s=still_gone_s)
        for identity in current:
            if len(kept) < SIGHTINGS_MOST:
                kept.setdefault(identity, _Sighting(now_s))
        self._by_identity = kept
        return tuple(self._with_age(n, now_s) for n in notices)

    def _with_age(self, n: Notice, now_s: float) -> Notice:
        sighting = self._by_identity.get(n.identity)
        if n.since_s is not None or sighting is None or now_s <= sighting.first_s:
            return n
        return n._replace(since_s=now_s - sighting.first_s)
